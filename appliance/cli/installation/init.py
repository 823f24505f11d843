"""`rubrica init`: a settings file, secrets and folders for a new installation.

Nothing that exists is changed, so that it may be run again at any time.
"""

import argparse
import contextlib
import errno
import os
import secrets
import socket
import tempfile
from pathlib import Path
from typing import Final

from appliance.cli.terminal import say
from appliance.settings import SettingsError, load_settings

_SECRETS: Final = ("pepper", "data-key", "document-key", "lookup-key")
_RUN_DIR_BYTES: Final = 80
_FONTS: Final = (
    Path("/usr/share/fonts/truetype/liberation2"),
    Path("/usr/share/fonts/truetype/liberation"),
)
_TEMPLATE: Final = """\
# Settings of this installation; every key is described in docs/settings.md.
environment = "PREPROD"
trial = {trial}
installation = "{installation}"
data_dir = "."
run_dir = "{run_dir}"
fonts_dir = "{fonts_dir}"

[web]
base_url = "http://127.0.0.1:{api}"
listen_api = "{host}:{api}"
# Another origin than the API's, as it has to be.
iframe_url = "http://localhost:{embed}"
listen_embed = "{host}:{embed}"
admin_url = "http://127.0.0.1:{admin}"
listen_admin = "{host}:{admin}"

[metrics]
listen = "{host}:{metrics}"

[hsm]
profile = "softhsm2"
softhsm_conf = "hsm/softhsm2.conf"

[hsm.firma]
label = "firma"
pin_file = "secrets/firma.pin"

[hsm.pki]
label = "pki"
pin_file = "secrets/pki.pin"

[secrets]
pepper_file = "secrets/pepper"
data_key_file = "secrets/data-key"
document_key_file = "secrets/document-key"
lookup_key_file = "secrets/lookup-key"
{stamp}{mail}"""
_STAMP: Final = """
# Stamps with a QR code, and with its code in letters: docs/stamp.md.
[stamp]
design = "card"
qr = true
"""
_CAUGHT: Final = """
# Mails of the trial are caught by the demo integrator's site, and go nowhere.
[mail]
host = "127.0.0.1"
port = {port}
tls = "none"
from_address = "firma@demo.example"

# A receiver that is tried out here may be told; elsewhere these are refused.
[webhooks]
allowed_networks = ["127.0.0.0/8", "::1/128"]
"""
_LOOPBACK: Final = "127.0.0.1"


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `init`.

    Args:
        commands: of the `rubrica` parser.
    """
    init = commands.add_parser(
        "init", help="write a settings file, secrets and folders where missing"
    )
    init.add_argument("folder", type=Path, help="of the installation's data")
    init.add_argument(
        "--trial", action="store_true", help="a trial: demo CA, free port, SQLite"
    )
    init.add_argument("--installation", default="Demo", help="its name")
    init.add_argument(
        "--listen-host",
        default="127.0.0.1",
        help="address that the faces listen on (0.0.0.0 in a container that "
        "publishes their ports)",
    )
    init.set_defaults(run=_init)


def _init(args: argparse.Namespace) -> int:
    folder: Path = args.folder.resolve()
    settings_file = folder / "settings.toml"
    try:
        _make(folder, settings_file, args)
    except OSError as exc:
        msg = f"{exc.filename or folder}: cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc
    load_settings(settings_file)
    return 0


def _make(folder: Path, settings_file: Path, args: argparse.Namespace) -> None:
    """Make what is missing.

    Raises:
        OSError: something cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings_file.exists():
        say(f"kept  {settings_file}")
    else:
        _write_new(settings_file, _settings_text(folder, args), 0o600)
        say(f"made  {settings_file}")
    for name in _SECRETS:
        _make_secret(folder / "secrets" / name)


def _settings_text(folder: Path, args: argparse.Namespace) -> str:
    api, embed, admin, metrics, mail = _free_ports(8080, 8081, 8082, 8083, 2525)
    # Of a container that publishes its ports nobody would catch them.
    is_caught = args.trial and args.listen_host == _LOOPBACK
    return _TEMPLATE.format(
        trial="true" if args.trial else "false",
        installation=args.installation,
        host=args.listen_host,
        run_dir=_run_dir(folder),
        fonts_dir=next((path for path in _FONTS if path.exists()), _FONTS[0]),
        api=api,
        embed=embed,
        admin=admin,
        metrics=metrics,
        stamp=_STAMP if args.trial else "",
        mail=_CAUGHT.format(port=mail) if is_caught else "",
    )


def _run_dir(folder: Path) -> str:
    """A folder whose sockets have short enough paths."""
    inside = folder / "run"
    if len(os.fsencode(inside)) <= _RUN_DIR_BYTES:
        return "run"
    return tempfile.mkdtemp(prefix="rubrica-")


def _free_ports(*wanted: int) -> list[int]:
    """The ports wanted where they are free, else ones that the system picks."""
    with contextlib.ExitStack() as held:
        # All are held until all are found, so that none is given twice.
        return [_hold_port(held, port) for port in wanted]


def _hold_port(held: contextlib.ExitStack, wanted: int) -> int:
    """Bind a port for as long as the stack is open.

    Raises:
        OSError: no port is free.
    """
    for port in (wanted, 0):
        probe = held.enter_context(socket.socket())
        try:
            probe.bind(("127.0.0.1", port))
            number = int(probe.getsockname()[1])
            _hold_v6(held, number)
        except OSError:
            continue
        return number
    msg = "no port is free"
    raise OSError(msg)


def _hold_v6(held: contextlib.ExitStack, port: int) -> None:
    """Bind the same port of `::1`: a browser may take `localhost` for that.

    Raises:
        OSError: it is taken there.
    """
    if not socket.has_ipv6:
        return
    probe = held.enter_context(socket.socket(socket.AF_INET6))
    try:
        probe.bind(("::1", port))
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE:
            raise
        # This machine has no IPv6.


def _make_secret(path: Path) -> None:
    if path.exists():
        say(f"kept  {path}")
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_new(path, secrets.token_hex(32) + "\n", 0o600)
    say(f"made  {path}")


def _write_new(path: Path, text: str, mode: int) -> None:
    """Write a file whole or not at all, readable by its owner alone."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).rename(path)
