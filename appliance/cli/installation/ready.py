"""`rubrica ready`: asks the `api` role of this machine, where it listens."""

import argparse
import http.client
import time
from pathlib import Path
from typing import Final

from appliance.cli import arguments
from appliance.cli.installation.listener import ask_api
from appliance.cli.terminal import say
from appliance.settings import Settings, SettingsError, load_settings

_LOOK_AGAIN_S: Final = 0.2
_OK: Final = 200


def register(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `ready`.

    Args:
        commands: of the `rubrica` parser.
    """
    ready = commands.add_parser(
        "ready", help="ask the api that runs on this machine whether it is ready"
    )
    ready.add_argument("--wait", type=float, default=0.0, help="seconds to wait for it")
    ready.add_argument(
        "--pid", type=arguments.number, help="of `up`: once it has ended, do not wait"
    )
    ready.set_defaults(run=_ready)


def _ready(args: argparse.Namespace) -> int:
    settings = load_settings(args.settings)
    address = settings.web.listen("api")
    if not address:
        msg = f"{args.settings}: web.listen_api: is empty; no api listens here"
        raise SettingsError(msg)
    is_ready, told = ask_until_ready(settings, args.wait, args.pid)
    say(told)
    return 0 if is_ready else 1


def ask_until_ready(
    settings: Settings, wait_s: float, pid: int | None = None
) -> tuple[bool, str]:
    """Ask the `api` until it is ready: whether it is, and its last words.

    Args:
        settings: of the installation, which the answer has to be of.
        wait_s: seconds to go on asking for.
        pid: of who is to get ready; once it has ended, nobody is waited for.
    """
    deadline = time.monotonic() + wait_s
    while True:
        if pid is not None and not _runs(pid):
            # Whoever may answer there is another installation.
            return False, f"process {pid}, which was to get ready, has ended"
        is_ready, told = _ask_once(settings)
        if is_ready or time.monotonic() >= deadline:
            return is_ready, told
        time.sleep(_LOOK_AGAIN_S)


def _ask_once(settings: Settings) -> tuple[bool, str]:
    try:
        status, told = ask_api(settings, "/readyz")
    except (OSError, http.client.HTTPException) as exc:
        return False, f"{settings.web.listen('api')}: {exc}"
    return status == _OK, told


def _runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return False
    # The state comes after the name, which stands in parentheses and may hold any.
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}
