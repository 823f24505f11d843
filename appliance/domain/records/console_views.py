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
    IntegratorFilter,
    IntegratorNumbers,
    Named,
    Names,
    PeopleQuery,
    PersonRow,
    RequestFilter,
    RequestRow,
    Search,
    StoredPerson,
    WriterRow,
)
from appliance.domain.ids import IntegratorId, PersonId, RequestId
from appliance.domain.integrators.integrators import IntegratorView
from appliance.domain.vocab import PersonState

PersonPlace = tuple[datetime, PersonId]
"""When somebody was recorded, and who."""


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

    async def integrators(
        self, wanted: IntegratorFilter, at: datetime, limit: int, after: str
    ) -> list[IntegratorView]:
        """Integrators by code, after a code."""
        ...

    async def key_sessions(self, key_id: str, at: datetime) -> int:
        """Unfinished sessions that an API key opened."""
        ...

    async def people(
        self,
        query: PeopleQuery,
        limit: int,
        after: PersonPlace | None,
        floor: PersonPlace | None = None,
    ) -> list[PersonRow]:
        """Persons, newest first, after a place and down to another."""
        ...

    async def people_floor(
        self, query: PeopleQuery, after: PersonPlace | None, count: int
    ) -> PersonPlace | None:
        """Where so many persons end, whatever their names; None for fewer."""
        ...

    async def holders(self, search: Search) -> tuple[PersonId, ...]:
        """Whose CUIL that is, or the serial number of a certificate."""
        ...

    async def named(self, search: Search, limit: int) -> Named:
        """People and administrators that a text names, at most so many of each."""
        ...

    async def person(self, person: PersonId, at: datetime) -> StoredPerson | None:
        """A person and what is kept beside them."""
        ...

    async def requests(
        self,
        wanted: RequestFilter,
        limit: int,
        after: RequestId | None,
        floor: RequestId | None = None,
    ) -> list[RequestRow]:
        """Requests, newest first, after a number and down to another."""
        ...

    async def requests_floor(
        self, wanted: RequestFilter, after: RequestId | None, count: int
    ) -> RequestId | None:
        """Where so many requests end, whatever their names; None for fewer."""
        ...

    async def numbered(
        self, wanted: RequestFilter, number: RequestId
    ) -> RequestRow | None:
        """The request of that number, where the other filters let it through."""
        ...

    async def audit(
        self,
        wanted: AuditFilter,
        limit: int,
        after: AuditPlace | None,
        named: Named | None = None,
        floor: AuditPlace | None = None,
    ) -> list[AuditRow]:
        """Audit rows, newest first, after a place and down to another.

        Args:
            wanted: which.
            limit: how many.
            after: where the page before ended.
            named: only rows of or about these; None: of anybody.
            floor: the last row that is looked at.
        """
        ...

    async def audit_floor(
        self, wanted: AuditFilter, after: AuditPlace | None, count: int
    ) -> AuditPlace | None:
        """Where so many rows end, whoever they are about; None for fewer."""
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

    async def writers(
        self, after: tuple[datetime, str] | None, limit: int
    ) -> list[WriterRow]:
        """Process starts that wrote to the audit, newest first.

        Args:
            after: start and id of the last one of the page before.
            limit: how many.
        """
        ...

    async def has_rows_beyond(self, writer: str) -> bool:
        """Whether a writer has rows after the last that it knows of."""
        ...

    async def writer_rows(self, writer: str, above: int, limit: int) -> list[AuditRow]:
        """A writer's rows by number, those above a number."""
        ...

    async def move_person(
        self, person: PersonId, now: PersonState, then: PersonState
    ) -> bool:
        """Change a person's state; False if they were not in state `now`."""
        ...
