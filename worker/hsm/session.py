"""The HSM as the worker sees it: the only opener of the HSM at run time.

    async with HsmSession(settings.hsm, load_profile("softhsm2")) as session:
        signature = await session.sign(key, digest, SignatureScheme.RSA_PKCS1)

One thread makes every PKCS#11 call, with one session a token; how a lost session
heals, and when callers are told that the HSM is away, is `worker.hsm.executor`.
"""

from collections.abc import Callable
from typing import Self, TypeVar

from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys import TokenRole
from appliance.domain.vocab import Environment
from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import HsmSettings
from hsm_config.profile import HsmProfile
from worker.hsm.calls import HsmCalls
from worker.hsm.connection import HsmConnection, HsmStatus
from worker.hsm.executor import PROBE_S, HsmThread
from worker.hsm.tokens import make_connections

_T = TypeVar("_T")


class HsmSession(HsmCalls):
    """The HSM's tokens, opened: see `HsmCalls` for what they do.

    Args:
        hsm: the installation's HSM.
        profile: its make.
        watch: the process's words for whoever ends calls that hang; by default
            nobody does.
        environment: in PROD, a PIN file open to others is refused.
        number: of the process among its kind, from 1: of the members of the
            logical HSM each one prefers another.
        probe_s: time between two tries to reach an HSM that is away, seconds.
    """

    def __init__(
        self,
        hsm: HsmSettings,
        profile: HsmProfile,
        *,
        watch: CallWatch | None = None,
        environment: Environment = Environment.PROD,
        number: int = 1,
        probe_s: float = PROBE_S,
    ) -> None:
        self._hsm = hsm
        self._profile = profile
        self._watch = watch or CallWatch()
        self._environment = environment
        self._number = number
        self._probe_s = probe_s
        self._thread: HsmThread | None = None

    @property
    def status(self) -> HsmStatus:
        """Whether users' keys can be used now."""
        return self.status_of(TokenRole.FIRMA)

    @property
    def reason(self) -> str:
        """What is not as it should be with any token, in English, for operators."""
        if self._thread is None:
            return "not opened"
        reasons = (self._thread.reason(role) for role in TokenRole)
        return "; ".join(reason for reason in reasons if reason)

    def status_of(self, role: TokenRole) -> HsmStatus:
        """Whether the keys of a role's token can be used now."""
        thread = self._thread
        return HsmStatus.UNAVAILABLE if thread is None else thread.status(role)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Read the PINs, start the module, log in, begin to watch.

        An HSM that is away, or a PIN that is refused, is no error here but a
        `status`: a process that ended instead would be started again, and each
        start would use up a try of the PIN.

        Raises:
            SettingsError: a PIN file or the module cannot be used.
            HsmUnavailableError: opened already.
        """
        if self._thread is not None:
            msg = "this session was opened already"
            raise HsmUnavailableError(msg)
        connections = make_connections(
            self._hsm, self._profile, self._environment, self._number, self._watch
        )
        self._thread = HsmThread(
            connections, self._watch, self._hsm.keep_alive_s, self._probe_s
        )
        await self._thread.start()

    async def close(self) -> None:
        """Stop watching, finish what runs, log out, end the thread.

        Raises:
            HsmUnavailableError: another process opened it.
        """
        if self._thread is not None:
            await self._thread.stop()
            self._thread = None

    async def _call(
        self,
        work: Callable[[HsmConnection], _T],
        role: TokenRole = TokenRole.FIRMA,
    ) -> _T:
        """Do some work in the HSM thread.

        Raises:
            HsmUnavailableError: not opened.
        """
        if self._thread is None:
            msg = "not opened"
            raise HsmUnavailableError(msg)
        return await self._thread.call(work, role)
