"""Prepares batches of integrators' backends, a few at a time, each in its turns.

Notified, it is quick; it also looks by itself every few seconds.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Final, TypeAlias

import structlog

from appliance.appearance.content import Stamping
from appliance.bootstrap import Core, WorkChannel
from appliance.domain.errors import NOT_OF_WHAT_CAME, ApplianceError
from appliance.integration.batches.preparation import BatchPreparation, Turn
from appliance.integration.batches.settling import BatchSettling
from appliance.requests.batch_queue import BatchClaim
from appliance.requests.intake import Intake
from appliance.requests.presets import Presets
from worker.failpoints import BATCH_GROUP, crash_point
from worker.leased_worker import FencedOffError, GiveBack, LeasedWorker, Work

GiveBackOf: TypeAlias = Callable[[BatchClaim], Awaitable[None]]
"""Ends a turn whose batch is not done."""
_log = structlog.get_logger(__name__)
_POLL_S: Final = 2.0
_RENEW_S: Final = 20.0
_AT_ONCE: Final = 2
"""Batches in progress, each of another integrator."""
TURN_S: Final = 3.0
"""Time after which a batch lets others have their turn, in seconds."""


@dataclass(slots=True)
class BatchPreparer:
    """Has batches in progress until it is told to stop.

    Args:
        preparation: this worker's transactions.
        channel: tells that there is work.
        turn_s: length of a turn, in seconds.
    """

    preparation: BatchPreparation
    channel: WorkChannel
    turn_s: float = TURN_S
    _has_released: bool = field(init=False, default=False)
    _batches: Work[BatchClaim] = field(init=False)
    _worker: LeasedWorker = field(init=False)

    def __post_init__(self) -> None:
        self._batches = Work(
            "lote",
            attrgetter("id"),
            self._next,
            self.preparation.renew,
            self._take_turn,
            _RENEW_S,
        )
        self._worker = LeasedWorker([self._batches], _POLL_S)

    async def run(self, stop: asyncio.Event) -> None:
        """Prepare until told to stop; turns in progress are let finish.

        Args:
            stop: set when it is to.
        """
        await self._worker.run(stop, self._listen())

    async def _listen(self) -> None:
        """Wake at each message of the channel of work; Redis may come and go."""
        async for _ in self.channel.listen():
            self._worker.wake.set()

    async def _next(self) -> BatchClaim | None:
        """Take a batch, unless enough are in progress.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if not self._has_released:
            await self.preparation.release_own()
            self._has_released = True
        in_hand = self._batches.in_hand
        if len(in_hand) >= _AT_ONCE:
            return None
        return await self.preparation.claim_next([each.integrator for each in in_hand])

    async def _take_turn(self, claim: BatchClaim) -> GiveBack | None:
        """Settle documents of a batch for a turn.

        Raises:
            FencedOffError: another worker has claimed since, or it was taken back.
            ApplianceError: `INTERNAL`.
        """
        try:
            outcome = await self.preparation.take_turn(claim, self.turn_s)
        except ApplianceError as exc:
            if exc.code not in NOT_OF_WHAT_CAME:
                raise
            _log.warning("batch.waits", code=exc.code.value)
            return partial(self._give_back, self.preparation.put_off, claim)
        if outcome is Turn.LOST:
            raise FencedOffError
        if outcome is Turn.ENDED:
            return None
        return partial(self._give_back, self.preparation.let_go, claim)

    async def _give_back(self, give_back: GiveBackOf, claim: BatchClaim) -> None:
        """End a turn; where the record is away, the lease ends by itself."""
        try:
            await give_back(claim)
        except ApplianceError as exc:
            _log.warning("worker.let_go", code=exc.code.value)


def batch_preparation(core: Core, slot: str) -> BatchPreparation:
    """The use cases of what prepares batches.

    Args:
        core: open, with the document key.
        slot: of this worker.
    """
    store, documents, clock = core.store, core.documents, core.clock
    settings = core.settings
    intake = Intake(store, documents, core.inspector, clock, settings.documents)
    stamping = Stamping(settings.stamp, settings.verify_url)
    presets = Presets(store, documents, core.inspector, clock, stamping)
    return BatchPreparation(
        store,
        BatchSettling(
            store,
            documents,
            intake,
            presets,
            clock,
            partial(crash_point, BATCH_GROUP),
        ),
        intake.passing,
        clock,
        f"{slot}/{core.process}",
    )
