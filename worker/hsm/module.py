"""A PKCS#11 module of this process, shared by the connections to its tokens.

Starting it anew ends every session and login that the process has with it, so
it takes its connections' handles away first: one that is released later would
close whatever session then bears its number.
"""

from typing import Protocol

from appliance.domain.errors import HsmUnavailableError
from appliance.settings import HsmSettings
from hsm_config.pkcs11.module import Library, start, stop
from hsm_config.profile import HsmProfile


class _User(Protocol):
    """Who holds handles of the module."""

    def forget_all(self) -> None:
        """Let go of every handle."""
        ...


class HsmModule:
    """One module; all of it runs in the HSM thread.

    Args:
        hsm: names module and configuration.
        profile: the make.
    """

    def __init__(self, hsm: HsmSettings, profile: HsmProfile) -> None:
        self._hsm = hsm
        self._profile = profile
        self._users: list[_User] = []
        self.library: Library | None = None
        """Initialised; None while it is not."""

    def join(self, user: _User) -> None:
        """Have a connection's handles taken away before each new start."""
        self._users.append(user)

    @property
    def running(self) -> Library:
        """The library.

        Raises:
            HsmUnavailableError: it is not initialised.
        """
        if self.library is None:
            msg = "the module is not started"
            raise HsmUnavailableError(msg)
        return self.library

    def restart(self) -> Library:
        """Drop everything and start it.

        Raises:
            SettingsError: there is no module.
            PKCS11Error: it does not start.
        """
        self.stop()
        self.library = start(self._hsm, self._profile)
        return self.library

    def stop(self) -> None:
        """Drop everything and finalise it, if it runs."""
        for user in self._users:
            user.forget_all()
        if self.library is not None:
            stop(self.library)
            self.library = None
