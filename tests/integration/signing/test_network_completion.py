"""The role that has a network finishes what signing workers handed out to it.

Source: design §3, 5; reliability F22, F24.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import pytest

from appliance.bootstrap import WorkChannel
from appliance.domain.activation import ActivationDocument
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, RequestId
from appliance.domain.vocab import RequestState
from appliance.settings import SigningSettings
from appliance.signing.claims import ClaimedActivation, Claims, Publication
from tests.support.installation.record import (
    CERTIFICATE,
    CoreFixture,
    keyed,
    prepared,
    signed_view,
)
from worker.signing.completion import Completion
from worker.signing.network_completion import NetworkCompletion

HANDS: Final = 2
SLOT: Final = "chores/h/1"


@dataclass
class PlayedCompletion:
    """Completes documents when it is let, or refuses them; remembers the order."""

    core: CoreFixture
    claims: Claims
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    refusal: ErrorCode | None = None
    begun: list[RequestId] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    full: asyncio.Event = field(default_factory=asyncio.Event)
    """No hand is free."""

    async def resume(
        self, work: ClaimedActivation, document: ActivationDocument
    ) -> None:
        """Publish it, as `Completion` does."""
        self.begun.append(document.request)
        self.entered.set()
        if len(self.begun) == HANDS:
            self.full.set()
        await self.gate.wait()
        if self.refusal is not None:
            raise ApplianceError(self.refusal)
        view = signed_view(await self.core.view(document.request))
        assert await self.claims.publish(work.claim, [Publication(document, view)])


@dataclass
class Scene:
    """A worker of two hands."""

    core: CoreFixture
    claims: Claims
    completion: PlayedCompletion
    worker: NetworkCompletion

    async def hand_out(self) -> tuple[ActivationId, RequestId]:
        """A document that is signed, and lacks what a network has."""
        self.core.clock.forward(0.1)
        person = await self.core.add_signer()
        request = await self.core.add_request(person.person)
        activation = await self.core.begin(person, [request])
        signing = self.core.claiming()
        work = await signing.claim_next()
        assert work is not None
        (document,) = work.claim.documents
        assert await signing.intend(work.claim, [prepared(document)], CERTIFICATE)
        assert await signing.record_signatures(work.claim, [keyed(document)])
        await signing.hand_out(work.claim, ErrorCode.TSA_UNAVAILABLE)
        return activation, request

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The worker works meanwhile, and then finishes what it has in hand."""
        stop = asyncio.Event()
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(self.worker.run(stop))
            try:
                yield
            finally:
                self.completion.gate.set()
                stop.set()


async def never() -> AsyncIterator[None]:
    """No message ever."""
    await asyncio.Event().wait()
    yield None


@pytest.fixture
def scene(sqlite_core: CoreFixture) -> Scene:
    """Nothing is handed out yet."""
    claims = sqlite_core.claiming(SLOT, outside=True)
    completion = PlayedCompletion(sqlite_core, claims)
    channel = WorkChannel(
        "queue",
        "job",
        cast("Any", None),
        never,
        lambda _: b"",
        lambda _: dict[str, Any](),
    )
    settings = SigningSettings(concurrency=HANDS, poll_s=0.05)
    worker = NetworkCompletion(
        claims, cast("Completion", completion), channel, settings
    )
    return Scene(sqlite_core, claims, completion, worker)


async def test_what_is_handed_out_is_finished(scene: Scene) -> None:
    """All of it, also what comes while the worker runs."""
    _, first = await scene.hand_out()
    scene.completion.gate.set()
    async with scene.working():
        _, second = await scene.hand_out()
        await scene.completion.full.wait()

    assert scene.completion.begun == [first, second]
    for request in (first, second):
        assert (await scene.core.view(request)).state is RequestState.SIGNED


async def test_worker_takes_over_from_an_earlier_start(scene: Scene) -> None:
    """Of the same slot, which is dead; its lease need not run out."""
    _, request = await scene.hand_out()
    assert await scene.claims.claim_next() is not None
    async with scene.working():
        await scene.completion.entered.wait()

    assert scene.completion.begun == [request]


async def test_worker_keeps_what_it_has_in_hand(scene: Scene) -> None:
    """Its next look for work releases none of it to others."""
    _, first = await scene.hand_out()
    async with scene.working():
        await scene.completion.entered.wait()
        _, second = await scene.hand_out()
        await scene.completion.full.wait()

        scene.core.clock.forward(1)
        other = scene.core.claiming("chores/h/2", outside=True)
        assert await other.claim_next() is None

    assert scene.completion.begun == [first, second]


async def test_document_that_waits_rests_longer_each_time(scene: Scene) -> None:
    """The authority of timestamps is away: two seconds, then four."""
    activation, request = await scene.hand_out()
    scene.completion.refusal = ErrorCode.TSA_UNAVAILABLE
    scene.completion.gate.set()
    for rest in (2, 4):
        scene.completion.entered.clear()
        async with scene.working():
            await scene.completion.entered.wait()

        scene.core.clock.forward(rest - 0.5)
        assert await scene.claims.claim_next() is None
        scene.core.clock.forward(0.5)

    work = await scene.claims.claim_next()
    assert work is not None
    assert (work.claim.id, work.claim.tries) == (activation, 3)
    assert (await scene.core.view(request)).state is RequestState.IN_PROGRESS


@pytest.mark.parametrize(
    ("refusal", "state"),
    [
        (ErrorCode.STORE_UNAVAILABLE, RequestState.IN_PROGRESS),
        (ErrorCode.SIGNING_FAILED, RequestState.FAILED),
    ],
)
async def test_other_refusal(
    scene: Scene, refusal: ErrorCode, state: RequestState
) -> None:
    """A database that is away ends no document; what is wrong with one ends it."""
    _, request = await scene.hand_out()
    scene.completion.refusal = refusal
    scene.completion.gate.set()
    async with scene.working():
        await scene.completion.entered.wait()

    assert (await scene.core.view(request)).state is state
