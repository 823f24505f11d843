"""Finishes what signing workers handed out to the role that has a network.

Notified, it is quick; it also looks by itself every few seconds. What it takes in
hand was signed already: no key is needed, and none is here. What cannot be had is
tried again, each time after a longer rest, until the finish phase's time is over.

Source: design §3, 5; reliability F22, F24.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

import structlog
from structlog.contextvars import bind_contextvars, bound_contextvars

from appliance.bootstrap import WorkChannel
from appliance.domain.activation import ActivationDocument
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import ItemState
from appliance.settings import SigningSettings
from appliance.signing.claims import ClaimedActivation, Claims
from worker.leases import FencedOffError, fail_documents, keep_lease
from worker.signing.completion import Completion
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
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _running: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop; what is in hand then is let finish.

        Args:
            stop: set when it is to.
        """
        listening = asyncio.create_task(self._listen())
        stopping = asyncio.create_task(self._wake_at(stop))
        released = False
        try:
            while not stop.is_set():
                try:
                    if not released:
                        # Of an earlier start of this slot, which is dead.
                        await self.claims.release_own()
                        released = True
                    await self._drain()
                except ApplianceError as exc:
                    _log.warning("worker.cannot_claim", code=exc.code.value)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.settings.poll_s):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            for task in (listening, stopping):
                task.cancel()
            if self._running:
                await asyncio.wait(self._running)
            await asyncio.gather(listening, stopping, return_exceptions=True)

    async def _listen(self) -> None:
        """Wake at each message of the channel of work; Redis may come and go."""
        async for _ in self.work_channel.listen():
            self._wake.set()

    async def _wake_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wake.set()

    async def _drain(self) -> None:
        """Take work in hand until there is none, or no hand is free.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        while len(self._running) < self.settings.concurrency:
            work = await self.claims.claim_next()
            if work is None:
                return
            task = asyncio.create_task(self.finish(work))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._wake.set()
        if not task.cancelled() and (exc := task.exception()) is not None:
            _log.error("worker.work_failed", exc_info=exc)

    async def finish(self, work: ClaimedActivation) -> None:
        """Finish what is left of an activation, keeping its lease.

        Args:
            work: the claim.
        """
        claim, waits_for = work.claim, None
        bind_contextvars(activation=claim.id)
        try:
            renew = partial(self.claims.renew, claim)
            async with keep_lease(renew, self.settings.renew_s):
                for document in claim.documents:
                    if document.state is ItemState.KEYED:
                        waits_for = await self._complete(work, document) or waits_for
        except FencedOffError:
            _log.warning("worker.fenced_off", activation=claim.id)
            return
        except ApplianceError as exc:
            # The record is away: the lease will end and somebody resume.
            _log.warning("worker.let_go", activation=claim.id, code=exc.code.value)
            return
        if waits_for is not None:
            rest = timedelta(seconds=2 ** min(claim.tries, _DOUBLINGS))
            await self.claims.put_off(claim, waits_for, min(rest, _REST_MOST))

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
