"""The signing worker: claims activations and signs them.

Notified, it is quick; it also looks by itself every few seconds, so with Redis
gone it signs on, slower. A few activations are in hand at a time, and their
documents take turns, for the HSM's threads as for all else: a batch waits after
each document for all who came meanwhile. Batches leave hands to single
documents, so that any number of them holds up nobody.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final

import structlog

from appliance.admission.single_calls_here import SingleCallsHere
from appliance.bootstrap import Core
from appliance.domain.errors import ApplianceError, DocumentsAwayError
from appliance.domain.ids import PersonId
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.domain.signing.hsm_tasks import TaskClaim, WorkerStatus
from appliance.keys.health import signing_workers
from appliance.keys.worker_store import WorkerStore
from appliance.metrics import metrics
from appliance.signing.claims import (
    ClaimedActivation,
    Claims,
    SuspectWaitsError,
)
from appliance.signing.expiry import ExpiryJob
from worker.hsm.connection import HsmStatus
from worker.hsm.generation_check import REASON as GENERATION_REASON
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.leased_worker import LeasedWorker, Work
from worker.pki.hsm_tasks import TASK_RENEW_S, TaskRunner
from worker.signing.activation_keys import ActivationKeys
from worker.signing.activation_signer import ActivationSigner
from worker.signing.aging_seals import SealRenewal
from worker.signing.document_signer import DocumentSigner
from worker.signing.level_maintenance import LevelUpkeep
from worker.signing.turns import Turns
from worker.work_notifications import hear_notifications

_log = structlog.get_logger(__name__)
_AGAIN_S: Final = 1.0
_BEAT_S: Final = 2.0
_LEAVE_S: Final = 2.0
_SWEEP_S: Final = 5.0
_ORPHANS_S: Final = 300.0
_UPKEEP_S: Final = 10.0
_SEALS_S: Final = 10.0
_BATCHES: Final = 2
_CLOCK_REASON: Final = "the clock is more than 5 s off"
_DOCUMENTS_REASON: Final = "documents are away, or another installation's"


@dataclass(slots=True)
class SigningWorker:
    """One signing process's work.

    Args:
        core: the record, documents and news.
        claims: this worker's transactions.
        signer: signs documents, a group at a time.
        tasks: runs HSM tasks.
        keys: what fronts seal to on this host.
        session: the HSM, for its status.
        slot: `signing/<host>/<n>`.
        upkeep: keeps published documents at their level.
        served: whether the HSM serves this record; by another's none signs.
        seals: renews the seals of what waits for long.
    """

    core: Core
    claims: Claims
    signer: DocumentSigner
    tasks: TaskRunner
    keys: ActivationKeys
    session: HsmSession
    slot: str
    upkeep: LevelUpkeep
    served: GenerationCheck
    seals: SealRenewal
    _worker: LeasedWorker = field(init=False)
    _activations: Work[ClaimedActivation] = field(init=False)
    _hsm_tasks: Work[TaskClaim] = field(init=False)
    _suspect: ClaimedActivation | None = field(init=False, default=None)
    """What may kill its worker: no document is taken beside it while it is in hand."""
    _clock_is_right: bool = field(init=False, default=True)
    """As it was last looked at: by a wrong one nothing is signed."""
    _documents_are_ours: bool = field(init=False, default=True)
    """As it was last looked at: with another folder nothing is signed."""
    _suspect_waits: bool = field(init=False, default=False)
    """What is next is to be signed alone: nothing is begun before it."""
    _stop: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _was_choosy: bool = field(init=False, default=True)
    """Whether the last look was not for all that waits."""
    _upkeep_woken: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    """Set where material of a published document's upkeep was delivered."""
    _turns: Turns = field(init=False)
    """Of the documents in hand."""
    _hands: int = field(init=False)
    """Single documents in hand at a time."""
    _batch_hands: int = field(init=False)
    """Batches in hand beside them; two at least, so that they take turns."""
    _batch_share: int = field(init=False)
    """Batches of one person in hand at a time; two at least: they take turns."""
    _share: int = field(init=False)
    """Groups of documents of one person in work at a time.

    One less than there are hands: those that take long to read leave a hand, here
    and in every worker, for all others.
    """

    def __post_init__(self) -> None:
        signing = self.core.settings.signing
        self._hands = signing.concurrency
        self._batch_hands = max(self._hands, _BATCHES)
        self._share = max(1, self._hands - 1)
        self._batch_share = max(_BATCHES, self._batch_hands - 1)
        here = SingleCallsHere(self.core.settings.run_dir)
        self._turns = Turns(self._hands, self._share, here.are_any)
        signer = ActivationSigner(
            self.claims,
            self.signer,
            self.core.work_notifier,
            turns=self._turns,
            yields=self._yields,
            came_through=self._came_through,
        )
        self._activations = Work(
            "activation",
            attrgetter("claim.id"),
            self._next_work,
            lambda work: self.claims.renew(work.claim),
            signer.sign,
            signing.renew_s,
            may_leave=self._may_leave,
        )
        self._hsm_tasks = Work(
            "task",
            attrgetter("id"),
            self._next_task,
            self.tasks.renew,
            self.tasks.run,
            TASK_RENEW_S,
            until_the_end=True,
            may_leave=lambda: not self._free() or self._yields(),
        )
        self._worker = LeasedWorker(
            [self._activations, self._hsm_tasks],
            signing.poll_s,
            self._is_fit,
            metrics.IN_HAND.set,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop, then finish the documents that are in work."""
        self._stop = stop
        released = await self._release_own()
        _log.info("worker.started", slot=self.slot, released=released)
        sweeping = ExpiryJob(
            self.core.store, self.core.completion_notifier, self.core.clock
        )
        try:
            await self._worker.run(
                stop,
                hear_notifications(
                    self.core.work_channel,
                    self._worker.wake,
                    self._free,
                    self._upkeep_woken,
                ),
                _repeat(_BEAT_S, self._beat),
                _repeat(_SWEEP_S, sweeping.expire_activations),
                _repeat(_ORPHANS_S, self.tasks.sweep),
                _repeat(_UPKEEP_S, self._keep_levels, self._upkeep_woken),
                _repeat(_SEALS_S, self.seals.run),
            )
        finally:
            await self._leave()
            _log.info("worker.stopped", slot=self.slot)

    async def _leave(self) -> None:
        """Take back the sign of life: fronts stop sealing to this worker at once."""
        with contextlib.suppress(ApplianceError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S), self.core.store.write() as writing:
                await WorkerStore(writing).leave(self.slot, self.core.process)

    async def _release_own(self) -> int:
        """Give back what this slot's last process had in hand; how much.

        A database that is away is waited for: a new start would find no other.
        """
        is_told = False
        while not self._stop.is_set():
            try:
                return await self.claims.release_own()
            except ApplianceError as exc:
                if not is_told:
                    _log.warning("worker.waits", slot=self.slot, code=exc.code.value)
                is_told = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_S):
                    await self._stop.wait()
        return 0

    def _free(self) -> bool:
        """Whether another activation can be taken in hand."""
        if self._suspect in self._activations.in_hand:
            return False
        return len(self._worker.running) - self._batches().total() < self._hands

    def _may_leave(self) -> bool:
        """Whether an activation may wait that there was no hand for."""
        return not self._free() or self._was_choosy

    def _batches(self) -> Counter[PersonId]:
        """How many activations of several documents are in hand, and whose."""
        return Counter(
            work.claim.person
            for work in self._activations.in_hand
            if len(work.claim.documents) > 1
        )

    def _yields(self) -> bool:
        """Whether no further group of a batch is to be begun now."""
        is_fit = self._clock_is_right and self._documents_are_ours and self.served.was
        return self._stop.is_set() or self._suspect_waits or not is_fit

    def _came_through(self) -> None:
        """What was suspected killed nobody: the rest of it may have company."""
        if self._suspect is not None:
            self._suspect = None
            self._worker.wake.set()

    async def _is_fit(self) -> bool:
        """Whether the clock is right, and the HSM serves this record.

        Raises:
            ApplianceError: the record or the HSM is away.
        """
        return await self._look_at_clock() and await self.served.look()

    async def _look_at_clock(self) -> bool:
        """Whether the clock may stand in signatures and timestamps.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        state = await self.core.clock_check.look()
        if state.is_right != self._clock_is_right:
            log = _log.info if state.is_right else _log.error
            off_s = round(state.off.total_seconds(), 1)
            log("worker.clock", right=state.is_right, off_s=off_s)
        self._clock_is_right = state.is_right
        return state.is_right

    async def _look_at_documents(self) -> bool:
        """Whether documents are there, and this installation's.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the record is away.
        """
        try:
            await self.core.documents.check()
        except DocumentsAwayError:
            self._documents_are_ours = False
        else:
            self._documents_are_ours = True
        return self._documents_are_ours

    async def _next_work(self) -> ClaimedActivation | None:
        """Take an activation, if a hand is free; without the HSM, if nobody has it.

        Then it goes back to its signer at once, who is told why.
        """
        self._was_choosy = True
        if not await self._look_at_documents() or not self._free():
            return None
        if self.session.status is not HsmStatus.READY:
            alive = await signing_workers(self.core.store, self.core.clock)
            if any(peer.hsm == HsmStatus.READY.value for peer in alive):
                return None
        try:
            # What comes may be a single document, for which batches make way.
            with self._turns.ahead():
                work = await self._claim()
        except SuspectWaitsError:
            self._suspect_waits = self._was_choosy = True
            return None
        self._suspect_waits = False
        self._suspect = work if work is not None and work.is_suspect else None
        return work

    async def _claim(self) -> ClaimedActivation | None:
        """Take what is next; of batches first those of who has none in hand.

        Raises:
            SuspectWaitsError: a suspect is next, and others are in hand.
        """
        singles = Counter(
            work.claim.person
            for work in self._activations.in_hand
            if len(work.claim.documents) == 1
        )
        # Those who have all the hands that one person may have.
        without = {person for person, count in singles.items() if count >= self._share}
        claim_next = partial(
            self.claims.claim_next,
            busy=bool(self._worker.running),
            without=without,
        )
        batches = self._batches()
        if batches.total() >= self._batch_hands:
            return await claim_next(single=True)
        # More in hand than take turns would keep other workers from them, unless they
        # wait for a slow HSM.
        share = self._batch_share if self.signer.hsm_is_slow else _BATCHES
        full = {person for person, count in batches.items() if count >= share}
        self._was_choosy = bool(without or full)
        return (
            batches and await claim_next(no_batches_of=batches)
        ) or await claim_next(no_batches_of=full)

    async def _next_task(self) -> TaskClaim | None:
        """Take an HSM task, if a hand is free.

        One beside documents always: they may wait for what it makes.
        """
        is_first = self._worker.running and not self._hsm_tasks.in_hand
        if not is_first and (not self._free() or self._yields()):
            return None
        return await self.tasks.claim_next()

    async def _keep_levels(self) -> None:
        """Keep published documents at their level, where the TSA's key is there."""
        ready = self.session.status_of(TokenRole.PKI) is HsmStatus.READY
        if ready and await self._is_fit() and await self._look_at_documents():
            await self.upkeep.run()

    async def _beat(self) -> None:
        """Say that this worker is alive, and whether fronts may seal to its host."""
        status, reason = self.session.status, self.session.reason
        if not await self._look_at_clock():
            status, reason = HsmStatus.UNAVAILABLE, _CLOCK_REASON
        elif not await self._look_at_documents():
            status, reason = HsmStatus.UNAVAILABLE, _DOCUMENTS_REASON
        elif not await self.served.look():
            status, reason = HsmStatus.LEFT, GENERATION_REASON
        if status is HsmStatus.READY:
            try:
                await self.keys.keep()
            except ApplianceError as exc:
                status = HsmStatus.UNAVAILABLE
                told = getattr(exc, "reason", "") or exc.code.value
                reason = f"no activation key: {told}"
        async with self.core.store.write() as transaction:
            await WorkerStore(transaction).beat(
                WorkerStatus(
                    slot=self.slot,
                    process=self.core.process,
                    at=self.core.clock.now(),
                    hsm=status,
                    reason=reason,
                )
            )


async def _repeat(
    every_s: float,
    work: Callable[[], Awaitable[object]],
    woken: asyncio.Event | None = None,
) -> None:
    """Do something now and then, or when woken; until cancelled. Log failures."""
    woken = woken or asyncio.Event()
    while True:
        woken.clear()
        try:
            await work()
        except ApplianceError as exc:
            _log.warning("worker.chore_failed", code=exc.code.value)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await woken.wait()
