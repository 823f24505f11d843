"""Several people sign one document in turn, over REST.

Source: decisions "several signers", "estados".
"""

import hashlib
from pathlib import Path

import httpx
import pytest

from appliance.domain.people.identity import format_cuil
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    problem,
    sign,
    sign_at_last,
    signed_pdf,
    state_of,
)
from tests.support.browsers.qr_codes import scanned
from tests.support.documents import pdfs
from tests.support.documents.field_pdfs import Field, with_fields
from tests.support.documents.validators import pdfsig, pyhanko_verdicts
from tests.support.faults.fault_injection import order_crash, until
from tests.support.patience import CALL_S
from worker.failpoints import FILE_WRITTEN, PUBLISHED

ABOVE = (100.0, 300.0, 300.0, 380.0)


def assert_all_valid(pdf: bytes, appliance: Appliance, count: int) -> None:
    """Each signature is there and valid for pyHanko, pdfsig and ourselves."""
    assert len(pyhanko_verdicts(pdf, appliance.roots)) == count
    assert all(verdict.good for verdict in pyhanko_verdicts(pdf, appliance.roots))
    verdicts = pdfsig(pdf)
    assert len(verdicts) == count
    assert all(verdict.valid for verdict in verdicts)
    report = appliance.do(
        lambda front: front.core.inspector.verify(pdf, appliance.roots)
    )
    assert report.valid
    assert len(report.signatures) == count


def test_three_sign_in_turn(
    appliance: Appliance, signer: TestPerson, other_signer: TestPerson
) -> None:
    """Each on what the one before made; who waits sees nothing and cannot sign."""
    people = [signer, other_signer, appliance.new_person("Tercera Firmante")]
    requests = appliance.new_process(people, pdfs.one_page())
    clients = [appliance.client(person) for person in people]
    before = b""

    for at, (person, request, client) in enumerate(
        zip(people, requests, clients, strict=True)
    ):
        for later in range(at + 1, 3):
            listed = clients[later].get("/solicitudes").json()
            assert requests[later] not in [each["solicitudId"] for each in listed]
            early = sign(clients[later], people[later], requests[later])
            # It will be possible, unlike with a request that is over.
            assert problem(early, 409, "STATE")["category"] == "retry"
        detail = client.get(f"/solicitudes/{request}").json()
        assert (detail["estado"], detail["firmas"]) == ("pendiente", at)
        pdf = signed_pdf(client, person, request, x=40, y=40 + 90 * at)
        assert pdf.startswith(before)
        assert_all_valid(pdf, appliance, at + 1)
        before = pdf
    for client in clients:
        client.close()


def test_code_of_the_first_tells_what_the_next_ones_made_of_it(
    appliance: Appliance, signer: TestPerson, other_signer: TestPerson
) -> None:
    """Its stamp is on their document too: no copy's SHA-256 is missing."""
    people = [signer, other_signer]
    requests = appliance.new_process(people, pdfs.one_page())
    copies = []
    for at, (person, request) in enumerate(zip(people, requests, strict=True)):
        with appliance.client(person) as client:
            copies.append(
                signed_pdf(client, person, request, x=40, y=40 + 120 * at, qr=at == 0)
            )
            (version,) = client.get(f"/solicitudes/{request}").json()["versiones"]
        assert version["sha256"] == hashlib.sha256(copies[at]).hexdigest()

    address = scanned(copies[-1])

    for language, said in (("es", "Versiones anteriores"), ("en", "Earlier versions")):
        page = httpx.get(
            address, headers={"Accept-Language": language}, timeout=CALL_S
        ).text
        older, newest = (page.index(hashlib.sha256(one).hexdigest()) for one in copies)
        assert newest < page.index(said) < older


def test_rejection_ends_the_process(
    appliance: Appliance, signer: TestPerson, other_signer: TestPerson
) -> None:
    """Who waited will never be asked."""
    first, second = appliance.new_process([signer, other_signer], pdfs.one_page())
    with appliance.client(signer) as one, appliance.client(other_signer) as two:
        answer = one.post(f"/solicitudes/{first}/rechazar", json={"motivo": "no"})

        assert answer.json()["estado"] == "rechazada"
        assert state_of(two, second) == "cancelada"
        over = problem(sign(two, other_signer, second), 409, "STATE")
    assert over["category"] == "terminal"


def test_operator_asks_several_and_takes_it_back(
    appliance: Appliance, signer: TestPerson, other_signer: TestPerson, tmp_path: Path
) -> None:
    """By the command line: in the order named; the end of one ends the rest."""
    path = tmp_path / "acta.pdf"
    path.write_bytes(pdfs.one_page())
    people = ("--person", signer.cuil, "--person", other_signer.cuil)
    made = appliance.rubrica(
        "request", "create", str(path), "--integrator", "demo", *people
    )
    assert made.returncode == 0, made.stderr
    first, second = (int(line.split()[1]) for line in made.stdout.splitlines())
    with appliance.client(signer) as one, appliance.client(other_signer) as two:
        assert (state_of(one, first), state_of(two, second)) == (
            "pendiente",
            "en_espera",
        )

        done = appliance.rubrica("request", "cancel", str(first))

        assert done.returncode == 0, done.stderr
        assert (state_of(one, first), state_of(two, second)) == (
            "cancelada",
            "cancelada",
        )


def test_operator_is_told_who_cannot_sign_yet(
    appliance: Appliance, tmp_path: Path
) -> None:
    """The request is taken; what keeps it from being signed is a note beside it."""
    path = tmp_path / "acta.pdf"
    path.write_bytes(pdfs.one_page())
    cuil = appliance.next_cuil()
    mail = f"{cuil}@demo.example"
    invited = appliance.rubrica(
        *("person", "invite", "--cuil", cuil, "--name", "Raúl Gómez", "--email", mail)
    )
    assert invited.returncode == 0, invited.stderr

    made = appliance.rubrica(
        "request", "create", str(path), "--integrator", "demo", "--person", cuil
    )

    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("request ")
    assert f"note: {format_cuil(cuil)} has to enrol before signing\n" in made.stderr


@pytest.mark.parametrize("point", [FILE_WRITTEN, PUBLISHED])
def test_killed_worker_keeps_no_turn_back(
    sqlite_appliance: Appliance, people: list[TestPerson], point: str
) -> None:
    """Dead before or after the publication: the next has the turn all the same."""
    first, second, *_ = people
    requests = sqlite_appliance.new_process([first, second], pdfs.one_page())
    order = order_crash(sqlite_appliance, point)
    with sqlite_appliance.client(first) as one, sqlite_appliance.client(second) as two:
        answer = sign_at_last(one, first, requests[0])
        assert answer.status_code == 200, answer.text
        assert not order.exists()
        until(lambda: state_of(two, requests[1]) == "pendiente")
        pdf = signed_pdf(two, second, requests[1], x=40, y=40)

    assert_all_valid(pdf, sqlite_appliance, 2)


def test_fields_of_the_document_are_signed_in_turn(
    appliance: Appliance, signer: TestPerson, other_signer: TestPerson
) -> None:
    """Listed with the request, certified and signed by name; refusals before any key.

    Source: docs/signing.md "What a document allows".
    """
    fields = (Field("contrato.vendedor"), Field("contrato.comprador", rects=(ABOVE,)))
    people = [signer, other_signer]
    first, second = appliance.new_process(people, with_fields(*fields))
    with appliance.client(signer) as one, appliance.client(other_signer) as two:
        listed = one.get(f"/solicitudes/{first}").json()["campos"]
        assert [each["nombre"] for each in listed] == [field.name for field in fields]
        closing = sign(one, signer, first, restriccion="NO_CHANGES_ALLOWED")
        problem(closing, 409, "SIGNERS_LOCKED_OUT")
        absent = problem(
            sign(one, signer, first, campo="otro"), 422, "SIGNATURE_FIELD_NOT_FOUND"
        )
        assert absent["allowed"] == [field.name for field in fields]
        signed_pdf(
            one, signer, first, campo="contrato.vendedor", restriccion="FORM_FILLING"
        )

        problem(sign(two, other_signer, second), 409, "PDF_CERTIFIED")
        taken = sign(two, other_signer, second, campo="contrato.vendedor")
        problem(taken, 409, "SIGNATURE_FIELD_FILLED")
        shown = two.post(
            f"/solicitudes/{second}/vista-previa", json={"campo": "contrato.comprador"}
        )
        assert shown.status_code == 200, shown.text
        pdf = signed_pdf(two, other_signer, second, campo="contrato.comprador")

    assert_all_valid(pdf, appliance, 2)
