"""Every field of the signing command, read back from what was signed."""

from collections.abc import Callable
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


Seen = Callable[[Signed, TestPerson], object]
SEEN: dict[str, tuple[Seen, object]] = {
    "fontColor": (
        lambda signed, _: [round(part * 255) for part in signed.stamp.color],
        [0x0A, 0x64, 0xFF],
    ),
    "fontName": (lambda signed, _: signed.stamp.font.split("-")[0], "LiberationSans"),
    "fontSize": (lambda signed, _: signed.stamp.size / 1.5, pytest.approx(9)),
    "fontStyle": (lambda signed, _: signed.stamp.font.split("-")[1], "BoldItalic"),
    "page": (lambda signed, _: signed.stamp.page, 2),
    "x": (lambda signed, _: signed.stamp.x, pytest.approx(40, abs=0.01)),
    "y": (lambda signed, _: signed.stamp.y, pytest.approx(55, abs=0.01)),
    "zoomPercent": (
        lambda signed, person: signed.stamp.width / _width(person),
        pytest.approx(1, abs=0.0001),
    ),
    "restriccion": (lambda signed, _: docmdp(signed.pdf), 2),
    "solicitudId": (lambda signed, _: signed.pdf.startswith(signed.original), True),
    "password": (
        lambda signed, _: (signed.wrong_password.status_code, signed.answer["status"]),
        (403, "success"),
    ),
}
"""How each field is seen in what was signed, and what is to be seen."""


@pytest.mark.parametrize("field", ["solicitudId", *FIELDS, "password"])
def test_firmar_field(signed: Signed, signer: TestPerson, field: str) -> None:
    """The field does what the contract says it does.

    Source: spec "Signing command body".
    """
    see, expected = SEEN[field]

    assert see(signed, signer) == expected


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
    """Both x and y are given, or none of them."""
    request = appliance.new_request(signer, pdfs.one_page())

    for given, missing in (("x", "y"), ("y", "x")):
        answer = sign(client, signer, request, **{given: 10})
        assert problem(answer, 400, "FIELD_INVALID")["field"] == missing
