"""Documents that programs read differently, over HTTP: shown is what is signed.

Source: docs/documents.md "One reading".
"""

import base64
import hashlib
import json
import os
from typing import Any, Final

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import (
    BATCHES,
    TestBackend,
    prepared,
    ready_batch,
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


def test_next_signer_is_told_of_the_copy_too(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """What is signed next is a copy still, with a signature; the original is none."""
    pdf = forged() + os.urandom(8).hex().encode()
    original = hashlib.sha256(pdf).hexdigest()
    content = base64.b64encode(pdf).decode()
    body = {
        "firmantes": [{"cuil": each.cuil} for each in people[:2]],
        "documento": {"contenido": content},
    }
    made = backend.client.post(REQUESTS, json=body).json()
    first, second = (each["solicitudId"] for each in made["firmantes"])
    with appliance.client(people[0]) as client:
        signed_pdf(client, people[0], first)

    with appliance.client(people[1]) as client:
        told = client.get(f"/solicitudes/{second}").json()
        options = {"solicitudId": second, "password": people[1].signing_password}
        answer = client.post(
            "/solicitudes/firmar",
            files={
                "file": ("a.pdf", pdf, "application/pdf"),
                "options": (None, json.dumps(options), "application/json"),
            },
        )
        result = signed_pdf(client, people[1], second)

    assert told_of(told) == (original, True)
    problem(answer, 422, "DOCUMENT_MISMATCH")
    assert [each.valid for each in pdfsig(result)] == [True, True]


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
    assert problem(odd, 400, "QUERY_INVALID")["allowed"] == ["true", "false"]
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


def told_of(document: dict[str, Any]) -> tuple[str | None, bool]:
    """Original of a document, as its repair tells it; True if a finding does too."""
    repair = document["reparacion"]
    found = {each["codigo"] for each in document["avisos"]}
    return (repair and repair["sha256Original"]), "repaired" in found


def test_copy_that_comes_in_as_a_document_of_its_own(
    appliance: Appliance, backend: TestBackend, people: list[TestPerson]
) -> None:
    """It is none there; requests that were made of it are, for backend and signer."""
    pdf, client = forged() + os.urandom(8).hex().encode(), backend.client
    original = hashlib.sha256(pdf).hexdigest()
    made = client.post(DOCUMENTS, content=pdf, headers=PDF).json()
    copy = client.get(f"{DOCUMENTS}/{made['documentoId']}/content").content
    first = client.post(
        REQUESTS, json=asked(people[0], {"documentoId": made["documentoId"]})
    ).json()
    number = first["firmantes"][0]["solicitudId"]

    keyed = {**PDF, "Idempotency-Key": os.urandom(8).hex()}
    own = client.post(f"{DOCUMENTS}?reparar=false", content=copy, headers=keyed)
    again = client.post(f"{DOCUMENTS}?reparar=false", content=copy, headers=keyed)
    assert (own.status_code, again.json()) == (201, own.json())
    assert own.json()["sha256"] == made["sha256"]
    read = client.get(f"{DOCUMENTS}/{own.json()['documentoId']}").json()
    for each in (own.json(), read):
        assert told_of(each) == (None, False)
    other = client.post(DOCUMENTS, content=copy, headers=keyed)
    problem(other, 409, "IDEMKEY_CONFLICT")

    content = base64.b64encode(copy).decode()
    for named in ({"documentoId": read["documentoId"]}, {"contenido": content}):
        asking = asked(people[0], {**named, "reparar": False})
        second = client.post(REQUESTS, json=asking)
        assert second.status_code == 201, second.text
        assert told_of(second.json()["documento"]) == (None, False)
        assert "sha256Original" not in second.json()["historia"][0]

    for whose in (made, client.get(f"{DOCUMENTS}/{made['documentoId']}").json()):
        assert told_of(whose) == (original, True)
    now = client.get(f"{REQUESTS}/{first['procesoId']}").json()
    assert told_of(now["documento"]) == (original, True)
    assert now["historia"][0]["sha256Original"] == original
    with appliance.client(people[0]) as signer:
        assert told_of(signer.get(f"/solicitudes/{number}").json()) == (original, True)


@pytest.mark.parametrize("copy_first", [True, False])
def test_file_and_its_copy_in_one_batch(
    backend: TestBackend, people: list[TestPerson], *, copy_first: bool
) -> None:
    """Each is told as it came, whichever comes first."""
    pdf, client = forged() + os.urandom(8).hex().encode(), backend.client
    original = hashlib.sha256(pdf).hexdigest()
    made = client.post(DOCUMENTS, content=pdf, headers=PDF).json()
    copy = client.get(f"{DOCUMENTS}/{made['documentoId']}/content").content
    client.delete(f"{DOCUMENTS}/{made['documentoId']}").raise_for_status()
    wanted = {copy: (None, False), pdf: (original, True)}
    files = [copy, pdf] if copy_first else [pdf, copy]

    answer = client.post(
        BATCHES,
        json={
            "firmante": {"cuil": people[0].cuil},
            "documentos": [
                {"contenido": base64.b64encode(each).decode()} for each in files
            ],
        },
    )

    batch = ready_batch(client, answer)
    client.post(DOCUMENTS, content=pdf, headers=PDF).raise_for_status()
    client.post(DOCUMENTS, content=copy, headers=PDF).raise_for_status()
    for file, member in zip(files, batch["solicitudes"], strict=True):
        told = client.get(f"{REQUESTS}/{member['procesoId']}").json()
        assert told["documento"]["sha256"] == made["sha256"]
        assert told_of(told["documento"]) == wanted[file]
        assert told["historia"][0].get("sha256Original") == wanted[file][0]


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
