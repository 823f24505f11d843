"""What the record keeps of a document's inspection, and reads back."""

import json
from dataclasses import replace
from typing import Any

from appliance.domain.documents.inspected import (
    EmptyField,
    FindingKind,
    Inspection,
    PageBox,
    SignatureMark,
    SigningFacts,
    inspection_from_json,
    inspection_to_json,
)

A4 = PageBox(0, 0, 595.28, 841.89, 0)
TURNED = replace(A4, rotate=90)
LARGE = PageBox(0, 0, 100, 200, 180, user_unit=2.5)
MIXED = Inspection(
    size_bytes=1234,
    pages=(A4, A4, TURNED, LARGE, LARGE, A4),
    findings=(FindingKind.JAVASCRIPT,),
    signatures=1,
    docmdp=2,
    marks=(SignatureMark(2, (1, 2, 3, 4)),),
    signing=SigningFacts(),
    inspector_version=5,
)


def stored(inspection: Inspection) -> dict[str, Any]:
    """What a database gives back."""
    kept: dict[str, Any] = json.loads(json.dumps(inspection_to_json(inspection)))
    return kept


def test_inspection_is_read_back_as_it_was() -> None:
    """Each page in its place, also where its neighbours look otherwise."""
    assert inspection_from_json(stored(MIXED)) == MIXED


def test_fields_are_read_back_with_what_their_locks_close() -> None:
    """Also where there is no lock, and as a version before kept them."""
    fields = (
        EmptyField("Firma", 1, (1.0, 2.0, 3.0, 4.0)),
        EmptyField("a.b", permits=2, locks=True, shuts=("Firma", "c")),
    )
    signing = SigningFacts(empty=fields, signed=("Firma-1",))
    inspection = replace(MIXED, signing=signing)

    kept = stored(inspection)

    assert inspection_from_json(kept) == inspection
    plain, locking = kept["signing"]["empty"]
    assert not {"permits", "locks", "shuts"} & plain.keys()
    del locking["shuts"]
    assert inspection_from_json(kept).signing.empty[1].shuts == ()


def test_pages_that_look_alike_are_kept_as_one() -> None:
    """A list of requests reads this of each document, of 5,000 pages too."""
    kept = stored(replace(MIXED, pages=(A4,) * 5000))

    assert kept["page_runs"] == [[5000, 0, 0, 595.28, 841.89, 0]]
    assert inspection_from_json(kept).pages == (A4,) * 5000


def test_pages_stored_each_by_itself_are_still_read() -> None:
    """As earlier versions did."""
    kept = stored(MIXED)
    del kept["page_runs"]
    kept["pages"] = [[0, 0, 595.28, 841.89, 90], [0, 0, 100, 200, 180, 2.5]]

    assert inspection_from_json(kept).pages == (TURNED, LARGE)
