"""Documents that programs read differently, over HTTP: shown is what is signed.

Source: docs/documents.md "One reading".
"""

import base64
import hashlib
from typing import Any, Final

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    BATCHES,
    TestBackend,
    prepared,
)
from tests.support.appliance.http_calls import problem, signed_pdf
from tests.support.documents import drawn_freely_pdfs, hostile_pdfs
from tests.support.documents.ambiguous_pdfs import AMBIGUOUS, upon
from tests.support.documents.software_signer import signed
from tests.support.documents.validators import pdfsig, pyhanko_verdicts

DOCUMENTS: Final = "/api/integration/documents"
REQUESTS: Final = "/api/integration/requests"
PDF: Final = {"Content-Type": "application/pdf"}


def forged(name: str = "page with two contents") -> bytes:
    """An unsigned document that is ambiguous in one way."""
    with upon(hostile_pdfs.plain(o90=hostile_pdfs.CONTENT)):
        return AMBIGUOUS[name][0]()


def asked(person: TestPerson, document: dict[str, Any]) -> dict[str, Any]:
    """The body of a request for one document."""
    return {"firmantes": [{"cuil": person.cuil}], "documento": document}


@pytest.mark.parametrize(
    "name", ["page with two contents", "row of 19 bytes", "overlapping subsections"]
)
def test_copy_is_what_is_shown_and_signed(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson], name: str
) -> None:
    """Hash, bytes and picture are the copy's; the original's hash is told beside it."""
    pdf = forged(name)
    original = hashlib.sha256(pdf).hexdigest()

    made = backend.client.post(DOCUMENTS, content=pdf, headers=PDF)
    again = backend.client.post(DOCUMENTS, content=pdf, headers=PDF)

    told = made.json()
    assert made.status_code == 201, made.text
    assert again.json()["sha256"] == told["sha256"] != original
    assert told["reparacion"]["sha256Original"] == original
    assert "ambiguous" in {each["codigo"] for each in told["reparacion"]["danos"]}
    assert "repaired" in {each["codigo"] for each in told["avisos"]}
    kept = backend.client.get(f"{DOCUMENTS}/{told['documentoId']}/content").content
    assert hashlib.sha256(kept).hexdigest() == told["sha256"]

    body = asked(people[0], {"documentoId": told["documentoId"]})
    request = backend.client.post(REQUESTS, json=body).json()
    number = request["firmantes"][0]["solicitudId"]
    with appliance.client(people[0]) as client:
        shown = client.get(f"/solicitudes/{number}/original").content
        result = signed_pdf(client, people[0], number)

    assert shown == kept
    assert result.startswith(kept)
    (signature,) = pdfsig(result)
    assert signature.valid
    assert all(one.good for one in pyhanko_verdicts(result, appliance.roots))


def test_caller_may_refuse_a_copy(
    backend: TestBackend, people: list[TestPerson]
) -> None:
    """By upload, request and batch, in each form of the body; a sound one is taken."""
    pdf, sound = forged(), hostile_pdfs.plain()
    content = base64.b64encode(pdf).decode()
    plainly = {"contenido": content, "reparar": False}

    for refused in (
        backend.client.post(f"{DOCUMENTS}?reparar=false", content=pdf, headers=PDF),
        backend.client.post(
            f"{DOCUMENTS}?reparar=false", files={"file": ("a.pdf", pdf)}
        ),
        backend.client.post(DOCUMENTS, json=plainly),
        backend.client.post(REQUESTS, json=asked(people[0], plainly)),
    ):
        problem(refused, 422, "PDF_AMBIGUOUS")
    odd = backend.client.post(f"{DOCUMENTS}?reparar=no", content=pdf, headers=PDF)
    problem(odd, 400, "QUERY_INVALID")
    taken = backend.client.post(
        f"{DOCUMENTS}?reparar=false", content=sound, headers=PDF
    )
    assert taken.json()["sha256"] == hashlib.sha256(sound).hexdigest()

    copy = backend.client.post(DOCUMENTS, content=pdf, headers=PDF).json()
    named = {"documentoId": copy["documentoId"], "reparar": False}
    problem(
        backend.client.post(REQUESTS, json=asked(people[0], named)),
        422,
        "PDF_AMBIGUOUS",
    )
    person = {"cuil": people[0].cuil}
    answer = backend.client.post(
        BATCHES, json={"firmante": person, "documentos": [named]}
    )
    members = problem(answer, 422, "PDF_AMBIGUOUS")
    assert members["field"] == "documentos[0].documentoId"
    answer = backend.client.post(
        BATCHES, json={"firmante": person, "documentos": [plainly]}
    )
    batch = prepared(backend.client, answer)
    assert [fault["code"] for fault in batch["errors"]] == ["PDF_AMBIGUOUS"]


def test_signed_document_of_two_readings_is_refused(backend: TestBackend) -> None:
    """Its signature would be lost in a copy."""
    with upon(signed(hostile_pdfs.plain())):
        pdf = AMBIGUOUS["page with two contents"][0]()

    refused = backend.client.post(DOCUMENTS, content=pdf, headers=PDF)

    members = problem(refused, 422, "PDF_AMBIGUOUS")
    assert members["category"] == "fix_request"


def test_usage_rights_go(backend: TestBackend) -> None:
    """Of a copy, which is told; any change would end them."""
    pdf = drawn_freely_pdfs.RIGHTS["UR3"]

    told = backend.client.post(DOCUMENTS, content=pdf, headers=PDF).json()

    assert [each["codigo"] for each in told["avisos"]] == ["repaired"]
    danos = [each["codigo"] for each in told["reparacion"]["danos"]]
    assert danos == ["usage_rights"]
