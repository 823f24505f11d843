"""The one thread that calls the HSM, and the breaker before it.

A lost session is healed by starting anew and doing the work once more; when
that fails the breaker opens: callers are told so at once, without a wait, and a
probe every few seconds closes it again. A refused PIN latches it for the life
of the process. A call that hangs is ended from outside, by killing the process.
"""

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from typing import Final, TypeVar

import structlog

from appliance.domain.errors import (
    ApplianceError,
    HsmRefusedError,
    HsmUnavailableError,
    KeyNotFoundError,
)
from appliance.settings import SettingsError
from hsm_config.module import PinRefusedError
from worker.hsm_connection import HsmConnection, SessionLostError

_T = TypeVar("_T")
_log: Final = structlog.get_logger(__name__)

PROBE_S: Final = 5.0
"""Time between two tries to reach an HSM that is away, in seconds."""


class HsmStatus(StrEnum):
    """Whether keys can be used now."""

    READY = "ready"
    UNAVAILABLE = "unavailable"
    """Not opened, or away: the breaker is open, the probe is at work."""
    PIN = "pin"
    """A PIN was refused: nothing but a new start with the right one helps."""


class HsmThread:
    """Runs work on a connection, in one thread of one process.

    Args:
        connection: made, not yet connected.
        keep_alive_s: idle time after which a test signature is made, seconds.
        probe_s: time between two tries to reach an HSM that is away, seconds.
    """

    def __init__(
        self, connection: HsmConnection, keep_alive_s: float, probe_s: float
    ) -> None:
        self._connection = connection
        self._keep_alive_s = keep_alive_s
        self._probe_s = probe_s
        self.status = HsmStatus.UNAVAILABLE
        self.reason = "not started"
        self._last_use = time.monotonic()
        self._pid = os.getpid()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="hsm")
        self._watch: asyncio.Task[None] | None = None

    # On the event loop.

    async def start(self) -> None:
        """Connect, for better or worse (see `status`), and begin to watch."""
        with suppress(HsmUnavailableError):
            await self._in_thread(self._connect)
        self._watch = asyncio.create_task(self._keep_watch(), name="hsm-watch")

    async def stop(self) -> None:
        """Stop watching, finish what runs, log out, end the thread.

        Raises:
            HsmUnavailableError: another process started it.
        """
        self._own()
        self.status, self.reason = HsmStatus.UNAVAILABLE, "closed"
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})
        await self._in_thread(self._connection.drop)
        self._executor.shutdown()

    async def call(self, work: Callable[[HsmConnection], _T]) -> _T:
        """Do some work in the thread, unless the breaker is open.

        Args:
            work: may run twice, the second time on a fresh connection.

        Returns:
            What it returns.

        Raises:
            HsmUnavailableError: the HSM cannot be used now, or this process is
                not the one that opened it.
            ApplianceError: what the work raises.
        """
        self._own()
        if self.status is not HsmStatus.READY:
            raise HsmUnavailableError(self.reason)
        return await self._in_thread(lambda: self._attempt(work))

    def _own(self) -> None:
        """Only the process that opened a session may use it.

        A forked child has no HSM thread and, with some modules, the login.

        Raises:
            HsmUnavailableError: this is another one.
        """
        if self._pid != os.getpid():
            msg = "opened by another process; a child opens its own session"
            raise HsmUnavailableError(msg)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def _keep_watch(self) -> None:
        """Probe an HSM that is away; sign now and then on one that is idle."""
        while True:
            await asyncio.sleep(self._probe_s)
            idle_s = time.monotonic() - self._last_use
            with suppress(ApplianceError):
                if self.status is HsmStatus.UNAVAILABLE:
                    await self._in_thread(self._connect)
                elif self.status is HsmStatus.READY and idle_s >= self._keep_alive_s:
                    await self.call(HsmConnection.exercise)

    # In the HSM thread.

    def _attempt(self, work: Callable[[HsmConnection], _T]) -> _T:
        """Do some work; when its session was lost, start anew and repeat once.

        Raises:
            HsmUnavailableError: the breaker is open, or opens now.
            SessionLostError: lost again, on a fresh connection.
        """
        if self.status is not HsmStatus.READY:
            # It waited behind the call that opened the breaker.
            raise HsmUnavailableError(self.reason)
        self._last_use = time.monotonic()
        with suppress(SessionLostError, KeyNotFoundError):
            # A token that went away and came back shows no keys until the
            # module is started anew, so "no such key" is not believed yet.
            return self._connection.run(work)
        self._connect()
        try:
            return self._connection.run(work)
        except SessionLostError as exc:
            self._open_breaker(HsmStatus.UNAVAILABLE, exc.reason)
            raise

    def _connect(self) -> None:
        """Start anew, and close the breaker or open it.

        Raises:
            HsmUnavailableError: it opened.
            PinRefusedError: it latched.
        """
        try:
            self._connection.connect()
        except PinRefusedError as exc:
            self._connection.drop()
            self._open_breaker(HsmStatus.PIN, exc.reason)
            raise
        except HsmUnavailableError as exc:
            self._open_breaker(HsmStatus.UNAVAILABLE, exc.reason)
            raise
        except (HsmRefusedError, SettingsError) as exc:
            # Twins, or the module's file gone: an operator's matter, which may
            # be put right while we run.
            self._connection.drop()
            reason = exc.reason if isinstance(exc, HsmRefusedError) else str(exc)
            self._open_breaker(HsmStatus.UNAVAILABLE, reason)
            raise HsmUnavailableError(self.reason) from exc
        if self.status is not HsmStatus.READY:
            _log.info("hsm.ready", was=self.reason)
        self.status, self.reason = HsmStatus.READY, ""
        self._last_use = time.monotonic()

    def _open_breaker(self, status: HsmStatus, reason: str) -> None:
        if (status, reason) != (self.status, self.reason):
            _log.error("hsm.unavailable", status=status.value, reason=reason)
        self.status, self.reason = status, reason
