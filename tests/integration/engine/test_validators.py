"""The builders of PDFs and the two validators, held against each other."""

import io
from collections.abc import Callable

import pikepdf
import pytest
from pyhanko.sign.fields import MDPPerm

from tests.support.documents import pdfs
from tests.support.documents.software_signer import signed, software_signer
from tests.support.documents.validators import pdfsig, pyhanko_valid, pyhanko_verdicts


@pytest.fixture(scope="module")
def document() -> bytes:
    """A signed document."""
    return signed(pdfs.one_page())


def roots() -> list[bytes]:
    """What signed documents here are trusted by."""
    return [software_signer().root]


def test_good_signature_is_good_for_both(document: bytes) -> None:
    """Both validators accept it and see the whole file covered."""
    (by_pdfsig,) = pdfsig(document)
    (by_pyhanko,) = pyhanko_verdicts(document, roots())

    assert (by_pdfsig.valid, by_pdfsig.whole_document) == (True, True)
    assert by_pdfsig.signer == "Ada Prueba"
    assert by_pdfsig.subfilter == "ETSI.CAdES.detached"
    assert by_pyhanko.good, by_pyhanko.details
    assert by_pyhanko.coverage == "ENTIRE_FILE"
    assert pyhanko_valid(document, roots())


def test_changed_byte_is_bad_for_both(document: bytes) -> None:
    """One other letter on the page breaks the signature."""
    changed = document.replace(b"/Helvetica", b"/Helvetika", 1)
    assert changed != document

    assert [found.valid for found in pdfsig(changed)] == [False]
    assert not pyhanko_valid(changed, roots())


def test_bytes_after_signature_are_not_covered(document: bytes) -> None:
    """What follows the signed revision shows as not covered."""
    (by_pdfsig,) = pdfsig(document + b"\n% more\n")
    (by_pyhanko,) = pyhanko_verdicts(document + b"\n% more\n", roots())

    assert not by_pdfsig.whole_document
    assert by_pyhanko.coverage == "ENTIRE_REVISION"


def test_signature_under_another_root_is_not_trusted(document: bytes) -> None:
    """Only the given roots are trusted."""
    (verdict,) = pyhanko_verdicts(document, [software_signer("Another").root])

    assert (verdict.valid, verdict.trusted, verdict.good) == (True, False, False)


def test_document_without_signature_has_none() -> None:
    """No signature is not a valid one."""
    assert pdfsig(pdfs.one_page()) == []
    assert not pyhanko_valid(pdfs.one_page(), roots())


def test_certified_document_says_what_may_change() -> None:
    """A certification signature carries its permission."""
    certified = signed(pdfs.one_page(), certify=MDPPerm.NO_CHANGES)

    with pikepdf.open(pikepdf_file(certified)) as pdf:
        reference = pdf.Root.Perms.DocMDP.Reference[0]
        assert int(reference.TransformParams.P) == 1
    assert pyhanko_valid(certified, roots())


def pikepdf_file(content: bytes) -> io.BytesIO:
    """What pikepdf opens."""
    return io.BytesIO(content)


@pytest.mark.parametrize("build", pdfs.READABLE.values(), ids=pdfs.READABLE)
def test_readable_document_opens_without_password(build: Callable[[], bytes]) -> None:
    """Each builder's document opens and has a page."""
    with pikepdf.open(pikepdf_file(build())) as pdf:
        assert pdf.pages[0] is not None


def test_encrypted_document_needs_its_password() -> None:
    """A user password keeps others out."""
    content = pdfs.encrypted(user="secret")

    with pytest.raises(pikepdf.PasswordError):
        pikepdf.open(pikepdf_file(content))
    with pikepdf.open(pikepdf_file(content), password="secret") as pdf:
        assert len(pdf.pages) == 1


def test_lying_count_is_in_the_file() -> None:
    """The page tree claims what it does not have."""
    assert b"/Count 2000000000" in pdfs.lying_count()


@pytest.mark.parametrize("content", pdfs.NOT_PDF.values(), ids=pdfs.NOT_PDF)
def test_no_pdf_does_not_open(content: bytes) -> None:
    """What is no PDF is none for a tolerant reader either."""
    with pytest.raises(pikepdf.PdfError):
        pikepdf.open(pikepdf_file(content))


@pytest.mark.parametrize(
    "build", [pdfs.one_page, pdfs.lying_count, pdfs.text_field, pdfs.wrong_startxref]
)
def test_same_call_gives_same_bytes(build: Callable[[], bytes]) -> None:
    """Digests of built documents may stand in tests."""
    assert build() == build()
