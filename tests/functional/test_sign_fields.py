"""Every field of the signing command, read back from what was signed."""

from dataclasses import dataclass

import httpx
import pytest

from appliance.domain.stamp import natural_size, stamp_lines
from appliance.domain.vocab import FontName, FontStyle
from tests import pdfs
from tests.functional.calls import (
    Stamp,
    docmdp,
    problem,
    read_stamp,
    sign,
    signed_pdf,
)
from tests.parts.appliance import Appliance, TestPerson
from tests.tools.pdf_samples import SIGNED_AT

FIELDS = {
    "fontColor": "#0A64FF",
    "fontName": "SansSerif",
    "fontSize": 9,
    "fontStyle": "BOLD_ITALIC",
    "page": 2,
    "x": 40,
    "y": 55,
    "zoomPercent": 150,
    "restriccion": "FORM_FILLING",
}
"""No default among them."""


@dataclass(frozen=True, slots=True)
class Signed:
    """What one call with all eleven fields gave."""

    original: bytes
    answer: dict[str, object]
    pdf: bytes
    stamp: Stamp
    wrong_password: httpx.Response


@pytest.fixture(scope="module")
def signed(appliance: Appliance, signer: TestPerson, client: httpx.Client) -> Signed:
    """One of two pending requests, signed with every field."""
    original = pdfs.pages(3, "Este")
    appliance.new_request(signer, pdfs.pages(3, "Otro"))
    request = appliance.new_request(signer, original)
    appliance.new_request(signer, pdfs.pages(3, "Ninguno"))
    wrong = sign(client, signer, request, **FIELDS, password="no es la clave")
    answer = sign(client, signer, request, **FIELDS)
    assert answer.status_code == 200, answer.text
    pdf = httpx.get(answer.json()["documentoFirmado"]).content
    stamp = read_stamp(pdf)
    assert stamp is not None
    return Signed(original, answer.json(), pdf, stamp, wrong)


def _width(person: TestPerson) -> float:
    lines = stamp_lines(person.name, person.cuil, SIGNED_AT, "es")
    return natural_size(lines, FontName.SANS_SERIF, FontStyle.BOLD_ITALIC, 9)[0] * 1.5


@pytest.mark.parametrize("field", ["solicitudId", *FIELDS, "password"])
def test_firmar_field(signed: Signed, signer: TestPerson, field: str) -> None:
    """The field does what the contract says it does.

    Source: spec "Signing command body".
    """
    stamp = signed.stamp
    match field:
        case "solicitudId":
            assert signed.pdf.startswith(signed.original)
        case "fontColor":
            assert stamp.color == pytest.approx((10 / 255, 100 / 255, 1), abs=0.001)
        case "fontName":
            assert stamp.font.startswith("LiberationSans")
        case "fontSize":
            assert stamp.size / 1.5 == pytest.approx(9)
        case "fontStyle":
            assert stamp.font.endswith("-BoldItalic")
        case "page":
            assert stamp.page == 2
        case "x":
            assert stamp.x == pytest.approx(40, abs=0.01)
        case "y":
            assert stamp.y == pytest.approx(55, abs=0.01)
        case "zoomPercent":
            assert stamp.width == pytest.approx(_width(signer), abs=0.01)
            assert stamp.size == pytest.approx(9 * 1.5)
        case "restriccion":
            assert docmdp(signed.pdf) == 2
        case "password":
            members = problem(signed.wrong_password, 403, "SIGN_PASSWORD_WRONG")
            assert members["attemptsLeft"] == 9
            assert signed.answer["status"] == "success"
        case _:
            raise AssertionError(field)


def test_stamp_is_hidden_when_not_visible(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """`visible: false` signs without a stamp, its fields checked all the same."""
    request = appliance.new_request(signer, pdfs.one_page())

    refused = sign(client, signer, request, visible=False, fontName="Comic")
    pdf = signed_pdf(client, signer, request, visible=False, fontName="Serif")

    problem(refused, 400, "FIELD_INVALID")
    assert read_stamp(pdf) is None


def test_stamp_is_placed_by_itself_without_x_and_y(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """Bottom left, also on a page that the stamp only fits scaled down."""
    wide = appliance.new_request(signer, pdfs.one_page())
    narrow = appliance.new_request(signer, pdfs.sized(120, 200))

    usual = read_stamp(signed_pdf(client, signer, wide))
    small = read_stamp(signed_pdf(client, signer, narrow))

    assert usual is not None
    assert small is not None
    assert usual.size == 12
    assert (usual.x, usual.y + usual.height) == pytest.approx((18, 842 - 18))
    assert 4 <= small.size < 12
    assert small.x + small.width <= 120


def test_one_coordinate_alone_refused(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """x and y come together or not at all."""
    request = appliance.new_request(signer, pdfs.one_page())

    for given, missing in (("x", "y"), ("y", "x")):
        answer = sign(client, signer, request, **{given: 10})
        assert problem(answer, 400, "FIELD_INVALID")["field"] == missing
