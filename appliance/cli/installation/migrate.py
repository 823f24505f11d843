"""`rubrica migrate`: brings the database's tables to this version."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final

from appliance.cli.terminal import run_async, say
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.settings import Settings, SettingsError

if TYPE_CHECKING:
    from appliance.cli.arguments import Subparsers

_LOOK_AGAIN_S: Final = 1.0
_REASON_CHARS: Final = 200


def register(commands: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add the command.

    Args:
        commands: of the `rubrica` parser.
    """
    parser = commands.add_parser("migrate", help="bring the tables to this version")
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long to wait for a database that is away (default: not at all)",
    )
    parser.set_defaults(run=_migrate)


def _migrate(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        say(_told(*await _migrated(settings, args.wait)))
        await _mark(settings)
        return 0

    return run_async(work, args)


async def _mark(settings: Settings) -> None:
    """Mark the folder or the bucket of documents, once.

    Raises:
        SettingsError: it is another installation's, not mounted, or read-only.
        ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`.
    """
    from appliance.database.engines import open_engines  # noqa: PLC0415 (heavy)
    from appliance.documents.blob_stores import (  # noqa: PLC0415 (heavy)
        mark_documents,
    )
    from appliance.domain.clock import SystemClock  # noqa: PLC0415 (heavy)
    from appliance.record.unit_of_work import Database  # noqa: PLC0415 (heavy)

    store = Database(open_engines(settings), SystemClock(), "operator")
    try:
        if where := await mark_documents(settings, store):
            say(f"marked {where} as this installation's")
    finally:
        await store.close()


def _told(before: str | None, after: str) -> str:
    """What became of the tables, by their versions before and after."""
    from appliance.database.table_version import newest  # noqa: PLC0415 (heavy)

    if after != newest():
        return (
            f"tables: {after}, of a newer Rúbrica than this one, which knows "
            f"{newest()} and may use them; nothing was changed"
        )
    return f"tables: {before or 'none'} -> {after}" if before != after else "current"


async def _migrated(settings: Settings, wait_s: float) -> tuple[str | None, str]:
    """Migrate as soon as the database answers; versions before and after.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`, after the time to wait.
        SettingsError: the tables are of a newer version, which this one may not use,
            or the user of the database may not alter them.
    """
    import asyncio  # noqa: PLC0415 (heavy)

    from appliance.cli.installation.upgrade_state import (  # noqa: PLC0415 (heavy)
        is_upgrade_closed,
    )
    from appliance.database.migrate import migrate  # noqa: PLC0415 (heavy)
    from appliance.record.unit_of_work import denied_right, store_faults  # noqa: PLC0415 (heavy)

    is_closed = is_upgrade_closed(settings)
    deadline, told = time.monotonic() + wait_s, False
    while True:
        try:
            with store_faults():
                return await migrate(settings, is_closed=is_closed)
        except ApplianceError as exc:
            if (denied := denied_right(exc.__cause__)) is not None:
                # Waiting does not help.
                msg = f"database: {denied['reason']}; see `rubrica database roles`"
                raise SettingsError(msg) from exc
            is_away = exc.code is ErrorCode.STORE_UNAVAILABLE
            if not is_away or time.monotonic() >= deadline:
                raise
            if not told:
                sys.stderr.write(f"waiting for the database: {_reason(exc)}\n")
                sys.stderr.flush()
            told = True
        await asyncio.sleep(_LOOK_AGAIN_S)


def _reason(exc: BaseException) -> str:
    """The innermost cause, in one line."""
    while exc.__cause__ is not None:
        exc = exc.__cause__
    return (str(exc).partition("\n")[0] or type(exc).__name__)[:_REASON_CHARS]
