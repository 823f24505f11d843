"""`rubrica health`: whether a role of this machine gets on, for who starts it anew.

It asks no more than that: a role whose database or HSM is away is well, and would be
no better for a new start; `/readyz` tells of those.
"""

import argparse
import http.client
from pathlib import Path
from typing import Final

from appliance.cli import arguments
from appliance.cli.installation.listener import ask
from appliance.cli.terminal import say
from appliance.runtime.liveness_file import LATEST_S, last_beat_s, pulse_path
from appliance.settings import Settings, SettingsError, load_settings

_FACES: Final = ("api", "embed", "admin", "metrics")
_WORKERS: Final = ("signing", "chores")
_SANDBOX: Final = "sandbox"
_UP: Final = "up"
_ROLES: Final = (*_FACES, *_WORKERS, _SANDBOX, _UP)
_FAULT: Final = 500
_PING_S: Final = 4.0
_TITLE: Final = "rubrica: "
_FIRST: Final = Path("/proc/1/cmdline")


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `health`.

    Args:
        commands: of the `rubrica` parser.
    """
    health = commands.add_parser(
        "health", help="does a role of this machine get on? For containers' checks"
    )
    health.add_argument(
        "role",
        nargs="?",
        choices=_ROLES,
        help="by itself the one that is this container's first process",
    )
    health.add_argument(
        "--slot", type=arguments.number, default=1, help="number of the worker"
    )
    health.set_defaults(run=_health)


def _health(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings)
    role, slot = (args.role, args.slot) if args.role else _first_process()
    well, told = _look(settings, role, slot)
    say(f"{role}: {told}")
    return 0 if well else 1


def _first_process() -> tuple[str, int]:
    """Role and number of the process that a container runs.

    Raises:
        SettingsError: it is no role of ours.
    """
    title = _FIRST.read_bytes().partition(b"\0")[0].decode(errors="replace")
    role, _, number = title.removeprefix(_TITLE).partition("-")
    is_ours = title.startswith(_TITLE) and role in _ROLES
    if not is_ours or not (number or "1").isdigit():
        msg = "health: the first process here is no role of Rúbrica: name one"
        raise SettingsError(msg)
    return role, int(number or 1)


def _look(settings: Settings, role: str, slot: int) -> tuple[bool, str]:
    """Whether a role is well, and what was seen."""
    if role in _WORKERS:
        return _worker(pulse_path(settings.run_dir, role, slot))
    if role == _SANDBOX:
        return _sandbox(settings)
    return _face(settings, "api" if role == _UP else role)


def _face(settings: Settings, role: str) -> tuple[bool, str]:
    address = settings.listen(role)
    try:
        status, _ = ask(address, "/healthz")
    except (OSError, ValueError, http.client.HTTPException) as exc:
        return False, f"{address or 'no address'}: {exc}"
    # The console has no such page, and says so: it gets on.
    return status < _FAULT, f"{address} answers {status}"


def _worker(pulse: Path) -> tuple[bool, str]:
    try:
        ago_s = last_beat_s(pulse)
    except OSError as exc:
        return False, f"{pulse}: {exc.strerror}"
    return ago_s <= LATEST_S, f"got on {ago_s:.0f} s ago"


def _sandbox(settings: Settings) -> tuple[bool, str]:
    import asyncio  # noqa: PLC0415 (heavy)

    from appliance.documents.sandbox_client import SandboxClient  # noqa: PLC0415 (heavy)
    from appliance.domain.errors import ApplianceError  # noqa: PLC0415 (heavy)

    async def ping() -> None:
        await SandboxClient(settings.sandbox_socket, _PING_S).ping()

    try:
        asyncio.run(ping())
    except ApplianceError as exc:
        return False, str(exc)
    return True, f"{settings.sandbox_socket} answers"
