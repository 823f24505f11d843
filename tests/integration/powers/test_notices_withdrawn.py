"""Power: code in a role takes back what a person is told of their own keys (K5).

Each role tries with its own user of PostgreSQL, by any statement that the record's
tables allow. SQLite has no users: whoever runs code there writes every table.
"""

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, inspect, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.database.engines import open_engines
from appliance.database.migrate import migrate
from appliance.database.rights import OWNER, Role
from appliance.database.tables import integrator, person
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import SystemClock
from appliance.domain.ids import IntegratorId, PersonId, new_id
from appliance.domain.mail.mails import MailClaim
from appliance.domain.vocab import EventKind
from appliance.mail.notice_store import NoticeStore
from appliance.people.signer_for_tests_store import SignerForTestsStore
from appliance.record.unit_of_work import Database
from tests.support.appliance.separate_users import SeparateUsers
from tests.support.installation.settings import settings_in
from tests.support.processes.event_loops import run_apart

pytestmark = pytest.mark.storage
_TABLES = ("mail_message", "security_notice")
_PROCESSES = {
    Role.API: "api",
    Role.EMBED: "embed",
    Role.ADMIN: "admin",
    Role.SIGNING: "signing/h/1",
}
"""Names of each role's chain of the audit."""
_ATTACKS = (
    "UPDATE {} SET state = 'withdrawn' WHERE person = :whom",
    "UPDATE {} SET state = 'sent', ended = created WHERE person = :whom",
    "UPDATE {} SET due = due + interval '90 days' WHERE person = :whom",
    "UPDATE {} SET tries = 23 WHERE person = :whom",
    "UPDATE {} SET lease_until = due + interval '90 days' WHERE person = :whom",
    "UPDATE {} SET kind = 'test' WHERE person = :whom",
    "UPDATE {} SET person = (SELECT min(id) FROM person) WHERE person = :whom",
    "DELETE FROM {} WHERE person = :whom",
    "TRUNCATE {}",
)

_STATES = (
    "SELECT kind, state, tries FROM {} "
    "WHERE person = :whom AND due <= now() AND lease_until IS NULL"
)


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
    """A connection of a user, which commits each statement."""
    engines = open_engines(settings_in(folder, cluster.url(user)))
    try:
        async with engines.writer.connect() as connection:
            yield connection
    finally:
        await engines.dispose()


async def _person(cluster: SeparateUsers, folder: Path) -> str:
    """Somebody with an address."""
    whom = new_id()
    async with _as(cluster, OWNER, folder) as connection:
        await connection.execute(
            insert(person).values(
                id=whom,
                cuil=secrets.token_hex(5),
                name="Ana",
                state="activa",
                locale="es",
                email_sealed=b"-",
                email_index=secrets.token_hex(32),
                vouched_by="demo",
                created=SystemClock().now() - timedelta(days=1),
            )
        )
        await connection.commit()
    return whom


async def _integrator(cluster: SeparateUsers, folder: Path) -> IntegratorId:
    """An integrator."""
    whose = IntegratorId(new_id())
    async with _as(cluster, OWNER, folder) as connection:
        await connection.execute(
            insert(integrator).values(
                id=whose,
                code=secrets.token_hex(4),
                name="Banco",
                delivery_limit_bytes=1,
                created=SystemClock().now(),
            )
        )
        await connection.commit()
    return whose


async def _claimed(notices: NoticeStore, at: datetime) -> AsyncIterator[MailClaim]:
    """All notices that are to be sent now."""
    while (claim := await notices.claim_next("x", at, timedelta(hours=1))) is not None:
        yield claim


async def _states(cluster: SeparateUsers, folder: Path, whom: str) -> list[str]:
    """Notices to somebody as chores will send them."""
    found = []
    async with _as(cluster, OWNER, folder) as connection:
        there = await connection.run_sync(lambda sync: inspect(sync).get_table_names())
        for table in _TABLES:
            if table in there:
                rows = await connection.execute(
                    text(_STATES.format(table)),
                    {"whom": whom},
                )
                found += [f"{row.kind} {row.state} {row.tries}" for row in rows]
    return found


@pytest.mark.parametrize("role", [r for r in Role if r is not Role.CHORES])
async def test_notice_cannot_be_taken_back(
    cluster: SeparateUsers, tmp_path: Path, role: Role
) -> None:
    """The role that caused a notice, or any other but chores, changes nothing of it."""
    whom = await _person(cluster, tmp_path)
    store = Database(
        open_engines(settings_in(tmp_path, cluster.url(role.value))),
        SystemClock(),
        _PROCESSES[role],
    )
    async with store.write() as transaction:
        transaction.audit.add(AuditEvent(EventKind.SIGN_LOCKED, f"person:{whom}"))
    await store.close()
    assert await _states(cluster, tmp_path, whom) == ["password_locked pending 0"]

    async with _as(cluster, role.value, tmp_path) as connection:
        for attack in _ATTACKS:
            for table in _TABLES:
                try:
                    await connection.execute(
                        text(attack.format(table)),
                        {"whom": whom} if ":whom" in attack else {},
                    )
                    await connection.commit()
                except ProgrammingError:
                    await connection.rollback()

    assert await _states(cluster, tmp_path, whom) == ["password_locked pending 0"]


async def test_notice_to_somebody_who_is_called_a_test_signer(
    cluster: SeparateUsers, tmp_path: Path
) -> None:
    """`api` makes test signers up; who is there already does not become one."""
    whom = await _person(cluster, tmp_path)
    now = SystemClock().now()
    api = open_engines(settings_in(tmp_path, cluster.url(Role.API.value)))
    store = Database(api, SystemClock(), "api")
    async with store.write() as transaction:
        transaction.audit.add(AuditEvent(EventKind.SIGN_LOCKED, f"person:{whom}"))
    integrator = await _integrator(cluster, tmp_path)
    async with store.write() as transaction:
        signers = SignerForTestsStore(transaction)
        await signers.add(PersonId(whom), integrator, b"-", b"-")
    await store.close()

    chores = open_engines(settings_in(tmp_path, cluster.url(Role.CHORES.value)))
    store = Database(chores, SystemClock(), "chores/h/1")
    later = now + timedelta(minutes=1)
    async with store.write() as transaction:
        notices = NoticeStore(transaction)
        await notices.catch_due(later)
        disabled = await SignerForTestsStore(transaction).active()
        claimed = [
            each.person
            async for each in _claimed(notices, later)
            if each.person == whom
        ]
    await store.close()

    assert claimed == [whom]
    assert whom not in disabled


@pytest.mark.parametrize("role", [r for r in Role if r is not Role.CHORES])
async def test_other_mails_are_no_notices(
    cluster: SeparateUsers, tmp_path: Path, role: Role
) -> None:
    """An invitation is withdrawn by the roles that issue links, as before."""
    may = role in {Role.API, Role.ADMIN}
    statement = "UPDATE mail_message SET state = 'withdrawn' WHERE id = 'none'"
    async with _as(cluster, role.value, tmp_path) as connection:
        if may:
            await connection.execute(text(statement))
        else:
            with pytest.raises(ProgrammingError, match="permission denied"):
                await connection.execute(text(statement))
