"""Every PDF of the shared corpus is signed and valid, or refused by name."""

from pathlib import Path

import pypdfium2 as pdfium
import pytest

from appliance.domain.command import SignParameters
from appliance.domain.document import PageBox
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.stamp import StampLayout, place, stamp_lines
from appliance.domain.vocab import Restriction
from tests.tools.pdf_samples import SIGNED_AT, SoftwareSigner, make_signer
from tests.tools.pdf_validation import assert_valid
from worker.pdf import SignaturePlan, check, method_for, prepare
from worker.stamp import StampFonts, load_fonts

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*.pdf"))
REFUSED = {
    "bug1782186.pdf": ErrorCode.PDF_PASSWORD_NEEDED,
    "issue21579.pdf": ErrorCode.PDF_PASSWORD_NEEDED,
    "encrypted-attachment.pdf": ErrorCode.PDF_MALFORMED,
    "issue9418.pdf": ErrorCode.PDF_MALFORMED,
}

pytestmark = pytest.mark.skipif(
    not FILES, reason="the shared corpus does not stand beside the project"
)


@pytest.fixture(scope="module")
def fonts() -> StampFonts:
    """Every font, prepared."""
    return load_fonts(Path("/usr/share/fonts/truetype/liberation2"))


@pytest.fixture(scope="module")
def signer() -> SoftwareSigner:
    """An RSA signer."""
    return make_signer()


def automatic(pdf: bytes) -> StampLayout | None:
    """The stamp placed by itself on the first page, as PDFium sees that page."""
    page = pdfium.PdfDocument(pdf)[0]
    x0, y0, x1, y1 = page.get_cropbox()
    box = PageBox(x0, y0, x1, y1, page.get_rotation())
    lines = stamp_lines("María José Ñandú", "20267565393", SIGNED_AT, "es")
    return place(SignParameters(), lines, [box])


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
    signer: SoftwareSigner,
    fonts: StampFonts,
    tmp_path: Path,
    *,
    visible: bool,
) -> None:
    """Valid and whole for pyHanko and pdfsig, the original an untouched prefix."""
    original = path.read_bytes()
    wanted = plan(signer, automatic(original) if visible else None)

    increment = signer.complete(prepare(original, wanted, fonts), wanted)

    check(original, increment, signer.certificate)
    assert_valid(original + increment, signer, tmp_path)


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
