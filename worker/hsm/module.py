"""A PKCS#11 module of this process, shared by the connections to its tokens.

Starting it anew ends every session and login that the process has with it. So whoever
does it is alone in the module, and takes the connections' handles away first: one that
is released later would close whatever session then bears its number.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
    """One module; all of it runs in the HSM's threads.

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
        self.starts = 0
        """How often it was started, or tried to; a session is of one of them."""
        self._turn = threading.Lock()
        self._inside = 0
        self._is_wanted_alone = False
        self._changed = threading.Condition()

    @contextmanager
    def inside(self) -> Iterator[int]:
        """Call it during a block, beside others; not to be nested.

        Yields:
            `starts`, which stays as it is until the block ends.
        """
        with self._changed:
            while self._is_wanted_alone:
                self._changed.wait()
            self._inside += 1
        try:
            yield self.starts
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Start it, end it or log in during a block, when nobody else is inside.

        Who comes meanwhile waits. A call that hangs keeps it waiting, until whoever
        ends calls that hang ends the process.
        """
        with self._turn:
            with self._changed:
                self._is_wanted_alone = True
                self._changed.wait_for(lambda: not self._inside)
            try:
                yield
            finally:
                with self._changed:
                    self._is_wanted_alone = False
                    self._changed.notify_all()

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
        """Drop everything and start it; for who is `alone`.

        Raises:
            SettingsError: there is no module.
            PKCS11Error: it does not start.
        """
        self.starts += 1
        self.stop()
        self.library = start(self._hsm, self._profile)
        return self.library

    def stop(self) -> None:
        """Drop everything and finalise it, if it runs; for who is `alone`."""
        for user in self._users:
            user.forget_all()
        if self.library is not None:
            stop(self.library)
            self.library = None
