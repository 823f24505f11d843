"""Bring the database's tables, and who has rights on them, to this version.

One transaction: a migration that is killed half-way leaves what was before. Indexes of
large tables come after it (`appliance.database.indexes`).
"""

import asyncio
import time
from functools import partial
from typing import Final

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import DBAPIError

from appliance.database.engines import Engines, open_engines
from appliance.database.grants import grant_rights, grants_needed
from appliance.database.indexes import build_indexes, missing_indexes
from appliance.database.table_version import (
    MIGRATIONS,
    Standing,
    TableVersion,
    newest,
    read_table_version,
)
from appliance.database.tables import metadata, table_compatibility
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.settings import Settings, SettingsError

# Any number will do, as long as all versions use the same.
_LOCK = 7_246_001
_TABLE_WAIT_MS: Final = 300
"""For a table that a role uses: less than the second (`deadlock_timeout`) after which
PostgreSQL ends one of two that wait for each other, which may be the role's call."""
_AGAIN_AFTER_S: Final = 0.2
_PATIENCE_S: Final = 120.0
_TABLE_IN_USE: Final = "55P03"
"""`lock_not_available`. Source: PostgreSQL, appendix A."""


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


async def migrate(
    settings: Settings, *, is_closed: bool = False
) -> tuple[str | None, str]:
    """Bring the tables to the newest version, and on PostgreSQL the roles' rights.

    Tables of a newer version that this one may use stay as they are, rights and all.

    Args:
        settings: of the installation.
        is_closed: whether no process of the version before runs any more, so that
            rights go which it alone makes use of.

    Returns:
        The version before (None for an empty database) and the one after.

    Raises:
        SettingsError: the tables are of a newer version, which this one may not use.
        ApplianceError: `STORE_UNAVAILABLE`: somebody keeps a table for long, as a dump
            does; nothing was changed.
    """
    engines = open_engines(settings)
    try:
        if engines.writer.dialect.name == "postgresql":
            found = await _upgrade_beside_roles(engines, is_closed=is_closed)
        else:
            async with engines.writing() as connection:
                found = await connection.run_sync(_upgrade)
    finally:
        await engines.dispose()
    if found[1] == newest():
        await _index(settings)
    return found


async def _upgrade_beside_roles(
    engines: Engines, *, is_closed: bool
) -> tuple[str | None, str]:
    """Migrate on PostgreSQL while roles work: all tables soon, or none for now.

    With some tables in hand it would keep those waiting who have the next one; and who
    asks for a table is waited for by all who ask after it.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: a table was in use all the time.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            async with engines.writing() as connection:
                # Two hosts that start at once migrate one after the other.
                await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                wait = f"SET LOCAL lock_timeout = {_TABLE_WAIT_MS}"
                await connection.execute(text(wait))
                return await connection.run_sync(partial(_upgrade, is_closed=is_closed))
        except DBAPIError as exc:
            if getattr(exc.orig, "sqlstate", None) != _TABLE_IN_USE:
                raise
            if time.monotonic() >= deadline:
                raise ApplianceError(ErrorCode.STORE_UNAVAILABLE) from exc
        await asyncio.sleep(_AGAIN_AFTER_S)


async def _index(settings: Settings) -> None:
    """Make the indexes that migrations left, on PostgreSQL, however long that takes."""
    engines = open_engines(settings, statement_s=None)
    try:
        if engines.writer.dialect.name != "postgresql":
            return
        async with engines.writer.connect() as connection:
            outside = await connection.execution_options(isolation_level="AUTOCOMMIT")
            if await outside.run_sync(missing_indexes):
                await build_indexes(outside)
    finally:
        await engines.dispose()


def _upgrade(
    connection: Connection, *, is_closed: bool = False
) -> tuple[str | None, str]:
    before = read_table_version(connection)
    if before.standing is Standing.TOO_NEW:
        raise SettingsError(before.refusal)
    if before.standing is Standing.NEWER:
        # What is granted there is the newer version's to say.
        return before.version, before.version or ""
    config = _config(connection)
    command.upgrade(config, "head")
    _state_oldest_reader(connection, oldest_reader(config))
    if connection.dialect.name == "postgresql":
        grant_rights(connection, is_closed=is_closed)
    return before.version, read_table_version(connection).version or ""


def oldest_reader(config: Config) -> str:
    """The oldest version that code must know to use the tables of the newest one.

    That of the migration that asks for most: who may not use the tables that it made
    may not use those that a later one made of them.
    """
    migrations = ScriptDirectory.from_config(config).walk_revisions()
    stated: list[str] = [each.module.oldest_reader for each in migrations]
    return max(stated, key=int)


def _state_oldest_reader(connection: Connection, wanted: str) -> None:
    """Write down the oldest version that may use the tables, if it is another."""
    stated = connection.scalars(select(table_compatibility.c.oldest_reader)).all()
    if stated == [wanted]:
        return
    connection.execute(table_compatibility.delete())
    connection.execute(table_compatibility.insert().values(oldest_reader=wanted))


async def look(
    settings: Settings, *, is_closed: bool = False
) -> tuple[TableVersion, list[str]]:
    """What `migrate` would find and change; nothing is changed.

    Args:
        settings: of the installation.
        is_closed: as `migrate`.

    Returns:
        What the database says of its tables. Sentences: that they are of another
        version, or else indexes that are missing and rights that are not as declared.
    """
    engines = open_engines(settings)
    try:
        async with engines.reader.connect() as connection:
            return await connection.run_sync(partial(_look, is_closed=is_closed))
    finally:
        await engines.dispose()


def _look(connection: Connection, *, is_closed: bool) -> tuple[TableVersion, list[str]]:
    found = read_table_version(connection)
    if found.standing is Standing.TOO_NEW:
        return found, [found.refusal]
    if found.standing is Standing.OLDER:
        other = f"tables of version {found.version or 'none'}"
        return found, [f"{other}; this version has {newest()}"]
    if found.standing is Standing.NEWER or connection.dialect.name != "postgresql":
        return found, []
    amiss = [f"index missing: {each}" for each in missing_indexes(connection)]
    grants = grants_needed(connection, is_closed=is_closed)
    amiss += [f"right not as declared: {each}" for each in grants]
    return found, amiss


def differences(connection: Connection) -> list[object]:
    """How the tables differ from `appliance.database.tables`, if at all."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, metadata))
