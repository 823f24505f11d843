"""What stands in the record under versions of the installation's secret keys."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from appliance.domain.ids import PersonId
from appliance.domain.vocab import SecretName


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column of sealed values."""

    table: str
    column: str
    secret: SecretName
    """The key that seals them."""


@dataclass(frozen=True, slots=True)
class SealedValue:
    """One value of such a column."""

    row: str
    """Primary key."""
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class IndexedEmail:
    """An address and what it is found by."""

    person: PersonId
    sealed: bytes = field(repr=False)
    index: str = field(repr=False)


class SecretVersionRecords(Protocol):
    """Values by the version of the key that made them."""

    def sealed_columns(self, secret: SecretName) -> tuple[SealedColumn, ...]:
        """All columns that hold what a key sealed."""
        ...

    async def sealed(self, column: SealedColumn) -> dict[int, int]:
        """How many values of a column there are, by version of its key."""
        ...

    async def sealed_otherwise(
        self, column: SealedColumn, version: int, after: str, limit: int
    ) -> list[SealedValue]:
        """Values that another version of its key sealed, after a row's key."""
        ...

    async def reseal(self, column: SealedColumn, old: SealedValue, new: bytes) -> None:
        """Put another value in the place of one, unless that changed meanwhile."""
        ...

    async def indexes(self, version: int, at: datetime) -> dict[str, int]:
        """How many indexes by a version of the lookup key still count, by column.

        Those of what is over (revoked, used, expired) do not.
        """
        ...

    async def emails_otherwise(
        self, version: int, after: str, limit: int
    ) -> list[IndexedEmail]:
        """Addresses that another version of the lookup key finds, after a person."""
        ...

    async def reindex(self, email: IndexedEmail, index: str) -> None:
        """Have an address found by another index, unless it changed meanwhile."""
        ...

    async def passwords(self) -> dict[int, int]:
        """How many signing passwords there are, by version of the pepper."""
        ...
