"""Places by name: always wholly on the page, always where they say."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.appearance.geometry import size_as_seen
from appliance.domain.appearance.presets import Corner, preset
from appliance.domain.appearance.stamp import StampLayout, lay_out
from appliance.domain.appearance.text import StampSigner
from appliance.domain.documents.inspected import Inspection, PageBox, SignatureMark
from appliance.domain.errors import ApplianceError, ErrorCode

ANA = StampSigner("Ana Pérez", "20267565393", "es")
AT = dt.datetime(2026, 11, 20, 17, 3, 11, tzinfo=dt.UTC)
A4 = PageBox(0.0, 0.0, 595.0, 842.0, 0)


def document(page: PageBox, *marks: SignatureMark) -> Inspection:
    """A document of one page."""
    return Inspection(1000, (page,), (), len(marks), None, marks)


def shown(corner: Corner, page: PageBox, *marks: SignatureMark) -> StampLayout | None:
    """The mark as firmar lays it out."""
    inspected = document(page, *marks)
    params = preset(corner, 1, ANA, AT, inspected)
    return lay_out(params, ANA, AT, inspected)


SHOWN = [corner for corner in Corner if corner is not Corner.NONE]


@pytest.mark.parametrize("corner", SHOWN)
@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_mark_lies_in_its_corner(corner: Corner, rotate: int) -> None:
    """Left or right, top or bottom, as the page is seen."""
    page = PageBox(10.0, 20.0, 605.0, 862.0, rotate)
    layout = shown(corner, page)
    assert layout is not None
    left = layout.x < size_as_seen(page)[0] / 2 - layout.width / 2
    top = layout.y < size_as_seen(page)[1] / 2 - layout.height / 2

    assert left == corner.value.endswith("Left")
    assert top == corner.value.startswith("top")


@given(
    corner=st.sampled_from(list(Corner)),
    width=st.floats(10, 5000),
    height=st.floats(10, 5000),
    rotate=st.sampled_from([0, 90, 180, 270]),
)
def test_mark_lies_wholly_on_any_page(
    corner: Corner, width: float, height: float, rotate: int
) -> None:
    """Whatever the page's size, firmar's own rule takes the place."""
    page = PageBox(0.0, 0.0, width, height, rotate)
    layout = shown(corner, page)

    assert (layout is None) == (corner is Corner.NONE)


def test_small_page_scales_the_mark_down() -> None:
    """A mark that is larger than the page gets smaller, its text still readable."""
    page = PageBox(0.0, 0.0, 120.0, 60.0, 0)
    params = preset(Corner.TOP_RIGHT, 1, ANA, AT, document(page))

    assert 34 <= params.zoom_percent < 100


def test_tiny_page_leaves_the_mark_to_place_itself() -> None:
    """Where the text could not be read there is a mark without text."""
    page = PageBox(0.0, 0.0, 40.0, 30.0, 0)
    params = preset(Corner.TOP_RIGHT, 1, ANA, AT, document(page))
    layout = shown(Corner.TOP_RIGHT, page)

    assert (params.x, params.y) == (None, None)
    assert layout is not None
    assert layout.lines == ()


@pytest.mark.parametrize("page", [0, 2, -1])
@pytest.mark.parametrize("corner", [Corner.TOP_LEFT, Corner.NONE])
def test_page_past_the_end_is_refused(corner: Corner, page: int) -> None:
    """With and without a visible mark."""
    with pytest.raises(ApplianceError) as caught:
        preset(corner, page, ANA, AT, document(A4))

    assert caught.value.code is ErrorCode.PAGE_OUT_OF_RANGE


@pytest.mark.parametrize("corner", SHOWN)
@pytest.mark.parametrize("rotate", [0, 90])
def test_marks_in_one_corner_never_cover_each_other(
    corner: Corner, rotate: int
) -> None:
    """Six people who all pick the same corner stand side by side, then in rows."""
    page = PageBox(10.0, 20.0, 605.0, 862.0, rotate)
    marks: list[SignatureMark] = []
    for _ in range(6):
        layout = shown(corner, page, *marks)
        assert layout is not None
        assert layout.font_size_pt == 12
        for mark in marks:
            assert not overlap(mark.rect, layout.rect)
        marks.append(SignatureMark(1, layout.rect))


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether two rectangles share an area."""
    return (
        one[0] < other[2] and other[0] < one[2] and one[1] < other[3]
        and other[1] < one[3]
    )  # fmt: skip
