"""Power: a document has taken over its jobs in the sandbox of a running appliance.

It answers for the sandbox wherever it is read: when it comes in, when it is shown, when
its signature is verified, and when a new key's sample is. What it gains is its own
picture, its own findings and its own verdict.

Source: docs/documents.md "Who reads a PDF"; docs/backup.md "What was signed after the
dump"; docs/keys.md "The sample of a new key".
"""

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.database import tables
from appliance.domain.documents.verification import YES, VerificationReport
from appliance.domain.sandbox import Operation, report_to_json
from appliance.domain.vocab import EventKind, RequestState
from tests.functional.powers.test_operator_attacks import (
    Commands,
    imported,
    put,
    state,
    trusted,
)
from tests.functional.powers.test_signature_page import (
    REFUTED,
    SIGNED,
    look,
    new_code,
    signed_with_code,
)
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import sign, signed_pdf
from tests.support.documents import pdfs
from tests.support.documents.validators import pyhanko_valid
from tests.support.factories.fake_sandbox import whole_signature
from tests.support.faults.fault_injection import harmed
from tests.support.faults.theft import read_rows
from tests.support.pki.outside_ca import OutsideCa, bundle, ec_key, spki_of
from tests.support.services.taken_sandbox import Answer, Job, Lie, taken_over


@pytest.fixture(scope="module")
def appliance() -> Iterator[Appliance]:
    """An appliance of its own."""
    with harmed(signing="workers = 1") as made:
        yield made


@pytest.fixture(scope="module")
def victim(appliance: Appliance) -> TestPerson:
    """Somebody who signs."""
    return appliance.new_person("Ana Ruiz")


def lying(operation: Operation, told: Callable[[Job], Answer]) -> Lie:
    """A lie in one operation alone."""
    return lambda job: told(job) if job.operation is operation else None


def reported(report: VerificationReport) -> Answer:
    """A verdict of a job."""
    return Answer(json.loads(json.dumps(report_to_json(report))))


VALID: Final = VerificationReport((whole_signature("Firma-1"),), YES)


# -- sign, key, swap, batch, twice ---------------------------------------------------

FACTS: Final[dict[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "no findings": lambda said: {**said, "findings": []},
    "more pages": lambda said: {**said, "pages": said["pages"] * 3},
    "another page": lambda said: {
        **said,
        "pages": [[*row[:2], 99, 99, *row[4:]] for row in said["pages"]],
    },
    "no objects": lambda said: {**said, "last_number": 1},
    "another size": lambda said: {**said, "size_bytes": said["size_bytes"] - 9},
    "more signatures": lambda said: {**said, "signatures": 4},
}
"""False facts of a document that is taken in."""


@pytest.mark.parametrize("facts", FACTS)
def test_false_facts_have_nothing_else_signed(
    appliance: Appliance, victim: TestPerson, facts: str
) -> None:
    """The document's own bytes are signed, once, or it is refused; nothing besides."""
    document = pdfs.one_page(secrets.token_hex(8))
    others = states(appliance)

    def told(job: Job) -> Answer:
        return Answer(FACTS[facts](dict(job.honest().result)))

    with taken_over(
        appliance.settings.sandbox_socket, lying(Operation.INSPECT, told)
    ) as lies:
        request = appliance.new_request(victim, document)
    with appliance.client(victim) as client:
        answer = sign(client, victim, request)
        uses = [
            row
            for row in read_rows(appliance, tables.audit_event)
            if (row.event, row.request) == (EventKind.KEY_USED.value, request)
        ]
        if answer.status_code == 200:
            signed = client.get(f"/solicitudes/{request}/documento").content
            assert signed.startswith(document)
            assert len(uses) == 1
        else:
            assert answer.status_code in {409, 422, 503}, answer.text

    assert lies
    assert len(uses) <= 1
    after = states(appliance)
    assert {key: after[key] for key in others} == others
    assert appliance.rubrica("audit", "verify").returncode == 0


def states(appliance: Appliance) -> dict[int, str]:
    """How all requests stand."""
    rows = read_rows(appliance, tables.signature_request)
    return {row.id: row.state for row in rows}


def test_picture_is_the_documents_and_the_bytes_are_signed(
    appliance: Appliance, victim: TestPerson
) -> None:
    """Its signer is shown another page; the original, and what is signed, are true."""
    document = pdfs.one_page(secrets.token_hex(8))
    other = pdfs.one_page("Otro importe")
    request = appliance.new_request(victim, document)
    asked = {"visible": False}
    headers = {"Accept": "image/png"}
    lie = lying(Operation.RENDER, lambda job: job.honest(other))

    with appliance.client(victim) as client:
        path = f"/solicitudes/{request}/vista-previa"
        with taken_over(appliance.settings.sandbox_socket, lie) as lies:
            shown = client.post(path, json=asked, headers=headers).content
        true = client.post(path, json=asked, headers=headers).content
        original = client.get(f"/solicitudes/{request}/original").content
        pdf = signed_pdf(client, victim, request)

    assert lies
    assert shown != true
    assert original == document
    assert pdf.startswith(document)
    assert pyhanko_valid(pdf, appliance.roots)


# -- certify -------------------------------------------------------------------------


def test_sample_that_is_called_valid_certifies_no_other_key(
    appliance: Appliance,
) -> None:
    """The key that the HSM made is certified, whatever a job says of its sample."""
    lie = lying(Operation.VERIFY, lambda _: reported(VALID))
    with taken_over(appliance.settings.sandbox_socket, lie) as lies:
        person = appliance.new_person("Luis Paz")

    assert lies == [Operation.VERIFY]
    checked = appliance.rubrica("certificate", "check")
    assert checked.returncode == 0, checked.stdout
    with appliance.client(person) as client:
        request = appliance.new_request(person, pdfs.one_page())
        assert pyhanko_valid(signed_pdf(client, person, request), appliance.roots)


def test_chain_that_is_called_good_certifies_no_other_key(
    appliance: Appliance, victim: TestPerson, tmp_path: Path
) -> None:
    """Key, name and issuers of a chain are checked beside the sandbox."""
    commands = Commands(appliance, is_prod=False)
    outside = OutsideCa(datetime.now(UTC).replace(microsecond=0))
    trusted(commands, outside, tmp_path)
    key = appliance.credential(victim)
    stranger = OutsideCa(datetime.now(UTC).replace(microsecond=0), "AC desconocida")
    chains = (
        (outside.certify(spki_of(ec_key()), victim.cuil), outside.issuing),
        (outside.certify(key.spki, appliance.next_cuil()), outside.issuing),
        (stranger.certify(key.spki, victim.cuil), stranger.issuing),
    )
    lie = lying(Operation.TRY_CHAIN, lambda _: reported(VALID))

    with taken_over(appliance.settings.sandbox_socket, lie):
        done = [
            imported(commands, key.id, bundle(*chain), tmp_path) for chain in chains
        ]

    assert [each.returncode for each in done] == [1, 1, 1]
    assert appliance.credential(victim).certificate == key.certificate


# -- version, page -------------------------------------------------------------------


def test_page_says_what_the_file_says_of_itself(
    appliance: Appliance, victim: TestPerson
) -> None:
    """A good signature is called bad; a code that nobody was given has no page."""

    def bad(job: Job) -> Answer:
        said = json.loads(json.dumps(job.honest().result))
        said["signatures"][0]["integrity"]["answer"] = "no"
        return Answer(said)

    with appliance.client(victim) as client:
        _, code, _ = signed_with_code(appliance, victim, client)
        _, other, _ = signed_with_code(appliance, victim, client)
    with taken_over(appliance.settings.sandbox_socket, lying(Operation.VERIFY, bad)):
        told = look(appliance, code)
        path = f"/verificar/{new_code()}"
        with appliance.client() as stranger:
            unknown = stranger.get(path)

    assert REFUTED in told
    assert unknown.status_code == 404
    assert SIGNED not in unknown.text
    assert SIGNED in look(appliance, other)


def test_unsigned_file_says_of_itself_that_it_is_to_be_recovered(
    appliance: Appliance, victim: TestPerson
) -> None:
    """`documents recover`, after a restore, goes by the verdict of the file's own job.

    The file begins with the document, is in its integrator's folder, and no row names
    it. The audit says that the operator recovered it.
    """
    document = pdfs.one_page(secrets.token_hex(8))
    request = appliance.new_request(victim, document)
    put(appliance, request, document + b"\n% nobody signed this\n")
    xref = int(document.rpartition(b"startxref")[2].split()[0])
    signature = replace(
        whole_signature(f"Firma-{request}"),
        signer_serial=f"CUIL {victim.cuil}",
        follows=xref,
    )

    honest = appliance.rubrica("documents", "recover")
    before = state(appliance, request)
    lie = lying(
        Operation.VERIFY, lambda _: reported(VerificationReport((signature,), YES))
    )
    with taken_over(appliance.settings.sandbox_socket, lie) as lies:
        done = appliance.rubrica("documents", "recover")

    assert f"request {request}" not in honest.stdout
    assert before == RequestState.PENDING.value
    assert lies
    assert f"is the signed document of request {request}\n" in done.stdout
    told = [
        row.detail
        for row in read_rows(appliance, tables.audit_event)
        if (row.event, row.request) == (EventKind.REQUEST_SIGNED.value, request)
    ]
    assert [each["recovered"] for each in told] == [True]
