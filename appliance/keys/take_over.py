"""What is recorded when the HSM serves a record from now on, and no other.

Source: docs/backup.md "One HSM, one record".
"""

from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.keys.generation import NONE, Generation
from appliance.domain.vocab import EventKind
from appliance.record.installation_store import InstallationStore
from appliance.record.unit_of_work import Database

_ACTOR: Final = "operator"


async def record_take_over(store: Database, taken: Generation) -> Generation:
    """Say in the record, and in its audit, that it took the HSM over.

    Two take-overs of one record may come here in any order: the greater one stays.

    Args:
        store: the record.
        taken: what the HSM has by now.

    Returns:
        What the record has.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    async with store.write() as transaction:
        before = await InstallationStore(transaction).lock_generation()
        if taken <= before:
            return before
        await InstallationStore(transaction).set_generation(taken)
        is_restored = before < NONE
        detail: dict[str, object] = {
            "before": "restored" if is_restored else before.number,
            "after": taken.number,
        }
        transaction.audit.add(
            AuditEvent(EventKind.HSM_TAKEN_OVER, _ACTOR, detail=detail)
        )
        return taken
