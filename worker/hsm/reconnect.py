"""Starts of the tokens' modules: who is connected, and what a failed start means.

Each closes the breaker of its token or opens it. Tokens that share a module are
disconnected by its new start, and are connected again with it.
"""

import time
from collections.abc import Sequence
from contextlib import suppress

from appliance.core import metrics
from appliance.domain.errors import HsmRefusedError, HsmUnavailableError
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import SettingsError
from hsm_config.pkcs11.errors import HsmFault
from hsm_config.pkcs11.module import PinRefusedError
from worker.hsm.connection import HsmConnection, HsmStatus
from worker.hsm.token_backoff import rests


class HsmStarts:
    """Connects the tokens of one process, in its HSM thread.

    Args:
        connections: all of them, not yet connected.
        watch: tells at which tokens calls of an earlier start hung.
    """

    def __init__(self, connections: Sequence[HsmConnection], watch: CallWatch) -> None:
        self._connections = connections
        self._watch = watch

    def connect_all(self) -> None:
        """Connect what can be connected; the first ones are used first."""
        self._count_hangs()
        for one in self._connections:
            if self.rests(one):
                hangs, _ = self._watch.hangs(one.token.number)
                reason = f"a call hung {hangs} times in a row; left alone for a while"
                one.mark(HsmStatus.UNAVAILABLE, reason)
                continue
            with suppress(HsmUnavailableError):
                # What it shares a module with was started just now.
                anew = one.module.library is None
                self.connect(one, one.token.profile.quirks.start_tries, anew=anew)

    def _count_hangs(self) -> None:
        """Count calls that hung: whoever made one was killed, and can tell nobody.

        All of them, so that the count goes on from one process to the next.
        """
        for one in self._connections:
            hung = metrics.HSM_FAULTS.labels(one.token.role.value, HsmFault.HANG.value)
            hung.inc(self._watch.ever(one.token.number))

    def rests(self, one: HsmConnection) -> bool:
        """Whether a token is left alone for now, after calls to it hung."""
        return rests(one, self._connections, self._watch)

    def connect(self, one: HsmConnection, tries: int, *, anew: bool) -> None:
        """Connect a token, and close its breaker or open it.

        Raises:
            HsmUnavailableError: it opened.
            PinRefusedError: it latched.
        """
        try:
            self._connect_alone(one, tries, anew=anew)
        finally:
            self._reconnect_siblings(one)

    def _reconnect_siblings(self, one: HsmConnection) -> None:
        """Reconnect whom a new start of the module has disconnected."""
        for other in self._connections:
            if (
                other.module is one.module
                and other.status is HsmStatus.READY
                and not other.is_connected
            ):
                with suppress(HsmUnavailableError):
                    self._connect_alone(other, 1, anew=False)

    def _connect_alone(self, one: HsmConnection, tries: int, *, anew: bool) -> None:
        """Connect one token and no other.

        Raises:
            HsmUnavailableError: its breaker opened.
            PinRefusedError: it latched.
        """
        try:
            one.connect(tries, anew=anew)
        except PinRefusedError as exc:
            one.forget_all()
            one.mark(HsmStatus.PIN, exc.reason)
            raise
        except HsmUnavailableError as exc:
            one.mark(HsmStatus.UNAVAILABLE, exc.reason)
            raise
        except (HsmRefusedError, SettingsError) as exc:
            # Twins, or the module's file gone: an operator's matter, which may
            # be put right while we run.
            one.forget_all()
            reason = exc.reason if isinstance(exc, HsmRefusedError) else str(exc)
            one.mark(HsmStatus.UNAVAILABLE, reason)
            raise HsmUnavailableError(one.reason) from exc
        one.mark(HsmStatus.READY, "")
        one.last_use = time.monotonic()
        self._watch.answered(one.token.number)
