"""The HSM as the worker sees it: the only opener of the HSM at run time.

    async with HsmSession(settings.hsm, load_profile("softhsm2")) as session:
        signature = await session.sign(key, digest, SignatureScheme.RSA_PKCS1)

One thread makes every PKCS#11 call, with one session a token; how a lost session
heals, and when callers are told that the HSM is away, is `worker.hsm_thread`.
"""

from collections.abc import Callable
from typing import Self, TypeVar

from appliance.domain.errors import HsmUnavailableError
from appliance.domain.hsm import TokenRole
from appliance.domain.vocab import Environment
from appliance.settings import HsmSettings
from hsm_config.module import module_path, token_settings
from hsm_config.pin import read_pin
from hsm_config.profile import HsmProfile
from worker.hsm_calls import HsmCalls
from worker.hsm_connection import HsmConnection
from worker.hsm_thread import PROBE_S, HsmStatus, HsmThread

_T = TypeVar("_T")


class HsmSession(HsmCalls):
    """The HSM's two tokens, opened: see `HsmCalls` for what they do.

    Args:
        hsm: the installation's HSM.
        profile: its make.
        environment: in PROD, a PIN file open to others is refused.
        probe_s: time between two tries to reach an HSM that is away, seconds.
    """

    def __init__(
        self,
        hsm: HsmSettings,
        profile: HsmProfile,
        *,
        environment: Environment = Environment.PROD,
        probe_s: float = PROBE_S,
    ) -> None:
        self._hsm = hsm
        self._profile = profile
        self._environment = environment
        self._probe_s = probe_s
        self._thread: HsmThread | None = None

    @property
    def status(self) -> HsmStatus:
        """Whether keys can be used now."""
        return HsmStatus.UNAVAILABLE if self._thread is None else self._thread.status

    @property
    def reason(self) -> str:
        """Why not, in English, for operators; empty when ready."""
        return "not opened" if self._thread is None else self._thread.reason

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
        module_path(self._hsm, self._profile)
        pins = {
            role: read_pin(token_settings(self._hsm, role).pin_file, self._environment)
            for role in TokenRole
        }
        connection = HsmConnection(self._hsm, self._profile, pins)
        self._thread = HsmThread(connection, self._hsm.keep_alive_s, self._probe_s)
        await self._thread.start()

    async def close(self) -> None:
        """Stop watching, finish what runs, log out, end the thread.

        Raises:
            HsmUnavailableError: another process opened it.
        """
        if self._thread is not None:
            await self._thread.stop()
            self._thread = None

    async def _call(self, work: Callable[[HsmConnection], _T]) -> _T:
        """Do some work in the HSM thread.

        Raises:
            HsmUnavailableError: not opened.
        """
        if self._thread is None:
            msg = "not opened"
            raise HsmUnavailableError(msg)
        return await self._thread.call(work)
