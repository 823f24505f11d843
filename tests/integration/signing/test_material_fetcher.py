"""The role with a network fetches what signing workers want, and publishes nothing.

Source: design §3, 5; reliability F22, F24; docs/signing.md "Material from outside".
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest
from sqlalchemy import select

from appliance.bootstrap import WorkChannel
from appliance.database.tables import activation
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, RequestId
from appliance.domain.pki.outside_material import (
    Material,
    MaterialKind,
    MaterialState,
    WantedMaterial,
    status_subject,
)
from appliance.domain.vocab import RequestState
from appliance.settings import SigningSettings
from appliance.signing.claims import ClaimedActivation
from appliance.signing.outside_material import MaterialDesk
from tests.integration.signing.claims import a_timestamp
from tests.support.installation.record import (
    CERTIFICATE,
    CoreFixture,
    keyed,
    prepared,
)
from worker.network.material_fetcher import MaterialFetcher

HANDS: Final = 2
LEASE_S: Final = 10


@dataclass
class PlayedServers:
    """Servers that answer when they are let, or never; remembers what was asked."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    refusal: ErrorCode | None = None
    refused: MaterialKind | None = None
    """What is refused; None: all."""
    asked: list[Material] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    full: asyncio.Event = field(default_factory=asyncio.Event)
    """No hand is free."""

    async def timestamp(self, material: Material) -> bytes:
        """A token that names what it is over."""
        await self.status(material)
        return bytes.fromhex(material.subject["imprint"])

    async def status(self, material: Material) -> None:
        """Something is kept elsewhere."""
        self.asked.append(material)
        self.entered.set()
        if len(self.asked) == HANDS:
            self.full.set()
        await self.gate.wait()
        if self.refusal is not None and self.refused in {None, material.kind}:
            raise ApplianceError(self.refusal)


@dataclass
class Bell:
    """Who was notified of what."""

    rung: list[str] = field(default_factory=list)

    async def notify(self, work: str) -> None:
        """See `WorkNotifier`."""
        self.rung.append(work)


@dataclass
class Scene:
    """A worker of two hands."""

    core: CoreFixture
    servers: PlayedServers
    bell: Bell
    worker: MaterialFetcher

    async def keyed(self) -> ClaimedActivation:
        """A document that is signed, in the hands of a signing worker."""
        self.core.clock.forward(0.1)
        person = await self.core.add_signer()
        request = await self.core.add_request(person.person)
        await self.core.begin(person, [request])
        signing = self.core.claiming()
        work = await signing.claim_next()
        assert work is not None
        (document,) = work.claim.documents
        assert await signing.intend(work.claim, [prepared(document)], CERTIFICATE)
        assert await signing.record_signatures(work.claim, [keyed(document)])
        return work

    async def want(self, *wanted: WantedMaterial) -> tuple[ActivationId, RequestId]:
        """A document that is signed, and lacks these."""
        work = await self.keyed()
        signing = self.core.claiming()
        assert await signing.want(work.claim, wanted or [a_timestamp()])
        return work.claim.id, work.claim.documents[0].request

    async def states(self, job: str) -> list[MaterialState]:
        """How far a job's material is."""
        desk = MaterialDesk(self.core.store, self.core.clock, self.worker.settings)
        found, _ = await desk.of(job)
        return sorted(one.state for one in found)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The worker works meanwhile, and then finishes what it has in hand."""
        stop = asyncio.Event()
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(self.worker.run(stop))
            try:
                yield
            finally:
                self.servers.gate.set()
                stop.set()


async def never() -> AsyncIterator[None]:
    """No message ever."""
    await asyncio.Event().wait()
    yield None


@pytest.fixture
def scene(core: CoreFixture) -> Scene:
    """Nothing is wanted yet."""
    nothing: Any = None
    channel = WorkChannel(
        "queue", "job", nothing, never, lambda _: b"", lambda _: dict[str, Any]()
    )
    settings = SigningSettings(concurrency=HANDS, poll_s=0.05, lease_s=LEASE_S)
    servers, bell = PlayedServers(), Bell()
    worker = MaterialFetcher(core.fetching(), servers, channel, bell, settings)
    return Scene(core, servers, bell, worker)


async def test_what_is_wanted_is_fetched_and_published_by_another(scene: Scene) -> None:
    """All of it, also what comes while the worker runs; signing is woken at once."""
    first, request = await scene.want()
    assert await scene.core.claiming().claim_next() is None
    scene.servers.gate.set()
    async with scene.working():
        second, _ = await scene.want()
        await scene.servers.full.wait()

    assert scene.bell.rung == [first, second]
    for job in (first, second):
        assert await scene.states(job) == [MaterialState.THERE]
    assert (await scene.core.view(request)).state is RequestState.IN_PROGRESS
    work = await scene.core.claiming().claim_next()
    assert work is not None
    assert (work.claim.id, work.claim.tries) == (first, 1)


async def test_worker_takes_over_from_an_earlier_start(scene: Scene) -> None:
    """Of the same slot, which is dead; its lease need not run out."""
    job, _ = await scene.want()
    assert await scene.core.fetching().claim_next() is not None
    async with scene.working():
        await scene.servers.entered.wait()

    assert await scene.states(job) == [MaterialState.THERE]


async def test_worker_keeps_what_it_has_in_hand(scene: Scene) -> None:
    """Its next look for work releases none of it to others."""
    await scene.want()
    async with scene.working():
        await scene.servers.entered.wait()
        await scene.want()
        await scene.servers.full.wait()

        scene.core.clock.forward(1)
        assert await scene.core.fetching("chores/h/2").claim_next() is None


async def test_material_that_waits_rests_longer_each_time(scene: Scene) -> None:
    """The authority of timestamps is away: two seconds, then four."""
    job, request = await scene.want()
    scene.servers.refusal = ErrorCode.TSA_UNAVAILABLE
    scene.servers.gate.set()
    for rest in (2, 4):
        scene.servers.entered.clear()
        async with scene.working():
            await scene.servers.entered.wait()

        scene.core.clock.forward(rest - 0.5)
        assert await scene.core.fetching("chores/h/2").claim_next() is None
        scene.core.clock.forward(0.5)

    claim = await scene.core.fetching("chores/h/2").claim_next()
    assert claim is not None
    assert (claim.id, claim.tries) == (job, 3)
    assert await scene.states(job) == [MaterialState.WANTED]
    assert scene.bell.rung == []
    assert (await scene.core.view(request)).state is RequestState.IN_PROGRESS


async def test_what_is_not_required_is_tried_once(scene: Scene) -> None:
    """The signing worker is told that it is not to be had, and goes on without."""
    job, _ = await scene.want(a_timestamp(is_required=False))
    scene.servers.refusal = ErrorCode.TSA_UNAVAILABLE
    async with scene.working():
        await scene.servers.entered.wait()

    assert await scene.states(job) == [MaterialState.FAILED]
    assert scene.bell.rung == [job]
    assert await scene.core.claiming().claim_next() is not None


async def test_one_that_cannot_be_had_keeps_none_of_the_others(scene: Scene) -> None:
    """What was had is there before what is waited for."""
    subject = status_subject(b"certificate", b"issuer", None)
    code = ErrorCode.REVOCATION_UNAVAILABLE
    job, _ = await scene.want(
        a_timestamp(), WantedMaterial(MaterialKind.STATUS, subject, code)
    )
    scene.servers.refusal = code
    scene.servers.refused = MaterialKind.STATUS
    async with scene.working():
        await scene.servers.entered.wait()

    assert await scene.states(job) == [MaterialState.THERE, MaterialState.WANTED]
    assert scene.bell.rung == [job]


async def test_database_that_is_away_ends_nothing(scene: Scene) -> None:
    """Its claim is left, and taken again when the lease is over."""
    job, _ = await scene.want()
    scene.servers.refusal = ErrorCode.STORE_UNAVAILABLE
    async with scene.working():
        await scene.servers.entered.wait()

    assert await scene.states(job) == [MaterialState.WANTED]
    other = scene.core.fetching("chores/h/2")
    assert await other.claim_next() is None
    scene.core.clock.forward(LEASE_S)
    assert await other.claim_next() is not None


async def test_signing_goes_on_by_itself_where_nobody_fetches(scene: Scene) -> None:
    """After three leases' time it is told that the other role neglects it."""
    job, _ = await scene.want()
    desk = MaterialDesk(scene.core.store, scene.core.clock, scene.worker.settings)
    scene.core.clock.forward(3 * LEASE_S - 1)
    assert await scene.core.claiming().claim_next() is None
    assert (await desk.of(job))[1] is False
    scene.core.clock.forward(1)
    assert (await desk.of(job))[1] is True
    assert await scene.core.claiming().claim_next() is not None


async def test_what_is_neglected_is_left_to_the_version_before(scene: Scene) -> None:
    """Its chores know of no jobs; once a job is done, it is signing's again."""
    job, _ = await scene.want()
    signing = scene.core.claiming()
    scene.core.clock.forward(3 * LEASE_S)
    work = await signing.claim_next()
    assert work is not None
    assert await signing.want(work.claim, [a_timestamp()])

    async def left() -> bool:
        async with scene.core.store.read() as transaction:
            query = select(activation.c.outside).where(
                activation.c.id == job, activation.c.lease_until <= scene.core.now
            )
            return bool(await transaction.connection.scalar(query))

    assert await left()
    assert await signing.claim_next() is None
    scene.servers.gate.set()
    async with scene.working():
        await scene.servers.entered.wait()
    assert not await left()
    assert await signing.claim_next() is not None


async def test_worker_that_lost_its_lease_writes_nothing(scene: Scene) -> None:
    """Another one has claimed since; and what is over is deleted."""
    job, _ = await scene.want()
    frozen = scene.core.fetching("chores/h/2")
    claim = await frozen.claim_next()
    assert claim is not None
    scene.core.clock.forward(LEASE_S)
    other = scene.core.fetching("chores/h/3")
    assert await other.claim_next() is not None

    (piece,) = claim.wanted
    assert not await frozen.deliver(claim, piece, b"token")
    assert not await frozen.missed(claim, piece, "away")
    assert await scene.states(job) == [MaterialState.WANTED]
    assert await other.forget() == 0
    scene.core.clock.forward(timedelta(hours=1).total_seconds())
    assert await other.forget() == 1
    assert await scene.states(job) == []


async def test_what_was_refused_is_fetched_again_after_a_rest(scene: Scene) -> None:
    """With another nonce; the signing worker waits for it."""
    job, _ = await scene.want(a_timestamp(nonce=1))
    scene.servers.gate.set()
    async with scene.working():
        await scene.servers.entered.wait()
    signing = scene.core.claiming()
    work = await signing.claim_next()
    assert work is not None
    assert await signing.want(work.claim, [a_timestamp(nonce=2, again=True)])

    fetching = scene.core.fetching("chores/h/2")
    assert await fetching.claim_next() is None
    scene.core.clock.forward(LEASE_S)
    claim = await fetching.claim_next()
    assert claim is not None
    (piece,) = claim.wanted
    assert (claim.id, piece.nonce, piece.token) == (job, 2, None)
