"""`rubrica ready`: asks the `api` role of this machine, where it listens."""

import argparse
import http.client
import time
from pathlib import Path
from typing import Final

from appliance.cli import arguments
from appliance.cli.installation.listener import ask
from appliance.cli.terminal import say
from appliance.settings import SettingsError, load_settings

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
    address = load_settings(args.settings).web.listen("api")
    if not address:
        msg = f"{args.settings}: web.listen_api: is empty; no api listens here"
        raise SettingsError(msg)
    is_ready, told = ask_until_ready(address, args.wait, args.pid)
    say(told)
    return 0 if is_ready else 1


def ask_until_ready(
    address: str, wait_s: float, pid: int | None = None
) -> tuple[bool, str]:
    """Whether the `api` is ready, and what was told last.

    Args:
        address: `web.listen_api` of the settings.
        wait_s: seconds to go on asking for.
        pid: of who is to get ready; once it has ended, nobody is waited for.
    """
    deadline = time.monotonic() + wait_s
    while True:
        if pid is not None and not _runs(pid):
            # Whoever may answer there is another installation.
            return False, f"process {pid}, which was to get ready, has ended"
        try:
            status, told = ask(address, "/readyz")
        except (OSError, http.client.HTTPException) as exc:
            status, told = 0, f"{address}: {exc}"
        if status == _OK or time.monotonic() >= deadline:
            return status == _OK, told
        time.sleep(_LOOK_AGAIN_S)


def _runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return False
    # The state comes after the name, which stands in parentheses and may hold any.
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}
