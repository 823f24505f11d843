"""Power: code in a role says that a file of its own is a signed document (K7).

Each role tries with its own user of PostgreSQL, by any statement that the record's
tables allow. SQLite has no users: whoever runs code there writes every table.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from appliance.cli.installation.upgrade_state import is_upgrade_closed
from appliance.database.engines import open_engines
from appliance.database.grants import grant_rights, rights_held, rights_of
from appliance.database.migrate import look, migrate
from appliance.database.rights import OWNER, Role
from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import RequestId
from appliance.domain.signing.activation import ActivationFormat
from appliance.domain.vocab import RequestState
from appliance.keys.activation_format import pin_format
from appliance.signing.claims import Publication
from tests.integration.signing.claims import a_timestamp
from tests.support.appliance.separate_users import SeparateUsers
from tests.support.installation.record import (
    CERTIFICATE,
    CoreFixture,
    keyed,
    open_record,
    prepared,
    signed_view,
)
from tests.support.installation.settings import settings_in
from tests.support.processes.event_loops import run_apart

pytestmark = pytest.mark.storage
_OTHERS: Final = [role for role in Role if role is not Role.SIGNING]
_FORGED: Final = "f0" * 32
_VERSION: Final = """
INSERT INTO signed_document
    (request, version, integrator, sha256, size_bytes, level, made)
SELECT request, 2, integrator, :forged, 9, 'B-LT', now()
FROM signed_document WHERE request = :signed"""
_FIRST_VERSION: Final = """
INSERT INTO signed_document
    (request, version, integrator, sha256, size_bytes, level, made)
SELECT r.id, 1, s.integrator, :forged, 9, 'B-LT', now()
FROM signed_document s, signature_request r
WHERE s.request = :signed AND r.id = :keyed"""
_SIGNED_REQUEST: Final = """
INSERT INTO signature_request SELECT (json_populate_record(NULL::signature_request,
    (row_to_json(r)::jsonb || '{"id": 990001, "seq": 9, "state": "firmada"}')::json
)).* FROM signature_request r WHERE id = :pending"""
_ATTACKS: Final = {
    "version 2": (_VERSION,),
    "another file": (
        "UPDATE signed_document SET sha256 = :forged WHERE request = :signed",
    ),
    "no file": ("DELETE FROM signed_document WHERE request = :signed",),
    "publication": (
        _FIRST_VERSION,
        "UPDATE signature_request SET state = 'firmada' WHERE id = :keyed",
        "UPDATE activation_item SET state = 'done' WHERE request = :keyed",
        (
            "UPDATE activation SET state = 'done' WHERE id = "
            "(SELECT activation FROM activation_item WHERE request = :keyed)"
        ),
    ),
    "signed without a key": (
        "UPDATE signature_request SET state = 'firmada' WHERE id = :pending",
    ),
    "made as signed": (_SIGNED_REQUEST,),
    "made as published": (
        (
            "INSERT INTO activation_item (activation, seq, request, document_sha256, "
            "params, params_sha256, state, reason, code) SELECT activation, 77, "
            "request, document_sha256, params, params_sha256, 'done', '', 'FORGED' "
            "FROM activation_item WHERE request = :keyed"
        ),
    ),
    "another signature": (
        (
            "UPDATE activation_item SET signature = '\\x00', increment = '\\x00' "
            "WHERE request = :keyed"
        ),
    ),
    "a use of the key that never was": (
        (
            "UPDATE intent SET state = 'completada' WHERE activation = "
            "(SELECT activation FROM activation_item WHERE request = :open)"
        ),
    ),
    "around the guards": (
        'SET ROLE "rubrica-signing"',
        "SET SESSION AUTHORIZATION DEFAULT",
        "SET session_replication_role = 'replica'",
        "ALTER TABLE signature_request DISABLE TRIGGER USER",
        "ALTER TABLE signature_request DISABLE ROW LEVEL SECURITY",
        "DROP FUNCTION rubrica_refuse_state CASCADE",
        (
            "CREATE OR REPLACE FUNCTION rubrica_refuse_state() RETURNS trigger "
            "LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$"
        ),
        (
            "CREATE FUNCTION pg_temp.rubrica_refuse_state() RETURNS trigger "
            "LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$"
        ),
        "UPDATE signature_request SET state = 'firmada' WHERE id = :pending",
        (
            "WITH moved AS (UPDATE signature_request SET state = 'firmada' "
            "WHERE id = :pending RETURNING id) SELECT id FROM moved"
        ),
        (
            "MERGE INTO signature_request r USING (SELECT :pending AS id) w "
            "ON r.id = w.id WHEN MATCHED THEN UPDATE SET state = 'firmada'"
        ),
        (
            "INSERT INTO signature_request SELECT * FROM signature_request "
            "WHERE id = :pending ON CONFLICT (id) DO UPDATE SET state = 'firmada'"
        ),
        "TRUNCATE signed_document",
        "TRUNCATE intent CASCADE",
        "LOCK TABLE signed_document IN ACCESS EXCLUSIVE MODE",
    ),
    "signed no more": (
        "UPDATE signature_request SET state = 'pendiente' WHERE id = :signed",
        "UPDATE signature_request SET state = 'rechazada' WHERE id = :signed",
        "UPDATE activation_item SET state = 'failed' WHERE request = :signed",
        (
            "UPDATE activation SET state = 'failed' WHERE id = "
            "(SELECT activation FROM activation_item WHERE request = :signed)"
        ),
        (
            "UPDATE intent SET state = 'interrumpida' WHERE activation = "
            "(SELECT activation FROM activation_item WHERE request = :signed)"
        ),
    ),
    "another original": (
        (
            "UPDATE signature_request SET document = (SELECT document FROM "
            "signature_request WHERE id = :pending) WHERE id = :signed"
        ),
    ),
    "another level": (
        "UPDATE signature_request SET level = 'B-LTA' WHERE id = :signed",
    ),
    "told to its integrator": (
        (
            "INSERT INTO integrator_event (integrator, request, event, at, detail, "
            "pending) SELECT integrator, id, 'request.signed', now(), "
            "json_build_object('sha256', cast(:forged AS text))::text, true "
            "FROM signature_request WHERE id = :pending"
        ),
        (
            "INSERT INTO integrator_event (integrator, request, event, at, detail, "
            "pending) SELECT integrator, id, 'document.raised', now(), '{}', true "
            "FROM signature_request WHERE id = :signed"
        ),
    ),
    "something else stamped": (
        "UPDATE outside_material SET subject = '{}'",
        "UPDATE outside_material SET nonce = 1",
        "UPDATE outside_material SET draft_appended = '\\x00'",
        "UPDATE outside_material SET draft_increment = '\\x00'",
        (
            "INSERT INTO outside_material SELECT job, 'k', kind, subject, required, "
            "code, nonce, wanted_at, state, reason FROM outside_material"
        ),
        (
            "INSERT INTO outside_job SELECT 'x', kind, created, until, lease_owner, "
            "lease_until, fence, progress FROM outside_job"
        ),
    ),
}
"""By goal: statements, each of which is tried, whatever became of the one before."""


@dataclass(frozen=True, slots=True)
class _Target:
    """Requests of an installation, each as far as it has come."""

    signed: RequestId
    keyed: RequestId
    """Signed, and waiting for a timestamp of an authority outside."""
    open: RequestId
    """About to be signed."""
    pending: RequestId
    before: Sequence[Any]
    """What the record says of them, and of all signed documents."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeparateUsers]:
    """A migrated database with a user for each role."""
    with SeparateUsers.made() as made:
        run_apart(migrate(settings_in(tmp_path_factory.mktemp("x"), made.url(OWNER))))
        yield made


@pytest.fixture(scope="module")
def target(cluster: SeparateUsers, tmp_path_factory: pytest.TempPathFactory) -> _Target:
    """One request of each kind."""

    async def made() -> _Target:
        settings = settings_in(tmp_path_factory.mktemp("x"), cluster.url(OWNER))
        async with open_record(settings) as core:
            return await _made(core)

    return asyncio.run(made())


async def _made(core: CoreFixture) -> _Target:
    signer, worker = await core.add_signer(), core.claiming()
    requests = []
    for until in ("published", "keyed", "intended"):
        request = await core.add_request(signer.person)
        requests.append(request)
        await core.begin(signer, [request])
        work = await worker.claim_next()
        assert work is not None
        (item,) = work.claim.documents
        assert await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        if until == "intended":
            continue
        item = keyed(item)
        assert await worker.record_signatures(work.claim, [item])
        if until == "keyed":
            if hasattr(worker, "want"):
                assert await worker.want(work.claim, [a_timestamp(nonce=7)])
            continue
        view = signed_view(await core.view(request))
        assert await worker.publish(work.claim, [Publication(item, view)])
    pending = await core.add_request(signer.person)
    engines = open_engines(core.settings)
    try:
        async with engines.writer.connect() as connection:
            before = await _said(connection)
    finally:
        await engines.dispose()
    signed, is_keyed, is_open = requests
    return _Target(signed, is_keyed, is_open, pending, before)


async def _said(connection: AsyncConnection) -> list[Any]:
    """What the record says was signed, and what is to be stamped."""
    found: list[Any] = []
    for query in (
        "SELECT request, version, sha256 FROM signed_document ORDER BY 1, 2",
        "SELECT id, state, level, document FROM signature_request ORDER BY 1",
        "SELECT request, state, signature FROM activation_item ORDER BY 1",
        "SELECT id, state FROM activation ORDER BY 1",
        "SELECT activation, state FROM intent ORDER BY 1",
        "SELECT job, subject, nonce, draft_appended FROM outside_material ORDER BY 1",
        "SELECT id, kind FROM outside_job ORDER BY 1",
        (
            "SELECT request, event, detail FROM integrator_event WHERE event IN "
            "('request.signed', 'document.raised') ORDER BY id"
        ),
    ):
        try:
            async with connection.begin_nested():
                rows = (await connection.execute(text(query))).all()
        except DBAPIError:
            continue  # the version before has no such table
        found.append([tuple(row) for row in rows])
    return found


@asynccontextmanager
async def _as(
    cluster: SeparateUsers, user: str, folder: Path
) -> AsyncIterator[AsyncConnection]:
    engines = open_engines(settings_in(folder, cluster.url(user)))
    try:
        async with engines.writer.connect() as connection:
            yield connection
    finally:
        await engines.dispose()


@pytest.mark.parametrize(
    ("role", "goal"),
    [
        (role, goal)
        for role in _OTHERS
        for goal in _ATTACKS
        # Chores hand on what integrators are told, and sign what is sent to them.
        if goal != "told to its integrator" or role is not Role.CHORES
    ],
)
async def test_signing_worker_alone_says_what_was_signed(
    cluster: SeparateUsers, target: _Target, tmp_path: Path, role: Role, goal: str
) -> None:
    """Whatever another role writes, no file becomes or stops being a signed one."""
    given = {
        "forged": _FORGED,
        "signed": target.signed,
        "keyed": target.keyed,
        "open": target.open,
        "pending": target.pending,
    }
    async with _as(cluster, role.value, tmp_path) as connection:
        for statement in _ATTACKS[goal]:
            names = {key: given[key] for key in given if f":{key}" in statement}
            try:
                await connection.execute(text(statement), names)
                await connection.commit()
            except DBAPIError as exc:
                await connection.rollback()
                _demand_refusal(exc)

    async with _as(cluster, OWNER, tmp_path) as connection:
        assert await _said(connection) == target.before


async def test_signing_worker_may_what_others_may_not(
    cluster: SeparateUsers, target: _Target, tmp_path: Path
) -> None:
    """The same statements, so that it is the user that counts."""
    async with _as(cluster, Role.SIGNING.value, tmp_path) as connection:
        given = {"forged": _FORGED, "signed": target.signed, "keyed": target.keyed}
        for goal in ("version 2", "publication"):
            for statement in _ATTACKS[goal][:3]:
                names = {key: given[key] for key in given if f":{key}" in statement}
                await connection.execute(text(statement), names)
            await connection.rollback()


async def test_requests_end_by_chores_as_ever(
    cluster: SeparateUsers, target: _Target, tmp_path: Path
) -> None:
    """In each state but the one that says that they are signed."""
    change = text("UPDATE signature_request SET state = :state WHERE id = :id")
    async with _as(cluster, Role.CHORES.value, tmp_path) as connection:
        for state in RequestState:
            if state is not RequestState.SIGNED:
                given = {"state": state.value, "id": target.pending}
                await connection.execute(change, given)
        await connection.rollback()


async def test_chores_of_the_version_before_publish_until_the_upgrade_is_closed(
    tmp_path: Path,
) -> None:
    """Rights that they have stay until then; none that was taken comes back."""
    with SeparateUsers.made() as made:
        settings = settings_in(tmp_path, made.url(OWNER))
        await migrate(settings)
        former = (
            'GRANT INSERT ON signed_document TO "rubrica-chores"',
            'GRANT UPDATE (level) ON signature_request TO "rubrica-chores"',
        )
        async with _as(made, OWNER, tmp_path) as owner:
            for statement in former:
                await owner.execute(text(statement))
            # The version before has no guards.
            await owner.run_sync(_drop_guards)
            await owner.commit()

        async with open_record(settings) as core:
            signer = await core.add_signer()
            signed = await core.add_request(signer.person)
            view = signed_view(await core.view(signed))
            async with core.store.write() as transaction:
                await DocumentStore(transaction).sealed(signed, view, core.now)
        ways = partial(_ways, made, signed, tmp_path)
        assert await ways() == (True, True)
        await migrate(settings)
        assert (await look(settings))[1] == []
        assert await ways() == (True, True)

        assert len((await look(settings, is_closed=True))[1]) > 0
        await migrate(settings, is_closed=True)
        assert await ways() == (False, False)
        await migrate(settings)
        assert await ways() == (False, False)
        async with _as(made, OWNER, tmp_path) as owner:
            held = await owner.run_sync(rights_held)
            assert held == {role.value: rights_of(role) for role in Role}
            assert await owner.run_sync(grant_rights) == 0


async def test_file_of_this_machine_says_that_an_upgrade_is_closed(
    tmp_path: Path,
) -> None:
    """No row does; a file that cannot be read is not taken for none."""
    settings = settings_in(tmp_path)
    place = settings.activation_format_file
    place.parent.mkdir(parents=True)
    assert not is_upgrade_closed(settings)
    for oldest in ActivationFormat:
        pin_format(place, oldest)
        assert is_upgrade_closed(settings) is (oldest is ActivationFormat.WHOLE)
    place.write_text("two\n")
    with pytest.raises(ApplianceError):
        is_upgrade_closed(settings)


def _demand_refusal(exc: DBAPIError) -> None:
    """By a right or a guard, and by no mistake of the test."""
    refusals = "permission denied", "must be owner", "does not exist", "row-level"
    assert any(each in str(exc) for each in refusals), exc


def _drop_guards(connection: Connection) -> None:
    found = connection.execute(
        text(
            "SELECT c.relname, t.tgname FROM pg_trigger t "
            "JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal"
        )
    ).all()
    assert found
    for table, name in found:
        connection.exec_driver_sql(f"DROP TRIGGER {name} ON {table}")


async def _ways(
    cluster: SeparateUsers, request: RequestId, folder: Path
) -> tuple[bool, bool]:
    """Whether chores may add a signed document, and call a request signed."""
    may = []
    async with _as(cluster, Role.CHORES.value, folder) as connection:
        for statement in (
            _VERSION,
            "UPDATE signature_request SET state = 'firmada' WHERE id = :signed",
        ):
            given = {"forged": _FORGED, "signed": request}
            names = {key: given[key] for key in given if f":{key}" in statement}
            try:
                await connection.execute(text(statement), names)
                may.append(True)
            except DBAPIError as exc:
                _demand_refusal(exc)
                may.append(False)
            await connection.rollback()
    return may[0], may[1]
