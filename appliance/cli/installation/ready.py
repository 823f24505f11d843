"""`rubrica ready`: asks the `api` role of this machine, where it listens."""

import argparse
import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from appliance.cli import arguments
from appliance.cli.installation.listener import ask_api
from appliance.cli.installation.stopped_trial import STOPPED, is_stopped_trial
from appliance.cli.terminal import note, say
from appliance.settings import Settings, SettingsError, load_settings

_LOOK_AGAIN_S: Final = 0.2
_OK: Final = 200
_PART_OK: Final = "ok"
"""Said by `/readyz` of a part that works."""


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
    if not args.wait and args.pid is None and is_stopped_trial(settings):
        say(f"{address}: {STOPPED}")
        return 1
    is_ready, told = ask_until_ready(
        settings, args.wait, args.pid, on_change=_say_what_is_missing
    )
    say(told)
    return 0 if is_ready else 1


def _say_what_is_missing(missing: str) -> None:
    note(f"waiting for {missing}")


def ask_until_ready(
    settings: Settings,
    wait_s: float,
    pid: int | None = None,
    on_change: Callable[[str], None] | None = None,
) -> tuple[bool, str]:
    """Ask the `api` until it is ready: whether it is, and its last words.

    After a wait in vain these say what was still missing.

    Args:
        settings: of the installation, which the answer has to be of.
        wait_s: seconds to go on asking for.
        pid: of who is to get ready; once it has ended, nobody is waited for.
        on_change: is called with what is missing, whenever that is something else
            than before.
    """
    deadline = time.monotonic() + wait_s
    missing = ""
    while True:
        if pid is not None and not _runs(pid):
            # Whoever may answer there is another installation.
            return False, f"process {pid}, which was to get ready, has ended"
        is_ready, told = _ask_once(settings)
        if is_ready or not wait_s:
            return is_ready, told
        before, missing = missing, _missing(told)
        if time.monotonic() >= deadline:
            return False, f"not ready after {wait_s:.0f} s; still missing: {missing}"
        if on_change is not None and missing != before:
            on_change(missing)
        time.sleep(_LOOK_AGAIN_S)


def _missing(told: str) -> str:
    """Name the parts that are not ready, or why the API does not answer.

    Args:
        told: the body of `/readyz`, or why there is none.
    """
    try:
        checks: dict[str, str] = json.loads(told)["checks"]
        parts = [f"{part} ({why})" for part, why in checks.items() if why != _PART_OK]
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"an answer of the API ({told})"
    return ", ".join(parts) or told


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
