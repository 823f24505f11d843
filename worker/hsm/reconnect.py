"""Starts of the tokens' modules: who is connected, and what a failed start means.

Each closes the breaker of its token or opens it. Tokens that share a module are
disconnected by its new start, and are connected again with it. Whoever starts or
logs in is alone in the module, whatever the number of threads.

A token is left alone for a while after a call to it hung. Each further hang costs the
whole process, and with it the tokens that work; so the next start begins without that
one, as long as another can serve.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from appliance.domain.errors import HsmRefusedError, HsmUnavailableError
from appliance.domain.keys.hsm_keys import TokenRole
from appliance.metrics import metrics
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import SettingsError
from hsm_config.pkcs11.errors import HsmFault
from hsm_config.pkcs11.module import PinRefusedError
from worker.hsm.connection import HsmStatus
from worker.hsm.token_sessions import TokenSessions

_REST_S: Final = 60.0
"""After the first hang, in seconds; it doubles with each further one."""
_MOST_REST_S: Final = 900.0


class HsmStarts:
    """Connects the tokens of one process, in its HSM threads.

    Args:
        connections: all of them, not yet connected.
        watch: tells at which tokens calls of an earlier start hung.
    """

    def __init__(self, connections: Sequence[TokenSessions], watch: CallWatch) -> None:
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

    def rests(self, one: TokenSessions) -> bool:
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

    def connect(self, one: TokenSessions, tries: int, *, anew: bool) -> None:
        """Connect a token whose breaker is open, and close that or leave it open.

        Raises:
            HsmUnavailableError: it stays open.
            PinRefusedError: it latched.
        """
        with one.module.alone():
            # Another thread may have been quicker, and a PIN is tried once.
            if one.status is HsmStatus.PIN:
                raise HsmUnavailableError(one.reason)
            if one.status is HsmStatus.UNAVAILABLE:
                self._connect(one, tries, anew=anew)

    def connect_anew(self, one: TokenSessions, tries: int, lost: int) -> None:
        """Start anew what was found lost, unless another thread has done so since.

        Args:
            one: the token whose session it was.
            tries: at least 1.
            lost: the module's `starts` when it was found lost.

        Raises:
            HsmUnavailableError: the breaker opened.
            PinRefusedError: it latched.
        """
        with one.module.alone():
            if one.status is not HsmStatus.READY:
                raise HsmUnavailableError(one.reason)
            if one.module.starts == lost:
                self._connect(one, tries, anew=True)

    def _connect(self, one: TokenSessions, tries: int, *, anew: bool) -> None:
        """Connect a token, and whom that has disconnected.

        Raises:
            HsmUnavailableError: its breaker opened.
            PinRefusedError: it latched.
        """
        try:
            self._connect_alone(one, tries, anew=anew)
        finally:
            self._reconnect_siblings(one)

    def _reconnect_siblings(self, one: TokenSessions) -> None:
        """Reconnect whom a new start of the module has disconnected."""
        for other in self._connections:
            if (
                other.module is one.module
                and other.status is HsmStatus.READY
                and not other.is_connected
            ):
                with suppress(HsmUnavailableError):
                    self._connect_alone(other, 1, anew=False)

    def _connect_alone(self, one: TokenSessions, tries: int, *, anew: bool) -> None:
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
        self._watch.answered(one.token.number)
