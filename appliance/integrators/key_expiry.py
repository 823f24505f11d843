"""Tells integrators of API keys whose time ends."""

from datetime import timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.pki.trust_store import EXPIRY_DAYS, due_days
from appliance.domain.vocab import EventKind
from appliance.integrators.integrator_store import IntegratorStore
from appliance.record.unit_of_work import Database

_LONGEST: Final = timedelta(days=max(EXPIRY_DAYS))


class KeyExpiry:
    """As certificates: 90, 30, 7 and 1 day before, and once when it has come.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def warn(self) -> int:
        """Tell of all that is due, once; of how many keys."""
        now = self._clock.now()
        async with self._store.read() as transaction:
            ending = await IntegratorStore(transaction).expiring_keys(now + _LONGEST)
        due = [
            (key, days)
            for key in ending
            if (days := due_days(key.created, key.expires, now)) is not None
            and (key.told is None or days < key.told)
        ]
        if not due:
            return 0
        async with self._store.write() as transaction:
            for key, days in due:
                if not await IntegratorStore(transaction).told_expiry(key.id, days):
                    continue
                transaction.audit.add(
                    AuditEvent(
                        EventKind.API_KEY_EXPIRING,
                        "system",
                        integrator=key.integrator,
                        detail={
                            "key": key.id,
                            "days": days,
                            "notAfter": key.expires.isoformat(timespec="seconds"),
                        },
                    )
                )
        return len(due)
