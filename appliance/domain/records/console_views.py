"""What the console reads: lists with filters and cursors, and counts."""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from appliance.domain.audit import AuditRow
from appliance.domain.console import (
    AuditFilter,
    AuditPlace,
    BlockedRow,
    HomeNumbers,
    IntegratorNumbers,
    Names,
    PeopleQuery,
    PersonRow,
    RequestFilter,
    RequestRow,
    StoredPerson,
    WriterRow,
)
from appliance.domain.ids import IntegratorId, PersonId, RequestId
from appliance.domain.vocab import PersonState


class ConsoleViewRecords(Protocol):
    """Reads for administrators; the last one changes a person."""

    async def numbers(self, at: datetime) -> HomeNumbers:
        """What waits for somebody."""
        ...

    async def blocked(self, limit: int) -> list[BlockedRow]:
        """Origins that tried and are not listed, last seen first."""
        ...

    async def integrator_numbers(
        self, at: datetime
    ) -> dict[IntegratorId, IntegratorNumbers]:
        """How each integrator stands."""
        ...

    async def key_sessions(self, key_id: str, at: datetime) -> int:
        """Unfinished sessions that an API key opened."""
        ...

    async def people(
        self, query: PeopleQuery, limit: int, after: tuple[datetime, PersonId] | None
    ) -> list[PersonRow]:
        """Persons, newest first, after a place."""
        ...

    async def person(self, person: PersonId, at: datetime) -> StoredPerson | None:
        """A person and what is kept beside them."""
        ...

    async def requests(
        self, wanted: RequestFilter, limit: int, after: RequestId | None
    ) -> list[RequestRow]:
        """Requests, newest first, after a number."""
        ...

    async def audit(
        self, wanted: AuditFilter, limit: int, after: AuditPlace | None
    ) -> list[AuditRow]:
        """Audit rows, newest first, after a place."""
        ...

    async def names(
        self,
        people: Collection[str],
        administrators: Collection[str],
        integrators: Collection[str],
    ) -> Names:
        """Words for ids."""
        ...

    async def writer(self, writer: str) -> WriterRow | None:
        """A process start that wrote to the audit."""
        ...

    async def writer_rows(self, writer: str, above: int, limit: int) -> list[AuditRow]:
        """A writer's rows by number, those above a number."""
        ...

    async def move_person(
        self, person: PersonId, now: PersonState, then: PersonState
    ) -> bool:
        """Change a person's state; False if they were not in state `now`."""
        ...
