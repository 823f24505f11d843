"""K14: code in one role writes into the audit of another, moves its head, poses as it.

Each attack is SQL of the role's own user of the database, with all the rights that
`rubrica migrate` gave it.
"""

import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import insert, text, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.database.engines import open_engines
from appliance.database.grants import grant_rights, grants_needed
from appliance.database.migrate import look, migrate
from appliance.database.rights import OWNER, Role
from appliance.database.row_policies import GUARDED, POLICIES
from appliance.database.tables import audit_event, audit_writer
from appliance.domain.audit.record import GENESIS, AuditEvent, chain
from appliance.domain.clock import SystemClock
from appliance.domain.ids import new_id
from appliance.domain.vocab import EventKind
from appliance.record.audit_check import AuditChains
from appliance.record.unit_of_work import Database
from tests.support.appliance.separate_users import SeparateUsers
from tests.support.installation.settings import settings_in
from tests.support.installation.table_versions import migrate_to
from tests.support.processes.event_loops import run_apart

pytestmark = pytest.mark.storage

NAMES: Final[Mapping[Role, str]] = {
    Role.API: "api",
    Role.EMBED: "embed",
    Role.ADMIN: "admin",
    Role.SIGNING: "signing/h/1",
    Role.CHORES: "chores/h/1",
}
REFUSED: Final = "row-level security policy"
_PAIRS: Final = [(one, other) for one in Role for other in Role if one is not other]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeparateUsers]:
    """A migrated database with a user for each role."""
    with SeparateUsers.made() as made:
        run_apart(migrate(settings_in(tmp_path_factory.mktemp("x"), made.url(OWNER))))
        yield made


@asynccontextmanager
async def as_user(
    cluster: SeparateUsers, folder: Path, user: str
) -> AsyncIterator[AsyncConnection]:
    """A connection of a user; what it wrote is undone."""
    engines = open_engines(settings_in(folder, cluster.url(user)))
    try:
        async with engines.writer.connect() as connection:
            yield connection
    finally:
        await engines.dispose()


async def write(
    cluster: SeparateUsers,
    folder: Path,
    role: Role,
    kind: EventKind = EventKind.REQUEST_VIEWED,
    name: str = "",
) -> str:
    """A process of a role that records one event, as it does; its chain."""
    settings = settings_in(folder, cluster.url(role.value))
    store = Database(open_engines(settings), SystemClock(), name or NAMES[role])
    event = AuditEvent(kind, "system", detail={"a": secrets.token_hex(4)})
    try:
        async with store.write() as transaction:
            transaction.audit.add(event)
            return transaction.audit.writer
    finally:
        await store.close()


def forged(writer: str, n: int, kind: EventKind) -> dict[str, object]:
    """A row as SQL would add it to a chain, its hash right for itself."""
    event = AuditEvent(kind, "worker:signing/h/1", detail={"item": 0})
    row = chain(writer, n, GENESIS, SystemClock().now(), event)
    return {
        "writer": writer,
        "n": n,
        "prev": row.prev,
        "hash": row.hash,
        "at": row.at,
        "event": kind.value,
        "actor": event.actor,
        "detail": event.detail,
    }


@pytest.mark.parametrize(("attacker", "victim"), _PAIRS)
async def test_role_adds_no_row_to_the_chain_of_another(
    cluster: SeparateUsers, tmp_path: Path, attacker: Role, victim: Role
) -> None:
    """Chores write into signing's chain, `api` into admin's, and so on."""
    writer = await write(cluster, tmp_path, victim)

    async with as_user(cluster, tmp_path, attacker.value) as connection:
        with pytest.raises(DBAPIError, match=REFUSED):
            await connection.execute(
                insert(audit_event).values(forged(writer, 2, EventKind.REQUEST_VIEWED))
            )


@pytest.mark.parametrize(("attacker", "victim"), _PAIRS)
async def test_role_moves_no_head_of_another(
    cluster: SeparateUsers, tmp_path: Path, attacker: Role, victim: Role
) -> None:
    """Neither back, to cut rows off, nor on, to have the chain called broken."""
    writer = await write(cluster, tmp_path, victim)
    whose = audit_writer.c.id == writer

    async with as_user(cluster, tmp_path, attacker.value) as connection:
        moved = await connection.execute(
            update(audit_writer).where(whose).values(n=0, hash=GENESIS)
        )
        assert moved.rowcount == 0
        locked = text("SELECT n FROM audit_writer WHERE id = :id FOR UPDATE")
        assert (await connection.execute(locked, {"id": writer})).all() == []


@pytest.mark.parametrize(("attacker", "victim"), _PAIRS)
async def test_role_begins_no_chain_by_the_name_of_another(
    cluster: SeparateUsers, tmp_path: Path, attacker: Role, victim: Role
) -> None:
    """Nor does it say that another user began it: the database notes that."""
    named = {"id": new_id(), "role": NAMES[victim], "n": 0, "hash": GENESIS}
    named |= {"started": SystemClock().now()}

    async with as_user(cluster, tmp_path, attacker.value) as connection:
        with pytest.raises(DBAPIError, match=REFUSED):
            await connection.execute(insert(audit_writer).values(named))
    async with as_user(cluster, tmp_path, attacker.value) as connection:
        with pytest.raises(DBAPIError, match="permission denied"):
            await connection.execute(
                insert(audit_writer).values(named | {"db_user": victim.value})
            )
    async with as_user(cluster, tmp_path, attacker.value) as connection:
        with pytest.raises(DBAPIError, match="permission denied"):
            await connection.execute(update(audit_writer).values(db_user=victim.value))


@pytest.mark.parametrize("role", list(Role))
async def test_role_records_no_event_that_is_another_roles(
    cluster: SeparateUsers, tmp_path: Path, role: Role
) -> None:
    """In a chain of its own: all kinds that are guarded, each as declared."""
    writer = await write(cluster, tmp_path, role)
    refused, taken = set(), set()
    async with as_user(cluster, tmp_path, role.value) as connection:
        for roles, kinds in GUARDED.items():
            for kind in kinds:
                statement = insert(audit_event).values(forged(writer, 2, kind))
                try:
                    async with connection.begin_nested() as point:
                        await connection.execute(statement)
                        await point.rollback()
                    taken.add((roles, kind))
                except DBAPIError as exc:
                    assert REFUSED in str(exc)  # noqa: PT017 (each of many)
                    refused.add((roles, kind))

    assert all(role in roles for roles, _ in taken)
    assert all(role not in roles for roles, _ in refused)
    assert len(taken) + len(refused) == sum(map(len, GUARDED.values()))


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        (Role.CHORES, EventKind.KEY_USED),
        (Role.API, EventKind.KEY_INTENDED),
        (Role.ADMIN, EventKind.ACTIVATION_CREATED),
        (Role.SIGNING, EventKind.ACTIVATION_CREATED),
        (Role.SIGNING, EventKind.PERSON_ENROLLED),
        (Role.ADMIN, EventKind.PERSON_ENROLLED),
        (Role.API, EventKind.CREDENTIAL_ISSUED),
        (Role.CHORES, EventKind.CERTIFICATE_RENEWED),
        (Role.EMBED, EventKind.REQUEST_SIGNED),
        (Role.API, EventKind.REQUEST_SIGNED),
        (Role.API, EventKind.REVOCATION_PUBLISHED),
        (Role.EMBED, EventKind.PERSON_INVITED),
        (Role.API, EventKind.CONSOLE_LOGIN_COMPLETED),
    ],
)
async def test_events_that_matter_are_guarded(
    cluster: SeparateUsers, tmp_path: Path, role: Role, kind: EventKind
) -> None:
    """Whatever the declaration says: these by name."""
    writer = await write(cluster, tmp_path, role)

    async with as_user(cluster, tmp_path, role.value) as connection:
        with pytest.raises(DBAPIError, match=REFUSED):
            await connection.execute(
                insert(audit_event).values(forged(writer, 2, kind))
            )


async def test_command_of_a_role_has_a_chain_of_its_own(
    cluster: SeparateUsers, tmp_path: Path
) -> None:
    """`rubrica hsm` runs as `rubrica-signing`: it may, and not in the owner's chain."""
    settings = settings_in(tmp_path, cluster.url(OWNER))
    owners = Database(open_engines(settings), SystemClock(), "operator")
    async with owners.write() as transaction:
        event = AuditEvent(EventKind.SECRET_ROTATED, "operator")
        transaction.audit.add(event)
        writer = transaction.audit.writer
    own = await write(
        cluster, tmp_path, Role.SIGNING, EventKind.MASTER_CREATED, "operator"
    )

    async with as_user(cluster, tmp_path, Role.SIGNING.value) as connection:
        with pytest.raises(DBAPIError, match=REFUSED):
            await connection.execute(
                insert(audit_event).values(forged(writer, 2, EventKind.MASTER_CREATED))
            )
    checked = {each.writer.id: each.whole async for each in AuditChains(owners).every()}
    await owners.close()
    assert checked[writer]
    assert checked[own]


async def test_process_of_before_goes_on_with_its_chain(tmp_path: Path) -> None:
    """A front of the version before runs while the tables are migrated."""
    with SeparateUsers.made() as made:
        owner = settings_in(tmp_path, made.url(OWNER))
        await migrate(owner)
        chains = {role: await write(made, tmp_path, role) for role in Role}
        # As the version before left them.
        drop = "".join(f"DROP POLICY {each.name} ON {each.table};" for each in POLICIES)
        made.run_as_superuser(
            f"\\connect {made.name}\n{drop}"
            "ALTER TABLE audit_event DISABLE ROW LEVEL SECURITY;"
            "ALTER TABLE audit_writer DISABLE ROW LEVEL SECURITY;"
        )
        async with as_user(made, tmp_path, OWNER) as connection:
            await connection.run_sync(migrate_to, "0006", "downgrade")
            await connection.commit()
        await migrate(owner)

        for role, writer in chains.items():
            async with as_user(made, tmp_path, role.value) as connection:
                row = forged(writer, 2, EventKind.REQUEST_VIEWED)
                await connection.execute(insert(audit_event).values(row))
                moved = await connection.execute(
                    update(audit_writer)
                    .where(audit_writer.c.id == writer)
                    .values(n=2, hash=row["hash"])
                )
                assert moved.rowcount == 1
        # And begins others, as it knows how.
        for role in Role:
            await write(made, tmp_path, role)


@pytest.mark.parametrize(
    "harm",
    [
        "DROP POLICY own_chain ON audit_event",
        "ALTER POLICY own_moves ON audit_writer USING (true)",
        "CREATE POLICY more ON audit_event FOR INSERT WITH CHECK (true)",
        "ALTER TABLE audit_writer DISABLE ROW LEVEL SECURITY",
    ],
)
async def test_policies_are_set_right(
    cluster: SeparateUsers, tmp_path: Path, harm: str
) -> None:
    """What somebody altered by hand is as declared after a migration."""
    async with as_user(cluster, tmp_path, OWNER) as connection:
        assert await connection.run_sync(grants_needed) == []
        await connection.execute(text(harm))
        assert await connection.run_sync(grants_needed)
        await connection.run_sync(grant_rights)
        assert await connection.run_sync(grants_needed) == []
    assert (await look(settings_in(tmp_path, cluster.url(OWNER))))[1] == []


async def test_console_reads_all_chains(cluster: SeparateUsers, tmp_path: Path) -> None:
    """Policies hide no row from who may read."""
    for role in Role:
        await write(cluster, tmp_path, role)
    count = text("SELECT count(*) FROM audit_event")
    async with as_user(cluster, tmp_path, OWNER) as owner:
        all_rows = (await owner.execute(count)).scalar_one()
    async with as_user(cluster, tmp_path, Role.ADMIN.value) as connection:
        assert (await connection.execute(count)).scalar_one() == all_rows
