"""Places by name: always wholly on the page, always where they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.document import PageBox
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.presets import Corner, preset
from appliance.domain.stamp import place

LINES = ("Firmado por", "Ana Pérez", "CUIL 20-26756539-3", "2026-11-20 14:03:11 -03:00")
A4 = PageBox(0.0, 0.0, 595.0, 842.0, 0)
SHOWN = [corner for corner in Corner if corner is not Corner.NONE]


@pytest.mark.parametrize("corner", SHOWN)
@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_mark_lies_in_its_corner(corner: Corner, rotate: int) -> None:
    """Left or right, top or bottom, as the page is seen."""
    page = PageBox(10.0, 20.0, 605.0, 862.0, rotate)
    layout = place(preset(corner, 1, LINES, [page]), LINES, [page])
    assert layout is not None
    left = layout.x < page.width_pt / 2 - layout.width / 2
    top = layout.y < page.height_pt / 2 - layout.height / 2

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
    params = preset(corner, 1, LINES, [page])

    layout = place(params, LINES, [page])
    assert (layout is None) == (corner is Corner.NONE)


def test_small_page_scales_the_mark_down() -> None:
    """A mark that is larger than the page gets smaller, its text still readable."""
    page = PageBox(0.0, 0.0, 120.0, 60.0, 0)
    params = preset(Corner.TOP_RIGHT, 1, LINES, [page])

    assert 34 <= params.zoom_percent < 100


def test_tiny_page_leaves_the_mark_to_place_itself() -> None:
    """Where the text could not be read there is a mark without text."""
    page = PageBox(0.0, 0.0, 40.0, 30.0, 0)
    params = preset(Corner.TOP_RIGHT, 1, LINES, [page])
    layout = place(params, LINES, [page])

    assert (params.x, params.y) == (None, None)
    assert layout is not None
    assert layout.lines == ()


@pytest.mark.parametrize("page", [0, 2, -1])
@pytest.mark.parametrize("corner", [Corner.TOP_LEFT, Corner.NONE])
def test_page_past_the_end_is_refused(corner: Corner, page: int) -> None:
    """With and without a visible mark."""
    with pytest.raises(ApplianceError) as caught:
        preset(corner, page, LINES, [A4])

    assert caught.value.code is ErrorCode.PAGE_OUT_OF_RANGE
