"""Reason, place, CUIL, QR code, logo, and the places that stamps find by themselves."""

import datetime as dt

import pytest
import segno
from hypothesis import given
from hypothesis import strategies as st

from appliance.appearance.content import new_code
from appliance.domain.appearance.characters import CHARACTERS
from appliance.domain.appearance.details import (
    CODE_CHARACTERS,
    CODE_LENGTH,
    CONTENT_AT_MOST,
    PLAIN,
    Logo,
    StampDetails,
    qr_modules,
    qr_version,
)
from appliance.domain.appearance.font_metrics import FONTS
from appliance.domain.appearance.geometry import as_seen, size_as_seen, to_user_space
from appliance.domain.appearance.stamp import (
    MIN_TEXT_PT,
    PADDING_PT,
    StampLayout,
    lay_out,
    natural_size,
)
from appliance.domain.appearance.text import StampSigner, mask_cuil, mask_name, wrap
from appliance.domain.documents.inspected import Inspection, PageBox, SignatureMark
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import FontName, FontStyle

AT = dt.datetime(2026, 11, 20, 17, 3, 11, tzinfo=dt.UTC)
ANA = StampSigner("Ana Núñez", "20267565393", "es")
A4 = PageBox(0, 0, 595, 842, 0)
QR = "https://firma.example/verificar/" + "0" * CODE_LENGTH
FULL = StampDetails(is_cuil_masked=True, qr=QR, logo=Logo("ab" * 32, 300, 100))
ROTATIONS = st.sampled_from([0, 90, 180, 270])
PAGES = st.builds(
    lambda x, y, width, height, rotate, unit: PageBox(
        x, y, x + width, y + height, rotate, unit
    ),
    st.floats(-500, 500),
    st.floats(-500, 500),
    st.floats(2, 3000),
    st.floats(2, 3000),
    ROTATIONS,
    st.sampled_from([1.0, 0.5, 2.0, 10.0]),
)


def document(page: PageBox, *marks: SignatureMark) -> Inspection:
    """A document of one page."""
    return Inspection(1000, (page,), (), len(marks), None, marks)


def laid(
    params: SignParameters,
    page: PageBox,
    details: StampDetails = PLAIN,
    marks: tuple[SignatureMark, ...] = (),
) -> StampLayout:
    """The layout, which must be one."""
    layout = lay_out(params, ANA, AT, document(page, *marks), details)
    assert layout is not None
    return layout


# -- words -------------------------------------------------------------------------


def test_reason_and_place_stand_before_the_time() -> None:
    """In Spanish for `es`; the other lines stay as they are."""
    lines = laid(SignParameters(reason="Conformidad", place="Rosario"), A4).lines

    assert lines == (
        "Firmado por",
        "Ana Núñez",
        "CUIL 20-26756539-3",
        "Motivo: Conformidad",
        "Lugar: Rosario",
        "20/11/2026 14:03 (UTC-3)",
    )


def test_reason_and_place_are_english_for_others() -> None:
    """As the other words."""
    signer = StampSigner("Ana", "20267565393", "en")
    params = SignParameters(reason="Approval", place="Rosario")

    layout = lay_out(params, signer, AT, document(A4))

    assert layout is not None
    assert layout.lines[3:5] == ("Reason: Approval", "Place: Rosario")


def test_long_reason_goes_on_in_another_line() -> None:
    """No line is wider than twenty times the font's size."""
    params = SignParameters(reason="lectura y conformidad " * 5)

    layout = laid(params, A4)

    metrics = FONTS[FontName.SERIF, FontStyle.PLAIN]
    assert len(layout.lines) > 5
    assert all(metrics.width(line) <= 20 for line in layout.lines)


@given(
    st.text(st.sampled_from(CHARACTERS[:200]), max_size=120).map(
        lambda text: " ".join(text.split(" "))
    ),
    st.floats(2, 30),
    st.sampled_from(sorted(FONTS)),
)
def test_wrapped_lines_are_narrow_and_lose_nothing(
    text: str, width: float, font: tuple[FontName, FontStyle]
) -> None:
    """Whatever the text, every line fits and every character is there."""
    lines = list(wrap(text, FONTS[font], width))

    assert all(FONTS[font].width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_masked_cuil_shows_three_digits() -> None:
    """Neither its kind nor its check digit."""
    assert mask_cuil("20267565393") == "••-•••••539-•"
    assert laid(SignParameters(), A4, FULL).lines[2] == "CUIL ••-•••••539-•"


def test_masked_name_shows_first_letters() -> None:
    """All words as long as each other."""
    assert mask_name("Ana María de los Ñandúes") == "A••• M••• d••• l••• Ñ•••"
    assert mask_name("") == ""


# -- parts -------------------------------------------------------------------------


def test_code_has_130_bits_and_no_ambiguous_letter() -> None:
    """And no two are alike."""
    codes = {new_code() for _ in range(100)}

    assert len(codes) == 100
    assert all(len(code) == CODE_LENGTH for code in codes)
    assert set("".join(codes)) <= set(CODE_CHARACTERS)
    assert len(CODE_CHARACTERS) == 32


@pytest.mark.parametrize("length", [1, 14, 15, 42, 58, 62, 84, 85, 152, 180, 213])
def test_version_is_what_the_library_makes(length: int) -> None:
    """The layout's size is that of the code which is drawn."""
    content = "a" * length

    made = segno.make_qr(content, error="m", mode="byte", boost_error=False)

    assert qr_version(content) == made.version
    assert qr_modules(content) == len(made.matrix)


def test_too_long_content_is_refused() -> None:
    """It cannot come from a setting that was checked."""
    with pytest.raises(ValueError, match="aaa"):
        qr_version("a" * (CONTENT_AT_MOST + 1))


def test_natural_size_without_details_is_as_ever() -> None:
    """Neither code nor logo: the widest line and the rows, and 12."""
    params = SignParameters()
    layout = laid(params, A4)

    plain = natural_size(layout.lines, params.font_name, params.font_style, 12)

    assert (layout.width, layout.height) == plain
    assert (layout.text_x, layout.text_y) == (PADDING_PT, PADDING_PT)


@given(
    page=PAGES,
    size=st.integers(4, 72),
    zoom=st.integers(10, 400),
    font=st.sampled_from(FontName),
    reason=st.none() | st.text(min_size=1, max_size=120),
    qr=st.none() | st.just(QR),
    logo=st.none()
    | st.builds(Logo, st.just("ab"), st.integers(1, 400), st.integers(1, 200)),
)
def test_nothing_spills_out_of_its_box_or_over_another_part(
    page: PageBox, size: int, zoom: int, font: FontName, reason: str | None,
    qr: str | None, logo: Logo | None,
) -> None:  # fmt: skip
    """Logo, text and code stand side by side, inside the stamp, and it on the page."""
    params = SignParameters(
        font_size=size, zoom_percent=zoom, font_name=font, reason=reason
    )

    layout = laid(params, page, StampDetails(qr=qr, logo=logo))

    metrics = FONTS[font, FontStyle.PLAIN]
    wide = max((metrics.width(line) for line in layout.lines), default=0)
    text_right = layout.text_x + wide * layout.font_size_pt
    text_bottom = layout.text_y + len(layout.lines) * 1.2 * layout.font_size_pt
    slack = 1e-6 * max(1, layout.width)
    assert page.x0 - 1e-3 <= layout.rect[0] < layout.rect[2] <= page.x1 + 1e-3
    assert page.y0 - 1e-3 <= layout.rect[1] < layout.rect[3] <= page.y1 + 1e-3
    if not layout.lines:
        assert layout.qr is None
        assert layout.logo is None
        return
    assert text_bottom <= layout.height + slack
    assert text_right <= layout.width + slack
    if layout.logo:
        assert layout.logo.x + layout.logo.width <= layout.text_x + slack
        assert layout.logo.y + layout.logo.height <= layout.height + slack
        ratio = layout.logo.width / layout.logo.height
        assert logo is not None
        assert ratio == pytest.approx(logo.width_px / logo.height_px)
    if layout.qr:
        assert text_right <= layout.qr.x + slack
        assert layout.qr.x + layout.qr.side <= layout.width + slack
        assert layout.qr.y + layout.qr.side <= layout.height + slack


def test_details_survive_storage() -> None:
    """And a plain stamp's are nothing."""
    assert StampDetails.from_json(FULL.to_json()) == FULL
    assert PLAIN.to_json() == {}
    assert StampDetails.from_json({}) == PLAIN


# -- places ------------------------------------------------------------------------


@given(PAGES, st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_box_as_seen_is_the_inverse_of_user_space(
    page: PageBox, left: float, top: float, right: float, bottom: float
) -> None:
    """There and back, at every rotation and unit."""
    x0, x1 = sorted((left * size_as_seen(page)[0], right * size_as_seen(page)[0]))
    y0, y1 = sorted((top * size_as_seen(page)[1], bottom * size_as_seen(page)[1]))

    rect = to_user_space(page, x0, y0, x1 - x0, y1 - y0)

    assert as_seen(page, rect) == pytest.approx((x0, y0, x1, y1), abs=1e-3)


def test_unit_of_user_space_counts_in_what_is_seen() -> None:
    """On a page of double units the stamp covers half as many of them."""
    layout = laid(SignParameters(x=20, y=30), PageBox(0, 0, 300, 400, 0, 2.0))

    assert (layout.width, layout.height) == (
        laid(SignParameters(x=20, y=30), A4).width,
        laid(SignParameters(x=20, y=30), A4).height,
    )
    x0, y0, x1, y1 = layout.rect
    assert (x0, y1) == (10, 385)
    assert (x1 - x0, y1 - y0) == pytest.approx((layout.width / 2, layout.height / 2))


# Six that show a QR code, which shrinks no further, need a page of 350 points.
@given(
    page=PAGES.filter(lambda page: min(size_as_seen(page)) > 350),
    count=st.integers(1, 6),
    qr=st.none() | st.just(QR),
)
def test_stamps_by_themselves_never_cover_one_another(
    page: PageBox, count: int, qr: str | None
) -> None:
    """As long as the page has room, however many signed before."""
    marks: tuple[SignatureMark, ...] = ()
    seen: list[tuple[float, float, float, float]] = []
    for _ in range(count):
        layout = laid(SignParameters(), page, StampDetails(qr=qr), marks)
        box = (
            layout.x, layout.y, layout.x + layout.width, layout.y + layout.height
        )  # fmt: skip
        assert layout.font_size_pt >= MIN_TEXT_PT
        assert not any(covers(box, other) for other in seen)
        seen.append(box)
        marks = (*marks, SignatureMark(1, layout.rect))


def covers(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether two boxes share an area, beyond rounding."""
    return (
        one[0] < other[2] - 1e-3 and other[0] < one[2] - 1e-3
        and one[1] < other[3] - 1e-3 and other[1] < one[3] - 1e-3
    )  # fmt: skip


def test_second_stamp_stands_beside_the_first() -> None:
    """Along the lower edge first; the third's row is above."""
    first = laid(SignParameters(), A4)
    marks = (SignatureMark(1, first.rect),)
    second = laid(SignParameters(), A4, marks=marks)
    fourth: tuple[SignatureMark, ...] = marks
    for _ in range(3):
        layout = laid(SignParameters(), A4, marks=fourth)
        fourth = (*fourth, SignatureMark(1, layout.rect))

    assert (second.x, second.y) == (first.x + first.width + 6, first.y)
    assert layout.x == first.x
    assert layout.y + layout.height + 6 == pytest.approx(first.y)


def test_mark_of_another_page_is_in_nobodys_way() -> None:
    """Only marks of its own page count."""
    marks = (SignatureMark(2, laid(SignParameters(), A4).rect),)

    assert laid(SignParameters(), A4, marks=marks) == laid(SignParameters(), A4)


def test_full_page_is_signed_all_the_same() -> None:
    """Where no place is left at any size, the corner is taken."""
    marks = (SignatureMark(1, (0, 0, 595, 842)),)

    assert laid(SignParameters(), A4, marks=marks) == laid(SignParameters(), A4)


def test_place_that_was_asked_for_is_taken_as_it_is() -> None:
    """Whoever names a place may cover what lies there."""
    params = SignParameters(x=18, y=700)
    marks = (SignatureMark(1, (0, 0, 595, 842)),)

    assert laid(params, A4, marks=marks) == laid(params, A4)
