"""Warnings of what comes to its end: signers' certificates, roots, the CA's own.

Each end is told 90, 30, 7 and 1 day before, and once when it has come: in the
audit, to whoever calls (the log), and on the console, which reads the same rows.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from appliance.console.view_store import ConsoleViewStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.console.lists import Page, read_search
from appliance.domain.pki.trust_store import (
    EXPIRY_DAYS,
    SOON_DAYS,
    Anchor,
    Expiring,
    ExpiringKind,
)
from appliance.domain.vocab import EventKind
from appliance.pki.validation.certificate_rules import name_of
from appliance.pki.validation.trust_store import ExpiryStore, TrustStore
from appliance.record import pagination
from appliance.record.unit_of_work import Database, Transaction

OwnCertificates = Callable[
    [Transaction], Awaitable[Sequence[tuple[ExpiringKind, bytes]]]
]
"""Gives the installation's own certificates in use, DER, with what they are."""
_BATCH: Final = 200
_PAGE: Final = 50
_LONGEST: Final = timedelta(days=max(EXPIRY_DAYS))
_SOON: Final = timedelta(days=SOON_DAYS)


@dataclass(frozen=True, slots=True)
class Overview:
    """What an administrator should know of ends."""

    own: tuple[Expiring, ...]
    """Certificates of the CA and trusted roots that end within 90 days."""
    signers: int
    """Credentials in use that end within 30 days."""


class Expiry:
    """The use cases around ends.

    Args:
        store: the record.
        clock: the time.
        own: the installation's own certificates.
    """

    def __init__(self, store: Database, clock: Clock, own: OwnCertificates) -> None:
        self._store = store
        self._clock = clock
        self._own = own

    async def warn(self) -> list[tuple[Expiring, int]]:
        """Tell all that is due, once; what was told, with the days of its warning."""
        told: list[tuple[Expiring, int]] = []
        while True:
            now = self._clock.now()
            async with self._store.read() as transaction:
                due = await self._due(transaction, now)
            if not due:
                return told
            async with self._store.write() as transaction:
                for what, days in due:
                    # A short life is noted in silence, so that it is not met again.
                    if (
                        await ExpiryStore(transaction).tell(what, days, now)
                        and what.due_days(now) == days
                    ):
                        told.append((what, days))
                        transaction.audit.add(_event(what, days))

    async def _due(
        self, transaction: Transaction, now: datetime
    ) -> list[tuple[Expiring, int]]:
        """Ends that were not noted yet, with the tightest warning of each."""
        due: dict[str, tuple[Expiring, int]] = {}
        for days in sorted((0, *EXPIRY_DAYS)):
            until = now + timedelta(days=days)
            for what in await ExpiryStore(transaction).signers(until, days, _BATCH):
                due.setdefault(what.id, (what, days))
        for kind, ending in (await self._ours(transaction, now)).items():
            told = await ExpiryStore(transaction).told(
                kind, [what.id for what in ending]
            )
            for what in ending:
                tightest = what.due_days(now)
                last = told.get((what.id, what.not_after))
                if tightest is not None and (last is None or tightest < last):
                    due[what.id] = (what, tightest)
        return list(due.values())

    async def _ours(
        self, transaction: Transaction, now: datetime
    ) -> dict[ExpiringKind, list[Expiring]]:
        """Own certificates and trusted roots that end soon."""
        found = [
            of_certificate(kind, der) for kind, der in await self._own(transaction)
        ]
        found += [of_anchor(anchor) for anchor in await TrustStore(transaction).all()]
        ending: dict[ExpiringKind, list[Expiring]] = {}
        for what in found:
            if what.due_days(now) is not None:
                ending.setdefault(what.kind, []).append(what)
        return ending

    async def overview(self) -> Overview:
        """What ends soon, for health and home."""
        now = self._clock.now()
        async with self._store.read() as transaction:
            ours = await self._ours(transaction, now)
            signers = await ExpiryStore(transaction).count(now + _SOON)
        rows = [what for ending in ours.values() for what in ending]
        return Overview(tuple(sorted(rows, key=lambda what: what.not_after)), signers)

    async def first_ends(self) -> dict[ExpiringKind, datetime]:
        """Of each kind, when the first of what is in use ends."""
        now = self._clock.now()
        async with self._store.read() as transaction:
            found = [
                of_certificate(kind, der) for kind, der in await self._own(transaction)
            ]
            found += [
                of_anchor(anchor) for anchor in await TrustStore(transaction).all()
            ]
            # What ended already signs no more, and stands there for ever.
            found += await ExpiryStore(transaction).listed(None, 1, (now, ""))
        ends: dict[ExpiringKind, datetime] = {}
        for what in found:
            ends[what.kind] = min(what.not_after, ends.get(what.kind, what.not_after))
        return ends

    async def signers(
        self, cursor: str = "", text: str = "", days: int | None = None
    ) -> Page[Expiring]:
        """Credentials in use that end within 90 days, soonest first.

        Args:
            cursor: where the page before ended.
            text: part of a name, a CUIL or a serial number: then those of
                whoever it names, whenever they end.
            days: those that end within so many days; None: as above.

        Raises:
            ApplianceError: `QUERY_INVALID` for a cursor that is none.
        """
        after = pagination.read_instant(cursor)
        until = None if text else self._clock.now() + _LONGEST
        if days is not None:
            until = self._clock.now() + timedelta(days=days)
        async with self._store.read() as transaction:
            whose = None
            if text:
                whose = await ConsoleViewStore(transaction).whose(read_search(text))
            rows = await ExpiryStore(transaction).listed(until, _PAGE + 1, after, whose)
        shown = tuple(rows[:_PAGE])
        more = len(rows) > _PAGE
        last = pagination.instant(shown[-1].not_after, shown[-1].id) if more else None
        return Page(shown, last)


def of_certificate(kind: ExpiringKind, der: bytes) -> Expiring:
    """A certificate of ours as something that ends.

    Args:
        kind: what it is.
        der: itself.
    """
    made = x509.load_der_x509_certificate(der)
    return Expiring(
        kind,
        hashlib.sha256(der).hexdigest(),
        name_of(made.subject),
        made.not_valid_before_utc,
        made.not_valid_after_utc,
    )


def of_anchor(anchor: Anchor) -> Expiring:
    """A root of the trust store as something that ends.

    Args:
        anchor: as it is kept.
    """
    made = x509.load_der_x509_certificate(anchor.certificate)
    return Expiring(
        ExpiringKind.ANCHOR,
        anchor.id,
        name_of(made.subject),
        made.not_valid_before_utc,
        made.not_valid_after_utc,
    )


def _event(what: Expiring, days: int) -> AuditEvent:
    detail: dict[str, object] = {
        "kind": what.kind.value,
        "id": what.id,
        "days": days,
        "notAfter": what.not_after.isoformat(timespec="seconds"),
    }
    if what.person is not None:
        detail["person"] = what.person
    return AuditEvent(EventKind.CERTIFICATE_EXPIRING, "system", detail=detail)
