"""Give the database users of the roles the rights of `appliance.database.rights`.

What a user has is read from the catalogue, and where it is not exactly what is
declared, all of it is revoked and granted anew: a second run changes nothing. So are
the policies on rows (`appliance.database.row_policies`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Table, text

from appliance.database.guards import guards_needed
from appliance.database.rights import RIGHTS, SEQUENCES, UNTIL_CLOSED, Role
from appliance.database.row_policies import policies_needed
from appliance.database.tables import metadata

PUBLIC: Final = "PUBLIC"
_GRANT: Final = re.compile(r"(SELECT|INSERT|UPDATE|DELETE)(?: \(([a-z0-9_, ]+)\))?")
_ROLES: Final = text("SELECT rolname FROM pg_roles WHERE rolname = ANY(:names)")
# Rights on whole tables and sequences, and on single columns; grantee 0 is PUBLIC.
# A table without an ACL is its owner's alone.
_HELD: Final = text("""
SELECT c.relname AS relation, a.attname AS "column", x.privilege_type AS privilege,
    coalesce(r.rolname, 'PUBLIC') AS grantee
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
CROSS JOIN LATERAL (
    SELECT NULL::name AS attname, c.relacl AS acl
    UNION ALL
    SELECT attname, attacl FROM pg_attribute
    WHERE attrelid = c.oid AND attacl IS NOT NULL AND NOT attisdropped
) a
CROSS JOIN LATERAL aclexplode(a.acl) x
LEFT JOIN pg_roles r ON r.oid = x.grantee
WHERE c.relname = ANY(:relations) AND (x.grantee = 0 OR r.rolname = ANY(:names))
""")
_SCHEMA: Final = text("""
SELECT n.nspname AS name, pg_has_role(n.nspowner, 'USAGE') AS is_ours,
    EXISTS (
        SELECT FROM aclexplode(n.nspacl)
        WHERE grantee = 0 AND privilege_type = 'CREATE'
    ) AS is_open
FROM pg_namespace n WHERE n.nspname = current_schema()
""")
_USAGE: Final = text("SELECT has_schema_privilege(:role, :schema, 'USAGE')")


@dataclass(frozen=True, slots=True)
class Right:
    """One privilege on a table, a column of it, or a sequence."""

    relation: str
    privilege: str
    column: str | None = None


def rights_of(role: Role) -> frozenset[Right]:
    """All that is declared for a role, one by one."""
    return frozenset(
        right
        for relation in _relations()
        for right in _declared(relation).get(role.value, ())
    )


def users_in(connection: Connection) -> list[Role]:
    """Roles that have a user in this cluster."""
    names = [role.value for role in Role]
    found = connection.execute(_ROLES, {"names": names}).scalars().all()
    return [role for role in Role if role.value in found]


def rights_held(connection: Connection) -> dict[str, frozenset[Right]]:
    """What the roles' users and PUBLIC have on our tables, by user."""
    names = [role.value for role in Role]
    rows = connection.execute(_HELD, {"names": names, "relations": _relations()})
    held: dict[str, set[Right]] = {}
    for row in rows:
        right = Right(row.relation, row.privilege, row.column)
        held.setdefault(row.grantee, set()).add(right)
    return {user: frozenset(rights) for user, rights in held.items()}


def grant_rights(connection: Connection, *, is_closed: bool = False) -> int:
    """Give every role that has a user exactly its rights.

    Args:
        connection: of the tables' owner, to PostgreSQL; the caller commits.
        is_closed: whether no process of the version before runs any more.

    Returns:
        How many statements it took; 0 where all was so, or no role has a user.
    """
    statements = grants_needed(connection, is_closed=is_closed)
    for statement in statements:
        # As it stands: a colon or a percent sign in it would be a parameter's.
        connection.exec_driver_sql(statement)
    return len(statements)


def grants_needed(connection: Connection, *, is_closed: bool = False) -> list[str]:
    """The statements that would give every role that has a user exactly its rights.

    Args:
        connection: to PostgreSQL.
        is_closed: whether no process of the version before runs any more.
    """
    users = users_in(connection)
    if not users:
        return []
    held = rights_held(connection)
    statements = [*_schema_statements(connection, users)]
    for relation in _relations():
        declared = _declared(relation)
        for user in (PUBLIC, *(role.value for role in users)):
            has = {r for r in held.get(user, ()) if r.relation == relation}
            wanted = declared.get(user, frozenset())
            if not is_closed:
                # Not given anew: only what the version before has is kept.
                wanted |= has & _until_closed(relation, user)
            if has != wanted:
                statements += _change(relation, user, has, wanted)
    kept = _until_closed("signed_document", Role.CHORES.value)
    publishes = not is_closed and kept <= held.get(Role.CHORES.value, frozenset())
    statements += guards_needed(connection, chores_publish=publishes)
    return [*statements, *policies_needed(connection)]


def _relations() -> list[str]:
    """Tables and sequences that have rights, or that must have none."""
    tables = {*RIGHTS, *(table.name for table in metadata.sorted_tables)}
    return [*sorted(tables), *sorted(SEQUENCES)]


def _declared(relation: str) -> Mapping[str, frozenset[Right]]:
    """What is declared of a table or a sequence, by user."""
    if relation in SEQUENCES:
        right = frozenset({Right(relation, "USAGE")})
        return {role.value: right for role in SEQUENCES[relation]}
    return {
        role.value: frozenset(_rights_in(relation, words))
        for role, words in RIGHTS.get(relation, {}).items()
    }


def _until_closed(relation: str, user: str) -> frozenset[Right]:
    """What a user keeps on a table until an upgrade is closed."""
    words = {
        role.value: words for role, words in UNTIL_CLOSED.get(relation, {}).items()
    }
    return frozenset(_rights_in(relation, words.get(user, "")))


def _rights_in(relation: str, words: str) -> Iterator[Right]:
    """The rights that a declaration names."""
    for privilege, columns in _GRANT.findall(words):
        for column in columns.split(", "):
            yield Right(relation, privilege, column or None)


def _change(
    relation: str, user: str, has: set[Right], wanted: frozenset[Right]
) -> Iterator[str]:
    kind = "SEQUENCE " if relation in SEQUENCES else ""
    whom = user if user == PUBLIC else f'"{user}"'
    if has:
        # Column by column would not do: what is revoked of the whole table goes
        # from each of its columns as well.
        yield f"REVOKE ALL ON {kind}{relation} FROM {whom}"
    if wanted:
        whole = sorted(right.privilege for right in wanted if right.column is None)
        parts = [
            f'{right.privilege} ("{right.column}")'
            for right in sorted(wanted, key=lambda r: (r.privilege, r.column or ""))
            if right.column is not None
        ]
        yield f"GRANT {', '.join([*whole, *parts])} ON {kind}{relation} TO {whom}"


def _schema_statements(connection: Connection, users: list[Role]) -> Iterator[str]:
    """Let the roles into the schema, and nobody but its owner make tables there."""
    schema = connection.execute(_SCHEMA).one()
    # Before PostgreSQL 15 `public` is the superuser's; `rubrica database roles`
    # does this there.
    if not schema.is_ours:
        return
    if schema.is_open:
        yield f'REVOKE CREATE ON SCHEMA "{schema.name}" FROM PUBLIC'
    for role in users:
        place = {"role": role.value, "schema": schema.name}
        if not connection.execute(_USAGE, place).scalar_one():
            yield f'GRANT USAGE ON SCHEMA "{schema.name}" TO "{role.value}"'


def undeclared() -> tuple[set[str], set[str]]:
    """Tables without a declaration, and declarations without their table or column."""
    tables = {table.name: table for table in metadata.sorted_tables}
    known = {*RIGHTS} - {"alembic_version"}
    unknown = {name for name in known if name not in tables}
    for relation in known & {*tables}:
        unknown |= {
            f"{relation}.{right.column}"
            for rights in _declared(relation).values()
            for right in rights
            if right.column is not None and not _has(tables[relation], right.column)
        }
    return {*tables} - known, unknown


def _has(table: Table, column: str) -> bool:
    return column in table.columns
