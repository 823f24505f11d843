"""The ports of a trial: chosen free, and kept open until its commands serve them."""

import errno
import secrets
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from appliance.cli.demo.host_files import SITE, SITE_PORT
from appliance.cli.installation.wanted_ports import refusal, wanted_ports
from appliance.cli.terminal import say
from appliance.settings import SettingsError, load_settings
from appliance.system.passed_sockets import addresses_of, name_of

_OTHERS: Final = range(15_000, 32_000)
"""Ports below those that the kernel gives to outgoing connections."""
_TRIES: Final = 100


class TrialPorts:
    """Listeners by the name of what will serve them, open until the block ends."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._listeners: dict[str, socket.socket] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def listeners(self) -> Mapping[str, socket.socket]:
        """All that are open."""
        return self._listeners

    def choose(self, name: str, preferred: int) -> int:
        """Open a loopback port: the preferred one if it is free, else another one.

        Args:
            name: of what will serve it.
            preferred: the port.

        Raises:
            SettingsError: no port is free.
        """
        others = (secrets.choice(_OTHERS) for _ in range(_TRIES))
        for port in (preferred, *others, 0):
            try:
                listener = _listen(port)
            except OSError as exc:
                if exc.errno not in {errno.EADDRINUSE, errno.EACCES}:
                    raise
                continue
            self._listeners[name] = self._stack.enter_context(listener)
            return int(listener.getsockname()[1])
        msg = "no port is free"
        raise SettingsError(msg)

    def open(self, name: str, address: str) -> None:
        """Open an address of the settings, unless it is open here already.

        Args:
            name: of what will serve it.
            address: `host:port`; unix sockets are left to who serves them.

        Raises:
            SettingsError: it is taken; the text says by which process.
        """
        if address.startswith("unix:"):
            return
        wanted = addresses_of(address)
        if any(name_of(each) in wanted for each in self._listeners.values()):
            return
        from appliance.runtime.processes import bind  # noqa: PLC0415 (heavy)

        if name in self._listeners:
            # Chosen on the loopback address, and wanted on another one.
            self._listeners.pop(name).close()
        self._listeners[name] = self._stack.enter_context(bind(address, 1))


def open_ports(settings_file: Path, ports: TrialPorts) -> bool:
    """Open every port that a trial serves; say which are taken, and by whom.

    Args:
        settings_file: of the trial.
        ports: gets them.

    Returns:
        True if all are open.

    Raises:
        SettingsError: no port is free for the demo site, which has none yet.
    """
    wanted = wanted_ports(load_settings(settings_file), settings_file)
    free = True
    for port in wanted:
        try:
            ports.open(port.name, port.address)
        except SettingsError as exc:
            free = False
            say(refusal(port, exc))
    if all(port.name != SITE for port in wanted):
        ports.choose(SITE, SITE_PORT)
    return free


def _listen(port: int) -> socket.socket:
    """Listen on a port of 127.0.0.1 that is free on `::1` too.

    Raises:
        OSError: it is taken.
    """
    from appliance.runtime.processes import bind  # noqa: PLC0415 (heavy)

    try:
        listener = bind(f"127.0.0.1:{port}", 1)
    except SettingsError as exc:
        if isinstance(exc.__cause__, OSError):
            raise exc.__cause__ from exc
        raise
    try:
        _probe_v6(int(listener.getsockname()[1]))
    except OSError:
        listener.close()
        raise
    return listener


def _probe_v6(port: int) -> None:
    """Check a port of `::1`: a browser may take `localhost` for that.

    Raises:
        OSError: it is taken there.
    """
    if not socket.has_ipv6:
        return
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", port))
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise
            # This machine has no IPv6.
