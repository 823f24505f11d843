"""Calls of docs/integration.md and docs/webhooks.md as they write them, with curl."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import (
    BATCHES,
    backend_of,
    let_vouch,
    prepared_batch,
    ready_batch,
)
from tests.support.appliance.manual import run_block
from tests.support.documents import pdfs
from tests.support.processes.operator_shell import OperatorShell

pytestmark = pytest.mark.full


def test_a_request_from_asking_to_cancelling(
    appliance: Appliance, tmp_path: Path
) -> None:
    """Asked for, found, changed, signed, fetched; another one is taken back."""
    person, pdf = appliance.new_person(), pdfs.one_page()
    shell = OperatorShell.of(appliance, tmp_path)
    (shell.folder / "contrato.pdf").write_bytes(pdf)
    with backend_of(appliance) as backend:
        let_vouch(backend)
        shell.variables["API_KEY"] = backend.key.secret
        run_block(
            "integration.md",
            "",
            0,
            shell.run,
            ("http://127.0.0.1:8080", appliance.settings.web.web_url),
            ("20-26756539-3", person.cuil),
            ("20-40111222-8", appliance.next_cuil()),
        )
        made = json.loads(
            run_block("integration.md", "Ask for signatures", 0, shell.run)
        )
        shell.run(f"PROCESO={made['procesoId']}")
        opened = json.loads(
            run_block("integration.md", "A session for one request", 0, shell.run)
        )
        can_sign = json.loads(run_block("integration.md", "Signers", 0, shell.run))
        invited = json.loads(run_block("integration.md", "Signers", 1, shell.run))
        (found,) = json.loads(run_block("integration.md", "List", 0, shell.run))
        changed = json.loads(run_block("integration.md", "Change", 0, shell.run))
        wrong = json.loads(run_block("integration.md", "What is wrong", 0, shell.run))
        limits = json.loads(run_block("integration.md", "Limits", 0, shell.run))
        with appliance.client(person) as client:
            signed = client.post(
                "/solicitudes/firmar",
                json={
                    "solicitudId": made["firmantes"][0]["solicitudId"],
                    "password": person.signing_password,
                },
            )
        assert signed.status_code == 200, signed.text
        told = json.loads(
            run_block("integration.md", "One request, and its history", 0, shell.run)
        )
        run_block("integration.md", "Fetch the document", 0, shell.run)
        files = {each.read_bytes() for each in shell.folder.glob("*.pdf")}
        again = backend.made(pdf, person)
        shell.run(f"PROCESO={again['procesoId']}")
        ended = json.loads(run_block("integration.md", "Cancel", 0, shell.run))

    assert opened["solicitudId"] == made["firmantes"][0]["solicitudId"]
    assert can_sign["puedeFirmar"] is True
    assert invited["estado"] == "invitada"
    assert found["procesoId"] == made["procesoId"]
    assert wrong["entorno"] == "PREPROD"
    assert [each["nombre"] for each in limits][:2] == ["llamadas", "sesiones"]
    assert changed["mensaje"] == "Vence el viernes"
    assert told["estado"] == "firmada"
    assert {len(each) > len(pdf) for each in files} == {True, False}
    assert ended["estado"] == "cancelada"


def test_a_batch_from_asking_to_cancelling(
    appliance: Appliance, tmp_path: Path
) -> None:
    """Two documents are asked for and signed at once; another batch is taken back."""
    person = appliance.new_person()
    shell = OperatorShell.of(appliance, tmp_path)
    (shell.folder / "contrato.pdf").write_bytes(pdfs.one_page())
    with backend_of(appliance) as backend:
        shell.variables.update(
            API_KEY=backend.key.secret,
            CUIL=person.cuil,
            TOKEN=appliance.bearer(person),
            SIGN_PASSWORD=person.signing_password,
        )
        kept = json.loads(
            run_block("integration.md", "Documents of a backend", 0, shell.run)
        )
        shell.run(f"DOCUMENTO={kept['documentoId']}")
        made = json.loads(
            run_block("integration.md", "Ask for many at once", 0, shell.run)
        )
        shell.run(f"LOTE={made['loteId']}")
        made = prepared_batch(backend.client, made["loteId"])
        run_block("integration.md", "Ask for many at once", 1, shell.run)
        opened = json.loads(
            run_block("integration.md", "A session for a batch", 0, shell.run)
        )
        signed = json.loads(
            run_block("integration.md", "Ask for many at once", 2, shell.run)
        )
        document = {"documentoId": kept["documentoId"]}
        again = ready_batch(
            backend.client,
            backend.client.post(
                BATCHES,
                json={"firmante": {"cuil": person.cuil}, "documentos": [document]},
            ),
        )
        shell.run(f"LOTE={again['loteId']}")
        ended = json.loads(
            run_block("integration.md", "Ask for many at once", 3, shell.run)
        )
        together = json.loads(
            run_block("integration.md", "Documents in the call", 0, shell.run)
        )

    numbers = [each["solicitudId"] for each in made["solicitudes"]]
    assert (opened["loteId"], opened["solicitudId"]) == (made["loteId"], None)
    assert signed["status"] == "success"
    assert [each["solicitudId"] for each in signed["resultados"]] == numbers
    assert ended["estados"] == {"cancelada": 1}
    assert together["total"] == 2


def test_documents_from_uploading_to_deleting(
    appliance: Appliance, tmp_path: Path
) -> None:
    """Two are uploaded; the first one is shown, fetched and deleted."""
    shell = OperatorShell.of(appliance, tmp_path)
    pdf = pdfs.pages(2)
    (shell.folder / "contrato.pdf").write_bytes(pdf)
    with backend_of(appliance) as backend:
        shell.variables["API_KEY"] = backend.key.secret
        made = json.loads(
            run_block("integration.md", "Documents of a backend", 0, shell.run)
        )
        shell.run(f"DOCUMENTO={made['documentoId']}")
        run_block("integration.md", "Documents of a backend", 1, shell.run)
        left = backend.client.get("/api/integration/documents").json()

    assert (made["nombre"], made["paginas"]) == ("contrato.pdf", 2)
    assert (shell.folder / "copia.pdf").read_bytes() == pdf
    assert [each["nombre"] for each in left] == ["contrato.pdf"]
    assert left[0]["documentoId"] != made["documentoId"]


def test_webhooks_from_making_to_removing(appliance: Appliance, tmp_path: Path) -> None:
    """Made, changed, tried out, looked at, sent again, removed."""
    shell = OperatorShell.of(appliance, tmp_path)
    with backend_of(appliance) as backend:
        shell.variables["API_KEY"] = backend.key.secret
        made = json.loads(run_block("webhooks.md", "Set one up", 0, shell.run))
        shell.run(f"WEBHOOK={made['webhookId']}")
        listed = answers(run_block("webhooks.md", "Set one up", 1, shell.run))
        shell.run(f"ENTREGA={listed[-1]['entregaId']}")
        sent = answers(run_block("webhooks.md", "What was sent", 0, shell.run))
        again = answers(run_block("webhooks.md", "Send again", 0, shell.run))
        turned = answers(run_block("webhooks.md", "Another secret", 0, shell.run))
        run_block("webhooks.md", "Set one up", 2, shell.run)
        left = backend.client.get("/api/integration/webhooks").json()

    assert made["nombre"] == "cobros"
    assert [each["eventos"] for each in listed[2:4]] == [[], []]
    assert [each["entregaId"] for each in sent[0]] == [sent[1]["entregaId"]]
    assert again[0]["entregaId"] == sent[1]["entregaId"]
    assert [each["siguiente"] for each in again[1:]] == [None, None]
    assert turned[0]["secreto"] != made["secreto"]
    assert left == []


def answers(text: str) -> list[Any]:
    """The JSON values that several calls gave, one after the other."""
    found, decoder, rest = [], json.JSONDecoder(), text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    return found


def test_the_test_mode(appliance: Appliance, tmp_path: Path) -> None:
    """Somebody is made up, and signs and refuses by calls; then they are gone."""
    shell = OperatorShell.of(appliance, tmp_path)
    with backend_of(appliance) as backend:
        shell.variables["API_KEY"] = backend.key.secret
        made = json.loads(run_block("integration.md", "Test mode", 0, shell.run))
        shell.run(f"FIRMANTE={made['cuil']}")
        told = run_block("integration.md", "Test mode", 1, shell.run)
        processes = [
            backend.client.post(
                "/api/integration/requests",
                json={
                    "firmantes": [{"personaId": made["personaId"]}],
                    "documento": {"contenido": b64encode(pdfs.one_page()).decode()},
                },
            ).json()["procesoId"]
            for _ in range(2)
        ]
        mails = json.loads(run_block("integration.md", "Test mode", 2, shell.run))
        shell.run(f"PROCESO={processes[0]}")
        signed = json.loads(run_block("integration.md", "Test mode", 3, shell.run))
        shell.run(f"PROCESO={processes[1]}")
        refused = json.loads(run_block("integration.md", "Test mode", 4, shell.run))
        faulty = json.loads(run_block("integration.md", "Test mode", 5, shell.run))
        run_block("integration.md", "Test mode", 6, shell.run)
        left = backend.client.get("/api/integration/test/signers").json()

    assert made["nombre"].endswith("Ana Ruiz")
    assert '"venceEn"' in told
    assert faulty["solicitudId"] is None
    assert [each["tipo"] for each in mails] == ["certificado"]
    assert (signed["status"], refused["estado"]) == ("success", "rechazada")
    assert left == []
