"""`POST /solicitudes/firmar`: values, bounds, what is required, what is answered."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pikepdf
import pytest
from asn1crypto import x509

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    docmdp,
    problem,
    read_stamp,
    sign,
    signed_pdf,
    state_of,
)
from tests.support.documents import pdfs
from tests.support.documents.validators import pyhanko_verdicts
from tests.support.hsm.softhsm import SoftHsm
from tests.support.patience import CALL_S

LIBERATION = {
    "Serif": "LiberationSerif",
    "SansSerif": "LiberationSans",
    "Monospaced": "LiberationMono",
}
STYLES = {
    "PLAIN": {"", "-Regular"},
    "BOLD": {"-Bold"},
    "ITALIC": {"-Italic"},
    "BOLD_ITALIC": {"-BoldItalic"},
}
COLORS = {
    "BLACK": (0, 0, 0),
    "BLUE": (0, 0, 255),
    "CYAN": (0, 255, 255),
    "DARK_GRAY": (64, 64, 64),
    "GRAY": (128, 128, 128),
    "GREEN": (0, 255, 0),
    "LIGHT_GRAY": (192, 192, 192),
    "MAGENTA": (255, 0, 255),
    "ORANGE": (255, 200, 0),
    "PINK": (255, 175, 175),
    "RED": (255, 0, 0),
    "WHITE": (255, 255, 255),
    "YELLOW": (255, 255, 0),
    "#a0B1c2": (0xA0, 0xB1, 0xC2),
}
RESTRICTIONS = {
    "NO_VALUE": None,
    "NO_CHANGES_ALLOWED": 1,
    "FORM_FILLING": 2,
    "FORM_FILLING_AND_ANNOTATIONS": 3,
}
VALUES: dict[str, list[str]] = {
    "fontColor": [*COLORS],
    "fontName": [*LIBERATION],
    "fontStyle": [*STYLES],
    "restriccion": [*RESTRICTIONS],
}
REFUSED: dict[str, list[object]] = {
    "fontColor": ["black", "PURPLE", "#12345", "#GGGGGG", "", 0, None],
    "fontName": ["serif", "Times New Roman", "", 1, None],
    "fontStyle": ["plain", "BOLD|ITALIC", "", 0, None],
    "restriccion": ["no_value", "P1", "", 1, None],
}

# Runs in a process of its own: a PKCS#11 module is never opened in this one.
_READ_KEYS = """
import json, sys
import pkcs11
from pkcs11 import Attribute, KeyType, ObjectClass
from pkcs11.exceptions import PKCS11Error

module, label, pin = sys.argv[1:]
token = pkcs11.lib(module).get_token(token_label=label)
keys = []
with token.open(user_pin=open(pin).read().strip()) as session:
    for key in session.get_objects({Attribute.CLASS: ObjectClass.PRIVATE_KEY}):
        told = {name: key[Attribute[name]] for name in (
            "SENSITIVE", "EXTRACTABLE", "ALWAYS_SENSITIVE", "NEVER_EXTRACTABLE")}
        told["read"], told["modulus"], secret = [], "", ("VALUE",)
        if key.key_type is KeyType.RSA:
            told["modulus"] = key[Attribute.MODULUS].hex()
            secret = ("PRIVATE_EXPONENT", "PRIME_1", "PRIME_2", "COEFFICIENT")
        for name in secret:
            try:
                key[Attribute[name]]
                told["read"].append(name)
            except PKCS11Error:
                pass
        keys.append(told)
print(json.dumps(keys))
"""


def _keys(appliance: Appliance, tmp_path: Path, token: str) -> list[dict[str, Any]]:
    """The private keys of a token, as one who has its PIN sees them."""
    folder = appliance.folder
    done = subprocess.run(
        [
            *(sys.executable, "-c", _READ_KEYS),
            *(str(SoftHsm(tmp_path).module), token),
            str(folder / "secrets" / f"{token}.pin"),
        ],
        env={"SOFTHSM2_CONF": str(folder / "hsm" / "softhsm2.conf")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    keys: list[dict[str, Any]] = json.loads(done.stdout)
    return keys


def _modulus(certificate: x509.Certificate) -> str:
    """The RSA modulus that a certificate is about, in hex."""
    modulus: int = certificate.public_key.native["public_key"]["modulus"]
    return f"{modulus:x}"


@pytest.mark.parametrize("field", [*VALUES])
def test_value_set(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, field: str
) -> None:
    """Each allowed value signs and is in the PDF; no other value is taken.

    Source: decisions "fontColor", "fontName", "fontStyle", "restriccion".
    """
    for value in VALUES[field]:
        request = appliance.new_request(signer, pdfs.one_page())
        pdf = signed_pdf(client, signer, request, **{field: value})
        stamp = read_stamp(pdf)
        assert stamp is not None
        if field == "fontColor":
            seen = tuple(round(part * 255) for part in stamp.color)
            assert seen == COLORS[value]
        elif field == "fontName":
            assert stamp.font.startswith(LIBERATION[value])
        elif field == "fontStyle":
            assert stamp.font.removeprefix("LiberationSerif") in STYLES[value]
        else:
            assert docmdp(pdf) == RESTRICTIONS[value]

    request = appliance.new_request(signer, pdfs.one_page())
    for bad in REFUSED[field]:
        answer = sign(client, signer, request, **{field: bad})
        members = problem(answer, 400, "FIELD_INVALID")
        assert members["field"] == field
        named = [value for value in VALUES[field] if not value.startswith("#")]
        assert [v for v in members["allowed"] if not v.startswith("#")] == named


@pytest.mark.parametrize("field", ["page", "x", "y", "fontSize", "zoomPercent"])
def test_bounds(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, field: str
) -> None:
    """The least and the most sign, in points; one less and one more do not.

    Source: decisions "page", "x, y", "fontSize", "zoomPercent".
    """
    around: dict[str, object] = {"x": 0, "y": 0, "fontSize": 10}
    pdf = pdfs.pages(3) if field in {"page", "x", "y"} else pdfs.sized(9000, 3000)
    first = appliance.new_request(signer, pdf)
    probe = read_stamp(signed_pdf(client, signer, first, **around))
    assert probe is not None
    least, most, refusal = {
        "page": (1, 3, (422, "PAGE_OUT_OF_RANGE")),
        "x": (0, int(595 - probe.width), (422, "POSITION_OUT_OF_PAGE")),
        "y": (0, int(842 - probe.height), (422, "POSITION_OUT_OF_PAGE")),
        "fontSize": (4, 72, (400, "FIELD_INVALID")),
        "zoomPercent": (10, 400, (400, "FIELD_INVALID")),
    }[field]

    for value in (least, most):
        request = appliance.new_request(signer, pdf)
        stamp = read_stamp(
            signed_pdf(client, signer, request, **{**around, field: value})
        )
        assert stamp is not None
        assert {
            "page": stamp.page,
            "x": stamp.x,
            "y": stamp.y,
            "fontSize": stamp.size,
            "zoomPercent": stamp.size * 10,
        }[field] == pytest.approx(value, abs=0.01)

    request = appliance.new_request(signer, pdf)
    below = sign(client, signer, request, **{**around, field: least - 1})
    beyond = sign(client, signer, request, **{**around, field: most + 1})
    huge = sign(client, signer, request, **{**around, field: 10**9})
    # No page has the number 0: the value itself is wrong, whatever the document.
    problem(below, *((400, "FIELD_INVALID") if field == "page" else refusal))
    problem(beyond, *refusal)
    problem(huge, *refusal)


def test_required_fields_alone_sign(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """The two required fields sign, and the defaults are those decided.

    Source: decisions "required fields of firmar".
    """
    request = appliance.new_request(signer, pdfs.pages(2))

    pdf = signed_pdf(client, signer, request)

    stamp = read_stamp(pdf)
    assert stamp is not None
    assert (stamp.page, stamp.size, stamp.color) == (1, 12, (0, 0, 0))
    assert stamp.font in {"LiberationSerif", "LiberationSerif-Regular"}
    assert docmdp(pdf) is None


@pytest.mark.parametrize("field", ["solicitudId", "password"])
def test_missing_required_field_refused(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, field: str
) -> None:
    """Without it nothing is signed, and the answer says what is missing."""
    request = appliance.new_request(signer, pdfs.one_page())
    body = {"solicitudId": request, "password": signer.signing_password}
    del body[field]

    answer = client.post("/solicitudes/firmar", json=body)

    assert problem(answer, 400, "FIELD_MISSING")["field"] == field
    state = state_of(client, request)
    assert state == "pendiente"


@pytest.mark.parametrize("field", ["status", "documentoFirmado"])
def test_answer_field(
    appliance: Appliance, signer: TestPerson, client: httpx.Client, field: str
) -> None:
    """Each field of the answer, of its type and with its meaning.

    Source: spec "Signing command response".
    """
    request = appliance.new_request(signer, pdfs.one_page())

    answer = sign(client, signer, request)

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    value = answer.json()[field]
    assert isinstance(value, str)
    if field == "status":
        assert value == "success"
    else:
        pdf = httpx.get(value, timeout=CALL_S)
        assert pdf.headers["Content-Type"] == "application/pdf"
        assert pdf.content.startswith(b"%PDF-")


def test_spec_example_body_signs(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """A body of exactly the fields of the spec, with the values seen there."""
    request = appliance.new_request(signer, pdfs.one_page())
    body = {
        "solicitudId": request,
        "fontColor": "BLACK",
        "fontName": "Serif",
        "fontSize": 12,
        "fontStyle": "PLAIN",
        "page": 1,
        "x": 100,
        "y": 200,
        "zoomPercent": 100,
        "restriccion": "NO_VALUE",
        "password": signer.signing_password,
    }

    answer = client.post("/solicitudes/firmar", json=body)

    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "success"


def test_private_key_is_not_extractable(
    appliance: Appliance, signer: TestPerson, tmp_path: Path
) -> None:
    """Even whoever has the PIN cannot read a private key out of the HSM.

    Source: spec "What the service does", 2.
    """
    assert signer.id
    for token in ("firma", "pki"):
        folder = tmp_path / token
        folder.mkdir()
        keys = _keys(appliance, folder, token)

        assert keys
        for key in keys:
            assert key["SENSITIVE"]
            assert key["ALWAYS_SENSITIVE"]
            assert not key["EXTRACTABLE"]
            assert key["NEVER_EXTRACTABLE"]
            assert key["read"] == []


def test_signature_is_of_the_users_hsm_key(
    appliance: Appliance,
    signer: TestPerson,
    other_signer: TestPerson,
    client: httpx.Client,
    tmp_path: Path,
) -> None:
    """The signature is right under this person's key, which the HSM alone can open.

    It made the key and wrapped it; between two signatures nothing of it is there.
    """
    assert other_signer.id  # so that there is more than one person's key
    request = appliance.new_request(signer, pdfs.one_page())

    pdf = signed_pdf(client, signer, request)

    (verdict,) = pyhanko_verdicts(pdf, appliance.roots)
    assert verdict.good, verdict.details
    subject = verdict.signer.subject.native
    assert subject["serial_number"] == f"CUIL {signer.cuil}"
    assert subject["common_name"] == signer.name
    (credential,) = client.get("/credenciales").json()
    assert credential["modo"] == "envuelta"
    assert int(credential["numeroDeSerie"], 16) == verdict.signer.serial_number
    held = [key["modulus"] for key in _keys(appliance, tmp_path, "firma")]
    assert held
    assert _modulus(verdict.signer) not in held


def test_second_signature_keeps_the_first(
    appliance: Appliance,
    signer: TestPerson,
    other_signer: TestPerson,
    client: httpx.Client,
) -> None:
    """A signed document is signed again by another person, but not certified."""
    first = appliance.new_request(signer, pdfs.one_page())
    once = signed_pdf(client, signer, first)
    second = appliance.new_request(other_signer, once)

    with appliance.client(other_signer) as theirs:
        certify = sign(theirs, other_signer, second, restriccion="FORM_FILLING")
        twice = signed_pdf(theirs, other_signer, second, x=300, y=20)

    problem(certify, 409, "PDF_ALREADY_SIGNED")
    verdicts = pyhanko_verdicts(twice, appliance.roots)
    assert [v.good for v in verdicts] == [True, True]
    names = [v.signer.subject.native["common_name"] for v in verdicts]
    assert names == [signer.name, other_signer.name]
    with pikepdf.open(io.BytesIO(twice)) as opened:
        assert len(opened.Root.AcroForm.Fields) == 2
