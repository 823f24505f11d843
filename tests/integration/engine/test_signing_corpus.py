"""Every PDF of the shared corpus is signed and valid, or refused by name."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pypdfium2 as pdfium
import pytest

from appliance.documents.examination import Examination, Examined
from appliance.domain.appearance.stamp import StampLayout, place, stamp_lines
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction
from appliance.settings import DocumentSettings
from tests.support.documents.page_images import difference, digest, is_within, pictures
from tests.support.documents.pdf_samples import SIGNED_AT
from tests.support.documents.software_signer import SoftwareSigner
from tests.support.documents.validators import assert_valid
from tests.support.services.sandbox_server import running_sandbox
from worker.pades import SignaturePlan, check, method_for, prepare
from worker.pades.appearance.fonts import StampFonts

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*.pdf"))
REFUSED = {
    "bug1782186.pdf": ErrorCode.PDF_PASSWORD_NEEDED,
    "issue21579.pdf": ErrorCode.PDF_PASSWORD_NEEDED,
    "encrypted-attachment.pdf": ErrorCode.PDF_MALFORMED,
    "issue9418.pdf": ErrorCode.PDF_MALFORMED,
}
LEFT_OPEN = {"issue15557.pdf"}
"""It lets each program draw its empty field, and PDFium does so until it is signed."""

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not FILES, reason="the shared corpus does not stand beside the project"
    ),
]


@pytest.fixture(scope="module")
def examined() -> Iterator[Callable[[Path], Examined]]:
    """What intake makes of a file: it, or the repaired copy that is signed instead."""
    with running_sandbox() as server:
        intake = Examination(server.client, DocumentSettings())
        yield lambda path: asyncio.run(intake.examine(path.read_bytes()))


def automatic(document: Examined) -> StampLayout | None:
    """The stamp placed by itself on the first page, as intake describes that page."""
    lines = stamp_lines("María José Ñandú", "20267565393", SIGNED_AT, "es")
    return place(SignParameters(), lines, document.inspection.pages)


def plan(signer: SoftwareSigner, layout: StampLayout | None) -> SignaturePlan:
    """A plan of the test's signer."""
    return SignaturePlan(
        "Firma-1", layout, Restriction.NO_VALUE, SIGNED_AT, "Ana", signer.certificate,
        signer.chain, method_for(signer.certificate),
    )  # fmt: skip


@pytest.mark.parametrize("visible", [False, True], ids=["invisible", "visible"])
@pytest.mark.parametrize(
    "path", [p for p in FILES if p.name not in REFUSED], ids=lambda p: p.name
)
def test_corpus_file_is_signed_and_valid(
    path: Path,
    examined: Callable[[Path], Examined],
    signer: SoftwareSigner,
    fonts: StampFonts,
    *,
    visible: bool,
) -> None:
    """Valid and whole for pyHanko and pdfsig, the original an untouched prefix."""
    document = examined(path)
    original = bytes(document.pdf)
    wanted = plan(signer, automatic(document) if visible else None)

    increment = signer.complete(prepare(original, wanted, fonts), wanted)

    check(original, increment, signer.certificate)
    assert_valid(original + increment, signer.root)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, id=p.name, marks=[] if at % 8 == 0 else pytest.mark.long)
        for at, p in enumerate(p for p in FILES if p.name not in REFUSED)
    ],
)
def test_corpus_file_looks_the_same_but_for_the_stamp(
    path: Path,
    examined: Callable[[Path], Examined],
    signer: SoftwareSigner,
    fonts: StampFonts,
) -> None:
    """Every page, for PDFium: repaired, signed without a stamp, and with one."""
    document = examined(path)
    original = bytes(document.pdf)
    if document.repair is not None:
        assert looks(original) == looks(path.read_bytes())
    before = pictures(original)

    for layout in (None, automatic(document)):
        wanted = plan(signer, layout)
        increment = signer.complete(prepare(original, wanted, fonts), wanted)
        after = pictures(original + increment)

        found = [difference(a, b) for a, b in zip(before, after, strict=True)]
        if layout is None:
            assert found[0] is None or path.name in LEFT_OPEN
        else:
            assert found[0] is not None
            size = pdfium.PdfDocument(original)[0].get_size()
            place = (layout.x, layout.y, layout.width, layout.height)
            assert path.name in LEFT_OPEN or is_within(found[0], size, place)
        assert not any(found[1:])


def looks(pdf: bytes) -> list[str]:
    """Every page's picture, in short."""
    return [digest(picture) for picture in pictures(pdf)]


@pytest.mark.parametrize(("name", "code"), REFUSED.items())
def test_corpus_file_is_refused_by_name(
    name: str, code: ErrorCode, signer: SoftwareSigner, fonts: StampFonts
) -> None:
    """The four that cannot be opened say why."""
    with pytest.raises(DocumentRefusedError) as caught:
        prepare((CORPUS / name).read_bytes(), plan(signer, None), fonts)

    assert caught.value.code is code


def test_corpus_has_at_least_74_files_to_sign() -> None:
    """The table above leaves no file out."""
    assert {p.name for p in FILES} >= set(REFUSED)
    assert len(FILES) - len(REFUSED) >= 74
