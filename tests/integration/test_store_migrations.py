"""Migrations: exactly the tables of this version, once, whoever else starts."""

import asyncio
import sys
from pathlib import Path

from appliance.settings import Settings
from appliance.storage import migrate
from appliance.storage.engines import open_engines
from tests.core_parts import CoreParts, core_settings

MIGRATE = """
import asyncio, sys
from pathlib import Path
from appliance.storage.migrate import migrate
from tests.core_parts import core_settings
settings = core_settings(Path(sys.argv[1]), sys.argv[2])
print(asyncio.run(migrate(settings)))
"""


async def differences(settings: Settings) -> list[object]:
    """How the tables differ from what the code has."""
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            return await connection.run_sync(migrate.differences)
    finally:
        await engines.dispose()


async def test_migrations_build_exactly_the_tables(core: CoreParts) -> None:
    """What migrations build is what `appliance.storage.tables` says."""
    assert await differences(core.settings) == []


async def test_migrate_from_empty_gives_newest(
    tmp_path: Path, database_url: str
) -> None:
    """An empty database has no version before, and the newest after."""
    settings = core_settings(tmp_path, database_url)

    assert await migrate.migrate(settings) == (None, migrate.newest())


async def test_migrate_twice_changes_nothing(core: CoreParts) -> None:
    """A second run finds the newest version and keeps every row."""
    signer = await core.add_signer()

    before, after = await migrate.migrate(core.settings)

    assert before == after == migrate.newest()
    async with core.store.read() as records:
        assert await records.people.get(signer.person) is not None


async def test_current_told_from_empty(tmp_path: Path, database_url: str) -> None:
    """A database without tables is not of this version; a migrated one is."""
    settings = core_settings(tmp_path, database_url)
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            before = await migrate.is_current(connection)
        await migrate.migrate(settings)
        async with engines.reader.connect() as connection:
            after = await migrate.is_current(connection)
    finally:
        await engines.dispose()

    assert (before, after) == (False, True)


async def test_two_migrations_at_once_make_one(
    tmp_path: Path, database_url: str
) -> None:
    """Of two processes that start at once one migrates; the other finds it done."""
    command = [sys.executable, "-c", MIGRATE, str(tmp_path), database_url]

    started = [
        await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        for _ in range(2)
    ]
    said = [(await process.communicate())[0].decode().strip() for process in started]

    newest = migrate.newest()
    assert [process.returncode for process in started] == [0, 0]
    assert sorted(said) == sorted([f"(None, '{newest}')", f"('{newest}', '{newest}')"])
    assert await differences(core_settings(tmp_path, database_url)) == []
