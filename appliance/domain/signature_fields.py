"""What a document's signature fields allow, as stored facts; nothing reads a PDF here.

Earlier signatures may forbid changes to the document (DocMDP) or to fields
(FieldMDP); an empty field may say how it wants to be signed (seed values).

Source: ISO 32000-2, 12.7.5.5 (signature fields, locks, seed values), 12.8.2
(transform methods).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from appliance.domain.text.untrusted_json import boolean, docmdp, rect, text, texts

Rect = tuple[float, float, float, float]
"""x0 < x1, y0 < y1, in unrotated user space."""

FIELDS_KEPT: Final = 1000
"""Most signature fields of a document that are told of."""
NAME_LENGTH: Final = 256
"""Longest name, in characters, of a field that is told of."""
_CERTIFYING: Final = frozenset({0, 1, 2, 3})


@dataclass(frozen=True, slots=True)
class EmptyField:
    """A signature field that nobody has signed."""

    name: str
    """Fully qualified, such as `contrato.comprador`."""
    page: int | None = None
    """1-based; None for a field that is on no page, or on it without a place."""
    rect: Rect | None = None
    """Where it is shown; None together with `page`."""
    locked: bool = False
    """An earlier signature forbids to fill it, or it is read-only."""
    closes: bool = False
    """Its own lock would forbid any signature in a field that is made later."""
    needs: tuple[str, ...] = ()
    """Binding seed values that are not honoured here, by their PDF names."""
    digests: tuple[str, ...] = ()
    """Digests that bind, such as `sha256`; empty: any."""
    certifies: int | None = None
    """Demanded kind: 0 an approval signature, 1 to 3 a certification with that P."""

    @property
    def usable(self) -> bool:
        """Whether anybody could sign it here."""
        return not self.locked and not self.needs


@dataclass(frozen=True, slots=True)
class SigningFacts:
    """What the signature fields of a document say together."""

    permitted: int | None = None
    """The strictest P (1, 2 or 3) of all signatures, or None."""
    new_locked: bool = False
    """A lock of an earlier signature covers fields that are made later."""
    empty: tuple[EmptyField, ...] = ()
    """In the order of the field tree."""
    signed: tuple[str, ...] = ()
    """Names of the fields that hold a signature."""

    def find(self, name: str) -> EmptyField | None:
        """The empty field of that full name."""
        return next((field for field in self.empty if field.name == name), None)


def to_json(facts: SigningFacts) -> dict[str, Any]:
    """Write the facts."""
    return asdict(facts)


def from_json(message: Mapping[str, Any]) -> SigningFacts:
    """Read the facts, distrusting who wrote them.

    Raises:
        TypeError: a value of another type.
        ValueError: a value that none can be.
        KeyError: one is missing.
    """
    return SigningFacts(
        permitted=docmdp(message["permitted"]),
        new_locked=boolean(message["new_locked"]),
        empty=tuple(_empty(entry) for entry in message["empty"]),
        signed=texts(message["signed"], FIELDS_KEPT),
    )


def _empty(entry: Mapping[str, Any]) -> EmptyField:
    page, sides, certifies = entry["page"], entry["rect"], entry["certifies"]
    if (page is None) != (sides is None):
        raise ValueError
    if page is not None and (not isinstance(page, int) or page < 1):
        raise ValueError
    if certifies is not None and certifies not in _CERTIFYING:
        raise ValueError
    return EmptyField(
        name=text(entry["name"]),
        page=page,
        rect=None if sides is None else rect(sides),
        locked=boolean(entry["locked"]),
        closes=boolean(entry["closes"]),
        needs=texts(entry["needs"], FIELDS_KEPT),
        digests=texts(entry["digests"], FIELDS_KEPT),
        certifies=certifies,
    )
