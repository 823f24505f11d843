"""A machine runs a whole signature in PREPROD, without a telephone or a mailbox."""

import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pyotp
import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.domain.vocab import EventKind
from appliance.integration.test_mode.signers import MARK
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import (
    BATCHES,
    REQUESTS,
    TestBackend,
    assert_valid,
    backend_of,
    ready_batch,
    sign,
)
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, read_pdf
from tests.support.faults.fault_injection import until
from tests.support.patience import CALL_S

SIGNERS = "/api/integration/test/signers"


def made_up(backend: TestBackend, **fields: Any) -> dict[str, Any]:
    """A test signer, who can sign."""
    answer = backend.client.post(SIGNERS, json=fields)
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    deadline = time.monotonic() + 60
    while not told["puedeFirmar"] and time.monotonic() < deadline:
        told = backend.client.get(answer.headers["Location"]).json()
    assert told["puedeFirmar"], told
    return told


def asked(
    backend: TestBackend, *signers: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    """What they are asked to sign, one after the other."""
    document = backend.client.post(
        "/api/integration/documents",
        content=pdfs.one_page(),
        headers={"Content-Type": "application/pdf"},
    ).json()
    answer = backend.client.post(
        REQUESTS,
        json={
            "firmantes": [{"cuil": each["cuil"]} for each in signers],
            "documento": {"documentoId": document["documentoId"]},
            **fields,
        },
    )
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told


def signed_pdf(backend: TestBackend, process: str) -> bytes:
    """What all have signed."""
    answer = backend.client.get(f"{REQUESTS}/{process}/document")
    assert answer.status_code == 200, answer.text
    return answer.content


def act(
    backend: TestBackend, signer: dict[str, Any], what: str, **body: Any
) -> httpx.Response:
    """Sign or reject as somebody."""
    return backend.client.post(f"{SIGNERS}/{signer['cuil']}/{what}", json=body)


@pytest.fixture(scope="module")
def other(backend: TestBackend) -> dict[str, Any]:
    """A test signer who signs nothing."""
    return made_up(backend)


def assert_marked(pdf: bytes) -> None:
    """Of every signature certificate and dictionary say that it is a test."""
    assert {each.signer.startswith(MARK) for each in pdfsig(pdf)} == {True}
    for each in read_pdf(pdf).embedded_signatures:
        assert str(each.sig_object["/Name"]).startswith(MARK)


def shown_text(pdf: bytes, folder: Path) -> str:
    """What a reader shows of a document, in one line."""
    path = folder / "shown.pdf"
    path.write_bytes(pdf)
    done = subprocess.run(
        ["pdftotext", path, "-"],
        check=True,
        capture_output=True,
        text=True,
        timeout=CALL_S,
    )
    return " ".join(done.stdout.split())


def test_signature_of_two_by_sign_in_and_by_one_call(
    appliance: Appliance, backend: TestBackend, tmp_path: Path
) -> None:
    """The first one signs in with a code as people do, the second by the backend."""
    first, second = made_up(backend, nombre="Ana Ruiz"), made_up(backend)
    process = asked(backend, first, second)
    code = backend.client.get(f"{SIGNERS}/{first['cuil']}/otp").json()
    with httpx.Client(base_url=appliance.base_url, timeout=CALL_S) as client:
        login = client.post(
            "/auth/login",
            json={"usuario": first["cuil"], "password": first["password"]},
        ).json()
        token = client.post(
            "/auth/otp", json={"loginToken": login["loginToken"], "codigo": code["otp"]}
        ).json()
        request = process["firmantes"][0]["solicitudId"]
        signed = client.post(
            "/solicitudes/firmar",
            headers={"Authorization": f"Bearer {token['access_token']}"},
            json={"solicitudId": request, "password": first["claveFirma"]},
        )
    assert signed.status_code == 200, signed.text

    answer = act(backend, second, "sign", procesoId=process["procesoId"])
    again = act(backend, second, "sign", procesoId=process["procesoId"])

    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["status"] == "success"
    assert told["solicitudId"] == process["firmantes"][1]["solicitudId"]
    assert again.json()["sha256"] == told["sha256"]
    pdf = signed_pdf(backend, process["procesoId"])
    assert httpx.get(told["documentoFirmado"], timeout=CALL_S).content == pdf
    assert_valid(appliance, pdf, 2)
    assert_marked(pdf)
    assert MARK in shown_text(pdf, tmp_path)
    assert 30 <= code["venceEn"] <= 60


def test_code_that_was_used_is_not_given_again(
    appliance: Appliance, backend: TestBackend
) -> None:
    """The next one differs, and is accepted."""
    signer = made_up(backend)
    codes = []
    with httpx.Client(base_url=appliance.base_url, timeout=CALL_S) as client:
        for _ in range(2):
            told = backend.client.get(f"{SIGNERS}/{signer['cuil']}/otp").json()
            login = client.post(
                "/auth/login",
                json={"usuario": signer["email"], "password": signer["password"]},
            ).json()
            taken = client.post(
                "/auth/otp",
                json={"loginToken": login["loginToken"], "codigo": told["otp"]},
            )
            assert taken.status_code == 200, taken.text
            codes.append(told["otp"])

    assert len(set(codes)) == 2
    seed = pyotp.TOTP(signer["totp"])
    assert seed.verify(codes[1], valid_window=2)


def test_rejection_as_the_signer(appliance: Appliance, backend: TestBackend) -> None:
    """With a reason or without; the audit has the integrator as who did it."""
    signer = made_up(backend)
    process = asked(backend, signer)
    request = process["firmantes"][0]["solicitudId"]

    answer = act(backend, signer, "reject", solicitudId=request, motivo="No es mío")
    without = act(
        backend, signer, "reject", procesoId=asked(backend, signer)["procesoId"]
    )

    assert answer.status_code == 200, answer.text
    assert (answer.json()["estado"], without.json()["estado"]) == ("rechazada",) * 2
    told = backend.read(process["procesoId"])
    assert told["firmantes"][0]["motivo"] == "No es mío"

    async def actors(front: ServiceRegistry) -> set[str]:
        async with front.core.store.read() as transaction:
            rows = await transaction.audit.of_request(request)
        return {
            row.event.actor
            for row in rows
            if row.event.event is EventKind.REQUEST_REJECTED
        }

    (actor,) = appliance.do(actors)
    assert actor.startswith("integrator:")


def test_batch_is_signed_by_one_call(
    appliance: Appliance, backend: TestBackend
) -> None:
    """All its documents; the audit says what was proven: nothing but the test mode."""
    signer = made_up(backend)
    document = backend.client.post(
        "/api/integration/documents",
        content=pdfs.one_page(),
        headers={"Content-Type": "application/pdf"},
    ).json()
    asked = backend.client.post(
        BATCHES,
        json={
            # Nothing of it is shown.
            "firmante": {
                "personaId": signer["personaId"],
                "sello": {"visible": False},
            },
            "documentos": [{"documentoId": document["documentoId"]}] * 3,
        },
    )
    batch = ready_batch(backend.client, asked)

    answer = act(backend, signer, "sign", loteId=batch["loteId"])

    assert answer.status_code == 200, answer.text
    assert answer.json()["firmadas"] == 3
    for each in batch["solicitudes"]:
        pdf = signed_pdf(backend, each["procesoId"])
        assert_valid(appliance, pdf, 1)
        assert_marked(pdf)
    request = batch["solicitudes"][0]["solicitudId"]

    async def factors(front: ServiceRegistry) -> list[Any]:
        async with front.core.store.read() as transaction:
            rows = await transaction.audit.of_request(request)
        return [
            row.event.detail["factors"]
            for row in rows
            if row.event.event is EventKind.ACTIVATION_CREATED
        ]

    (proven,) = appliance.do(factors)
    assert proven[0] == "test"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "FIELD_MISSING"),
        ({"procesoId": "x", "solicitudId": 1}, "FIELD_INVALID"),
        ({"loteId": "x", "solicitudId": 1}, "FIELD_INVALID"),
        ({"procesoId": "x"}, "SOLICITUD_NOT_FOUND"),
        ({"loteId": "x"}, "LOTE_NOT_FOUND"),
        ({"solicitudId": 9_007_199_254_740_990}, "SOLICITUD_NOT_FOUND"),
        ({"solicitudId": 1, "password": "x"}, "FIELD_UNKNOWN"),
    ],
)
def test_what_is_to_be_signed_is_named_once(
    backend: TestBackend, other: dict[str, Any], body: dict[str, Any], code: str
) -> None:
    """And it is the signer's."""
    answer = act(backend, other, "sign", **body)

    assert answer.json()["code"] == code


def test_list_has_pages(appliance: Appliance) -> None:
    """Newest first, each once; a removed one is gone."""
    with backend_of(appliance) as backend:
        made = [made_up(backend)["cuil"] for _ in range(3)]
        first = backend.client.get(SIGNERS, params={"limite": 2})
        rest = backend.client.get(first.links["next"]["url"])
        seen = [each["cuil"] for each in first.json() + rest.json()]
        gone = backend.client.delete(f"{SIGNERS}/{made[0]}")
        left = backend.client.get(SIGNERS).json()
        answer = backend.ask(pdfs.one_page())
        named = backend.client.get(f"{SIGNERS}/{made[0]}")

    assert seen == made[::-1]
    assert (gone.status_code, [each["cuil"] for each in left]) == (204, made[:0:-1])
    assert (named.status_code, named.json()["code"]) == (404, "PERSON_NOT_FOUND")
    assert answer.status_code == 400


def test_removed_signer_comes_back_and_signs(
    appliance: Appliance, backend: TestBackend
) -> None:
    """As the next run of a test suite has it; what they signed before is kept."""
    made = made_up(backend, nombre="Eva Luz")
    before = asked(backend, made)
    act(backend, made, "sign", procesoId=before["procesoId"])
    gone = backend.client.delete(f"{SIGNERS}/{made['cuil']}")
    kept = signed_pdf(backend, before["procesoId"])

    back = made_up(backend, nombre="Eva Luz", cuil=made["cuil"])
    after = asked(backend, back)
    signed = act(backend, back, "sign", procesoId=after["procesoId"])

    assert gone.status_code == 204
    assert back == made
    assert signed.status_code == 200, signed.text
    for pdf in (kept, signed_pdf(backend, after["procesoId"])):
        assert_valid(appliance, pdf, 1)
        assert_marked(pdf)


def test_mails_are_read_by_the_backend_alone(
    appliance: Appliance, backend: TestBackend
) -> None:
    """The appliance has no mail server: what is asked of others is not made at all."""
    assert not appliance.settings.mail.is_on

    async def mails_signers(front: ServiceRegistry) -> None:
        await front.integrators.set_mail("operator", backend.code, mails_signers=True)

    appliance.do(mails_signers)
    signer, person = made_up(backend), appliance.new_person()
    process = asked(backend, signer, {"cuil": person.cuil})
    path = f"{SIGNERS}/{signer['cuil']}/mails"

    def kinds() -> list[str]:
        answer = backend.client.get(path)
        assert answer.status_code == 200, answer.text
        return [each["tipo"] for each in answer.json()]

    until(lambda: kinds() == ["solicitud", "certificado"])
    (told, _) = backend.client.get(path).json()
    act(backend, signer, "sign", procesoId=process["procesoId"])
    sign(appliance, person, process["firmantes"][1]["solicitudId"])
    until(lambda: kinds() == ["firmado", "solicitud", "certificado"])

    assert told["procesoId"] == process["procesoId"]
    assert told["asunto"] in told["html"] or "documento.pdf" in told["html"]
    assert "documento.pdf" in told["texto"]
    with backend_of(appliance) as other:
        assert other.client.get(path).status_code == 404


@pytest.mark.parametrize("fault", ["nada", "TOKEN_VENCIDO", "", 1])
def test_fault_is_one_of_those(backend: TestBackend, fault: Any) -> None:
    """Another one is refused by its field."""
    answer = backend.client.post("/api/integration/sessions", json={"falla": fault})

    assert (answer.status_code, answer.json()["field"]) == (400, "falla")
