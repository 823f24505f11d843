"""Size and place of the stamp, as pure arithmetic."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import pytest

from appliance.domain.appearance.font_metrics import FONTS
from appliance.domain.appearance.geometry import size_as_seen
from appliance.domain.appearance.stamp import (
    MIN_TEXT_PT,
    StampLayout,
    natural_size,
    parse_color,
    place,
    stamp_lines,
)
from appliance.domain.documents.inspected import PageBox
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import FontName, FontStyle

AT = dt.datetime(2026, 11, 20, 17, 3, 11, 999_999, tzinfo=dt.UTC)
A4 = PageBox(0, 0, 595, 842, 0)
LINES = ("Firmado por", "Ana", "CUIL 20-26756539-3", "20/11/2026 14:03 (UTC-3)")


def placed(
    params: SignParameters, *pages: PageBox, lines: tuple[str, ...] = LINES
) -> StampLayout:
    """The layout, which must be one."""
    layout = place(params, lines, pages or (A4,))
    assert layout is not None
    return layout


def test_lines_are_spanish_in_local_time_for_es() -> None:
    """Spanish words, the dashed CUIL, and the time of Buenos Aires with offset."""
    assert stamp_lines("Ana Núñez", "20267565393", AT, "es") == (
        "Firmado por",
        "Ana Núñez",
        "CUIL 20-26756539-3",
        "20/11/2026 14:03 (UTC-3)",
    )


def test_lines_are_english_with_the_year_first_for_en() -> None:
    """English words, and a date that is no other day for anybody."""
    lines = stamp_lines("Ana", "20267565393", AT, "en")

    assert (lines[0], lines[3]) == ("Signed by", "2026-11-20 14:03 (UTC-3)")


@pytest.mark.parametrize("locale", ["es", "en"])
def test_lines_say_nothing_of_the_law(locale: str) -> None:
    """No word claims what only the chain can tell."""
    text = " ".join(stamp_lines("Ana", "20267565393", AT, locale)).lower()

    assert "digital" not in text
    assert "electr" not in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Mari\u0301a Jose\u0301", "María José"),
        ("\u01f9a\u1e0b", "nad"),
        ("\ufb01n", "fin"),
        ("Ana\n\tNu\u00f1ez\u00a0 P\u00e9rez ", "Ana Nuñez Pérez"),
        ("Ana\u200bB\u00adC", "Ana B C"),
        ("\u0418\u0432\u0430\u043d", "????"),
        ("\u738b\U0001f600", "??"),
        ("O\u2019Higgins \u2013 \u20ac", "O\u2019Higgins \u2013 \u20ac"),
    ],
)
def test_name_is_shown_in_known_characters(name: str, shown: str) -> None:
    """What the fonts lack becomes a base form, a space or a question mark."""
    line = stamp_lines(name, "20267565393", AT, "es")[1]

    assert line == shown
    assert all(char in FONTS[FontName.SERIF, FontStyle.PLAIN].advances for char in line)


@pytest.mark.parametrize("font", FontName)
@pytest.mark.parametrize("style", FontStyle)
def test_digits_are_equally_wide(font: FontName, style: FontStyle) -> None:
    """So the time in a preview and in a signature makes the same size."""
    advances = FONTS[font, style].advances

    assert len({advances[digit] for digit in "0123456789"}) == 1


def test_natural_size_is_widest_line_and_rows() -> None:
    """Width = widest line + 12, height = lines * 1.2 * size + 12."""
    width, height = natural_size(
        ("iiii", "M"), FontName.MONOSPACED, FontStyle.PLAIN, 10
    )

    assert width == pytest.approx(4 * 1229 / 2048 * 10 + 12)
    assert height == pytest.approx(2 * 1.2 * 10 + 12)


@pytest.mark.parametrize(
    ("text", "rgb"),
    [
        ("BLACK", (0, 0, 0)),
        ("WHITE", (1, 1, 1)),
        ("ORANGE", (1, 200 / 255, 0)),
        ("DARK_GRAY", (64 / 255, 64 / 255, 64 / 255)),
        ("#FF8000", (1, 128 / 255, 0)),
        ("#ff8000", (1, 128 / 255, 0)),
    ],
)
def test_color_is_read(text: str, rgb: tuple[float, float, float]) -> None:
    """Names of java.awt.Color and #RRGGBB."""
    assert parse_color(text) == pytest.approx(rgb)


@pytest.mark.parametrize(
    "text",
    ["", "black", "TEAL", "#12345", "#1234567", "#GGGGGG", "123456", "#12345\u0661"],
)
def test_color_is_refused_when_unknown(text: str) -> None:
    """Anything else is FIELD_INVALID, with what is allowed."""
    with pytest.raises(FieldInvalidError) as caught:
        parse_color(text)

    assert caught.value.field == "fontColor"
    assert "BLACK" in str(caught.value.extras["allowed"])


def test_stamp_lies_where_asked_on_upright_page() -> None:
    """The fields count from the top left, the rectangle from the bottom left."""
    layout = placed(SignParameters(x=20, y=30))

    assert (layout.x, layout.y) == (20, 30)
    assert layout.rect == pytest.approx(
        (20, 842 - 30 - layout.height, 20 + layout.width, 842 - 30)
    )


@pytest.mark.parametrize(
    ("rotate", "corner"),
    [
        (0, lambda w, h: (120, 650 - h, 120 + w, 650)),
        (90, lambda w, h: (150, 220, 150 + h, 220 + w)),
        (180, lambda w, h: (480 - w, 250, 480, 250 + h)),
        (270, lambda w, h: (450 - h, 680 - w, 450, 680)),
    ],
)
def test_rectangle_follows_rotation_and_crop_box(
    rotate: int, corner: Callable[[float, float], tuple[float, ...]]
) -> None:
    """20 from the left and 50 from the top, as seen, of a box at (100, 200)."""
    page = PageBox(100, 200, 500, 700, rotate)

    layout = placed(SignParameters(x=20, y=50), page)

    assert layout.rect == pytest.approx(corner(layout.width, layout.height))
    assert layout.rotate == rotate


@pytest.mark.parametrize("zoom", [10, 50, 200, 400])
def test_zoom_scales_all_about_the_corner(zoom: int) -> None:
    """Size, text and padding scale; the corner stays."""
    page = PageBox(0, 0, 5000, 5000, 0)
    plain = placed(SignParameters(x=7, y=9), page)

    layout = placed(SignParameters(x=7, y=9, zoom_percent=zoom), page)

    assert (layout.x, layout.y) == (7, 9)
    factor = zoom / 100
    assert layout.width == pytest.approx(plain.width * factor)
    assert layout.height == pytest.approx(plain.height * factor)
    assert layout.font_size_pt == pytest.approx(12 * factor)
    assert (layout.text_x, layout.text_y) == pytest.approx((6 * factor, 6 * factor))


def test_stamp_may_touch_the_far_corner() -> None:
    """A stamp that ends exactly at the page's edge lies on the page."""
    width, height = natural_size(LINES, FontName.SERIF, FontStyle.PLAIN, 12)
    page = PageBox(0.1, 0.2, 0.1 + width + 33, 0.2 + height + 44, 0)

    layout = placed(SignParameters(x=33, y=44), page)

    assert layout.rect[1] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("x", "y"), [(-1, 0), (0, -1), (34, 44), (33, 45), (10**9, 0), (0, 10**9)]
)
@pytest.mark.parametrize("visible", [True, False])
def test_position_is_refused_when_off_the_page(
    x: int, y: int, *, visible: bool
) -> None:
    """Nothing is clamped; the answer has both boxes, shown or not."""
    width, height = natural_size(LINES, FontName.SERIF, FontStyle.PLAIN, 12)
    page = PageBox(0, 0, height + 44, width + 33, 90)

    with pytest.raises(ApplianceError) as caught:
        place(SignParameters(x=x, y=y, visible=visible), LINES, [page])

    assert caught.value.code is ErrorCode.POSITION_OUT_OF_PAGE
    stamp, seen = caught.value.extras["stamp"], caught.value.extras["page"]
    assert isinstance(stamp, dict)
    assert isinstance(seen, dict)
    assert (stamp["x"], stamp["y"]) == (x, y)
    assert stamp["width"] == pytest.approx(width, abs=0.01)
    assert (seen["x"], seen["y"]) == (0, 0)
    assert seen["width"] == pytest.approx(width + 33, abs=0.01)
    assert seen["height"] == pytest.approx(height + 44, abs=0.01)


@pytest.mark.parametrize(
    ("x", "y", "field", "is_both"),
    [(-1, 0, "x", False), (0, 10**6, "y", False), (-1, 10**6, "x", True)],
)
def test_refused_position_says_what_both_may_be(
    x: int, y: int, field: str, *, is_both: bool
) -> None:
    """The first that is wrong is named; where both are, the sentence has both."""
    width, height = natural_size(LINES, FontName.SERIF, FontStyle.PLAIN, 12)
    page = PageBox(0, 0, width + 33, height + 44, 0)

    with pytest.raises(ApplianceError) as caught:
        place(SignParameters(x=x, y=y), LINES, [page])

    error = caught.value
    assert error.extras["field"] == field
    assert error.extras["allowed"] == ["0..33" if field == "x" else "0..44"]
    told = error.told(error.sentence)
    assert ("x must be within 0..33, and y within 0..44" in told) is is_both


def test_boxes_of_a_refusal_lead_to_a_place_that_fits() -> None:
    """Moved by the numbers of the answer, the stamp is accepted."""
    with pytest.raises(ApplianceError) as caught:
        place(SignParameters(x=590, y=840), LINES, [A4])
    stamp, page = caught.value.extras["stamp"], caught.value.extras["page"]
    assert isinstance(stamp, dict)
    assert isinstance(page, dict)

    layout = placed(
        SignParameters(
            x=int(page["width"] - stamp["width"]),
            y=int(page["height"] - stamp["height"]),
        )
    )

    assert layout.x + layout.width <= size_as_seen(A4)[0]


@pytest.mark.parametrize("page", [0, -1, 3])
@pytest.mark.parametrize("visible", [True, False])
def test_page_is_refused_when_out_of_range(page: int, *, visible: bool) -> None:
    """Past the end, or before the start, shown or not."""
    with pytest.raises(ApplianceError) as caught:
        place(SignParameters(page=page, visible=visible), LINES, [A4, A4])

    assert caught.value.code is ErrorCode.PAGE_OUT_OF_RANGE
    assert caught.value.params == {"page": page, "pages": 2}


def test_stamp_lies_on_the_asked_page() -> None:
    """Each page has its own box."""
    small = PageBox(0, 0, 300, 200, 0)

    layout = placed(SignParameters(page=2, x=0, y=0), A4, small)

    assert layout.page == 2
    assert layout.rect[3] == 200


@pytest.mark.parametrize(("x", "y", "field"), [(None, 5, "x"), (5, None, "y")])
def test_x_and_y_come_together(x: int | None, y: int | None, field: str) -> None:
    """One alone is FIELD_INVALID and names the missing one."""
    with pytest.raises(FieldInvalidError) as caught:
        place(SignParameters(x=x, y=y), LINES, [A4])

    assert caught.value.field == field


@pytest.mark.parametrize("color", ["#000", "MAUVE"])
def test_color_is_checked_when_invisible(color: str) -> None:
    """An invisible signature's fields are checked too."""
    with pytest.raises(FieldInvalidError):
        place(SignParameters(visible=False, font_color=color), LINES, [A4])


def test_there_is_no_layout_when_invisible() -> None:
    """Checked, and then unused."""
    params = SignParameters(visible=False, x=5, y=5)

    assert place(params, LINES, [A4]) is None


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_automatic_place_is_bottom_left_at_natural_size(rotate: int) -> None:
    """With room enough the size is natural and a margin is kept."""
    layout = placed(SignParameters(), PageBox(0, 0, 842, 595, rotate))

    seen_height = 842 if rotate in (90, 270) else 595
    assert layout.x == 18
    assert layout.y + layout.height == pytest.approx(seen_height - 18)
    assert (layout.width, layout.height) == natural_size(
        LINES, FontName.SERIF, FontStyle.PLAIN, 12
    )


def test_automatic_place_honours_zoom_and_size() -> None:
    """Placed by itself, the stamp is still as large as asked."""
    layout = placed(SignParameters(zoom_percent=200, font_size=8))

    assert layout.font_size_pt == 16


def test_automatic_place_scales_down_to_fit() -> None:
    """On a narrow page all shrinks alike, and the text stays."""
    natural = natural_size(LINES, FontName.SERIF, FontStyle.PLAIN, 12)

    layout = placed(SignParameters(), PageBox(0, 0, 100, 300, 0))

    assert layout.lines == LINES
    assert layout.width == pytest.approx(100 - 2 * layout.x)
    assert layout.width / layout.height == pytest.approx(natural[0] / natural[1])
    assert 12 > layout.font_size_pt >= MIN_TEXT_PT
    assert layout.text_x == pytest.approx(layout.font_size_pt / 2)


@pytest.mark.parametrize("side", [0.5, 1, 3, 10, 40])
def test_automatic_place_drops_text_on_tiny_pages(side: float) -> None:
    """Where the text would be under 4 pt there is only the box, on the page."""
    page = PageBox(-1, -1, side - 1, side - 1, 0)

    layout = placed(SignParameters(), page)

    assert layout.lines == ()
    assert 0 < layout.width < side
    assert 0 < layout.height < side
    assert layout.rect[0] >= page.x0
    assert layout.rect[3] <= page.y1


def test_small_text_stays_when_it_was_asked_for() -> None:
    """The limit of 4 pt is for scaling down, not for the signer's own zoom."""
    layout = placed(SignParameters(zoom_percent=10))

    assert layout.font_size_pt == pytest.approx(1.2)
    assert layout.lines == LINES


def test_long_name_fits_by_itself() -> None:
    """A name wider than the page is scaled down, not cut."""
    lines = (LINES[0], "Nombre " * 30, *LINES[2:])

    layout = placed(SignParameters(), lines=lines)

    assert layout.x + layout.width <= size_as_seen(A4)[0]
    assert layout.lines in {lines, ()}


def test_every_box_is_inverted_by_its_rotation() -> None:
    """A stamp as large as the page fills the whole CropBox at any rotation."""
    width, height = natural_size(LINES, FontName.SERIF, FontStyle.PLAIN, 12)
    upright = PageBox(5, 6, 5 + width, 6 + height, 0)
    turned = PageBox(5, 6, 5 + height, 6 + width, 90)

    for page in (upright, replace(upright, rotate=180)):
        assert placed(SignParameters(x=0, y=0), page).rect == pytest.approx(
            (page.x0, page.y0, page.x1, page.y1)
        )
    for page in (turned, replace(turned, rotate=270)):
        assert placed(SignParameters(x=0, y=0), page).rect == pytest.approx(
            (page.x0, page.y0, page.x1, page.y1)
        )
