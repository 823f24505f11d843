"""Who may do what with which table: all of them are declared, and none too widely."""

import re
from pathlib import Path

import pytest
from sqlalchemy import Table

from appliance.cli.as_role import ROLES
from appliance.database.grants import Right, rights_of, undeclared
from appliance.database.rights import OWNER, RIGHTS, Role
from appliance.database.tables import metadata

_WORDS = re.compile(
    r"((SELECT|INSERT)( \([a-z0-9_, ]+\))?|UPDATE \([a-z0-9_, ]+\)|DELETE)"
    r"(, ((SELECT|INSERT)( \([a-z0-9_, ]+\))?|UPDATE \([a-z0-9_, ]+\)|DELETE))*"
)


def writers(table: str, privilege: str) -> set[Role]:
    """Roles with a privilege on a table, or on some column of it."""
    return {
        role
        for role in Role
        for right in rights_of(role)
        if (right.relation, right.privilege) == (table, privilege)
    }


def test_every_table_is_declared() -> None:
    """A new table says who may use it; what is gone is declared no more."""
    assert undeclared() == (set(), set())


def test_forgotten_table_shows() -> None:
    """One that was added without a word on who may use it."""
    forgotten = Table("forgotten", metadata)
    try:
        assert undeclared() == ({"forgotten"}, set())
    finally:
        metadata.remove(forgotten)


def test_declarations_are_read_whole() -> None:
    """Nothing in them is a word that the reading passes over."""
    for table, by_role in RIGHTS.items():
        for words in by_role.values():
            assert _WORDS.fullmatch(words), (table, words)


def test_users_are_those_of_the_system() -> None:
    """By their Unix users PostgreSQL knows them; two open no database."""
    made = Path(__file__).parents[3] / "systemd" / "sysusers.conf"
    users = set(re.findall(r"^u +(\S+) ", made.read_text("utf-8"), re.MULTILINE))

    assert {OWNER, *(role.value for role in Role)} == users - {
        "rubrica-sandbox",
        "rubrica-metrics",
    }
    assert {f"rubrica-{role}" for role in ROLES.values() if role} == users


@pytest.mark.parametrize("table", ["audit_event", "audit_writer"])
def test_no_role_rewrites_the_audit(table: str) -> None:
    """Rows are added; of a writer's own row its count and last hash change."""
    changed = {
        right.column
        for role in Role
        for right in rights_of(role)
        if right.relation == table and right.privilege == "UPDATE"
    }

    assert writers(table, "DELETE") == set()
    assert changed == (set() if table == "audit_event" else {"n", "hash"})


@pytest.mark.parametrize(
    ("table", "role"),
    [
        ("integrator", Role.ADMIN),
        ("api_key", Role.ADMIN),
        ("console_user", Role.ADMIN),
        ("trust_anchor", Role.ADMIN),
        ("credential", Role.SIGNING),
        ("certificate", Role.SIGNING),
        ("intent", Role.SIGNING),
        ("jwt_key", Role.API),
        ("signing_secret", Role.API),
    ],
)
def test_one_role_records(table: str, role: Role) -> None:
    """Who may ask, who may sign in, which keys there are: one role's each."""
    assert writers(table, "INSERT") == {role}


@pytest.mark.parametrize("table", ["person", "enrolment"])
def test_people_are_recorded_where_somebody_vouches(table: str) -> None:
    """By the console's officers, and by backends that may: their API is the `api`'s."""
    assert writers(table, "INSERT") == {Role.ADMIN, Role.API}


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("person", "cuil"),
        ("person", "vouched_by"),
        ("credential", "person"),
        ("credential", "spki"),
        ("credential", "vouched_by"),
        ("activation", "person"),
        ("activation_item", "document_sha256"),
        ("document", "sha256"),
        ("signature_request", "person"),
    ],
)
def test_what_is_written_once(table: str, column: str) -> None:
    """No role changes who somebody is, or what was authorised."""
    assert column in metadata.tables[table].columns
    for role in Role:
        assert Right(table, "UPDATE", column) not in rights_of(role)
        assert Right(table, "UPDATE") not in rights_of(role)


@pytest.mark.parametrize(
    ("table", "roles"),
    [
        ("signing_secret", {Role.API, Role.EMBED, Role.ADMIN}),
        ("revocation_pin", {Role.API, Role.ADMIN}),
        ("login_secret", {Role.API, Role.EMBED, Role.ADMIN}),
        ("console_user", {Role.ADMIN}),
        ("jwt_key", {Role.API}),
    ],
)
def test_secrets_are_read_by_few(table: str, roles: set[Role]) -> None:
    """Workers, who go outside or open the HSM, read no secret of a person."""
    assert writers(table, "SELECT") == roles


def test_nothing_but_the_owner_destroys_document_keys() -> None:
    """Without its key an integrator's documents are gone."""
    assert writers("document_key", "DELETE") == set()
    assert writers("document_key", "UPDATE") == set()
