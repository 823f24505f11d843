"""Copies compared with their originals by a job that made neither.

A job that writes a file anew reads it first, and a file may take that job over. Its
word on the copy's looks is worth nothing.

Source: docs/documents.md, "The repair".
"""

from collections.abc import Iterator

import pytest

from appliance.documents.examination import Examination
from appliance.domain.documents.inspected import Damage, FindingKind, RepairedCopy
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ports.documents import DocumentBytes
from appliance.settings import DocumentSettings
from tests.support.documents import pdfs
from tests.support.services.sandbox_server import SandboxServer, running_sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """A sandbox for all tests here."""
    with running_sandbox() as server:
        yield server


def taken_over(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, copy: bytes
) -> Examination:
    """An examination whose repairing job answers with a copy of the attacker's."""

    async def repair(pdf: DocumentBytes) -> RepairedCopy:
        del pdf
        return RepairedCopy(copy, (Damage.CROSS_REFERENCES,))

    monkeypatch.setattr(sandbox.client, "repair", repair)
    return Examination(sandbox.client, DocumentSettings())


async def test_honest_copy_looks_the_same(sandbox: SandboxServer) -> None:
    """Nothing is told of its looks."""
    examination = Examination(sandbox.client, DocumentSettings())

    examined = await examination.examine(pdfs.wrong_startxref())

    assert examined.repair is not None
    assert not {Damage.LOOK, Damage.LOOK_UNKNOWN} & {*examined.repair.damage}


@pytest.mark.parametrize(
    "copy", [pdfs.one_page("Otro importe"), pdfs.pages(3)], ids=["text", "pages"]
)
async def test_false_copy_is_told(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch, copy: bytes
) -> None:
    """Other words, or other pages: who signs is warned before the password."""
    examination = taken_over(sandbox, monkeypatch, copy)

    examined = await examination.examine(pdfs.wrong_startxref())

    assert examined.repair is not None
    assert Damage.LOOK in examined.repair.damage
    assert FindingKind.REPAIRED_LOOK in examined.inspection.findings


async def test_copy_of_what_cannot_be_drawn_is_not_called_the_same(
    sandbox: SandboxServer,
) -> None:
    """PDFium opens no such original."""
    assert await sandbox.client.compare(b"%PDF-1.7 nothing", pdfs.one_page()) is None
    assert await sandbox.client.compare(pdfs.one_page(), pdfs.one_page()) is True


async def test_comparison_that_is_too_much_is_not_called_the_same(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was ended in the middle knows nothing."""

    async def ended(*_: object) -> None:
        raise DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "ended")

    monkeypatch.setattr(sandbox.client, "_ask", ended)

    assert await sandbox.client.compare(pdfs.one_page(), pdfs.one_page()) is None


async def test_sandbox_that_is_away_offers_no_copy(
    sandbox: SandboxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No copy is taken in that nobody has compared."""
    examination = Examination(sandbox.client, DocumentSettings())

    async def away(*_: object) -> None:
        raise ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)

    monkeypatch.setattr(sandbox.client, "compare", away)

    with pytest.raises(ApplianceError) as caught:
        await examination.examine(pdfs.wrong_startxref())
    assert caught.value.code is ErrorCode.SANDBOX_UNAVAILABLE
