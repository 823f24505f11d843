"""Changes of the record that rights cannot refuse, on PostgreSQL.

What was signed is the signing worker's to say, and a revocation is for good.

A right on a column says nothing of its values. Chores, for one, may end a request, and
must not make it `firmada`, nor end one that is. A trigger for each such change refuses
the roles' users, as a missing right does. The tables' owner may: `rubrica documents
recover` does.

Source: PostgreSQL, chapter "Triggers"; SQL state 42501.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

from sqlalchemy import Connection, text

from appliance.database.rights import Role
from appliance.domain.vocab import (
    ActivationState,
    CertificateState,
    CredentialState,
    IntentState,
    ItemState,
    RequestState,
)

GUARDED: Final[Mapping[str, str]] = {
    "signature_request": RequestState.SIGNED.value,
    "activation": ActivationState.DONE.value,
    "activation_item": ItemState.DONE.value,
    "intent": IntentState.COMPLETED.value,
}
"""By table: the state that says that something was signed. Nobody else brings a row
there, or away from there."""
_REQUEST: Final = "signature_request"
_MOVED: Final = "NEW.state <> OLD.state"
_FUNCTION: Final = "rubrica_refuse_state"
_NAME: Final = "rubrica_state"
_REFUSING: Final = f"""
CREATE OR REPLACE FUNCTION {_FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'permission denied for table %: state %', TG_TABLE_NAME,
        CASE WHEN TG_OP = 'UPDATE' THEN OLD.state || ' to ' ELSE '' END || NEW.state
        USING ERRCODE = 'insufficient_privilege';
END $$
"""
_FOUND: Final = text("""
SELECT c.relname AS relation, t.tgname AS name
FROM pg_trigger t
JOIN pg_class c ON c.oid = t.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
WHERE NOT t.tgisinternal AND t.tgenabled = 'O' AND t.tgname LIKE 'rubrica_state_%'
""")


def guards_needed(connection: Connection, *, chores_publish: bool) -> Iterator[str]:
    """The statements that would set the triggers right.

    Args:
        connection: to PostgreSQL.
        chores_publish: whether the chores of the version before still may.
    """
    wanted = {
        (table, name): statement
        for table, name, statement in _triggers(chores_publish=chores_publish)
    }
    found = {(row.relation, row.name) for row in connection.execute(_FOUND)}
    for table, name in sorted(found - wanted.keys()):
        yield f"DROP TRIGGER {name} ON {table}"
    missing = sorted(wanted.keys() - found)
    if missing:
        yield _REFUSING
    for key in missing:
        yield wanted[key]


def _triggers(*, chores_publish: bool) -> Iterator[tuple[str, str, str]]:
    """Table, name and statement of each trigger; the name is that of its words."""
    signs = {Role.SIGNING, Role.CHORES} if chores_publish else {Role.SIGNING}
    refusals = [
        *((each, signs) for each in _of_what_was_signed()),
        *((each, set[Role]()) for each in _of_revocations()),
    ]
    for (table, event, when), allowed in refusals:
        refused = ", ".join(f"'{role.value}'" for role in Role if role not in allowed)
        words = (
            f"BEFORE {event} ON {table} FOR EACH ROW "
            f"WHEN (({when}) AND current_user IN ({refused})) "
            f"EXECUTE FUNCTION {_FUNCTION}()"
        )
        digest = hashlib.sha256(f"{_REFUSING}{words}".encode("ascii")).hexdigest()
        name = f"{_NAME}_{digest[:12]}"
        yield table, name, f"CREATE TRIGGER {name} {words}"


def _of_what_was_signed() -> Iterator[tuple[str, str, str]]:
    """Table, event and condition of each change that only who signs may make."""
    for table, state in GUARDED.items():
        yield table, "INSERT", f"NEW.state = '{state}'"
        moved = f"{_MOVED} AND '{state}' IN (OLD.state, NEW.state)"
        yield table, "UPDATE OF state", moved
    # What a signed request says of itself.
    signed = GUARDED[_REQUEST]
    changed = "NEW.level IS DISTINCT FROM OLD.level OR NEW.document <> OLD.document"
    is_told = f"OLD.state = '{signed}' AND ({changed})"
    yield _REQUEST, "UPDATE OF level, document", is_told
    # Before it is signed, another document comes with somebody's turn alone.
    has_turn = (
        f"OLD.state = '{RequestState.WAITING.value}' OR "
        f"(OLD.state = '{RequestState.PENDING.value}' AND OLD.turn IS NOT NULL)"
    )
    is_swapped = f"NEW.document <> OLD.document AND NOT ({has_turn})"
    yield _REQUEST, "UPDATE OF document", is_swapped


def _of_revocations() -> Iterator[tuple[str, str, str]]:
    """Table, event and condition of each change that no role may make."""
    valid, revoked = CertificateState.VALID.value, CertificateState.REVOKED.value
    is_undone = f"NEW.state = '{valid}' OR (OLD.state = '{revoked}' AND {_MOVED})"
    is_told_anew = (
        "NEW.revoked_at IS DISTINCT FROM OLD.revoked_at "
        "OR NEW.reason IS DISTINCT FROM OLD.reason"
    )
    yield (
        "certificate",
        "UPDATE OF state, revoked_at, reason",
        f"OLD.state <> '{valid}' AND ({is_undone} OR {is_told_anew})",
    )
    active = CredentialState.ACTIVE.value
    yield "credential", "UPDATE OF state", f"NEW.state = '{active}' AND {_MOVED}"
