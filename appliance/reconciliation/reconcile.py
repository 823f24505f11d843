"""The comparison of record and audit: what happened without what must precede it.

    async for finding in Reconciliation(store).findings():
        …

Everything is read in pages, each in a transaction of its own: memory is bounded, and
no long transaction keeps others waiting. People's keys are read in as many passes as
keep one pass small. What follows from something else is read before it, so that work
in progress is no finding.

The times of revocations are kept in memory: about a hundred bytes for each.

Source: docs/running.md "Does the audit explain what happened?".
"""

import zlib
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from appliance.domain.audit.reconciliation import (
    CertificateRow,
    CredentialRow,
    Event,
    Finding,
    PersonHistory,
    RequestHistory,
)
from appliance.domain.vocab import EventKind
from appliance.reconciliation import request_rules
from appliance.reconciliation.person_rules import CAUSES, EFFECTS, judge_person
from appliance.reconciliation.reconciliation_store import Place, ReconciliationStore
from appliance.reconciliation.request_rules import judge_request
from appliance.record.unit_of_work import Database

_STEP: Final = 200
"""Requests that are read at once."""
_PAGE: Final = 500
"""Rows that are read at once."""
_PASS: Final = 50_000
"""Credentials that one pass over people's keys keeps."""
_BY_REVOCATION: Final = (
    EventKind.REVOCATION_ASKED,
    EventKind.REVOCATION_FOUND,
    EventKind.REVOCATION_PUBLISHED,
)


@dataclass(slots=True)
class Reconciliation:
    """Compares record and audit.

    Args:
        store: the record.
        since: leave out what happened before; None: all of it.
    """

    store: Database
    since: datetime | None = None
    requests: int = 0
    """Requests that were judged so far."""
    people: int = 0
    """People whose keys were judged so far."""
    _revoked: dict[str, datetime] = field(default_factory=dict)

    async def findings(self) -> AsyncIterator[Finding]:
        """Yield each finding: first those of people's keys, then those of requests.

        Raises:
            ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
        """
        await self._read_revocations()
        async for person in self._people():
            self.people += 1
            for finding in judge_person(person, self._revoked):
                if self._counts(finding):
                    yield finding
        async for request in self._requests():
            self.requests += 1
            for finding in judge_request(request, self._revoked):
                if self._counts(finding):
                    yield finding

    def _counts(self, finding: Finding) -> bool:
        """Return whether a finding is of the time that is asked for."""
        return self.since is None or finding.at is None or finding.at >= self.since

    async def _events(
        self, kind: EventKind, since: datetime | None = None
    ) -> AsyncIterator[Event]:
        """Yield events of one kind, by time."""
        after: Place | None = None
        while True:
            async with self.store.read() as transaction:
                events, after = await ReconciliationStore(transaction).events(
                    kind, after, _PAGE, since
                )
            for event in events:
                yield event
            if after is None:
                return

    async def _read_revocations(self) -> None:
        for kind in _BY_REVOCATION:
            async for event in self._events(kind):
                for name in _revoked_names(event):
                    before = self._revoked.get(name, event.at)
                    self._revoked[name] = min(before, event.at)

    # -- people -----------------------------------------------------------------

    async def _people(self) -> AsyncIterator[PersonHistory]:
        async with self.store.read() as transaction:
            count = await ReconciliationStore(transaction).people()
        passes = 1 + count // _PASS
        for number in range(passes):
            found = await self._pass(number, passes)
            for person in sorted(found):
                yield found[person]

    async def _pass(self, number: int, passes: int) -> dict[str, PersonHistory]:
        """Read what there is of one part of the people."""
        found: dict[str, PersonHistory] = {}
        async for row in self._rows():
            person = row.text("person") if isinstance(row, Event) else row.person
            if zlib.crc32(person.encode()) % passes == number:
                found.setdefault(person, PersonHistory(person)).add(row)
        return found

    async def _rows(self) -> AsyncIterator[CredentialRow | CertificateRow | Event]:
        """Yield what there is of people's keys: each follows from what comes later."""
        async for held in self._credentials():
            yield held
        async for issued in self._certificates():
            yield issued
        for kind in (*EFFECTS, EventKind.TASK_CREATED, *CAUSES):
            async for event in self._events(kind):
                yield event

    async def _credentials(self) -> AsyncIterator[CredentialRow]:
        after = ""
        while True:
            async with self.store.read() as transaction:
                rows = await ReconciliationStore(transaction).credentials(after, _PAGE)
            for row in rows:
                yield row
            if len(rows) < _PAGE:
                return
            after = rows[-1].id

    async def _certificates(self) -> AsyncIterator[CertificateRow]:
        after = ""
        while True:
            async with self.store.read() as transaction:
                rows = await ReconciliationStore(transaction).certificates(after, _PAGE)
            for row in rows:
                yield row
            if len(rows) < _PAGE:
                return
            after = rows[-1].serial

    # -- requests ---------------------------------------------------------------

    async def _requests(self) -> AsyncIterator[RequestHistory]:
        if self.since is not None:
            async for request in self._requests_since(self.since):
                yield request
            return
        first: int | None = 0
        while first is not None:
            last = first + _STEP - 1
            async with self.store.read() as transaction:
                store = ReconciliationStore(transaction)
                found = await store.requests(first, last, request_rules.EVENTS)
                # Numbers may leave gaps, however large.
                first = await store.next_request(last)
            for request in found:
                yield request

    async def _requests_since(self, since: datetime) -> AsyncIterator[RequestHistory]:
        """Yield the requests of which the audit says something since then."""
        seen: set[int] = set()
        for kind in request_rules.EVENTS:
            page: set[int] = set()
            async for event in self._events(kind, since):
                if event.request is None or event.request in seen:
                    continue
                seen.add(event.request)
                page.add(event.request)
                if len(page) == _STEP:
                    for request in await self._named(page):
                        yield request
                    page = set()
            for request in await self._named(page):
                yield request

    async def _named(self, numbers: Collection[int]) -> list[RequestHistory]:
        if not numbers:
            return []
        async with self.store.read() as transaction:
            return await ReconciliationStore(transaction).requests_named(
                numbers, request_rules.EVENTS
            )


def _revoked_names(event: Event) -> Iterator[str]:
    """Yield the credential, and the serial numbers, that a revocation names."""
    for member in ("credential", "serial"):
        if event.text(member):
            yield event.text(member)
    serials = event.detail.get("serials")
    if isinstance(serials, list):
        yield from (each for each in serials if isinstance(each, str))
