"""States that the signing worker alone may write, on PostgreSQL.

A right on a column says nothing of its values. Chores, for one, may end a request, and
must not make it `firmada`. A trigger for each such state refuses the users of all other
roles, as a missing right does. The tables' owner may: `rubrica documents recover` does.

Source: PostgreSQL, chapter "Triggers"; SQL state 42501.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

from sqlalchemy import Connection, text

from appliance.core.database.rights import Role
from appliance.domain.vocab import (
    ActivationState,
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
"""By table: the state that says that something was signed."""
_FUNCTION: Final = "rubrica_refuse_state"
_NAME: Final = "rubrica_state"
_REFUSING: Final = f"""
CREATE OR REPLACE FUNCTION {_FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'permission denied for table %: state %', TG_TABLE_NAME, NEW.state
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
    allowed = {Role.SIGNING, Role.CHORES} if chores_publish else {Role.SIGNING}
    refused = ", ".join(f"'{role.value}'" for role in Role if role not in allowed)
    for table, state in GUARDED.items():
        is_refused = f"NEW.state = '{state}' AND current_user IN ({refused})"
        for event, when in (
            ("INSERT", is_refused),
            ("UPDATE OF state", f"{is_refused} AND OLD.state <> NEW.state"),
        ):
            words = (
                f"BEFORE {event} ON {table} FOR EACH ROW WHEN ({when}) "
                f"EXECUTE FUNCTION {_FUNCTION}()"
            )
            digest = hashlib.sha256(words.encode("ascii")).hexdigest()[:12]
            name = f"{_NAME}_{digest}"
            yield table, name, f"CREATE TRIGGER {name} {words}"
