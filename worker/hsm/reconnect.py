"""Starts of the tokens' modules: who is connected, and what a failed start means.

Each closes the breaker of its token or opens it. Tokens that share a module are
disconnected by its new start, and are connected again with it.

A token is left alone for a while after a call to it hung. Each further hang costs the
whole process, and with it the tokens that work; so the next start begins without that
one, as long as another can serve.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from appliance.core import metrics
from appliance.domain.errors import HsmRefusedError, HsmUnavailableError
from appliance.domain.keys import TokenRole
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import SettingsError
from hsm_config.pkcs11.errors import HsmFault
from hsm_config.pkcs11.module import PinRefusedError
from worker.hsm.connection import HsmConnection, HsmStatus

_REST_S: Final = 60.0
"""After the first hang, in seconds; it doubles with each further one."""
_MOST_REST_S: Final = 900.0


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
        """Whether a token is left alone for now, after calls to it hung.

        Args:
            one: the token; hangs of earlier starts count too.

        Returns:
            False where no other token could serve: then there is nothing to lose.
        """
        peers = [
            peer
            for peer in self._connections
            if peer.token.role is TokenRole.FIRMA
            and peer is not one
            and peer.status is not HsmStatus.PIN
        ]
        if not peers:
            return False
        hangs, at_s = self._watch.hangs(one.token.number)
        rest_s = min(_REST_S * 2.0 ** (hangs - 1), _MOST_REST_S)
        if not hangs or time.monotonic() - at_s >= rest_s:
            return False
        # Of members that all hung, the one that hung first is tried first.
        of_peers = [self._watch.hangs(peer.token.number) for peer in peers]
        return one.token.role is TokenRole.PKI or any(
            not times or before_s < at_s for times, before_s in of_peers
        )

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
