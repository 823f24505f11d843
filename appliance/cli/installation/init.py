"""`rubrica init`: a settings file, secrets and folders for a new installation.

Nothing that exists is changed, so that it may be run again at any time. With `--then`
the ports of a trial stay open from their choice until its commands serve them.
"""

import argparse
import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

from appliance.cli.installation.trial_ports import TrialPorts, open_ports
from appliance.cli.installation.wanted_ports import MAIL
from appliance.cli.terminal import say
from appliance.settings import SettingsError, load_settings
from appliance.system.held_listeners import VARIABLE, hand_on

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
_PORTS: Final = {"api": 8080, "embed": 8081, "admin": 8082, "metrics": 8083, MAIL: 2525}
"""Preferred ports, by what serves them."""


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
    init.add_argument(
        "--then",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="open the trial's ports, and run this command, whose `rubrica` commands "
        "find them open; all that follows is its own",
    )
    init.set_defaults(run=_init)


def _init(args: argparse.Namespace) -> int:
    folder: Path = args.folder.resolve()
    settings_file = folder / "settings.toml"
    with TrialPorts() as ports:
        try:
            _make(folder, settings_file, args, ports)
        except OSError as exc:
            msg = f"{exc.filename or folder}: cannot be written ({exc.strerror})"
            raise SettingsError(msg) from exc
        load_settings(settings_file)
        return _run_with_ports(settings_file, args.then, ports) if args.then else 0


def _run_with_ports(settings_file: Path, command: list[str], ports: TrialPorts) -> int:
    """Become the command, with every port of the trial open.

    Returns:
        1 if a port is taken.

    Raises:
        SettingsError: the command cannot be run, or no port is free.
    """
    if not open_ports(settings_file, ports):
        return 1
    environment = {**os.environ, VARIABLE: hand_on(ports.listeners)}
    try:
        os.execvpe(command[0], command, environment)  # noqa: S606 (no shell is meant)
    except OSError as exc:
        msg = f"{command[0]}: cannot be run ({exc.strerror})"
        raise SettingsError(msg) from exc


def _make(
    folder: Path, settings_file: Path, args: argparse.Namespace, ports: TrialPorts
) -> None:
    """Make what is missing.

    Raises:
        OSError: something cannot be written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings_file.exists():
        say(f"kept  {settings_file}")
    else:
        _write_new(settings_file, _settings_text(folder, args, ports), 0o600)
        say(f"made  {settings_file}")
    for name in _SECRETS:
        _make_secret(folder / "secrets" / name)


def _settings_text(folder: Path, args: argparse.Namespace, ports: TrialPorts) -> str:
    # All stay open until all are chosen, so that none is chosen twice.
    api, embed, admin, metrics, mail = (
        ports.choose(name, preferred) for name, preferred in _PORTS.items()
    )
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
