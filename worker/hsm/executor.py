"""The threads that call the HSM, and the breakers before its tokens.

There is one, or as many as `hsm.sessions` says; each uses a session of its own.

A lost session is healed by starting anew and doing the work once more. When that
fails, or the device is away, the work goes to the next member that holds the same
keys, and the breaker of this one opens: nobody waits for it, and a probe every few
seconds closes it again. A refused PIN latches it for the life of the process.
A call that hangs is ended from outside, by killing the process.

Each token has a breaker of its own: a pki token that is away stops no signer.
"""

import asyncio
import contextvars
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from appliance.domain.errors import (
    ApplianceError,
    HsmUnavailableError,
    KeyNotFoundError,
)
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.metrics import metrics
from appliance.runtime.hang_watchdog import CallWatch
from hsm_config.pkcs11.errors import HsmFault
from hsm_config.pkcs11.key_wrapping import DoesNotUnwrapError
from worker.hsm.connection import HsmConnection, HsmStatus, SessionLostError
from worker.hsm.reconnect import HsmStarts
from worker.hsm.token_sessions import TokenSessions

_T = TypeVar("_T")

_VAIN_S: Final = 60.0
"""Time after a start that did not bring a key, in which none is made for another."""
PROBE_S: Final = 5.0
"""Time between two tries to reach a token that is away, in seconds."""


class HsmThreads:
    """Runs work on the tokens of one process, in as many threads as they have sessions.

    Args:
        connections: made, not yet connected; those of one role in the order in
            which they are preferred.
        watch: tells at which tokens calls of an earlier start hung.
        keep_alive_s: idle time after which a test signature is made, seconds.
        probe_s: time between two tries to reach a token that is away, seconds.
    """

    def __init__(
        self,
        connections: Sequence[TokenSessions],
        watch: CallWatch,
        keep_alive_s: float,
        probe_s: float,
    ) -> None:
        self._connections = tuple(connections)
        self._members = {
            role: [one for one in connections if one.token.role is role]
            for role in TokenRole
        }
        self._modules = {id(one.module): one.module for one in connections}
        self._starts = HsmStarts(self._connections, watch)
        self._keep_alive_s = keep_alive_s
        self._probe_s = probe_s
        self._is_open = False
        self._pid = os.getpid()
        self._executor = ThreadPoolExecutor(
            connections[0].token.hsm.sessions, thread_name_prefix="hsm"
        )
        self._keeping: asyncio.Task[None] | None = None

    # On the event loop.

    def status(self, role: TokenRole) -> HsmStatus:
        """Whether keys of a role's token can be used now."""
        if not self._is_open:
            return HsmStatus.UNAVAILABLE
        members = {one.status for one in self._members[role]}
        for status in (HsmStatus.READY, HsmStatus.UNAVAILABLE):
            if status in members:
                return status
        return HsmStatus.PIN

    def reason(self, role: TokenRole) -> str:
        """What keeps tokens of a role from being ready; empty when all are."""
        if not self._is_open:
            return "closed"
        away = [one for one in self._members[role] if one.status is not HsmStatus.READY]
        return "; ".join(f"{one.token.label}: {one.reason}" for one in away)

    async def start(self) -> None:
        """Connect, for better or worse (see `status`), and begin to watch."""
        self._is_open = True
        await self._in_thread(self._starts.connect_all)
        self._keeping = asyncio.create_task(self._keep(), name="hsm-watch")

    async def stop(self) -> None:
        """Stop watching, finish what runs and waits, log out, end the threads.

        Raises:
            HsmUnavailableError: another process started it.
        """
        self._own()
        self._is_open = False
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
        await asyncio.to_thread(self._end)

    async def call(self, work: Callable[[HsmConnection], _T], role: TokenRole) -> _T:
        """Do some work in a thread, unless the breakers are open.

        Args:
            work: may run more than once, each time on a fresh connection or on
                another member.
            role: whose token.

        Returns:
            What it returns.

        Raises:
            HsmUnavailableError: the token cannot be used now, or this process is
                not the one that opened it.
            ApplianceError: what the work raises.
        """
        self._own()
        if self.status(role) is not HsmStatus.READY:
            metrics.HSM_OPERATIONS.labels(role.value, "unavailable").inc()
            raise HsmUnavailableError(self.reason(role))
        began, outcome = time.perf_counter(), "failed"
        metrics.HSM_WAITING.inc()
        try:
            result = await self._in_thread(partial(self._attempt, work, role))
            outcome = "done"
        except ApplianceError as exc:
            outcome = exc.code.value
            raise
        finally:
            metrics.HSM_WAITING.dec()
            metrics.HSM_OPERATIONS.labels(role.value, outcome).inc()
            took_s = time.perf_counter() - began
            metrics.HSM_SECONDS.labels(role.value).observe(took_s)
        return result

    def _look_at(self) -> None:
        """Show how the tokens are in `/metrics`."""
        for role in TokenRole:
            for fault in HsmFault:
                metrics.HSM_FAULTS.labels(role.value, fault.value)
            ready = self.status(role) is HsmStatus.READY
            metrics.HSM_READY.labels(role.value).set(ready)
            sessions = sum(one.open_sessions for one in self._members[role])
            metrics.HSM_SESSIONS.labels(role.value).set(sessions)

    def _own(self) -> None:
        """Only the process that opened a session may use it.

        A forked child has none of the HSM threads and, with some modules, the login.

        Raises:
            HsmUnavailableError: this is another one.
        """
        if self._pid != os.getpid():
            msg = "opened by another process; a child opens its own session"
            raise HsmUnavailableError(msg)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        # A thread's lines name what it is done for, as the caller's do.
        run = contextvars.copy_context().run
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, run, work)

    async def _keep(self) -> None:
        """Probe tokens that are away; sign now and then on those that are idle."""
        while True:
            self._look_at()
            await asyncio.sleep(self._probe_s)
            for one in self._connections:
                # One job each, so that signers' work comes between.
                with suppress(ApplianceError):
                    await self._in_thread(lambda one=one: self._look_after(one))  # type: ignore[misc]  # bound now

    # In an HSM thread.

    def _attempt(self, work: Callable[[HsmConnection], _T], role: TokenRole) -> _T:
        """Do some work on the first member that can.

        Raises:
            HsmUnavailableError: none can now.
            KeyNotFoundError: all are there, and none has the key.
        """
        ready = [one for one in self._members[role] if one.status is HsmStatus.READY]
        missing: KeyNotFoundError | None = None
        for position, one in enumerate(ready):
            last = position == len(ready) - 1
            try:
                return self._attempt_on(one, work, has_peer=not last)
            except HsmUnavailableError:
                if last and missing is None:
                    raise
            except KeyNotFoundError as exc:
                missing = exc
        if missing is not None and self.reason(role) == "":
            raise missing
        raise HsmUnavailableError(self.reason(role))

    def _attempt_on(
        self,
        one: TokenSessions,
        work: Callable[[HsmConnection], _T],
        *,
        has_peer: bool,
        idlest: bool = False,
    ) -> _T:
        """Do some work; when its session was lost, start anew and repeat once.

        Args:
            one: where.
            work: what.
            has_peer: another member can do it; a device that is away is not
                waited for then.
            idlest: in the session that has been idle longest.

        Raises:
            HsmUnavailableError: the breaker opened.
            SessionLostError: lost again, on a fresh connection.
            KeyNotFoundError: it is not there on a fresh connection either.
        """
        with one.module.inside() as start:
            try:
                return one.run(work, idlest=idlest)
            except SessionLostError as exc:
                if has_peer and exc.fault is HsmFault.DEVICE:
                    one.mark(HsmStatus.UNAVAILABLE, exc.reason)
                    raise
            except (KeyNotFoundError, DoesNotUnwrapError) as exc:
                # A token that went away and came back shows no keys until the
                # module is started anew, so "no such key" is not believed yet; nor
                # is "does not open", for which modules have but vague codes.
                if isinstance(exc, KeyNotFoundError) and self._is_believed(one):
                    raise
        tries = 1 if has_peer else one.token.profile.quirks.start_tries
        self._starts.connect_anew(one, tries, start)
        with one.module.inside():
            return self._once_more(one, work)

    def _once_more(self, one: TokenSessions, work: Callable[[HsmConnection], _T]) -> _T:
        """Do some work on a fresh connection, whose answer is believed.

        Raises:
            SessionLostError: lost again; the breaker opened.
            KeyNotFoundError: it is not there.
        """
        try:
            return one.run(work)
        except SessionLostError as exc:
            one.mark(HsmStatus.UNAVAILABLE, exc.reason)
            raise
        except KeyNotFoundError:
            one.vain_until = time.monotonic() + _VAIN_S
            raise

    def _is_believed(self, one: TokenSessions) -> bool:
        """Whether a key that is missing is so, and another start would be in vain.

        One was a moment ago, and the token still shows what is never missing. Each
        start holds up all who sign, and somebody's missing key is asked for again.
        """
        if time.monotonic() >= one.vain_until:
            return False
        try:
            one.run(HsmConnection.look_up_own)
        except ApplianceError:
            return False
        return True

    def _look_after(self, one: TokenSessions) -> None:
        """Probe a token that is away, or keep an idle one alive.

        Raises:
            ApplianceError: it is still away, or is now.
        """
        if one.status is HsmStatus.UNAVAILABLE and not self._starts.rests(one):
            # The others of the process shall not suffer from it: first without
            # starting anew what they use too, and then only once.
            served = any(peer.status is HsmStatus.READY for peer in self._connections)
            tries = 2 if served else one.token.profile.quirks.start_tries
            self._starts.connect(one, tries, anew=not served)
        for _ in range(one.token.hsm.sessions):
            if one.status is HsmStatus.READY and one.idle_s >= self._keep_alive_s:
                work = HsmConnection.exercise
                self._attempt_on(one, work, has_peer=False, idlest=True)

    def _end(self) -> None:
        """Wait for the threads' last work, then end the modules."""
        self._executor.shutdown()
        for module in self._modules.values():
            with module.alone():
                module.stop()
