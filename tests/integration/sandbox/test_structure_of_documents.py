"""Structural reader on honest files: of the test suite, and of other makers."""

import io
from pathlib import Path
from typing import Final

import pikepdf
import pytest

from tests.support.documents import (
    field_pdfs,
    hostile_pdfs,
    pdf_samples,
    pdfs,
    shadow_pdfs,
)
from tests.support.documents.software_signer import signed, software_signer
from worker.pades.appearance.fonts import StampFonts
from worker.sandbox.structure import (
    APPENDED_ONLY,
    CheckedReader,
    Structure,
    read_structure,
)

SHARED: Final = Path(__file__).parents[3].parent / "shared"


def read(pdf: bytes) -> Structure:
    """Read a file as the verifier does, with pyHanko's reader where it opens."""
    try:
        opened = CheckedReader(pdf)
        if opened.encrypted:
            opened.decrypt("")
    except Exception:  # noqa: BLE001 (pyHanko raises anything for damaged files)
        return read_structure(pdf)
    return read_structure(pdf, opened)


HONEST: Final = {
    **pdfs.READABLE,
    "fields": lambda: field_pdfs.with_fields(
        field_pdfs.Field(), field_pdfs.Field("a.b.c")
    ),
    "check box": field_pdfs.check_box_without_state,
    "layers": lambda: shadow_pdfs.layered(b""),
    "hybrid": hostile_pdfs.hybrid,
    "sample": pdf_samples.make_pdf,
}


@pytest.mark.parametrize("name", HONEST)
def test_documents_of_the_suite_are_not_ambiguous(name: str, fonts: StampFonts) -> None:
    """Each document as it is, saved with object streams, linearized, and signed."""
    for pdf in _saved_otherwise(HONEST[name]()):
        assert read(pdf).ambiguities == ()
        assert read(pdf).examined
        signer = software_signer()
        ours = pdf_samples.sign(pdf, signer, pdf_samples.make_plan(signer), fonts)
        assert read(ours).ambiguities == ()
        assert read(ours).examined
        if b"/Encrypt" not in pdf:
            assert read(signed(ours)).ambiguities == ()


def _saved_otherwise(pdf: bytes) -> list[bytes]:
    saved = [pdf]
    for linearize in (False, True):
        out = io.BytesIO()
        with pikepdf.open(io.BytesIO(pdf)) as opened:
            opened.save(
                out,
                object_stream_mode=pikepdf.ObjectStreamMode.generate,
                linearize=linearize,
                encryption=opened.is_encrypted,
            )
        saved.append(out.getvalue())
    return saved


MADE_AMBIGUOUS: Final = {"shadow-hide.pdf"}
"""Files with intact bytes that are ambiguous: its stream lengths are 17 too many."""
UNREADABLE: Final = {
    "pades_infinite_loop.pdf",  # its startxref lies behind its end
    "pdf-signed-corrupted.pdf",  # bytes are missing, so that all offsets are wrong
    "usf_01_Empty_Contents.pdf",  # rows of 19 bytes
    "usf_02_00_Contents.pdf",
    "usf_03_Null_Contents.pdf",
}
"""Files that hold no valid signature."""


def test_signed_files_of_other_makers_are_not_ambiguous() -> None:
    """Files with intact bytes, but for those that are named here."""
    files = sorted((SHARED / "corpus-signed").glob("*.pdf"))
    if not files:
        pytest.skip("the signed corpus does not stand beside this checkout")

    ambiguous = {
        file.name
        for file in files
        if not (found := read(file.read_bytes())).examined
        or any(one.kind not in APPENDED_ONLY for one in found.ambiguities)
    }

    assert ambiguous == MADE_AMBIGUOUS | UNREADABLE


def test_files_of_earlier_findings_are_not_ambiguous() -> None:
    """Linearized, encrypted and large ones among them."""
    files = sorted((SHARED / "failing").rglob("*.pdf"))
    if not files:
        pytest.skip("the failing inputs do not stand beside this checkout")

    found = {file.name: read(file.read_bytes()) for file in files}

    assert {
        name: one.ambiguities for name, one in found.items() if one.ambiguities
    } == {}
    assert all(one.examined for one in found.values())
