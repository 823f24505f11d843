"""Finishes what signing workers handed out to the role that has a network.

Notified, it is quick; it also looks by itself every few seconds. What it takes in
hand was signed already: no key is needed, and none is here. What cannot be had is
tried again, each time after a longer rest, until the finish phase's time is over.

Source: design §3, 5; reliability F22, F24.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Final

import structlog
from structlog.contextvars import bound_contextvars

from appliance.bootstrap import WorkChannel
from appliance.domain.activation import ActivationDocument
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import ItemState
from appliance.settings import SigningSettings
from appliance.signing.claims import ClaimedActivation, Claims
from worker.leased_worker import GiveBack, LeasedWorker, Work
from worker.signing.completion import Completion
from worker.signing.failed_documents import fail_documents
from worker.signing.level_extension import AWAY

_log = structlog.get_logger(__name__)
_REST_MOST: Final = timedelta(seconds=60)
_DOUBLINGS: Final = 6


@dataclass(slots=True)
class NetworkCompletion:
    """Finishes activations, a few at a time.

    Args:
        claims: this worker's transactions.
        completion: completes one document.
        work_channel: hears of work.
        settings: how often it looks, and how many it has in hand.
    """

    claims: Claims
    completion: Completion
    work_channel: WorkChannel
    settings: SigningSettings
    _has_released: bool = field(init=False, default=False)
    _activations: Work[ClaimedActivation] = field(init=False)
    _worker: LeasedWorker = field(init=False)

    def __post_init__(self) -> None:
        self._activations = Work(
            "activation",
            attrgetter("claim.id"),
            self._next_work,
            lambda work: self.claims.renew(work.claim),
            self._finish,
            self.settings.renew_s,
        )
        self._worker = LeasedWorker([self._activations], self.settings.poll_s)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop; what is in hand then is let finish.

        Args:
            stop: set when it is to.
        """
        await self._worker.run(stop, self._listen())

    async def _listen(self) -> None:
        """Wake at each message of the channel of work; Redis may come and go."""
        async for _ in self.work_channel.listen():
            self._worker.wake.set()

    async def _next_work(self) -> ClaimedActivation | None:
        """Take an activation, if a hand is free.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if not self._has_released:
            # Of an earlier start of this slot, which is dead.
            await self.claims.release_own()
            self._has_released = True
        if len(self._activations.in_hand) >= self.settings.concurrency:
            return None
        return await self.claims.claim_next()

    async def _finish(self, work: ClaimedActivation) -> GiveBack | None:
        """Finish what is left of an activation; how to put off what waits.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        claim, waits_for = work.claim, None
        for document in claim.documents:
            if document.state is ItemState.KEYED:
                waits_for = await self._complete(work, document) or waits_for
        if waits_for is None:
            return None
        rest = timedelta(seconds=2 ** min(claim.tries, _DOUBLINGS))
        return partial(self.claims.put_off, claim, waits_for, min(rest, _REST_MOST))

    async def _complete(
        self, work: ClaimedActivation, document: ActivationDocument
    ) -> ErrorCode | None:
        """Complete one document, or end it; gives what it waits for.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        try:
            with bound_contextvars(request=document.request):
                await self.completion.resume(work, document)
        except ApplianceError as exc:
            if exc.code is ErrorCode.STORE_UNAVAILABLE:
                raise
            if exc.code in AWAY:
                _log.warning(
                    "document.waits",
                    request=document.request,
                    code=exc.code.value,
                    reason=getattr(exc, "reason", ""),
                )
                return exc.code
            await fail_documents(self.claims, work.claim, [document], exc)
        return None
