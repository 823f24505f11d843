"""The worker's turns: whose document is signed when, over the real record.

The HSM's part is played: what signs a document waits until the test lets it.

Source: design §3 "a batch never holds it for two in a row".
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from appliance.bootstrap import Core
from appliance.bootstrap.core import WorkChannel
from appliance.documents.local.blob_store import LocalBlobStore
from appliance.domain.errors import (
    ActivationInvalidError,
    ApplianceError,
    DocumentsAwayError,
    ErrorCode,
)
from appliance.domain.ids import ActivationId, RequestId
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.domain.requests.request import Signer
from appliance.domain.signing.activation import ActivationDocument, Claim
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.domain.vocab import ActivationState, ItemState, RequestState
from appliance.keys.credential_store import CredentialStore
from appliance.keys.health import signing_workers
from appliance.settings import SigningSettings
from appliance.signing.claims import ClaimedActivation, Claims, Publication
from appliance.system.clock_check import ClockCheck
from tests.support.factories.fakes import AlwaysServed, FixedDocumentKeys
from tests.support.installation.record import CoreFixture, keyed, prepared, signed_view
from worker.hsm.connection import HsmStatus
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.pki.hsm_tasks import TaskRunner
from worker.signing.activation_keys import ActivationKeys
from worker.signing.aging_seals import SealRenewal
from worker.signing.document_signer import DocumentSigner, GroupResult
from worker.signing.level_maintenance import LevelUpkeep
from worker.signing_role import SigningWorker


@dataclass
class PlayedSigner:
    """Signs groups of documents, when it is let; remembers the order."""

    core: CoreFixture
    claims: Claims
    begun: list[RequestId] = field(default_factory=list)
    certificates: list[bytes] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    together: int = 1
    """Documents of a group."""
    away: ItemState | None = None
    """Where in a document's signing the store of documents is away."""
    hsm_is_slow: bool = False
    refusal: ErrorCode | None = None
    """Why no group is signed at all."""

    bound: bytes | None = None
    """The certificate that the seals are bound to; None: to none."""
    over_with: list[RequestId] = field(default_factory=list)
    """Of what ended without a signature."""

    async def unlock(self, work: ClaimedActivation) -> object:
        """Any key will do, with the certificate that was consented to."""
        assert work.credential is not None
        if self.bound not in {None, work.credential.certificate}:
            layer = "seal"
            raise ActivationInvalidError(layer)
        return work.claim.id

    def over(self, claim: Claim, documents: Sequence[ActivationDocument]) -> None:
        """Remember them."""
        del claim
        self.over_with += [document.request for document in documents]

    def next_group(
        self, work: ClaimedActivation, left: Sequence[ActivationDocument]
    ) -> Sequence[ActivationDocument]:
        """One, or as many as the test wants together."""
        del work
        return left[: self.together]

    async def sign(
        self,
        work: ClaimedActivation,
        group: Sequence[ActivationDocument],
        key: object,
        turn: object,
    ) -> GroupResult:
        """Publish them."""
        del turn
        assert key == work.claim.id
        assert work.credential is not None
        self.begun += [item.request for item in group]
        certificate = work.credential.certificate
        self.certificates.append(certificate)
        self.entered.set()
        if self.refusal is not None:
            raise ApplianceError(self.refusal)
        away = {item.seq: DocumentsAwayError() for item in group}
        if self.away is ItemState.WAITING:
            return GroupResult(ended={**away})
        await self.gate.wait()
        claim = work.claim
        assert await self.claims.intend(claim, [*map(prepared, group)], certificate)
        assert await self.claims.record_signatures(claim, [*map(keyed, group)])
        if self.away is ItemState.KEYED:
            return GroupResult(ended={**away})
        publications = [
            Publication(item, signed_view(await self.core.view(item.request)))
            for item in group
        ]
        assert await self.claims.publish(claim, publications)
        return GroupResult()


class NoUpkeep:
    """Nothing is due."""

    async def run(self) -> int:
        """See `LevelUpkeep`."""
        return 0


class NoSeals:
    """No seal is to be renewed."""

    async def run(self) -> int:
        """See `SealRenewal`."""
        return 0


class NoTasks:
    """There is no task."""

    async def claim_next(self) -> object | None:
        """None."""
        return None

    async def renew(self, task: object) -> bool:
        """See `TaskRunner`."""
        del task
        return True

    async def run(self, task: object) -> None:
        """See `TaskRunner`."""

    async def sweep(self) -> int:
        """Nothing to sweep."""
        return 0


@dataclass
class AwaitedTask(NoTasks):
    """A task that makes what the documents in work wait for."""

    gate: asyncio.Event
    left: int = 1
    id: str = "task"

    async def claim_next(self) -> object | None:
        """It, once."""
        self.left -= 1
        return self if self.left == 0 else None

    async def run(self, task: object) -> None:
        """Make it."""
        assert task is self
        self.gate.set()


class ReadyHsm:
    """An HSM that is there."""

    status = HsmStatus.READY
    reason = ""

    def status_of(self, role: TokenRole) -> HsmStatus:
        """The same of each token."""
        del role
        return HsmStatus.READY


class NoKeys:
    """Activation keys that need no keeping."""

    async def keep(self) -> None:
        """Nothing."""


async def never() -> AsyncIterator[None]:
    """No message ever."""
    await asyncio.Event().wait()
    yield None


async def redis_away() -> Any:
    """There is no Redis.

    Raises:
        OSError: always.
    """
    raise OSError


@dataclass
class Scene:
    """A worker of some hands, and somebody who signs."""

    core: CoreFixture
    worker: SigningWorker
    signer: PlayedSigner
    person: Signer
    stop: asyncio.Event

    def give(self, task: "AwaitedTask") -> None:
        """Have the worker find a task."""
        self.worker = replace(self.worker, tasks=cast("TaskRunner", task))

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The worker works meanwhile, and is stopped after."""
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(self.worker.run(self.stop))
            try:
                yield
            finally:
                self.signer.gate.set()
                self.stop.set()

    async def activation(self, items: int) -> tuple[ActivationId, list[RequestId]]:
        """An activation over fresh requests; later ones are younger."""
        self.core.clock.forward(0.1)
        requests = [
            await self.core.add_request(self.person.person) for _ in range(items)
        ]
        return await self.core.begin(self.person, requests), requests

    async def suspect(self, items: int) -> tuple[ActivationId, list[RequestId]]:
        """An activation that three workers died of; `find` has it found."""
        found = await self.activation(items)
        for _ in range(3):
            assert await self.core.claiming("signing/h/2").claim_next() is not None
            self.core.clock.forward(10)
        assert await self.core.claiming("signing/h/2").claim_next() is not None
        return found

    async def find(self) -> None:
        """Let the worker have the suspect."""
        assert await self.core.claiming("signing/h/2").release_own() == 1

    async def until(self, activation: ActivationId, state: ActivationState) -> None:
        """Wait until an activation is in a state."""
        while True:
            now, _ = await self.core.activation_state(activation)
            if now is state:
                return
            await asyncio.sleep(0.02)

    async def first_beat(self) -> list[WorkerStatus]:
        """Wait for the worker's first sign of life."""
        async with asyncio.timeout(60):
            while True:
                if alive := await signing_workers(self.core.store, self.core.clock):
                    return alive
                await asyncio.sleep(0.02)

    async def until_held_back(self) -> None:
        """Wait until the worker knows that something is to be signed alone."""
        async with asyncio.timeout(60):
            while not self.worker._suspect_waits:  # noqa: ASYNC110 (it tells nobody)
                await asyncio.sleep(0.02)

    async def states(self, requests: list[RequestId]) -> list[RequestState]:
        """How requests stand."""
        return [(await self.core.view(request)).state for request in requests]


async def no_time() -> None:
    """There is no other clock."""


async def scene_of(
    core: CoreFixture, hands: int, clock_check: ClockCheck | None = None
) -> Scene:
    """A worker with that many hands for single documents."""
    signing = SigningSettings(concurrency=hands, poll_s=0.05)
    claims = core.claiming()
    signer = PlayedSigner(core, claims)
    channel = WorkChannel(
        "queue", "job", redis_away, never, lambda _: b"", lambda _: dict[str, Any]()
    )
    parts = Core(
        settings=core.settings.model_copy(update={"signing": signing}),
        clock=core.clock,
        process="p",
        store=core.store,
        documents=LocalBlobStore(core.settings.documents_dir, FixedDocumentKeys()),
        inspector=cast("Any", None),
        work_notifier=core.work_notifier,
        completion_notifier=core.completion_notifier,
        work_channel=channel,
        tables=cast("Any", None),
        clock_check=clock_check or ClockCheck(core.clock, no_time, lambda: None),
        redis_answers=cast("Any", None),
    )
    worker = SigningWorker(
        parts,
        claims,
        cast("DocumentSigner", signer),
        cast("TaskRunner", NoTasks()),
        cast("ActivationKeys", NoKeys()),
        cast("HsmSession", ReadyHsm()),
        "signing/h/1",
        cast("LevelUpkeep", NoUpkeep()),
        cast("GenerationCheck", AlwaysServed()),
        cast("SealRenewal", NoSeals()),
    )
    return Scene(core, worker, signer, await core.add_signer(), asyncio.Event())


async def test_nothing_is_signed_by_a_wrong_clock(core: CoreFixture) -> None:
    """Neither document nor task is taken, and fronts are told; until it is right."""
    apart = timedelta(seconds=5.1)

    async def database() -> datetime:
        return core.clock.now() + apart

    check = ClockCheck(core.clock, database, lambda: None)
    scene = await scene_of(core, hands=1, clock_check=check)
    task = AwaitedTask(asyncio.Event())
    scene.give(task)
    activation, documents = await scene.activation(1)
    scene.signer.gate.set()
    async with scene.working():
        alive = await scene.first_beat()
        assert [(each.hsm, each.reason) for each in alive] == [
            ("unavailable", "the clock is more than 5 s off")
        ]
        scene.worker._worker.wake.set()
        await asyncio.sleep(0)
        assert (await core.activation_state(activation))[0] is ActivationState.WAITING
        assert not task.gate.is_set()
        apart = timedelta(seconds=4.9)
        # It is set: the next look is at once.
        core.clock.forward(2)
        await scene.until(activation, ActivationState.DONE)

    assert await scene.states(documents) == [RequestState.SIGNED]
    assert task.gate.is_set()


async def test_single_document_is_not_held_up_by_a_batch(core: CoreFixture) -> None:
    """It is the next one after the document that is in work as it comes."""
    scene = await scene_of(core, hands=1)
    batch, documents = await scene.activation(12)
    async with scene.working():
        await scene.signer.entered.wait()
        alone, (single,) = await scene.activation(1)
        await scene.until(alone, ActivationState.KEYING)
        scene.signer.gate.set()
        await scene.until(batch, ActivationState.DONE)

    assert scene.signer.begun == [documents[0], single, *documents[1:]]
    assert set(await scene.states([*documents, single])) == {RequestState.SIGNED}


async def test_task_is_run_beside_documents_that_wait_for_it(core: CoreFixture) -> None:
    """However many wait: as for the OCSP answer of the certificate they signed by."""
    scene = await scene_of(core, hands=1)
    scene.give(AwaitedTask(scene.signer.gate))
    waiting = [await scene.activation(1) for _ in range(3)]
    async with scene.working():
        for activation, _ in waiting:
            await scene.until(activation, ActivationState.DONE)

    assert scene.signer.begun == [request for _, (request,) in waiting]


async def test_task_is_run_for_a_document_that_is_in_hand_at_the_stop(
    core: CoreFixture,
) -> None:
    """It is finished as any other, not given up a level lower."""
    scene = await scene_of(core, hands=1)
    task = AwaitedTask(scene.signer.gate, left=0)
    scene.give(task)
    waiting, _ = await scene.activation(1)
    async with scene.working():
        await scene.signer.entered.wait()
        scene.stop.set()
        task.left = 1
        await scene.until(waiting, ActivationState.DONE)


async def test_batch_makes_way_for_what_is_signed_alone(core: CoreFixture) -> None:
    """And so do all who come meanwhile; none of them waits for the batch's end."""
    scene = await scene_of(core, hands=1)
    suspect, (feared,) = await scene.suspect(1)
    batch, documents = await scene.activation(12)
    async with scene.working():
        await scene.signer.entered.wait()
        await scene.find()
        later, _ = await scene.activation(1)
        await scene.until_held_back()
        scene.signer.gate.set()
        for activation in (suspect, later, batch):
            await scene.until(activation, ActivationState.DONE)

    assert scene.signer.begun[:2] == [documents[0], feared]
    assert len(scene.signer.begun) == 14


async def test_task_is_run_beside_what_is_signed_alone(core: CoreFixture) -> None:
    """It may wait for it like any other document."""
    scene = await scene_of(core, hands=1)
    suspect, _ = await scene.suspect(1)
    await scene.find()
    scene.give(AwaitedTask(scene.signer.gate))
    async with scene.working():
        await scene.until(suspect, ActivationState.DONE)


async def test_batch_is_alone_no_longer_than_feared(core: CoreFixture) -> None:
    """Its worker came through a document of it: others are taken beside the rest."""
    scene = await scene_of(core, hands=1)
    suspect, _ = await scene.suspect(3)
    await scene.find()
    async with scene.working():
        await scene.signer.entered.wait()
        later, _ = await scene.activation(1)
        scene.signer.gate.set()
        scene.signer.gate.clear()
        await scene.until(later, ActivationState.KEYING)
        scene.signer.gate.set()
        await scene.until(suspect, ActivationState.DONE)


async def test_batches_leave_hands_to_single_documents(
    sqlite_core: CoreFixture,
) -> None:
    """However many batches wait: a later one is not even begun before it."""
    scene = await scene_of(sqlite_core, hands=2)
    batches = [await scene.activation(3) for _ in range(4)]
    async with scene.working():
        await scene.signer.entered.wait()
        alone, (single,) = await scene.activation(1)
        await scene.until(alone, ActivationState.KEYING)
        scene.signer.gate.set()
        for batch, _ in batches:
            await scene.until(batch, ActivationState.DONE)

    assert scene.signer.begun[:2] == [batches[0][1][0], single]
    for _, documents in batches:
        # Each in its own order.
        places = [scene.signer.begun.index(each) for each in documents]
        assert places == sorted(places)


async def test_two_batches_take_turns(sqlite_core: CoreFixture) -> None:
    """Not two documents in a row while the other waits, with one hand even."""
    scene = await scene_of(sqlite_core, hands=1)
    one, ones = await scene.activation(3)
    async with scene.working():
        await scene.signer.entered.wait()
        other, others = await scene.activation(3)
        await scene.until(other, ActivationState.KEYING)
        scene.signer.gate.set()
        for batch in (one, other):
            await scene.until(batch, ActivationState.DONE)

    turns = [each for pair in zip(ones, others, strict=True) for each in pair]
    assert scene.signer.begun == turns


async def test_stopped_worker_takes_its_sign_of_life_back(core: CoreFixture) -> None:
    """Fronts seal to it no more, and `/readyz` does not wait until it is missed."""
    scene = await scene_of(core, hands=1)
    async with scene.working():
        await scene.first_beat()

    assert await signing_workers(core.store, core.clock) == []


async def test_stopped_worker_leaves_the_rest_of_a_batch(core: CoreFixture) -> None:
    """It ends the document in work; the next worker goes on after it at once."""
    scene = await scene_of(core, hands=1)
    batch, documents = await scene.activation(4)
    async with scene.working():
        await scene.signer.entered.wait()

    next_work = await core.claiming("signing/h/2").claim_next()

    assert scene.signer.begun == documents[:1]
    assert next_work is not None
    assert (next_work.claim.id, next_work.claim.tries) == (batch, 1)
    states = await scene.states(documents)
    assert states == [RequestState.SIGNED, *[RequestState.IN_PROGRESS] * 3]


@pytest.mark.parametrize("items", [1, 2])
async def test_item_is_prepared_anew_for_a_new_certificate(
    sqlite_core: CoreFixture, items: int
) -> None:
    """Certified again between the worker's look and its intent: signed all the same."""
    scene = await scene_of(sqlite_core, hands=1)
    batch, documents = await scene.activation(items)
    async with scene.working():
        await scene.signer.entered.wait()
        async with sqlite_core.store.write() as transaction:
            held = await CredentialStore(transaction).active(scene.person.person)
            assert held is not None
            await CredentialStore(transaction).renewed(
                replace(held, certificate=b"new")
            )
        scene.signer.gate.set()
        await scene.until(batch, ActivationState.DONE)

    assert scene.signer.begun == [documents[0], *documents]
    assert scene.signer.certificates == [b"certificate", *[b"new"] * items]
    assert set(await scene.states(documents)) == {RequestState.SIGNED}


async def test_certificate_that_was_swapped_in_the_midst_uses_no_key(
    sqlite_core: CoreFixture,
) -> None:
    """The seal is opened again by what stands now: what is left goes back."""
    scene = await scene_of(sqlite_core, hands=1)
    scene.signer.bound = b"certificate"
    batch, documents = await scene.activation(3)
    async with scene.working():
        await scene.signer.entered.wait()
        async with sqlite_core.store.write() as transaction:
            held = await CredentialStore(transaction).active(scene.person.person)
            assert held is not None
            await CredentialStore(transaction).renewed(
                replace(held, certificate=b"new")
            )
        scene.signer.gate.set()
        await scene.until(batch, ActivationState.FAILED)

    assert (
        await sqlite_core.request_states(documents)
        == [(RequestState.PENDING, "ACTIVATION_INVALID")] * 3
    )
    assert await sqlite_core.intents(batch) == []
    assert scene.signer.over_with == documents


@pytest.mark.parametrize("state", [ItemState.WAITING, ItemState.KEYED])
async def test_documents_that_are_away_cost_no_try(
    sqlite_core: CoreFixture, state: ItemState
) -> None:
    """Before a key was used, and after it: what waits is claimed as if anew."""
    scene = await scene_of(sqlite_core, hands=1)
    activation, (request,) = await scene.activation(1)
    scene.signer.away = state
    async with scene.working():
        await scene.signer.entered.wait()

    sqlite_core.clock.forward(60)
    next_work = await sqlite_core.claiming("signing/h/2").claim_next()

    assert next_work is not None
    assert (next_work.claim.id, next_work.claim.tries) == (activation, 1)
    assert next_work.claim.documents[0].state is state
    assert await scene.states([request]) == [RequestState.IN_PROGRESS]


async def test_database_that_is_away_ends_no_document(sqlite_core: CoreFixture) -> None:
    """The claim runs out, and the next worker finds the document as it was."""
    scene = await scene_of(sqlite_core, hands=1)
    activation, (request,) = await scene.activation(1)
    scene.signer.refusal = ErrorCode.STORE_UNAVAILABLE
    async with scene.working():
        await scene.signer.entered.wait()

    sqlite_core.clock.forward(60)
    next_work = await sqlite_core.claiming("signing/h/2").claim_next()

    assert next_work is not None
    assert next_work.claim.id == activation
    assert next_work.claim.documents[0].state is ItemState.WAITING
    assert await scene.states([request]) == [RequestState.IN_PROGRESS]


async def test_refusal_of_a_group_ends_its_documents(sqlite_core: CoreFixture) -> None:
    """Any other refusal is of the documents, and final."""
    scene = await scene_of(sqlite_core, hands=1)
    activation, requests = await scene.activation(1)
    scene.signer.refusal = ErrorCode.SIGNING_FAILED
    async with scene.working():
        await scene.until(activation, ActivationState.FAILED)

    assert await scene.states(requests) == [RequestState.FAILED]
