"""The card: which words it sets how, how large it is, and when a stamp is one.

Source: docs/stamp.md "Two designs"; decisions "natural size of the stamp", "stamp".
"""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

import pytest

from appliance.appearance.content import Stamping
from appliance.domain.appearance.arrangement import arrange
from appliance.domain.appearance.details import (
    CODE_CHARACTERS,
    CODE_LENGTH,
    PLAIN,
    Logo,
    StampDetails,
)
from appliance.domain.appearance.font_metrics import FONTS
from appliance.domain.appearance.geometry import LINE_HEIGHT, Box, Parts
from appliance.domain.appearance.stamp import StampLayout, lay_out, natural_size
from appliance.domain.appearance.text import StampSigner, stamp_text
from appliance.domain.documents.inspected import (
    EmptyField,
    Inspection,
    PageBox,
    SigningFacts,
)
from appliance.domain.requests.preset import SignaturePreset, StampDefaults
from appliance.domain.sandbox.stamps import layout_from_json, layout_to_json
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import FontName, FontStyle, StampDesign
from appliance.settings import StampSettings

AT = dt.datetime(2026, 11, 20, 17, 3, tzinfo=dt.UTC)
WHO = StampSigner("María José Ñandú Güiráldez", "20267565393", "es")
LONG = replace(WHO, name="María de los Ángeles Guadalupe Núñez y " * 3)
CODE = "7K2M0Q9XWB4T8ZCJ5R1N6VDHPE"
ADDRESS = "https://firma.ejemplo.gob.ar/verificar"
CARD = StampDetails(design=StampDesign.CARD)
CODED = replace(CARD, qr=f"{ADDRESS}/{CODE}")
SAID = SignParameters(
    reason="Lectura y conformidad con el contrato de locación y sus anexos, " * 2,
    place="San Miguel de Tucumán",
)
LOGOS = (None, Logo("ab" * 32, 400, 100), Logo("ab" * 32, 50, 200))
SMALLEST_PT = 7.5
OF = GivenParameters.of


def card(
    details: StampDetails, who: StampSigner = WHO, params: SignParameters = SAID
) -> Parts:
    """The parts of a card at 100 %."""
    lines = stamp_text(params, who, AT, details)
    return arrange(lines, FontName.SERIF, FontStyle.PLAIN, 12, details)


def everything() -> Iterator[Parts]:
    """Cards with and without each part, of short and long words."""
    for details, logo, who, params in product(
        (CARD, CODED, replace(CODED, qr=f"https://{'x' * 90}.example/v/{CODE}")),
        LOGOS,
        (WHO, LONG, replace(WHO, locale="en")),
        (SAID, SignParameters()),
    ):
        yield card(replace(details, logo=logo), who, params)


def boxes(parts: Parts) -> list[Box]:
    """The boxes of the words, of the logo and of the QR code."""
    found = [
        (
            run.x,
            run.y,
            run.x + FONTS[run.font_name, run.font_style].width(run.text) * run.size,
            run.y + LINE_HEIGHT * run.size,
        )
        for run in parts.runs
    ]
    if (code := parts.qr) is not None:
        found.append((code.x, code.y, code.x + code.side, code.y + code.side))
    if (logo := parts.logo) is not None:
        found.append((logo.x, logo.y, logo.x + logo.width, logo.y + logo.height))
    return found


def test_nothing_lies_on_something_else_or_on_the_frame() -> None:
    """Whatever a card shows; the white of the QR code leaves the frame alone too."""
    for parts in everything():
        found = boxes(parts)
        assert all(
            x0 >= 1 and y0 >= 1 and x1 <= parts.width - 1 and y1 <= parts.height - 1
            for x0, y0, x1, y1 in found
        )
        for at, one in enumerate(found):
            for other in found[at + 1 :]:
                assert (
                    one[2] <= other[0] + 1e-6
                    or other[2] <= one[0] + 1e-6
                    or one[3] <= other[1] + 1e-6
                    or other[3] <= one[1] + 1e-6
                ), (one, other)


def test_words_are_sans_serif_and_ordered_by_size() -> None:
    """The name first; nothing is smaller than 7.5 pt; the code is monospaced."""
    for parts in everything():
        assert min(run.size for run in parts.runs) == parts.text_pt == SMALLEST_PT
        assert {run.font_name for run in parts.runs} <= {
            FontName.SANS_SERIF,
            FontName.MONOSPACED,
        }
        name = max(parts.runs, key=lambda run: run.size)
        assert name.font_style is FontStyle.BOLD
        assert all(one.y < other.y for one, other in pairwise(parts.runs))


def test_code_stands_in_letters_beside_its_qr_code() -> None:
    """With the page that it is typed into; without a QR code there is neither."""
    *_, page, code = stamp_text(SAID, WHO, AT, CODED)

    assert page == "Verificá en firma.ejemplo.gob.ar/verificar"
    assert code == "7K2M-0Q9X-WB4T-8ZCJ-5R1N-6VDH-PE"
    assert code.replace("-", "") == CODE
    assert [run.text for run in card(CODED).runs][-1] == code
    english = stamp_text(SAID, replace(WHO, locale="en"), AT, CODED)
    assert english[-2] == "Verify at firma.ejemplo.gob.ar/verificar"
    plain = stamp_text(SAID, WHO, AT, CARD)
    assert plain[-1] == "20/11/2026 14:03 (UTC-3)"
    assert not any("Verific" in line for line in plain)


def test_size_depends_on_neither_code_nor_time() -> None:
    """A preview shows a sample of a code; what is signed is as large."""
    usual = card(CODED)
    for letter in CODE_CHARACTERS:
        other = card(replace(CODED, qr=f"{ADDRESS}/{letter * CODE_LENGTH}"))
        assert (other.width, other.height) == (usual.width, usual.height)
    for hour in range(24):
        lines = stamp_text(SAID, WHO, AT.replace(hour=hour), CODED)
        size = natural_size(lines, FontName.MONOSPACED, FontStyle.BOLD, 40, CODED)
        assert size == (usual.width, usual.height)


def laid(
    details: StampDetails, page: PageBox, params: SignParameters = SAID
) -> StampLayout:
    """The layout on a page of one document, with a field of 150 by 40 points."""
    field = EmptyField("Firma", 1, (10.0, 10.0, 160.0, 50.0))
    facts = SigningFacts(empty=(field,))
    found = lay_out(
        params, WHO, AT, Inspection(1, (page,), (), 0, None, signing=facts), details
    )
    assert found is not None
    return found


def test_small_places_get_less_and_stay_legible() -> None:
    """First the logo goes, then the code; the words of who signs are the last."""
    full = replace(CODED, logo=LOGOS[1])
    params = SignParameters()
    shown = []
    for side in (500, 330, 230, 150, 90, 45, 20):
        layout = laid(full, PageBox(0, 0, side, side, 0), params)
        shown.append(
            (layout.logo is not None, layout.qr is not None, bool(layout.runs))
        )
        assert not layout.runs or layout.font_size_pt >= 4
        assert (layout.lines == ()) == (layout.runs == ())
        assert ("Verificá" in " ".join(layout.lines)) == (layout.qr is not None)

    assert shown == sorted(shown, reverse=True)
    assert shown[0] == (True, True, True)
    assert shown[-1] == (False, False, False)
    assert {(False, True, True), (False, False, True)} <= set(shown)
    in_field = laid(full, PageBox(0, 0, 595, 842, 0), replace(params, field="Firma"))
    assert (in_field.qr, bool(in_field.runs)) == (None, True)


def test_place_and_zoom_count_for_a_card_as_for_any_stamp() -> None:
    """Its top left is at x and y; zoomPercent scales all of it."""
    page = PageBox(0, 0, 595, 842, 0)
    whole = laid(CODED, page, replace(SAID, x=30, y=40))
    half = laid(CODED, page, replace(SAID, x=30, y=40, zoom_percent=50))

    assert (whole.x, whole.y) == (half.x, half.y) == (30, 40)
    assert (half.width, half.height) == pytest.approx(
        (whole.width / 2, whole.height / 2)
    )
    assert half.runs[0].size == pytest.approx(whole.runs[0].size / 2)


def test_card_is_recorded_and_sent_to_the_sandbox_as_it_is() -> None:
    """A stamp of before says nothing of a design, and is classic."""
    layout = laid(replace(CODED, logo=LOGOS[1]), PageBox(0, 0, 595, 842, 90))

    assert layout_from_json(json.loads(json.dumps(layout_to_json(layout)))) == layout
    assert StampDetails.from_json(CODED.to_json()) == CODED
    assert CODED.to_json()["design"] == "card"
    assert "design" not in PLAIN.to_json()
    assert StampDetails.from_json({}).design is StampDesign.CLASSIC


AS_CARD = StampSettings(design=StampDesign.CARD, qr=True)
USUAL = StampDefaults(StampDesign.CARD, qr=True)
CLASSIC = replace(USUAL, design=StampDesign.CLASSIC)
LOOKS = (
    OF(font_name=FontName.SERIF),
    OF(font_size=12),
    OF(font_style=FontStyle.PLAIN),
    OF(font_color="BLACK"),
)
PLACES = (OF(), OF(page=2), OF(x=1, y=1), OF(zoom_percent=50), OF(field="Firma"))


@pytest.mark.parametrize("preset", [None, SignaturePreset(OF(), defaults=USUAL)])
def test_whoever_names_the_font_gets_what_the_contract_says(
    preset: SignaturePreset | None,
) -> None:
    """Also by the value that is the default; a place alone changes nothing."""
    stamping = Stamping(AS_CARD, ADDRESS)

    for given in LOOKS:
        assert stamping.defaults(given, preset) == CLASSIC
    for given in PLACES:
        assert stamping.defaults(given, preset) == USUAL
    usual = Stamping(StampSettings(), ADDRESS)
    assert usual.defaults(OF()) == StampDefaults(StampDesign.CLASSIC, qr=False)


def test_request_keeps_the_stamp_that_its_place_was_looked_at_with() -> None:
    """Whatever the settings have become; one of an earlier version is classic."""
    before, after = StampSettings(), AS_CARD
    made = Stamping(before, ADDRESS).defaults(OF())
    kept = SignaturePreset(OF(x=1, y=1), fixed=True, defaults=made)
    read = SignaturePreset.from_json(json.loads(json.dumps(kept.to_json())))
    older = SignaturePreset(OF(x=1, y=1))

    stamping = Stamping(after, ADDRESS)

    assert read == kept
    assert stamping.defaults(OF(), read) == made
    assert stamping.defaults(OF(), older) == CLASSIC
    assert SignaturePreset.from_json(older.to_json()) == older
    assert "defaults" not in read.to_wire()
    for look in LOOKS:
        assert stamping.defaults(OF(), SignaturePreset(look, defaults=USUAL)) == CLASSIC


def test_fixed_look_is_kept_by_a_call_that_repeats_the_defaults() -> None:
    """A client that sends all fields of the contract signs what was asked for."""
    stamping = Stamping(AS_CARD, ADDRESS)
    fixed = SignaturePreset(OF(x=1, y=1), fixed=True, defaults=USUAL)

    for given in LOOKS:
        fixed.check(given)
        assert stamping.defaults(given, fixed) == USUAL
