"""A secret key in its versions: one that is in use, others that are still known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, Self

from appliance.domain.ids import PersonId
from appliance.domain.vocab import SecretName

FIRST: Final = 1
LAST: Final = 255
"""A sealed value names its version in one byte."""


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The versions of one key."""

    present: int
    """Which one new values are made with."""
    keys: Mapping[int, bytes] = field(repr=False)
    """By version, 1 to 255; the present one among them."""

    @classmethod
    def of(cls, key: bytes) -> Self:
        """A first key, without earlier ones."""
        return cls(FIRST, {FIRST: key})

    @property
    def next(self) -> int | None:
        """A version that is known and not in use yet, newer than the present one."""
        newest = max(self.keys)
        return newest if newest > self.present else None

    @property
    def versions(self) -> tuple[int, ...]:
        """All of them: the present one, then the others, newest first."""
        others = sorted(each for each in self.keys if each != self.present)
        return (self.present, *reversed(others))

    def ring(self) -> Self:
        """Itself: a ring that never changes is a source too."""
        return self


class KeySource(Protocol):
    """Gives the ring as it is now."""

    def ring(self) -> KeyRing:
        """The versions that are known now."""
        ...


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
