"""Every field of the signing command, read back from what was signed."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pikepdf
import pytest
from PIL import Image

from appliance.domain.appearance.stamp import natural_size, stamp_lines
from appliance.domain.vocab import FontName, FontStyle
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    Stamp,
    docmdp,
    problem,
    read_stamp,
    sign,
    signed_pdf,
)
from tests.support.browsers.qr_codes import scanned
from tests.support.documents import pdfs
from tests.support.documents.pdf_samples import SIGNED_AT
from tests.support.patience import CALL_S

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
    pdf = httpx.get(answer.json()["documentoFirmado"], timeout=CALL_S).content
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


def field_of(pdf: bytes) -> tuple[str, pikepdf.Dictionary]:
    """What the first signature field says aloud, and its signature."""
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        field = opened.Root.AcroForm.Fields[0]
        signature = {str(k): str(v) for k, v in field.V.items() if k != "/Contents"}
        return str(field.TU), pikepdf.Dictionary(signature)


def test_stamp_shows_reason_place_code_and_logo(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, tmp_path: Path
) -> None:
    """The further fields; the code's page tells what anybody may know."""
    picture = tmp_path / "logo.png"
    Image.new("RGB", (300, 100), (200, 30, 30)).save(picture)
    assert appliance.rubrica("logo", "set", str(picture)).returncode == 0
    request = appliance.new_request(signer, pdfs.one_page())
    fields: dict[str, object] = {
        "motivo": "Conformidad", "lugar": "Rosario", "cuil": "ENMASCARADO", "qr": True,
    }  # fmt: skip

    told = client.post(f"/solicitudes/{request}/vista-previa", json=fields).json()
    answer = sign(client, signer, request, **fields)
    again = sign(client, signer, request, **fields)
    other = sign(client, signer, request, **{**fields, "logo": False})
    pdf = httpx.get(answer.json()["documentoFirmado"], timeout=CALL_S).content
    assert appliance.rubrica("logo", "clear").returncode == 0

    masked = "CUIL \u2022\u2022-\u2022\u2022\u2022\u2022\u2022"
    assert told["sello"]["texto"][2].startswith(masked)
    assert told["sello"]["texto"][3:5] == ["Motivo: Conformidad", "Lugar: Rosario"]
    stamp = read_stamp(pdf)
    assert stamp is not None
    assert (stamp.width, stamp.height) == pytest.approx(
        (told["sello"]["ancho"], told["sello"]["alto"]), abs=0.01
    )
    assert again.json()["sha256"] == answer.json()["sha256"]
    problem(other, 409, "ALREADY_SIGNED")
    said, signature = field_of(pdf)
    said_in = {name: str(signature[name]) for name in ("/Reason", "/Location")}
    assert said_in == {"/Reason": "Conformidad", "/Location": "Rosario"}
    address = said.rsplit(", ", 1)[1]
    assert address.startswith(f"{appliance.base_url}/verificar/")
    assert scanned(pdf) == address
    page = httpx.get(address.lower(), timeout=CALL_S)
    assert page.status_code == 200
    assert page.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert answer.json()["sha256"] in page.text
    assert signer.name not in page.text
    assert signer.cuil not in page.text
    assert "contrato" not in page.text


@pytest.mark.parametrize("code", ["0" * 26, "7", "\u00f1" * 26, "A" * 300])
def test_code_of_nothing_is_not_found(client: httpx.Client, code: str) -> None:
    """As a page, whatever was typed."""
    page = client.get(f"/verificar/{code}", headers={"Accept-Language": "es"})

    assert page.status_code == 404
    assert "no se firm\u00f3 nada" in page.text


def test_second_signer_does_not_cover_the_first(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """Nobody named a place; both marks are seen."""
    first = signed_pdf(client, signer, appliance.new_request(signer, pdfs.one_page()))

    second = signed_pdf(client, signer, appliance.new_request(signer, first))

    with pikepdf.open(io.BytesIO(second)) as opened:
        one, two = (
            [float(side) for side in annotation.Rect]
            for annotation in opened.pages[0].Annots
        )
    assert two[0] == pytest.approx(one[2] + 6, abs=0.01)
    assert two[1] == pytest.approx(one[1], abs=0.01)
