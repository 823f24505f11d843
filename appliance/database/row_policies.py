"""Rows of the audit, and of what integrators are told, that each role's user may write.

On PostgreSQL alone: SQLite knows no users.

A process start is a chain (`audit_writer`), and each chain has the database user that
began it. A user adds rows to its own chains, moves their heads alone, and writes no
event that is another role's to tell. The same events are told to integrators by the
same users: webhooks and the history of a request follow from these rows.
`rubrica migrate` makes these policies with the rights (`grants`).

The owner of the tables passes them: `rubrica migrate`, dumps, restores and operators'
commands do. So does the one user of an installation without users for its roles.

Policies name users by `current_user` and not by `TO`, so that a dump can be brought
back to a cluster that lacks these users.

Source: PostgreSQL, chapter "Row Security Policies".
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, text

from appliance.database.rights import Role
from appliance.domain.vocab import EventKind

_E = EventKind
_API, _EMBED, _ADMIN, _SIGNING, _CHORES = Role

WRITERS: Final[Mapping[Role, str]] = {
    _API: "role = 'api'",
    _EMBED: "role = 'embed'",
    _ADMIN: "role = 'admin'",
    # An operator's command that runs as the role: `rubrica hsm`, `rubrica mail`.
    _SIGNING: "role = 'operator' OR starts_with(role, 'signing/')",
    _CHORES: "role = 'operator' OR starts_with(role, 'chores/')",
}
"""By user: the names that its process starts have (`audit_writer.role`)."""

GUARDED: Final[Mapping[tuple[Role, ...], tuple[EventKind, ...]]] = {
    # A use of a person's key, and what the HSM made or published.
    (_SIGNING,): (
        _E.KEY_INTENDED,
        _E.KEY_USED,
        _E.SAMPLE_INTENDED,
        _E.CSR_INTENDED,
        _E.CSR_MADE,
        _E.CREDENTIAL_ISSUED,
        _E.CERTIFICATE_ISSUED,
        _E.CERTIFICATE_RENEWED,
        _E.REVOCATION_PUBLISHED,
        _E.CRL_PUBLISHED,
        _E.OCSP_PUBLISHED,
        _E.TIMESTAMP_ISSUED,
        _E.KEY_ORPHAN_DESTROYED,
        _E.MEMBER_JOINING,
        _E.MASTER_CREATED,
        _E.MASTER_APPLIED,
        _E.MASTER_RETIRED,
        _E.HSM_TAKEN_OVER,
        _E.TSA_CREATED,
        _E.TSA_RETIRED,
    ),
    # A signature that lacked a timestamp or revocation data is finished by chores.
    (_SIGNING, _CHORES): (
        _E.ACTIVATION_CLAIMED,
        _E.KEY_INTERRUPTED,
        _E.REQUEST_SIGNED,
        _E.DOCUMENT_RAISED,
        _E.UPKEEP_FAILED,
    ),
    # Consent, what a signing password was tried for, and who asked for help.
    (_API, _EMBED): (
        _E.ACTIVATION_CREATED,
        _E.SIGN_PASSWORD_WRONG,
        _E.SIGN_PEPPER_RENEWED,
        _E.HELP_ASKED,
    ),
    (_API,): (
        _E.PERSON_CREATED,
        _E.PERSON_ENROLLED,
        _E.SIGN_PASSWORD_CHANGED,
        _E.REVOCATION_PIN_WRONG,
        _E.HELP_UNMATCHED,
        _E.HELP_WITHDRAWN,
        _E.LOGIN_PASSWORD_RIGHT,
        _E.LOGIN_COMPLETED,
    ),
    (_API, _ADMIN): (_E.PERSON_INVITED, _E.CERTIFICATE_IMPORTED),
    (_API, _ADMIN, _CHORES): (_E.REVOCATION_ASKED,),
    # The last signature of several is told by who tells integrators.
    (_CHORES,): (_E.REVOCATION_FOUND, _E.REQUEST_COMPLETED),
    (_ADMIN,): (
        _E.PERSON_REISSUED,
        _E.HELP_CLOSED,
        _E.PERSON_UNLOCKED,
        _E.PERSON_ENABLED,
        _E.PERSON_TOTP_SET,
        _E.INTEGRATOR_CREATED,
        _E.API_KEY_CREATED,
        _E.API_KEY_ROTATED,
        _E.DOMAIN_ADDED,
        _E.ANCHOR_ADDED,
        _E.ANCHOR_REMOVED,
        _E.CONSOLE_USER_CREATED,
        _E.CONSOLE_USER_ENABLED,
        _E.CONSOLE_USER_DISABLED,
        _E.CONSOLE_USER_TOTP_SET,
        _E.CONSOLE_USER_PASSWORD_SET,
        _E.CONSOLE_LOGIN_COMPLETED,
    ),
    # Of operators' commands, which run as the owner.
    (): (
        _E.SIGN_PASSWORD_REPLACED,
        _E.DOCUMENT_KEY_DESTROYED,
        _E.SECRET_ROTATED,
        _E.SECRET_APPLIED,
        _E.SECRET_RETIRED,
    ),
}
"""By roles: events that they alone, and operators, may record, in the audit and for
integrators. Any role may record an event that is not named here."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy on the rows of one table."""

    table: str
    name: str
    definition: str
    """All that follows `ON table` in CREATE POLICY."""

    @property
    def fingerprint(self) -> str:
        """Hash of the definition, which stands in the policy's comment."""
        return hashlib.sha256(self.definition.encode()).hexdigest()[:16]


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _naming() -> str:
    """The condition that a process start has a name of its user's."""
    cases = " ".join(
        f"WHEN '{role.value}' THEN {condition}" for role, condition in WRITERS.items()
    )
    return f"CASE current_user {cases} ELSE false END"


def _kinds() -> str:
    """The condition that an event is for its user to record."""
    cases = " ".join(
        f"WHEN event IN ({_words(kind.value for kind in kinds)}) THEN "
        + (f"current_user IN ({_words(roles)})" if roles else "false")
        for roles, kinds in GUARDED.items()
    )
    return f"CASE {cases} ELSE true END"


POLICIES: Final = (
    Policy("audit_writer", "any_reads", "FOR SELECT USING (true)"),
    Policy(
        "audit_writer",
        "own_begins",
        f"FOR INSERT WITH CHECK (db_user = current_user AND n = 0 AND ({_naming()}))",
    ),
    Policy("audit_writer", "own_moves", "FOR UPDATE USING (db_user = current_user)"),
    Policy("audit_event", "any_reads", "FOR SELECT USING (true)"),
    Policy(
        "audit_event",
        "own_chain",
        "FOR INSERT WITH CHECK (EXISTS (SELECT FROM audit_writer w "
        "WHERE w.id = audit_event.writer AND w.db_user = current_user))",
    ),
    Policy(
        "audit_event",
        "own_events",
        f"AS RESTRICTIVE FOR INSERT WITH CHECK ({_kinds()})",
    ),
    Policy("integrator_event", "any_reads", "FOR SELECT USING (true)"),
    Policy("integrator_event", "any_hands_on", "FOR UPDATE USING (true)"),
    Policy("integrator_event", "own_events", f"FOR INSERT WITH CHECK ({_kinds()})"),
)
"""Reading, and what was handed on, is a matter of `RIGHTS`; policies say nothing of
it."""

_TABLES: Final = tuple(dict.fromkeys(policy.table for policy in POLICIES))
# What PostgreSQL makes of a definition, and a hash of it: the comment names both, so
# that a policy that somebody altered by hand shows.
_STATE: Final = """
md5(concat_ws('|', p.polcmd::text, p.polpermissive::text, p.polroles::text,
    pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)))
"""
_FOUND: Final = text(f"""
SELECT c.relname AS relation, c.relrowsecurity AS is_on, p.polname AS name,
    obj_description(p.oid, 'pg_policy') AS told, {_STATE} AS state
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
LEFT JOIN pg_policy p ON p.polrelid = c.oid
WHERE c.relname = ANY(:tables) AND c.relkind = 'r'
""")  # noqa: S608 (ours)
_NOTE: Final = (
    "DO $$ BEGIN EXECUTE (SELECT format("  # noqa: S608 (ours)
    "'COMMENT ON POLICY \"{name}\" ON {table} IS %L', "
    "'{fingerprint} ' || " + _STATE + ") FROM pg_policy p "
    "WHERE p.polname = '{name}' AND p.polrelid = '{table}'::regclass); END $$"
)


def policies_needed(connection: Connection) -> Iterator[str]:
    """Yield the statements that would make the policies exactly those declared.

    Args:
        connection: to PostgreSQL.
    """
    rows = connection.execute(_FOUND, {"tables": list(_TABLES)}).all()
    declared = {(policy.table, policy.name): policy for policy in POLICIES}
    right = set()
    for row in rows:
        if row.name is None:
            continue
        policy = declared.get((row.relation, row.name))
        if policy is not None and row.told == f"{policy.fingerprint} {row.state}":
            right.add((row.relation, row.name))
        else:
            yield f'DROP POLICY "{row.name}" ON {row.relation}'
    for place, policy in declared.items():
        if place not in right:
            yield from _made(policy)
    is_on = {row.relation: row.is_on for row in rows}
    # Last: until then nobody is held to policies that are not there.
    for table in _TABLES:
        if not is_on.get(table, False):
            yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"


def _made(policy: Policy) -> Iterator[str]:
    """The statements that make a policy, and note what it is."""
    name, table = policy.name, policy.table
    yield f'CREATE POLICY "{name}" ON {table} {policy.definition}'
    yield _NOTE.format(name=name, table=table, fingerprint=policy.fingerprint)
