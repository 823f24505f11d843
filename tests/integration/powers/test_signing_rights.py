"""Power: code in a signing worker, by its own user of PostgreSQL.

By goal: the statements that it takes to reach it in the database. Each is refused for
want of a right, whatever rows there are; the tables' owner may run it. SQLite has no
users: whoever runs code there writes every table.
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
from tests.support.installation.settings import settings_in
from tests.support.processes.event_loops import run_apart

pytestmark = pytest.mark.storage
_SAME: Final = "INSERT INTO {0} SELECT * FROM {0} WHERE false"
ATTACKS: Final[dict[str, tuple[str, ...]]] = {
    "sign: a consent of nobody's": (
        _SAME.format("activation"),
        _SAME.format("activation_item"),
        _SAME.format("activation_seal"),
    ),
    "sign: an earlier password": (
        "SELECT salt, verifier_sha256 FROM signing_secret",
        "UPDATE signing_secret SET salt = salt",
        'UPDATE credential SET "outer" = "outer"',
    ),
    "certify: somebody else, somebody again": (
        "UPDATE person SET name = name",
        "UPDATE person SET cuil = cuil",
        "UPDATE person SET state = state",
        "INSERT INTO task_seal SELECT * FROM task_seal WHERE false",
        "INSERT INTO trust_anchor SELECT * FROM trust_anchor WHERE false",
    ),
    "key: another's in one's own row": (
        "UPDATE credential SET person = person",
        "UPDATE credential SET spki = spki",
        "UPDATE credential SET cka_id = cka_id",
        "UPDATE credential SET key_token = key_token",
        "DELETE FROM credential",
    ),
    "swap, batch: another document of a consent": (
        "UPDATE activation_item SET document_sha256 = document_sha256",
        "UPDATE activation_item SET params = params",
        "UPDATE activation_item SET request = request",
        "UPDATE activation_item SET code = code",
        "UPDATE activation SET person = person",
        "UPDATE activation SET credential = credential",
        "UPDATE activation SET factors = factors",
    ),
    "twice: a consent that is put back": (
        "UPDATE activation SET claim_by = claim_by",
        "UPDATE activation SET created = created",
        "DELETE FROM activation",
        "DELETE FROM intent",
    ),
    "version: another file in the place of one": (
        "UPDATE signed_document SET sha256 = sha256",
        "DELETE FROM signed_document",
    ),
    "silent: another past": (
        "SELECT count(*) FROM audit_event",
        "UPDATE audit_event SET detail = detail",
        "DELETE FROM audit_event",
        "DELETE FROM audit_writer",
        "UPDATE security_notice SET state = state",
        "DELETE FROM security_notice",
    ),
    "guess: what a password is tried on": (
        "SELECT salt FROM signing_secret",
        "SELECT verifier_sha256 FROM signing_secret",
        "SELECT argon2 FROM signing_secret",
        "UPDATE signing_secret SET counted = 0",
        "DELETE FROM attempt_slot",
    ),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeparateUsers]:
    """A migrated database with a user for each role."""
    with SeparateUsers.made() as made:
        run_apart(migrate(settings_in(tmp_path_factory.mktemp("x"), made.url(OWNER))))
        yield made


@asynccontextmanager
async def _as(
    cluster: SeparateUsers, user: str, folder: Path
) -> AsyncIterator[AsyncConnection]:
    """A connection of a user; what it wrote is undone."""
    engines = open_engines(settings_in(folder, cluster.url(user)))
    try:
        async with engines.writer.connect() as connection:
            yield connection
    finally:
        await engines.dispose()


@pytest.mark.parametrize("goal", ATTACKS)
async def test_signing_worker_lacks_the_right(
    cluster: SeparateUsers, tmp_path: Path, goal: str
) -> None:
    """Each statement alone, as its user."""
    async with _as(cluster, Role.SIGNING.value, tmp_path) as connection:
        for statement in ATTACKS[goal]:
            with pytest.raises(DBAPIError, match="permission denied"):
                await connection.execute(text(statement))
            await connection.rollback()


@pytest.mark.parametrize("goal", ATTACKS)
async def test_owner_has_it(cluster: SeparateUsers, tmp_path: Path, goal: str) -> None:
    """The same statements, so that it is the user that counts."""
    async with _as(cluster, OWNER, tmp_path) as connection:
        for statement in ATTACKS[goal]:
            await connection.execute(text(statement))
        await connection.rollback()
