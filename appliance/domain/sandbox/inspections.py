"""What the sandbox saw in a document, and what was wrong with one it repaired."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from appliance.domain.documents.inspected import (
    Damage,
    FindingKind,
    Inspection,
    PageBox,
    SignatureMark,
    SigningFacts,
    signing_facts_from_json,
    signing_facts_to_json,
)
from appliance.domain.sandbox.messages import MessageInvalidError
from appliance.domain.text.untrusted_json import docmdp, integer, rect


def inspection_to_json(inspection: Inspection) -> dict[str, Any]:
    """Write an inspection; a page is a row of six numbers, a mark one of five."""
    return {
        **asdict(inspection),
        "pages": [
            [p.x0, p.y0, p.x1, p.y1, p.rotate, p.user_unit] for p in inspection.pages
        ],
        "marks": [[mark.page, *mark.rect] for mark in inspection.marks],
        "signing": signing_facts_to_json(inspection.signing),
    }


def inspection_from_json(message: Mapping[str, Any]) -> Inspection:
    """Read an inspection, distrusting who wrote it.

    Raises:
        MessageInvalidError: a field is missing or of another type.
    """
    try:
        if not message["pages"]:
            raise MessageInvalidError
        return Inspection(
            size_bytes=integer(message["size_bytes"]),
            pages=tuple(_page(row) for row in message["pages"]),
            findings=tuple(FindingKind(word) for word in message["findings"]),
            signatures=integer(message["signatures"]),
            docmdp=docmdp(message["docmdp"]),
            marks=tuple(_mark(row) for row in message["marks"]),
            signing=_signing(message["signing"], len(message["pages"])),
            last_number=integer(message["last_number"]),
            inspector_version=integer(message["inspector_version"]),
        )
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc


def inspections_to_json(
    inspections: Sequence[Inspection | None],
) -> dict[str, Any]:
    """Write what came of several documents, in order; None: that is not said."""
    return {
        "inspections": [
            None if each is None else inspection_to_json(each) for each in inspections
        ]
    }


def inspections_from_json(
    message: Mapping[str, Any], count: int
) -> list[Inspection | None]:
    """Read them, distrusting who wrote them.

    Args:
        message: the answer.
        count: how many were asked for.

    Raises:
        MessageInvalidError: they are not so many, or one is of another shape.
    """
    rows = message.get("inspections")
    if not isinstance(rows, list) or len(rows) != count:
        raise MessageInvalidError
    found: list[Inspection | None] = []
    for row in rows:
        if row is not None and not isinstance(row, dict):
            raise MessageInvalidError
        found.append(None if row is None else inspection_from_json(row))
    return found


def sizes_from_json(params: Mapping[str, Any], total: int) -> list[int]:
    """Read how many bytes each of several documents has, one after the other.

    Args:
        params: of the request.
        total: bytes of all of them.

    Raises:
        MessageInvalidError: they are no such numbers, or have another sum.
    """
    sizes = params.get("sizes")
    if (
        not isinstance(sizes, list)
        or not all(isinstance(size, int) and size > 0 for size in sizes)
        or sum(sizes) != total
    ):
        raise MessageInvalidError
    return sizes


def _signing(message: Mapping[str, Any], pages: int) -> SigningFacts:
    """Read what the fields of a document of so many pages allow.

    Raises:
        KeyError: a field is missing.
        TypeError: one is of another type.
        ValueError: one has a value that none can be.
    """
    facts = signing_facts_from_json(message)
    if any((field.page or 1) > pages for field in facts.empty):
        raise ValueError
    return facts


def _page(row: list[Any]) -> PageBox:
    """Read one page.

    Raises:
        ValueError: it is no box, or not turned by quarters, or without a unit.
    """
    *edges, rotate, unit = row
    box = PageBox(*rect(edges), integer(rotate), float(unit))
    # A comparison that a NaN fails, too.
    if not (rotate in {0, 90, 180, 270} and unit > 0):
        raise ValueError
    return box


def _mark(row: list[Any]) -> SignatureMark:
    """Read one mark.

    Raises:
        ValueError: it is no box.
    """
    page, *edges = row
    return SignatureMark(integer(page), rect(edges))


def damage_to_json(damage: Sequence[Damage]) -> dict[str, object]:
    """Write what was wrong with a repaired file."""
    return {"damage": [each.value for each in damage]}


def damage_from_json(message: Mapping[str, Any]) -> tuple[Damage, ...]:
    """Read what was wrong, distrusting who wrote it.

    Raises:
        MessageInvalidError: it is none of our words.
    """
    try:
        return tuple(sorted({Damage(word) for word in message["damage"]}))
    except (KeyError, TypeError, ValueError) as exc:
        raise MessageInvalidError from exc
