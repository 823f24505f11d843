"""Migrations: exactly the tables of this version, once, whoever else starts."""

import asyncio
import sys
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from appliance.bootstrap import open_core
from appliance.database import migrate
from appliance.database.engines import open_engines
from appliance.database.table_version import (
    MIGRATIONS,
    Standing,
    TableVersion,
    newest,
    table_version,
)
from appliance.documents.document_store import DocumentStore
from appliance.domain.documents.inspected import Damage, Repair
from appliance.domain.ids import PersonId
from appliance.people.person_store import PersonStore
from appliance.settings import Settings, SettingsError
from tests.support.hosts.next_version import LATER, NEXT, NOW, next_versions
from tests.support.installation.record import CoreFixture
from tests.support.installation.settings import settings_in
from tests.support.installation.table_versions import migrate_to
from tests.support.processes.command_folder import CommandFolder, make_command_folder

pytestmark = pytest.mark.storage

MIGRATE = """
import asyncio, sys
from pathlib import Path
from appliance.database.migrate import migrate
from tests.support.installation.settings import settings_in
settings = settings_in(Path(sys.argv[1]), sys.argv[2])
print(asyncio.run(migrate(settings)))
"""

RELEASED = {
    "0001_tables_of_0_1_0.py": (
        "518e1b1272914ca363ddc560a8338e9fab70b2196a70a7d81721050f153f1d1d"
    ),
}
"""Migrations of releases: file name → SHA-256 of its content."""


async def differences(settings: Settings) -> list[object]:
    """How the tables differ from what the code has."""
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            return await connection.run_sync(migrate.differences)
    finally:
        await engines.dispose()


async def test_migrations_build_exactly_the_tables(core: CoreFixture) -> None:
    """What migrations build is what `appliance.database.tables` says."""
    assert await differences(core.settings) == []


async def test_migrate_from_empty_gives_newest(
    tmp_path: Path, database_url: str
) -> None:
    """An empty database has no version before, and the newest after."""
    settings = settings_in(tmp_path, database_url)

    assert await migrate.migrate(settings) == (None, newest())


async def test_migrate_twice_changes_nothing(core: CoreFixture) -> None:
    """A second run finds the newest version and keeps every row."""
    signer = await core.add_signer()

    before, after = await migrate.migrate(core.settings)

    assert before == after == newest()
    async with core.store.read() as transaction:
        assert await PersonStore(transaction).get(signer.person) is not None


async def test_current_told_from_empty(tmp_path: Path, database_url: str) -> None:
    """A database without tables is not of this version; a migrated one is."""
    settings = settings_in(tmp_path, database_url)
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            before = await table_version(connection)
        await migrate.migrate(settings)
        async with engines.reader.connect() as connection:
            after = await table_version(connection)
    finally:
        await engines.dispose()

    assert (before.standing, after.standing) == (Standing.OLDER, Standing.CURRENT)
    assert (before.is_usable, after.is_usable) == (False, True)


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

    version = newest()
    assert [process.returncode for process in started] == [0, 0]
    assert sorted(said) == sorted(
        [f"(None, '{version}')", f"('{version}', '{version}')"]
    )
    assert await differences(settings_in(tmp_path, database_url)) == []


async def test_down_to_nothing_and_up_again(tmp_path: Path, database_url: str) -> None:
    """Every migration can be taken back, and none leaves anything behind."""
    settings = settings_in(tmp_path, database_url)
    await migrate.migrate(settings)
    engines = open_engines(settings)
    try:
        async with engines.writer.begin() as connection:
            await connection.run_sync(migrate_to, "base", "downgrade")
            left = await connection.run_sync(lambda to: inspect(to).get_table_names())
    finally:
        await engines.dispose()

    assert left == ["alembic_version"]
    assert await migrate.migrate(settings) == (None, newest())
    assert await differences(settings) == []


@pytest.mark.parametrize(
    ("version", "oldest", "standing"),
    [
        (None, None, Standing.OLDER),
        ("0001", "0001", Standing.OLDER),
        (NOW, "0001", Standing.CURRENT),
        (NEXT, NOW, Standing.NEWER),
        (NEXT, NEXT, Standing.TOO_NEW),
        ("0100", "0099", Standing.TOO_NEW),
        # Numbers, not words: "10" stands before "9" and "1" before "0002".
        ("10", "1", Standing.NEWER),
        (NEXT, None, Standing.TOO_NEW),
        (NEXT, "", Standing.TOO_NEW),
        ("ae1027a6acf", "0001", Standing.TOO_NEW),
    ],
)
def test_who_may_use_which_tables(
    version: str | None, oldest: str | None, standing: Standing
) -> None:
    """By the tables' own version, and the oldest that they say may use them."""
    found = TableVersion(version, oldest)

    assert newest() == NOW
    assert found.standing is standing
    # One that goes back to this version is told the same beforehand.
    assert bool(found.refusal_of(NOW)) is (standing is Standing.TOO_NEW)


@pytest.mark.parametrize(
    ("oldest", "knows", "refused"),
    [(NOW, NOW, False), (NEXT, NOW, True), (NEXT, NEXT, False), (None, LATER, False)],
)
def test_who_may_be_gone_back_to(oldest: str | None, knows: str, refused: bool) -> None:
    """Who knows the oldest version that is stated, or the tables' own."""
    told = TableVersion(LATER, oldest).refusal_of(knows)

    assert bool(told) is refused
    assert (f"and that one knows {knows}:" in told) is refused


def test_every_migration_states_who_may_use_its_tables() -> None:
    """By a version that there is already when it comes."""
    files = sorted((MIGRATIONS / "versions").glob("[0-9]*.py"))
    config = migrate._config(None)  # type: ignore[arg-type]  # nothing is connected
    found = {
        each.revision: each.module.oldest_reader
        for each in ScriptDirectory.from_config(config).walk_revisions()
    }

    assert {*found} == {file.name.partition("_")[0] for file in files}
    for version, oldest in found.items():
        assert oldest in found
        assert int(oldest) <= int(version)


async def test_newer_tables_that_may_be_used_stay_as_they_are(
    core: CoreFixture, tmp_path: Path
) -> None:
    """An older version migrates nothing, and reads and writes."""
    with next_versions(tmp_path, {NEXT: NOW, LATER: NOW}):
        assert await migrate.migrate(core.settings) == (NOW, LATER)
    made = repr(await differences(core.settings))

    assert await migrate.migrate(core.settings) == (LATER, LATER)
    found, amiss = await migrate.look(core.settings)

    assert found == TableVersion(LATER, NOW)
    assert amiss == []
    assert repr(await differences(core.settings)) == made
    signer = await core.add_signer()
    async with core.store.read() as transaction:
        assert await PersonStore(transaction).get(signer.person) is not None


async def test_newer_tables_that_may_not_be_used_are_refused(
    core: CoreFixture, tmp_path: Path
) -> None:
    """It is said which version they are of, and what to do."""
    # The second needs what the first made, whatever it says of itself.
    with next_versions(tmp_path, {NEXT: NEXT, LATER: NOW}):
        await migrate.migrate(core.settings)

    with pytest.raises(SettingsError, match=f"version {LATER}.*{NEXT}.*or a newer one"):
        await migrate.migrate(core.settings)
    found, amiss = await migrate.look(core.settings)
    assert found == TableVersion(LATER, NEXT)
    assert amiss == [found.refusal]
    with pytest.raises(SettingsError, match=f"version {LATER}.*or a newer one"):
        async with open_core(core.settings, core.clock, "test"):
            pass


async def test_who_may_use_them_is_said_again_with_each_version(
    core: CoreFixture, tmp_path: Path
) -> None:
    """A migration after which the version before is left behind takes its leave."""
    with next_versions(tmp_path, {NEXT: NOW}):
        await migrate.migrate(core.settings)
        second, _ = await migrate.look(core.settings)
    with next_versions(tmp_path, {NEXT: NOW, LATER: NEXT}):
        await migrate.migrate(core.settings)
        third, _ = await migrate.look(core.settings)

    assert (second, third) == (
        TableVersion(NEXT, NOW),
        TableVersion(LATER, NEXT),
    )


def test_migration_waits_for_the_database(tmp_path: Path, postgres_url: str) -> None:
    """As long as it is told to; it says once what it waits for."""
    server = parse_qs(urlsplit(postgres_url).query)["host"][0]
    later = tmp_path / "later"
    make_command_folder(
        tmp_path,
        postgres_url.replace(quote(server, safe=""), str(later)).replace(
            server, str(later)
        ),
    )
    place = CommandFolder(tmp_path)

    refused = place.begin("migrate")
    assert "STORE_UNAVAILABLE" in refused.communicate()[1]
    assert refused.returncode == 75
    waiting = place.begin("migrate", "--wait", "300")
    assert waiting.stderr is not None
    assert waiting.stderr.readline().startswith("waiting for the database: ")
    later.symlink_to(server)
    out, err = waiting.communicate()

    assert (waiting.returncode, err) == (0, "")
    assert out.startswith(f"tables: none -> {newest()}\nmarked ")


def test_released_migrations_stay_as_they_are() -> None:
    """What ran on somebody's database is never written again."""
    folder = MIGRATIONS / "versions"

    assert {
        name: sha256((folder / name).read_bytes()).hexdigest() for name in RELEASED
    } == RELEASED


async def test_rows_of_the_version_before_say_what_they_said(core: CoreFixture) -> None:
    """A request is of a copy, or is not, whatever comes in afterwards."""
    signer = await core.add_signer()
    first, second = (Repair(each * 64, (Damage.LOOK,)) for each in "ab")
    of_copy = await core.add_request(signer.person, sha256="c" * 64, repair=first)
    plain = await core.add_request(signer.person, sha256="d" * 64)
    before = [await core.view(each) for each in (of_copy, plain)]
    engines = open_engines(core.settings)
    try:
        async with engines.writer.begin() as connection:
            for version, way in (("0005", "downgrade"), ("head", "upgrade")):
                await connection.run_sync(migrate_to, version, way)
    finally:
        await engines.dispose()
    assert [await core.view(each) for each in (of_copy, plain)] == before
    async with core.store.read() as transaction:
        found = await DocumentStore(transaction).repaired(
            before[0].integrator, first.original_sha256
        )
    assert found is not None

    for digit in "cd":
        for repair in (None, second):
            later = await core.add_request(
                signer.person, sha256=digit * 64, repair=repair
            )
            assert (await core.view(later)).repair == repair

    assert [await core.view(each) for each in (of_copy, plain)] == before


async def test_call_that_waits_for_a_migrating_table_is_not_ended(
    postgres_core: CoreFixture,
) -> None:
    """Each has what the other wants: the migration lets go, and comes back later."""
    settings = postgres_core.settings
    engines = open_engines(settings)
    try:
        async with engines.writer.begin() as connection:
            await connection.run_sync(migrate_to, "0001", "downgrade")
        async with engines.writer.begin() as call:
            await call.execute(text("LOCK TABLE signature_request IN ROW SHARE MODE"))
            migrating = asyncio.create_task(migrate.migrate(settings))
            tables = await waited_for(settings)
            for each in sorted(tables - {"signature_request"}):
                await call.execute(text(f'LOCK TABLE "{each}" IN ROW SHARE MODE'))
            assert not migrating.done()
        before, after = await migrating
    finally:
        await engines.dispose()

    assert tables > {"signature_request"}
    assert (before, after) == ("0001", newest())
    assert await differences(settings) == []


async def waited_for(settings: Settings) -> set[str]:
    """Tables that a migration has or waits for, once it waits for one of them."""
    engines = open_engines(settings)
    locked = text(
        "SELECT relation::regclass::text AS relation, granted FROM pg_locks "
        "WHERE relation IN (SELECT oid FROM pg_class WHERE relkind = 'r' "
        "AND relnamespace = current_schema()::regnamespace) "
        "AND mode = 'AccessExclusiveLock'"
    )
    try:
        async with asyncio.timeout(30), engines.reader.connect() as connection:
            while True:
                rows = await connection.execute(locked)
                found = {row.relation: row.granted for row in rows}
                if not all(found.values()):
                    return set(found)
                await asyncio.sleep(0.02)
    finally:
        await engines.dispose()


INDEX = "ix_person_created_id"
"""Of a table that has rows; a migration of now makes it."""


async def in_database(settings: Settings, statement: str) -> None:
    """Change the tables behind everybody's back."""
    engines = open_engines(settings)
    try:
        async with engines.writer.begin() as connection:
            await connection.exec_driver_sql(statement)
    finally:
        await engines.dispose()


async def test_indexes_of_full_tables_come_after_the_migration(
    postgres_core: CoreFixture,
) -> None:
    """The transaction makes those of empty tables; the rest keeps no writer waiting."""
    settings = postgres_core.settings
    await postgres_core.add_signer()
    engines = open_engines(settings)
    try:
        async with engines.writer.begin() as connection:
            await connection.run_sync(migrate_to, "0002", "downgrade")
            await connection.run_sync(migrate_to, "head", "upgrade")
    finally:
        await engines.dispose()

    _, amiss = await migrate.look(settings)
    assert f"index missing: {INDEX}" in amiss
    assert "index missing: ix_attempt_slot_at" not in amiss
    await migrate.migrate(settings)

    assert await migrate.look(settings) == (TableVersion(newest(), "0001"), [])
    assert await differences(settings) == []


async def test_index_that_was_left_half_made_is_made_anew(
    postgres_core: CoreFixture,
) -> None:
    """What a killed migration leaves under the name of an index is none."""
    settings = postgres_core.settings
    await in_database(
        settings,
        "UPDATE pg_index SET indisvalid = false "  # noqa: S608 (a name of ours)
        f"WHERE indexrelid = '{INDEX}'::regclass",
    )
    before = await migrate.look(settings)

    await migrate.migrate(settings)

    assert before[1] == [f"index missing: {INDEX}"]
    assert (await migrate.look(settings))[1] == []


async def test_writers_go_on_while_an_index_is_made(
    postgres_core: CoreFixture,
) -> None:
    """One that has not committed holds the index up; others write meanwhile."""
    settings = postgres_core.settings
    await in_database(settings, f"DROP INDEX {INDEX}")
    async with postgres_core.store.write() as transaction:
        await PersonStore(transaction).sign_out(PersonId("nobody"), postgres_core.now)
        making = asyncio.create_task(migrate.migrate(settings))
        await standing(settings, INDEX)
        await postgres_core.add_signer()
        assert not making.done()
    await making

    assert (await migrate.look(settings))[1] == []


async def standing(settings: Settings, index: str) -> None:
    """Wait until an index is being made."""
    engines = open_engines(settings)
    try:
        async with asyncio.timeout(30), engines.reader.connect() as connection:
            is_there = text("SELECT to_regclass(:name)")
            while await connection.scalar(is_there, {"name": index}) is None:
                await connection.rollback()
                await asyncio.sleep(0.02)
    finally:
        await engines.dispose()
