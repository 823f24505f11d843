"""`rubrica demo network`: let the devices of a private network into a trial.

The trial goes on listening on this machine alone. A front with TLS listens on the
machine's address in the network, at the same ports, and settings of their own have the
addresses that devices use. Codes and passwords are shown to whoever has the visit key,
which is in the address that `rubrica demo show` prints.
"""

import argparse
import json
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from appliance.cli.demo.host_files import host_address
from appliance.cli.demo.visit_key import keep_visit_key, read_visit_key
from appliance.cli.terminal import say
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.origins import is_private_ipv4
from appliance.settings import Settings, SettingsError, load_settings
from appliance.settings.web import FACES
from appliance.system.held_listeners import close_held

if TYPE_CHECKING:
    import asyncio

FOLDER: Final = "network"
"""Folder of the data folder with what is made here."""
VISIT_KEY: Final = f"{FOLDER}/visit-key"
_ADDRESS: Final = "address.json"
_CERTIFICATE: Final = "certificate.pem"
_KEY: Final = "key.pem"
_NAMES: Final = ("base_url", "web_url", "iframe_url", "admin_url")
_TABLE: Final = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+\s*(?:#.*)?")
_URL: Final = re.compile(rf'\s*({"|".join(_NAMES)})\s*=\s*"([^"]*)"\s*(?:#.*)?')
_ROUTED: Final = ("192.0.2.1", 9)
"""An address of documentation (RFC 5737): asks for the route, sends nothing."""


def register(parts: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `network`.

    Args:
        parts: of the `demo` parser.
    """
    network = parts.add_parser(
        "network", help="let devices of a private network into the trial, by TLS"
    )
    network.add_argument(
        "--prepare",
        type=Path,
        metavar="FILE",
        help="write settings for it to FILE, beside the others, and end",
    )
    network.add_argument(
        "--address",
        metavar="IPV4",
        help="of this machine in that network (default: that of its default route)",
    )
    network.set_defaults(run=_network)


def _network(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings)
    if not settings.trial:
        raise ApplianceError(ErrorCode.NOT_A_TRIAL)
    if args.prepare is None:
        import asyncio  # noqa: PLC0415 (heavy)

        return asyncio.run(_serve(settings))
    address = private_address(args.address or own_address())
    prepare(args.settings, args.prepare, address)
    say(f"addresses of this network: {args.prepare}")
    return 0


def own_address() -> str:
    """Find this machine's IPv4 address in the network of its default route.

    Raises:
        SettingsError: it has no such route.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ROUTED)
        except OSError as exc:
            msg = f"this machine is in no network ({exc.strerror}); give its address"
            raise SettingsError(msg) from exc
        return str(probe.getsockname()[0])


def private_address(given: str) -> str:
    """Check an address of this machine in a private network.

    Args:
        given: as typed.

    Returns:
        It.

    Raises:
        SettingsError: it is none: a trial is never opened to the Internet.
    """
    if not is_private_ipv4(given):
        msg = (
            f"{given!r}: write an IPv4 address of this machine in a private network, "
            "such as 192.168.0.10; a trial is opened to nothing else "
            "(docs/installing.md has how to serve the Internet)"
        )
        raise SettingsError(msg)
    return given


def prepare(settings_file: Path, target: Path, address: str) -> None:
    """Write settings, certificate and visit key for an address.

    Args:
        settings_file: of the trial, with addresses of this machine.
        target: the settings to be written, in the same folder.
        address: of `private_address`.

    Raises:
        SettingsError: the addresses of the settings are no longer a trial's.
    """
    from appliance.cli.demo.tls_front import ensure_certificate  # noqa: PLC0415 (heavy)

    if target.resolve().parent != settings_file.resolve().parent:
        msg = f"{target}: must be in the folder of {settings_file}"
        raise SettingsError(msg)
    folder = load_settings(settings_file).data_dir / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    lines = settings_file.read_text(encoding="utf-8").splitlines()
    text = "\n".join(_with_address(lines, address, settings_file))
    target.touch(mode=0o600)
    target.write_text(f"{text}\n", encoding="utf-8")
    _check(load_settings(target), address, settings_file)
    ensure_certificate(folder / _CERTIFICATE, folder / _KEY, address)
    keep_visit_key(folder.parent / VISIT_KEY)
    (folder / _ADDRESS).write_text(json.dumps({"address": address}), encoding="utf-8")


def _with_address(lines: list[str], address: str, file: Path) -> Iterator[str]:
    """Put the network's address into the addresses of `[web]`."""
    table = ""
    yield f"# Made by `rubrica demo network --prepare` from {file.name}: edit that one."
    for line in lines:
        if heading := _TABLE.fullmatch(line):
            table = heading[1]
        if table == "web" and (given := _URL.fullmatch(line)):
            yield f'{given[1]} = "{_shared(given[2], given[1], address)}"'
        else:
            yield line


def _shared(url: str, name: str, address: str) -> str:
    parts = urlsplit(url)
    if parts.hostname not in {"localhost", "127.0.0.1"} or parts.port is None:
        msg = (
            f"web.{name}: {url} is no address of a trial (http://127.0.0.1:PORT); "
            "where you have chosen others, open them to your network yourself"
        )
        raise SettingsError(msg)
    return f"https://{address}:{parts.port}{parts.path}"


def _check(settings: Settings, address: str, file: Path) -> None:
    """Refuse settings whose addresses could not be told by their lines.

    Raises:
        SettingsError: one is not of this network.
    """
    web = settings.web
    for name in _NAMES:
        if urlsplit(getattr(web, name)).hostname != address:
            msg = f"{file}: web.{name}: write it on a line of its own below [web]"
            raise SettingsError(msg)


def shared_address(settings: Settings) -> str:
    """Find the address by which a network reaches this trial.

    Args:
        settings: of a trial.

    Returns:
        The IPv4 address; empty where the trial is open to this machine alone.
    """
    path = settings.data_dir / FOLDER / _ADDRESS
    try:
        address = str(json.loads(path.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    # The trial's own settings stay beside those of the network.
    return address if urlsplit(settings.web.iframe_url).hostname == address else ""


def certificate_file(settings: Settings) -> Path:
    """The certificate of a shared trial, for programs that are to trust it."""
    return settings.data_dir / FOLDER / _CERTIFICATE


def visit_address(settings: Settings, origin: str) -> str:
    """Make the address that a visitor opens first.

    Args:
        settings: of a trial.
        origin: of the demo site.

    Returns:
        With the visit key, where the trial is shared: behind the `#`, which browsers
        send to nobody.

    Raises:
        SettingsError: the trial is shared, and its visit key is gone.
    """
    if not shared_address(settings):
        return f"{origin}/"
    path = settings.data_dir / VISIT_KEY
    key = read_visit_key(path)
    if not key:
        msg = f"{path}: holds no visit key; start the trial with --network again"
        raise SettingsError(msg)
    return f"{origin}/#visita={key}"


def qr_lines(text: str) -> list[str]:
    """Draw a QR code for a terminal, black on white whatever its colours are.

    Args:
        text: that it holds.
    """
    import segno  # noqa: PLC0415 (heavy)

    rows = [list(row) for row in segno.make(text, error="m").matrix_iter(border=3)]
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    blocks = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
    return [
        "\x1b[38;5;16;48;5;231m"
        + "".join(
            blocks[bool(upper), bool(lower)]
            for upper, lower in zip(rows[at], rows[at + 1], strict=True)
        )
        + "\x1b[0m"
        for at in range(0, len(rows), 2)
    ]


async def _serve(settings: Settings) -> int:
    """Serve the front until told to stop.

    Raises:
        SettingsError: nothing was prepared, or a port cannot be had.
    """
    import asyncio  # noqa: PLC0415 (heavy)

    from appliance.cli.demo.tls_front import Forward, TlsFront  # noqa: PLC0415 (heavy)

    address = shared_address(settings)
    if not address:
        msg = "these settings are not for a network: see `rubrica demo network --help`"
        raise SettingsError(msg)
    folder = settings.data_dir / FOLDER
    listeners = [
        *(settings.web.listen(face) for face in FACES),
        host_address(settings.data_dir),
    ]
    forwards = [
        Forward(int(port), (host, int(port)))
        for host, _, port in (listen.rpartition(":") for listen in listeners)
        if port.isdigit()
    ]
    # They are the site's and the roles'; kept open here they would outlive those.
    close_held()
    front = TlsFront(address, forwards, folder / _CERTIFICATE, folder / _KEY)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    listening = asyncio.Event()
    saying = asyncio.create_task(_say_open(listening, address))
    try:
        await front.serve(stopped, listening)
    except OSError as exc:
        msg = f"{address}: cannot be listened on ({exc.strerror})"
        raise SettingsError(msg) from exc
    finally:
        saying.cancel()
    return 0


async def _say_open(listening: "asyncio.Event", address: str) -> None:
    await listening.wait()
    print(f"open to the network: {address}", flush=True)  # noqa: T201 (a command)
