"""Several small documents in one job: each is described as it is alone."""

from collections.abc import Iterator, Sequence

import pytest

from appliance.documents.examination import Examination
from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ports import DocumentBytes
from appliance.domain.sandbox import (
    MessageInvalidError,
    inspections_from_json,
    sizes_from_json,
)
from appliance.settings import DocumentSettings
from tests.support.documents import hostile_pdfs, pdfs
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.services.sandbox_server import SandboxServer, running_sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """One for all."""
    with running_sandbox() as server:
        yield server


async def test_each_is_described_as_it_is_alone(sandbox: SandboxServer) -> None:
    """What is refused alone is left to a job of its own, and harms no other."""
    plain = [pdfs.one_page(f"Recibo {n}") for n in range(3)]
    documents = [plain[0], b"no PDF", plain[1], hostile_pdfs.plain(), plain[2]]

    found = await sandbox.client.inspect_all(documents)

    for pdf, described in zip(documents, found, strict=True):
        if pdf == b"no PDF":
            assert described is None
        else:
            assert described == await sandbox.client.inspect(pdf)


async def test_job_that_is_cut_says_nothing_of_any() -> None:
    """Each of them has a job of its own then."""

    class Cut(FakeInspector):
        """A job of several ends without a word."""

        async def inspect_all(
            self, pdfs: Sequence[DocumentBytes]
        ) -> list[Inspection | None]:
            """As the client has it where an answer is of another shape."""
            del pdfs
            raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)

    examination = Examination(Cut(pages=1), DocumentSettings())

    assert await examination.inspect_together([b"%PDF 1", b"%PDF 2"]) == [None, None]


async def test_document_too_complex_for_a_job_of_several(
    sandbox: SandboxServer,
) -> None:
    """The job is cut; nothing is said of the others, and each is then looked at."""
    bomb = hostile_pdfs.content_bomb()
    plain = pdfs.one_page()
    with pytest.raises(DocumentRefusedError):
        await sandbox.client.inspect(bomb)

    found = await sandbox.client.inspect_all([plain, bomb])

    assert found[1] is None
    assert found[0] in {None, await sandbox.client.inspect(plain)}


@pytest.mark.parametrize(
    "answer",
    [{}, {"inspections": None}, {"inspections": [None]}, {"inspections": [None, 1]}],
)
def test_answer_of_another_shape_is_none(answer: dict[str, object]) -> None:
    """A job that was taken over says what it likes."""
    with pytest.raises(MessageInvalidError):
        inspections_from_json(answer, 2)


@pytest.mark.parametrize("sizes", [None, [1], [2, 3], [0, 4], [5, -1], ["4"]])
def test_sizes_have_the_sum_of_the_bytes(sizes: object) -> None:
    """Else nobody knows where a document ends."""
    with pytest.raises(MessageInvalidError):
        sizes_from_json({"sizes": sizes}, 4)
