"""Power: a document has taken over the sandbox's job that reads it.

The job answers whatever the document wants, in each operation. It has no network, no
file, no secret and no other document, so that its answer is all that there is. What an
answer is believed for is told here, one operation after the other.

Source: docs/documents.md "Who reads a PDF", "The repair"; docs/verification.md.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from appliance.documents.examination import Examination
from appliance.documents.sandbox_client import SandboxClient
from appliance.domain.appearance.details import LOGO_WIDTH_PX
from appliance.domain.documents.inspected import Damage, FindingKind
from appliance.domain.documents.verification import YES, VerificationReport
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.sandbox import (
    ANSWER_BYTES_MAX,
    BINARY_BYTES_MAX,
    LENGTH,
    Operation,
    encode,
    report_to_json,
)
from appliance.settings import DocumentSettings
from tests.support.documents import pdfs
from tests.support.documents.software_signer import software_signer
from tests.support.factories.fake_sandbox import whole_signature
from tests.support.services.sandbox_server import SandboxServer, running_sandbox
from tests.support.services.taken_sandbox import Answer, Job, taken_over

PLAIN: Final = pdfs.one_page()
OTHER: Final = pdfs.one_page("Otro importe")
VALID: Final = VerificationReport((whole_signature("Firma-1"),), YES)
Call = Callable[[SandboxClient], Awaitable[Any]]
CALLS: Final[dict[Operation, Call]] = {
    Operation.INSPECT: lambda client: client.inspect(PLAIN),
    Operation.INSPECT_ALL: lambda client: client.inspect_all([PLAIN, OTHER]),
    Operation.REPAIR: lambda client: client.repair(pdfs.wrong_startxref()),
    Operation.COMPARE: lambda client: client.compare(PLAIN, OTHER),
    Operation.RENDER: lambda client: client.render(PLAIN, 1, None, 72),
    Operation.VERIFY: lambda client: client.verify(PLAIN, [software_signer().root]),
    Operation.TRY_CHAIN: lambda client: client.try_chain(
        [software_signer().certificate, software_signer().root]
    ),
    Operation.PICTURE: lambda client: client.picture(b"\x89PNG"),
    Operation.FIND_TEXT: lambda client: client.find_text(PLAIN, "Firma", 1),
    Operation.PING: lambda client: client.ping(),
}
"""Each operation, as the sandbox's callers ask for it."""
HEAPS: Final[dict[str, bytes]] = {
    "no message": b"\xff" * 64,
    "no object": LENGTH.pack(2) + b"[]",
    "a length beyond all bounds": LENGTH.pack(ANSWER_BYTES_MAX + 1),
    "bytes beyond all bounds": encode({"result": {}, "binary": BINARY_BYTES_MAX + 1}),
    "fewer bytes than it says": encode({"result": {}, "binary": 8}) + b"%PDF",
    "a refusal that is none": encode({"refused": "ALREADY_SIGNED", "binary": 0}),
}
"""Answers that no honest job gives, in any operation."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A true sandbox."""
    with running_sandbox() as server:
        yield server


def test_every_operation_is_tried() -> None:
    """One that nobody has judged is not released."""
    assert set(CALLS) == set(Operation)


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("heap", HEAPS)
async def test_answer_of_another_shape_is_no_answer(
    sandbox: SandboxServer, operation: Operation, heap: str
) -> None:
    """Nothing of it comes through, and the caller is told that the sandbox is away."""
    with (
        taken_over(sandbox.path, lambda _: HEAPS[heap]) as told,
        pytest.raises(ApplianceError) as caught,
    ):
        await CALLS[operation](sandbox.client)

    assert set(told) == {operation}
    assert caught.value.code is ErrorCode.SANDBOX_UNAVAILABLE


SHAPES: Final[dict[Operation, list[Answer]]] = {
    Operation.INSPECT: [Answer({}), Answer({"pages": []})],
    Operation.INSPECT_ALL: [
        Answer({"inspections": []}),
        Answer({"inspections": [None]}),
        Answer({"inspections": [None, None, None]}),
        Answer({"inspections": [{}, None]}),
    ],
    Operation.REPAIR: [
        Answer({"damage": []}, b"MZ\x90"),
        Answer({"damage": ["nothing that is known"]}, PLAIN),
    ],
    Operation.COMPARE: [Answer({"alike": "yes"}), Answer({"alike": 1})],
    Operation.RENDER: [Answer({}, b"<svg/>"), Answer({}, b"")],
    Operation.VERIFY: [Answer({}), Answer({"signatures": [{}], "ending": {}})],
    Operation.TRY_CHAIN: [Answer({}), Answer({"signatures": [{}], "ending": {}})],
    Operation.PICTURE: [
        Answer({"width": 1, "height": 1}, b"\0\0"),
        Answer({"width": LOGO_WIDTH_PX + 1, "height": 1}, bytes(3)),
        Answer({"width": 0, "height": 0}, b""),
    ],
    Operation.FIND_TEXT: [Answer({}), Answer({"found": "everywhere"})],
}
"""Answers of the right frame and another content."""


@pytest.mark.parametrize(
    ("operation", "answer"),
    [(operation, each) for operation, answers in SHAPES.items() for each in answers],
)
async def test_answer_of_another_content_is_no_answer(
    sandbox: SandboxServer, operation: Operation, answer: Answer
) -> None:
    """Numbers, kinds, pixels and members are checked by whoever asked."""
    with (
        taken_over(sandbox.path, lambda _: answer),
        pytest.raises(ApplianceError) as caught,
    ):
        await CALLS[operation](sandbox.client)

    assert caught.value.code is ErrorCode.SANDBOX_UNAVAILABLE


# -- what is believed ----------------------------------------------------------------


async def test_findings_are_believed_of_the_document_itself(
    sandbox: SandboxServer,
) -> None:
    """Its signer is not warned; the bytes that are taken in are the document's own."""
    pdf = pdfs.javascript()
    examination = Examination(sandbox.client, DocumentSettings())
    honest = await examination.examine(pdf)

    def nothing_found(job: Job) -> Answer:
        result = job.honest().result
        return Answer({**result, "findings": []})

    with taken_over(sandbox.path, nothing_found):
        examined = await examination.examine(pdf)

    assert FindingKind.JAVASCRIPT in honest.inspection.findings
    assert examined.inspection.findings == ()
    assert examined.pdf is pdf


async def test_findings_of_documents_of_the_same_call_are_believed(
    sandbox: SandboxServer,
) -> None:
    """Small documents of one caller share a job; those of nobody else are in it."""
    examination = Examination(sandbox.client, DocumentSettings())
    pair = [PLAIN, pdfs.javascript()]

    def nothing_found(job: Job) -> Answer:
        rows = job.honest().result["inspections"]
        return Answer({"inspections": [{**row, "findings": []} for row in rows]})

    honest = await examination.inspect_together(pair)
    with taken_over(sandbox.path, nothing_found) as told:
        believed = await examination.inspect_together(pair)

    assert told == [Operation.INSPECT_ALL]
    assert [each and each.findings for each in honest] == [
        (),
        (FindingKind.JAVASCRIPT,),
    ]
    assert [each and each.findings for each in believed] == [(), ()]


async def test_document_more_in_a_call_is_no_document(sandbox: SandboxServer) -> None:
    """One inspection too many spoils the answer, and each has a job of its own then."""
    examination = Examination(sandbox.client, DocumentSettings())

    def one_more(job: Job) -> Answer | None:
        if job.operation is not Operation.INSPECT_ALL:
            return None
        rows = job.honest().result["inspections"]
        return Answer({"inspections": [*rows, rows[0]]})

    with taken_over(sandbox.path, one_more):
        found = await examination.inspect_together([PLAIN, OTHER])

    assert found == [None, None]


async def test_copy_is_compared_by_another_job(sandbox: SandboxServer) -> None:
    """The job that made a false copy says nothing of its looks."""
    examination = Examination(sandbox.client, DocumentSettings())

    def false_copy(job: Job) -> Answer | None:
        if job.operation is not Operation.REPAIR:
            return None
        return Answer({"damage": ["cross_references"]}, OTHER)

    with taken_over(sandbox.path, false_copy) as told:
        examined = await examination.examine(pdfs.wrong_startxref())

    assert told == [Operation.REPAIR]
    assert examined.repair is not None
    assert Damage.LOOK in examined.repair.damage
    assert FindingKind.REPAIRED_LOOK in examined.inspection.findings


async def test_document_that_takes_every_job_over_is_told_as_repaired(
    sandbox: SandboxServer,
) -> None:
    """The comparison reads it, too: then the copy is what is shown, kept and signed.

    That there is a copy, and of which file, is no answer of a job.
    """
    examination = Examination(sandbox.client, DocumentSettings())

    def false_copy_alike(job: Job) -> Answer | None:
        if job.operation is Operation.REPAIR:
            return Answer({"damage": ["cross_references"]}, OTHER)
        return Answer({"alike": True}) if job.operation is Operation.COMPARE else None

    with taken_over(sandbox.path, false_copy_alike):
        examined = await examination.examine(pdfs.wrong_startxref())

    assert examined.pdf == OTHER
    assert examined.repair is not None
    assert Damage.LOOK not in examined.repair.damage
    assert FindingKind.REPAIRED in examined.inspection.findings


async def test_picture_of_a_page_is_believed(sandbox: SandboxServer) -> None:
    """As another document does."""

    def other_page(job: Job) -> Answer:
        return job.honest(OTHER)

    true = await sandbox.client.render(OTHER, 1, None, 72)
    with taken_over(sandbox.path, other_page):
        shown = await sandbox.client.render(PLAIN, 1, None, 72)

    assert shown == true
    assert shown != await sandbox.client.render(PLAIN, 1, None, 72)


async def test_verdict_is_believed_of_the_file_itself(sandbox: SandboxServer) -> None:
    """An unsigned file is called valid; the record has more to say of it."""
    said = json.loads(json.dumps(report_to_json(VALID)))
    honest = await sandbox.client.verify(PLAIN, [software_signer().root])

    with taken_over(sandbox.path, lambda _: Answer(said)):
        report = await sandbox.client.verify(PLAIN, [software_signer().root])

    assert not honest.valid
    assert report.valid


async def test_refusal_is_believed(sandbox: SandboxServer) -> None:
    """A document can keep itself out, and nobody else."""
    refusal = encode({"refused": "PDF_MALFORMED", "params": {}, "binary": 0})

    with (
        taken_over(sandbox.path, lambda _: refusal),
        pytest.raises(DocumentRefusedError) as caught,
    ):
        await sandbox.client.inspect(PLAIN)

    assert caught.value.code is ErrorCode.PDF_MALFORMED
    assert replace(await sandbox.client.inspect(PLAIN)).findings == ()
