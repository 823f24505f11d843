"""On PostgreSQL each role has its user, and exactly the rights that are declared."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, insert, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection
from structlog.testing import capture_logs

from admin_ui.edits import FORMS
from appliance.api.wire.versions import VERSIONED
from appliance.cli import main
from appliance.cli.installation.database import roles_sql
from appliance.database.engines import database_url, open_engines
from appliance.database.grants import Right, grant_rights, rights_held, rights_of
from appliance.database.migrate import look, migrate
from appliance.database.rights import OWNER, Role
from appliance.database.table_version import table_version
from appliance.database.tables import integrator
from appliance.database.tables import person as person_table
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import SystemClock
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId, RequestId, new_id
from appliance.domain.vocab import EventKind, PersonState
from appliance.integrators.integrator_store import IntegratorStore
from appliance.mail.mail_store import MailStore
from appliance.people.person_store import PersonStore
from appliance.people.signer_for_tests_store import SignerForTestsStore
from appliance.record.edit_version_store import EditStore
from appliance.record.unit_of_work import Database
from tests.support.appliance.separate_users import SeparateUsers
from tests.support.hosts.next_version import NEXT, NOW, next_versions
from tests.support.installation.settings import settings_in
from tests.support.processes.event_loops import run_apart

pytestmark = pytest.mark.storage

_Result = TypeVar("_Result")
_EVENT = AuditEvent(EventKind.REQUEST_VIEWED, "system")
_NAMES = {
    Role.API: "api",
    Role.EMBED: "embed",
    Role.ADMIN: "admin",
    Role.SIGNING: "signing/h/1",
    Role.CHORES: "chores/h/1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeparateUsers]:
    """A migrated database with a user for each role."""
    with SeparateUsers.made() as made:
        run_apart(migrate(settings_in(tmp_path_factory.mktemp("x"), made.url(OWNER))))
        yield made


@asynccontextmanager
async def _connected(folder: Path, url: str) -> AsyncIterator[AsyncConnection]:
    """A connection whose work is undone at the end."""
    engines = open_engines(settings_in(folder, url))
    try:
        async with engines.writer.connect() as connection:
            yield connection
    finally:
        await engines.dispose()


async def _as_owner(
    cluster: SeparateUsers, folder: Path, work: Callable[[Connection], _Result]
) -> _Result:
    async with _connected(folder, cluster.url(OWNER)) as connection:
        return await connection.run_sync(work)


async def test_rights_are_those_declared(
    cluster: SeparateUsers, tmp_path: Path
) -> None:
    """Each user's, one by one; PUBLIC has none."""
    held = await _as_owner(cluster, tmp_path, rights_held)

    assert held == {role.value: rights_of(role) for role in Role}


async def test_second_migration_changes_no_right(
    cluster: SeparateUsers, tmp_path: Path
) -> None:
    """What is as declared is not granted anew."""
    assert await _as_owner(cluster, tmp_path, grant_rights) == 0


@pytest.mark.parametrize(
    "statement",
    [
        'GRANT ALL ON person TO "rubrica-chores"',
        'GRANT UPDATE (vouched_by) ON person TO "rubrica-embed"',
        "GRANT SELECT ON signing_secret TO PUBLIC",
        'REVOKE SELECT ON person FROM "rubrica-api"',
        'GRANT ALL ON SEQUENCE signature_request_id_seq TO "rubrica-chores"',
        "GRANT CREATE ON SCHEMA public TO PUBLIC",
        'REVOKE ALL ON audit_event FROM "rubrica-signing"',
    ],
)
async def test_other_rights_are_set_right(
    cluster: SeparateUsers, tmp_path: Path, statement: str
) -> None:
    """What somebody gave or took by hand is as declared after a migration."""

    def work(connection: Connection) -> dict[str, Any]:
        connection.exec_driver_sql(statement)
        assert grant_rights(connection) > 0
        assert grant_rights(connection) == 0
        return dict(rights_held(connection))

    held = await _as_owner(cluster, tmp_path, work)

    assert held == {role.value: rights_of(role) for role in Role}


async def test_rights_on_newer_tables_are_left_alone(tmp_path: Path) -> None:
    """What the newer version granted outlasts a migration by this one."""
    with SeparateUsers.made() as made:
        settings = settings_in(tmp_path, made.url(OWNER))
        with next_versions(tmp_path, {NEXT: NOW}):
            await migrate(settings)
        right = Right("person", "UPDATE", f"of_{NEXT}")
        async with _connected(tmp_path, made.url(OWNER)) as owner:
            await owner.execute(
                text(f'GRANT UPDATE (of_{NEXT}) ON person TO "rubrica-api"')
            )
            await owner.commit()

        assert await migrate(settings) == (NEXT, NEXT)
        assert (await look(settings))[1] == []

        held = await _as_owner(made, tmp_path, rights_held)
        assert held["rubrica-api"] == rights_of(Role.API) | {right}
        for role in Role:
            async with _connected(tmp_path, made.url(role.value)) as connection:
                assert (await table_version(connection)).is_usable


async def test_undeclared_table_is_nobodys(
    cluster: SeparateUsers, tmp_path: Path
) -> None:
    """A table that was added without its rights: no role gets at it."""
    async with _connected(tmp_path, cluster.url(OWNER)) as owner:
        await owner.execute(text("CREATE TABLE forgotten (id int)"))
        assert await owner.run_sync(grant_rights) == 0
        await owner.commit()
    async with _connected(tmp_path, cluster.url(Role.API.value)) as connection:
        with pytest.raises(ProgrammingError, match="permission denied for table"):
            await connection.execute(text("SELECT * FROM forgotten"))


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        (Role.CHORES, "UPDATE person SET vouched_by = 'officer'"),
        (Role.CHORES, "INSERT INTO person (id) VALUES ('x')"),
        (Role.CHORES, "UPDATE integrator SET may_vouch = true"),
        (Role.CHORES, "INSERT INTO credential (id) VALUES ('x')"),
        (Role.ADMIN, "UPDATE audit_event SET actor = 'system'"),
        (Role.ADMIN, "DELETE FROM audit_event"),
        (Role.ADMIN, "UPDATE person SET vouched_by = 'officer'"),
        (Role.ADMIN, "INSERT INTO activation (id) VALUES ('x')"),
        (Role.ADMIN, "TRUNCATE audit_event"),
        (Role.API, "ALTER TABLE person ADD COLUMN x int"),
        (Role.API, "CREATE TABLE mine (id int)"),
        (Role.API, "CREATE TEMPORARY TABLE mine (id int)"),
        (Role.API, "UPDATE person SET cuil = 'x'"),
        (Role.API, "SELECT phc FROM console_user"),
        (Role.API, "SELECT * FROM audit_event"),
        (Role.EMBED, "SELECT phc FROM revocation_pin"),
        (Role.EMBED, "UPDATE activation_item SET document_sha256 = ''"),
        (Role.SIGNING, "SELECT verifier_sha256 FROM signing_secret"),
        (Role.SIGNING, "SELECT phc FROM login_secret"),
        (Role.SIGNING, "UPDATE alembic_version SET version_num = '0'"),
        (Role.SIGNING, "DELETE FROM table_compatibility"),
        (Role.CHORES, "DROP TABLE person"),
    ],
)
async def test_role_is_refused(
    cluster: SeparateUsers, tmp_path: Path, role: Role, statement: str
) -> None:
    """What is another role's work, or nobody's."""
    async with _connected(tmp_path, cluster.url(role.value)) as connection:
        with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
            await connection.execute(text(statement))


async def test_stranger_may_not_connect(cluster: SeparateUsers, tmp_path: Path) -> None:
    """Only the roles' users come in."""
    cluster.run_as_superuser("CREATE ROLE stranger LOGIN;")

    with pytest.raises(Exception, match="permission denied for database"):
        async with _connected(tmp_path, cluster.url("stranger")):
            pass


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_writes_its_audit(
    cluster: SeparateUsers, tmp_path: Path, role: Role
) -> None:
    """A process start has a row, and its events chain to it."""
    engines = open_engines(settings_in(tmp_path, cluster.url(role.value)))
    store = Database(engines, SystemClock(), _NAMES[role])
    try:
        for _ in range(2):
            async with store.write() as transaction:
                transaction.audit.add(_EVENT)
    finally:
        await store.close()


_EDITED = [
    *(
        (Role.ADMIN, subject)
        for subject in sorted({form.subject for form in FORMS.values()})
    ),
    *((Role.API, subject) for subject in VERSIONED),
]
"""What each role lets people and programs edit."""


@pytest.mark.parametrize(("role", "subject"), _EDITED)
async def test_role_locks_and_reads_what_it_edits(
    cluster: SeparateUsers, tmp_path: Path, role: Role, subject: Subject
) -> None:
    """No lock and no value of a version needs a right that the role has not."""
    engines = open_engines(settings_in(tmp_path, cluster.url(role.value)))
    store = Database(engines, SystemClock(), _NAMES[role])
    try:
        async with store.write() as transaction:
            edits = EditStore(transaction)
            await edits.lock(subject, "7")
            values = await edits.values(subject, "7")
    finally:
        await store.close()

    assert not any(values.values())


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_tells_integrators_and_people(
    cluster: SeparateUsers, tmp_path: Path, role: Role
) -> None:
    """With its audit: of an integrator, of one that a person knows, to the person."""
    whose, person = new_id(), new_id()
    engines = open_engines(settings_in(tmp_path, cluster.url(OWNER)))
    now = SystemClock().now()
    async with engines.writer.begin() as connection:
        await connection.execute(
            insert(integrator).values(
                id=whose, code=whose, name="ACME", created=now, may_vouch=False
            )
        )
        await connection.execute(
            insert(person_table).values(
                id=person,
                cuil=secrets.token_hex(5),
                name="Ana",
                state="activa",
                locale="es",
                email_sealed=b"-",
                email_index=secrets.token_hex(32),
                vouched_by="demo",
                created=now,
            )
        )
    await engines.dispose()
    store = Database(
        open_engines(settings_in(tmp_path, cluster.url(role.value))),
        SystemClock(),
        _NAMES[role],
    )
    try:
        async with store.write() as transaction:
            for event in (
                AuditEvent(
                    EventKind.ORIGIN_BLOCKED,
                    "system",
                    integrator=whose,
                    detail={"origin": "https://a.example"},
                ),
                AuditEvent(EventKind.SIGN_LOCKED, f"person:{person}"),
            ):
                transaction.audit.add(event)
            # The frame does nothing to people whom other integrators know.
            if role is not Role.EMBED:
                transaction.audit.add(
                    AuditEvent(
                        EventKind.CERTIFICATE_EXPIRING,
                        "system",
                        detail={"person": person},
                    )
                )
    finally:
        await store.close()


@pytest.mark.parametrize("role", [Role.API, Role.EMBED, Role.ADMIN, Role.CHORES])
async def test_roles_may_look_for_test_signers(
    cluster: SeparateUsers, tmp_path: Path, role: Role
) -> None:
    """By the columns that are theirs; chores keep their mails, and disable them."""
    store = Database(
        open_engines(settings_in(tmp_path, cluster.url(role.value))),
        SystemClock(),
        _NAMES[role],
    )
    nobody, now = PersonId(new_id()), SystemClock().now()
    try:
        async with store.write() as transaction:
            signers = SignerForTestsStore(transaction)
            if role is Role.CHORES:
                mails = MailStore(transaction)
                assert await signers.active() == []
                assert await mails.catch_due(now) == 0
                # Other tests of this database left mails.
                assert set(await mails.waiting_shares(now, now)) <= {""}
                assert await mails.asked([RequestId(7)], only_tests=True) == []
                people = PersonStore(transaction)
                moved = (PersonState.ACTIVE, PersonState.DISABLED)
                assert not await people.move(nobody, *moved)
            else:
                assert not await signers.is_of(nobody, IntegratorId(new_id()))
            if role is Role.API:
                assert await signers.page(IntegratorId(new_id()), None, 9) == []
                assert await MailStore(transaction).caught(nobody, now, 9) == []
                await signers.remove(nobody, now)
    finally:
        await store.close()


@pytest.mark.parametrize("role", [Role.EMBED, Role.ADMIN, Role.CHORES])
async def test_secrets_of_test_signers_are_for_the_api(
    cluster: SeparateUsers, tmp_path: Path, role: Role
) -> None:
    """Their passwords, sealed as they are, are nobody else's to read."""
    async with _connected(tmp_path, cluster.url(role.value)) as connection:
        with pytest.raises(ProgrammingError, match="permission denied"):
            await connection.execute(text("SELECT password_sealed FROM test_signer"))


async def test_missing_right_is_told_apart(
    cluster: SeparateUsers, tmp_path: Path
) -> None:
    """Callers get 503; the log names table, user and what to do."""
    engines = open_engines(settings_in(tmp_path, cluster.url(Role.SIGNING.value)))
    store = Database(engines, SystemClock(), _NAMES[Role.SIGNING])

    async def forge() -> None:
        async with store.write() as transaction:
            await IntegratorStore(transaction).lock_keys("x")  # type: ignore[arg-type]  # an id

    with capture_logs() as logs, pytest.raises(ApplianceError) as caught:
        await forge()
    await store.close()

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    (line,) = logs
    assert line["event"] == "store.permission_denied"
    assert line["reason"] == "permission denied for table api_key"
    assert line["user"] == "rubrica-signing"
    assert line["remedy"] == "run rubrica migrate"


async def test_one_user_for_all_is_left_alone(
    tmp_path: Path, postgres_url: str
) -> None:
    """Where no role has a user, a migration grants nothing."""
    await migrate(settings_in(tmp_path, postgres_url))

    async with _connected(tmp_path, postgres_url) as connection:
        assert await connection.run_sync(grant_rights) == 0
        assert await connection.run_sync(rights_held) == {}


async def test_tables_of_one_user_become_the_owners(tmp_path: Path) -> None:
    """An installation that had one user: the printed SQL, and a migration."""
    with SeparateUsers.made("other") as made:
        made.run_as_superuser("DROP DATABASE other; CREATE DATABASE other;")
        await migrate(settings_in(tmp_path, made.server.url("other")))
        made.run_as_superuser(roles_sql("other"))
        made.run_as_superuser(roles_sql("other"))
        await migrate(settings_in(tmp_path, made.url(OWNER)))

        held = await _as_owner(made, tmp_path, rights_held)

        assert held == {role.value: rights_of(role) for role in Role}
        owners = made.server.execute(
            "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'",
            "other",
        )
        assert owners == OWNER


async def test_role_cannot_migrate(
    cluster: SeparateUsers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends at once and says so, however long it may wait."""
    cluster.run_as_superuser("CREATE DATABASE bare;")
    url = cluster.url(Role.API.value).replace("/rubrica?", "/bare?")
    settings = tmp_path / "settings.toml"
    token = 'label = "x"\npin_file = "pin"\n'
    keys = "pepper_file", "data_key_file", "lookup_key_file"
    settings.write_text(
        f'trial = true\ndata_dir = "."\nrun_dir = "."\n[database]\nurl = "{url}"\n'
        f"[hsm.firma]\n{token}[hsm.pki]\n{token}[secrets]\n"
        + "".join(f'{key} = "x"\n' for key in keys)
    )

    status = await asyncio.to_thread(
        main, ["--settings", str(settings), "migrate", "--wait", "600"]
    )

    assert status == 78
    assert "permission denied for schema public" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "variable", "user"),
    [
        ("postgresql:///rubrica?host=/run/postgresql", None, "rubrica-api"),
        ("postgresql://db.example/rubrica", None, "rubrica-api"),
        ("postgresql://one.example:5432,two.example/rubrica", "x", "x"),
        ("postgresql://somebody@db.example/rubrica", "x", "somebody"),
        ("postgresql:///rubrica?host=/run/postgresql&user=somebody", "x", None),
    ],
)
def test_user_of_an_address(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    variable: str | None,
    user: str | None,
) -> None:
    """Without one it is libpq's: PGUSER, or who the process is, whatever USER says."""
    monkeypatch.setattr(
        "pwd.getpwuid", lambda _: SimpleNamespace(pw_name="rubrica-api")
    )
    monkeypatch.setenv("USER", "root")
    monkeypatch.delenv("PGUSER", raising=False)
    if variable is not None:
        monkeypatch.setenv("PGUSER", variable)

    assert database_url(settings_in(tmp_path, url)).username == user
