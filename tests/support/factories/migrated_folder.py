"""A data folder whose record has this version's tables, without migrating again.

The migrations themselves have tests of their own (`test_store_migrations`).
"""

import asyncio
import functools
import tempfile
from pathlib import Path

from appliance.core.database.migrate import migrate
from appliance.settings import Settings
from tests.support.processes.event_loops import run_apart

_SQLITE = "sqlite"


async def lay_tables(settings: Settings) -> None:
    """Give a fresh data folder its SQLite file.

    Args:
        settings: of an installation whose folder has none; another database than
            SQLite is left alone, for it comes migrated (`migrated_url`).
    """
    if settings.database.url == _SQLITE:
        files = await asyncio.to_thread(_migrated)
        for name, content in files.items():
            (settings.data_dir / name).write_bytes(content)


@functools.cache
def _migrated() -> dict[str, bytes]:
    """The files of a migrated data folder, made once in a process."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        token = {"label": "x", "pin_file": "pin"}
        names = ("pepper_file", "data_key_file", "lookup_key_file")
        settings = Settings.model_validate(
            {
                "data_dir": made,
                "run_dir": made,
                "hsm": {"firma": token, "pki": token},
                "secrets": dict.fromkeys(names, "secret"),
            }
        )
        run_apart(migrate(settings))
        return {path.name: path.read_bytes() for path in folder.iterdir()}
