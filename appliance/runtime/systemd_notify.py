"""Telling systemd how a role is: `READY=1`, `WATCHDOG=1`, `STOPPING=1`.

A datagram to the socket that systemd names in the environment; without it, as in
a terminal or a container, nothing is told.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

import contextlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from appliance.runtime.liveness_file import beat

_USEC: Final = 1_000_000


class ServiceManager:
    """The service manager of this process, if there is one.

    Args:
        environment: of the process.
        pulse: file that is touched too, for those who stand beside; see `pulse`.
    """

    def __init__(
        self, environment: Mapping[str, str] = os.environ, pulse: Path | None = None
    ) -> None:
        self._pulse = pulse
        self._address = environment.get("NOTIFY_SOCKET", "")
        # A watchdog that was meant for another process is none of ours.
        ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        usec = environment.get("WATCHDOG_USEC", "0") if ours else "0"
        self.watchdog_s = int(usec) / _USEC if usec.isdecimal() else 0.0
        """Time after which silence counts as death, in seconds; 0: never."""

    def ready(self) -> None:
        """The role does its work from here on."""
        self._tell("READY=1")

    def alive(self) -> None:
        """It still does."""
        self._tell("WATCHDOG=1")
        if self._pulse is not None:
            beat(self._pulse)

    def stopping(self) -> None:
        """It was told to stop and is about to."""
        self._tell("STOPPING=1")

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        # A leading @ stands for the abstract namespace's zero byte.
        address = self._address.replace("@", "\0", 1)
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify,
        ):
            notify.settimeout(0)
            notify.sendto(state.encode("ascii"), address)
