"""What the inspection of a document found, as it is stored with the document."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby, repeat
from typing import Any

from appliance.domain.documents import (
    Damage,
    FindingKind,
    Inspection,
    PageBox,
    Repair,
    SignatureMark,
)
from appliance.domain.signature_fields import SigningFacts, from_json


def inspection_to_json(inspection: Inspection) -> dict[str, object]:
    """The stored form, of which each list of requests reads many.

    Pages in a row that look alike are one entry, with their number first. A unit of
    user space stands there only where it is not one point.
    """
    fields = asdict(replace(inspection, pages=()))
    del fields["pages"]
    fields["page_runs"] = [
        [len(list(run)), box.x0, box.y0, box.x1, box.y1, box.rotate]
        + ([] if box.user_unit == 1 else [box.user_unit])
        for box, run in groupby(inspection.pages)
    ]
    fields["marks"] = [[mark.page, *mark.rect] for mark in inspection.marks]
    fields["findings"] = [finding.value for finding in inspection.findings]
    return fields


def inspection_from_json(fields: dict[str, Any]) -> Inspection:
    """Read back what `inspection_to_json` wrote."""
    return Inspection(
        size_bytes=fields["size_bytes"],
        pages=tuple(_pages(fields)),
        findings=tuple(FindingKind(word) for word in fields["findings"]),
        signatures=fields["signatures"],
        docmdp=fields["docmdp"],
        # Absent from what the first version stored.
        marks=tuple(
            SignatureMark(page, (x0, y0, x1, y1))
            for page, x0, y0, x1, y1 in fields.get("marks", ())
        ),
        signing=from_json(fields["signing"]) if "signing" in fields else SigningFacts(),
        inspector_version=fields["inspector_version"],
    )


def _pages(fields: dict[str, Any]) -> Iterator[PageBox]:
    """Every page's box; earlier versions stored each by itself."""
    runs: Sequence[Sequence[Any]] = (
        fields["page_runs"]
        if "page_runs" in fields
        else [[1, *box] for box in fields["pages"]]
    )
    for times, *box in runs:
        yield from repeat(PageBox(*box), times)


def repair_of(
    original_sha256: str | None, damage: Sequence[str] | None
) -> Repair | None:
    """How a document was repaired, if it was.

    Args:
        original_sha256: of the file as it came, hex; None: it was not repaired.
        damage: words of `Damage`; None likewise.
    """
    if original_sha256 is None or damage is None:
        return None
    return Repair(original_sha256, tuple(Damage(word) for word in damage))
