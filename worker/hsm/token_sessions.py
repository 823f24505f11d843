"""A token of the process: its sessions, one login, and the breaker before it.

The first session logs in, which holds for the process; the others are opened beside
it without a PIN. None is closed by itself: they end with the module.
"""

import secrets
import time
from collections.abc import Callable
from typing import Final, TypeVar

import structlog
from pkcs11 import exceptions as p11

from appliance.domain.errors import ErrorCode, HsmRefusedError, KeyNotFoundError
from appliance.metrics import metrics
from appliance.runtime.hang_watchdog import CallWatch
from hsm_config.pkcs11.errors import HsmFault, classify
from hsm_config.pkcs11.module import (
    PinRefusedError,
    describe,
    find_token,
    log_in,
    login_refusal,
    open_beside,
    starting,
)
from worker.hsm.connection import (
    HsmConnection,
    HsmStatus,
    HsmToken,
    SessionLostError,
)
from worker.hsm.module import HsmModule

_T = TypeVar("_T")
_log: Final = structlog.get_logger(__name__)


class TokenSessions:
    """One token, with as many sessions as the process has HSM threads.

    Args:
        token: which.
        module: that it is reached through.
        watch: told of each call, for whoever ends calls that hang.
    """

    def __init__(self, token: HsmToken, module: HsmModule, watch: CallWatch) -> None:
        self.token = token
        self.module = module
        self._watch = watch
        links: list[HsmConnection] = []
        links.extend(
            HsmConnection(token, module, links) for _ in range(token.hsm.sessions)
        )
        self._links = tuple(links)
        # The last one was used last: its handles are known.
        self._free = list(reversed(links))
        module.join(self)
        self.status = HsmStatus.UNAVAILABLE
        """Of its breaker; `HsmThreads` sets it by `mark`."""
        self.reason = "not started"
        self.vain_until = 0.0
        """Monotonic time; until then no start is made for a missing key."""

    @property
    def first(self) -> HsmConnection:
        """The connection that logs in."""
        return self._links[0]

    def mark(self, status: HsmStatus, reason: str) -> None:
        """Open its breaker, or close it, and say so where that is news."""
        if (status, reason) != (self.status, self.reason):
            label = self.token.label
            if status is HsmStatus.READY:
                _log.info("hsm.ready", token=label, was=self.reason)
            else:
                fault = HsmFault.PIN if status is HsmStatus.PIN else HsmFault.DEVICE
                metrics.count_hsm_fault(self.token.role.value, fault.value)
                _log.error(
                    "hsm.unavailable", token=label, status=status.value, reason=reason
                )
        self.status, self.reason = status, reason

    @property
    def is_connected(self) -> bool:
        """Whether it has its sessions, as far as it knows."""
        return all(link.is_connected for link in self._links)

    @property
    def open_sessions(self) -> int:
        """How many sessions it has, as far as it knows."""
        return sum(link.is_connected for link in self._links)

    @property
    def idle_s(self) -> float:
        """How long the session that has been idle longest has been so, in seconds."""
        idlest = self._free[:1]
        return time.monotonic() - idlest[0].last_use if idlest else 0.0

    def run(self, work: Callable[[HsmConnection], _T], *, idlest: bool = False) -> _T:
        """Do some work in a session that nobody uses; what goes wrong, in our words.

        Args:
            work: what.
            idlest: in the one that has been idle longest, instead of the one whose
                handles are known best.

        Raises:
            SessionLostError: a session, a token or the module was lost.
            HsmRefusedError: the token is fine and refuses this.
            ApplianceError: what the work itself raises.
        """
        link = self._free.pop(0 if idlest else -1)  # there is one for each thread
        try:
            link.last_use = time.monotonic()
            with self._watch.calling(self.token.number):
                return work(link)
        except p11.PKCS11Error as exc:
            fault, reason = classify(exc), describe(exc)
        finally:
            self._free.append(link)
        metrics.count_hsm_fault(self.token.role.value, fault.value)
        # Outside the handler, so that no context holds the binding's frames.
        if fault is HsmFault.REFUSED:
            raise HsmRefusedError(reason, ErrorCode.SIGNING_FAILED)
        raise SessionLostError(reason, fault)

    def connect(self, tries: int, *, anew: bool) -> None:
        """Find the token, log in, and make a test signature; for who is alone.

        A start is tried again after a moment, for many processes starting at
        once disturb each other; a PIN never is.

        Args:
            tries: at least 1.
            anew: start the module anew first; each further try does.

        Raises:
            SessionLostError: it does not start, or the token or our own key in
                it is away.
            PinRefusedError: the token refuses its PIN.
            HsmRefusedError: two tokens share a label.
            SettingsError: there is no module, or it serves one thread alone.
        """
        for attempt in range(1, tries + 1):
            with starting(self.token.hsm, self.token.profile):
                reason = self._open(anew=anew or attempt > 1)
            if reason is None:
                for link in self._links:
                    link.last_use = time.monotonic()
                return
            if attempt < tries:
                # Jitter, so that those that collided do not meet again.
                time.sleep((20 * attempt + secrets.randbelow(40 * attempt)) / 1000)
        self.forget_all()
        raise SessionLostError(reason or "", HsmFault.DEVICE)

    def _open(self, *, anew: bool) -> str | None:
        """Log in and sign once; the reason when it failed.

        Raises:
            PinRefusedError: the token refuses its PIN, or would rather not be
                asked.
        """
        self.forget_all()
        try:
            with self._watch.calling(self.token.number):
                library = self.module.library
                if anew or library is None:
                    library = self.module.restart()
                token = find_token(library, self.token.label)
                refusal = login_refusal(token.flags)
                if refusal is not None:
                    msg = f"token {token.label}: {refusal}"
                    raise PinRefusedError(msg)
                session = log_in(token, self.token.pin)
                self.first.hold(session)
                self.first.see_own_keys()
                self.first.exercise()
                for link in self._links[1:]:
                    link.hold(open_beside(session))
        except p11.SessionCount as exc:
            # The token's limit, perhaps by what other processes have open.
            asked = self.token.hsm.sessions
            return f"{describe(exc)} (hsm.sessions = {asked} in each worker)"
        except p11.PKCS11Error as exc:
            return describe(exc)
        except KeyNotFoundError as exc:
            return f"{exc.reason}; did `rubrica hsm init` run to its end?"
        return None

    def forget_all(self) -> None:
        """Let go of sessions and handles."""
        for link in self._links:
            link.forget_all()
