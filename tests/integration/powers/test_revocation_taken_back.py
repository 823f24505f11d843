"""Power: code in a role takes a revocation back (K11).

Each role tries with its own user of PostgreSQL. Who owns the tables, or puts a backup
back, can; SQLite has no users: whoever runs code there writes every table.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.database.rights import OWNER, Role
from tests.support.appliance.separate_users import SeparateUsers
from tests.support.factories.held_credential import hold
from tests.support.installation.record import open_record
from tests.support.installation.settings import settings_in
from tests.support.processes.event_loops import run_apart

pytestmark = pytest.mark.storage
_REVOKED: Final = (
    "UPDATE certificate SET state = 'revoked', revoked_at = now(), "
    "reason = 'keyCompromise' WHERE credential = :id"
)
_ATTACKS: Final = (
    "UPDATE credential SET state = 'active' WHERE id = :id",
    "UPDATE certificate SET state = 'valid' WHERE credential = :id",
    "UPDATE certificate SET state = 'revoking' WHERE credential = :id",
    (
        "UPDATE certificate SET state = 'valid', revoked_at = NULL, reason = NULL "
        "WHERE credential = :id"
    ),
    (
        "UPDATE certificate SET revoked_at = now() + interval '1 year' "
        "WHERE credential = :id"
    ),
    "UPDATE certificate SET revoked_at = NULL WHERE credential = :id",
    "UPDATE certificate SET reason = 'superseded' WHERE credential = :id",
    "DELETE FROM certificate WHERE credential = :id",
    "DELETE FROM credential WHERE id = :id",
)
_SAID: Final = text(
    "SELECT k.state, c.state, c.reason, c.revoked_at <= now() FROM credential k "
    "JOIN certificate c ON c.credential = k.id WHERE k.id = :id"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeparateUsers]:
    """A migrated database with a user for each role."""
    with SeparateUsers.made() as made:
        run_apart(migrate(settings_in(tmp_path_factory.mktemp("x"), made.url(OWNER))))
        yield made


@pytest.fixture(scope="module")
def credentials(
    cluster: SeparateUsers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Keys whose certificates were just issued, one after the other."""

    async def made() -> list[str]:
        settings = settings_in(tmp_path_factory.mktemp("x"), cluster.url(OWNER))
        found = []
        async with open_record(settings) as core:
            for _ in range(len(Role) + 1):
                signer = await core.add_signer(credential=False)
                held = await hold(core.store, signer.person, "20111111112", core.now)
                found.append(str(held.id))
        return found

    return iter(run_apart(made()))


@asynccontextmanager
async def _as(
    cluster: SeparateUsers, user: str, folder: Path
) -> AsyncIterator[AsyncConnection]:
    """A connection of a user."""
    engines = open_engines(settings_in(folder, cluster.url(user)))
    try:
        async with engines.writer.connect() as connection:
            yield connection
    finally:
        await engines.dispose()


async def _tried(
    connection: AsyncConnection, statement: str, credential: str
) -> str | None:
    """Run a statement; the words of its refusal."""
    try:
        await connection.execute(text(statement), {"id": credential})
        await connection.commit()
    except DBAPIError as exc:
        await connection.rollback()
        return str(exc.orig)
    return None


@pytest.mark.parametrize("role", list(Role))
async def test_revocation_is_for_good(
    cluster: SeparateUsers, credentials: Iterator[str], tmp_path: Path, role: Role
) -> None:
    """Neither the key nor its certificate is in force again, nor was it until later."""
    credential = next(credentials)
    async with _as(cluster, OWNER, tmp_path) as connection:
        for statement in (
            "UPDATE credential SET state = 'revoked' WHERE id = :id",
            _REVOKED,
        ):
            assert await _tried(connection, statement, credential) is None

    async with _as(cluster, role.value, tmp_path) as connection:
        for attack in _ATTACKS:
            refusal = await _tried(connection, attack, credential)
            assert refusal is not None
            assert "permission denied" in refusal

    async with _as(cluster, OWNER, tmp_path) as connection:
        (said,) = (await connection.execute(_SAID, {"id": credential})).all()
        assert tuple(said) == ("revoked", "revoked", "keyCompromise", True)


async def test_revocation_goes_its_way(
    cluster: SeparateUsers, credentials: Iterator[str], tmp_path: Path
) -> None:
    """Asked for by a front, given another task by chores, published by a worker."""
    credential = next(credentials)
    steps = (
        (
            Role.API,
            (
                "UPDATE certificate SET state = 'revoking', revoked_at = now(), "
                "reason = 'superseded', task = 'a' WHERE credential = :id"
            ),
        ),
        (Role.API, "UPDATE credential SET state = 'revoking' WHERE id = :id"),
        (Role.CHORES, "UPDATE certificate SET task = 'b' WHERE credential = :id"),
        (
            Role.SIGNING,
            (
                "UPDATE certificate SET state = 'revoked', task = NULL "
                "WHERE credential = :id"
            ),
        ),
        (Role.SIGNING, "UPDATE credential SET state = 'revoked' WHERE id = :id"),
    )
    for role, statement in steps:
        async with _as(cluster, role.value, tmp_path) as connection:
            assert await _tried(connection, statement, credential) is None
