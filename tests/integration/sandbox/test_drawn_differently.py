"""Content that common programs draw differently is told, and other content is not.

Source: docs/documents.md "What each program draws in its own way".
"""

import io

import pikepdf
import pytest

from appliance.domain.documents.inspected import FindingKind
from tests.support.documents import drawn_differently_pdfs as drawn
from worker.sandbox.inspect import drawn_differently
from worker.sandbox.inspect.content_grammar import ContentReading
from worker.sandbox.inspect.drawn_differently import find_drawn_differently
from worker.sandbox.inspection import inspect

TOLD = FindingKind.DRAWN_DIFFERENTLY


@pytest.mark.parametrize("kind", drawn.DIFFERENT)
def test_what_programs_draw_differently_is_told(kind: str) -> None:
    """Tokens, operators, resources, images and annotations."""
    assert TOLD in inspect(drawn.DIFFERENT[kind], 1).findings


@pytest.mark.parametrize("kind", drawn.ALIKE)
def test_what_programs_draw_alike_is_not_told(kind: str) -> None:
    """Each case beside one that is told."""
    assert TOLD not in inspect(drawn.ALIKE[kind], 1).findings


def _found(pdf: bytes) -> set[FindingKind]:
    with pikepdf.open(io.BytesIO(pdf), suppress_warnings=True) as opened:
        return find_drawn_differently(opened)


def test_more_content_than_is_read_is_unexamined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of bytes, and of time."""
    pdf = drawn.ALIKE["form"]

    monkeypatch.setattr(drawn_differently, "_MOST_BYTES", 20)
    assert _found(pdf) == {FindingKind.UNEXAMINED_PARTS}
    monkeypatch.undo()
    monkeypatch.setattr(drawn_differently, "_CPU_S", 0)
    assert _found(pdf) == {FindingKind.UNEXAMINED_PARTS}
    monkeypatch.undo()
    assert _found(pdf) == set()


@pytest.mark.parametrize("cut", range(1, len(drawn.TEXT.split()) - 1))
def test_statement_over_two_streams_is_not_plain(cut: int) -> None:
    """Programs differ in what they put between two streams."""
    words = drawn.TEXT.split()
    parts = [b" ".join(words[:cut]), b" ".join(words[cut:])]
    is_whole = words[cut - 1].isalpha()

    assert ContentReading(parts).is_plain == is_whole


@pytest.mark.parametrize(
    "unit",
    [b"(", b"[1 ", b"(\\1", b"<<", b"/a ", b"1 ", b"BI ", b"BI ID ", b"<4", b"[(a)"],
)
def test_what_is_never_closed_is_given_up_at_once(unit: bytes) -> None:
    """However long it is, no byte is read again and again."""
    assert not ContentReading([unit * 500_000]).is_plain


def test_names_are_those_of_statements() -> None:
    """Not of strings, comments, properties or images."""
    content = (
        b"/A gs (/B gs) Tj % /C gs\n/D <</E /F>> BDC BI /W 1/H 1/CS/G/BPC 8 ID x EI "
        b"/Fm Do /F1 9 Tf /Pattern cs .5 /P scn /DeviceRGB CS /Own cs"
    )

    assert ContentReading([content]).names == {
        ("/ExtGState", "/A"),
        ("/XObject", "/Fm"),
        ("/Font", "/F1"),
        ("/Pattern", "/P"),
        ("/ColorSpace", "/Own"),
    }
