"""`rubrica person list`: who signs, newest first.

rubrica person list --state active
rubrica person list --json
"""

import argparse
import json
from datetime import datetime

from appliance.cli.terminal import run_async, say, table
from appliance.domain.clock import SystemClock
from appliance.domain.console.lists import Page, PeopleFilter, PersonRow
from appliance.domain.people.identity import format_cuil
from appliance.domain.vocab import PersonState
from appliance.settings import Settings


def register(
    parts: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add `list`.

    Args:
        parts: of `rubrica person`.
    """
    listing = parts.add_parser("list", help="who signs, newest first, 50 at a time")
    listing.add_argument(
        "--state", choices=[state.value for state in PersonState], help="only these"
    )
    listing.add_argument(
        "--after", default="", metavar="CURSOR", help="the page after that one"
    )
    listing.add_argument("--json", action="store_true", help="as one JSON object")
    listing.set_defaults(run=_list)


def _list(args: argparse.Namespace) -> int:
    from appliance.bootstrap import open_core  # noqa: PLC0415 (heavy)
    from appliance.bootstrap.core import data_sealer  # noqa: PLC0415 (heavy)
    from appliance.console.views import ConsoleViews  # noqa: PLC0415 (heavy)
    from appliance.secrets.key_files import KeyFile  # noqa: PLC0415 (heavy)
    from appliance.secrets.sealed_box import LookupKey  # noqa: PLC0415 (heavy)

    state = None if args.state is None else PersonState(args.state)

    async def work(settings: Settings) -> int:
        sealer = data_sealer(settings)
        lookup = LookupKey(KeyFile(settings.secrets.lookup_key_file))
        async with open_core(settings, SystemClock(), "operator") as core:
            views = ConsoleViews(core.store, sealer, lookup, core.clock)
            page = await views.people(PeopleFilter(state=state), args.after)
        _show(page, as_json=args.json)
        return 0

    return run_async(work, args)


def _show(page: Page[PersonRow], *, as_json: bool) -> None:
    rows = [_told(row) for row in page.rows]
    if as_json:
        say(json.dumps({"people": rows, "next": page.following}, ensure_ascii=False))
        return
    head = ("cuil", "name", "state", "locked", "certificate until", "created")
    keys = ("cuil", "name", "state", "lockedAt", "notAfter", "created")
    say(table(head, [tuple(row[key] or "-" for key in keys) for row in rows]))
    if page.following is not None:
        say(f"more: rubrica person list --after {page.following}")


def _told(row: PersonRow) -> dict[str, str | None]:
    """A person, each time in ISO 8601."""
    return {
        "id": row.id,
        "cuil": format_cuil(row.cuil),
        "name": row.name,
        "state": row.state.value,
        "lockedAt": _time(row.locked_at),
        "notAfter": _time(row.not_after),
        "created": _time(row.created),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")
