"""What independent validators say of a signed PDF."""

import io
import subprocess
from pathlib import Path

from asn1crypto import x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import (
    PdfSignatureStatus,
    SignatureCoverageLevel,
    validate_pdf_signature,
)
from pyhanko_certvalidator import ValidationContext

from tests.tools.pdf_samples import SIGNED_AT, SoftwareSigner


def read_pdf(pdf: bytes) -> PdfFileReader:
    """Open a PDF for reading, with the empty password if need be."""
    reader = PdfFileReader(io.BytesIO(pdf), strict=False)
    if reader.encrypted:
        reader.decrypt("")
    return reader


def validate(pdf: bytes, signer: SoftwareSigner) -> list[PdfSignatureStatus]:
    """PyHanko's status of each signature, with the signer's CA as root."""
    context = ValidationContext(
        trust_roots=[x509.Certificate.load(signer.chain[-1])], moment=SIGNED_AT
    )
    return [
        validate_pdf_signature(signature, context)
        for signature in read_pdf(pdf).embedded_regular_signatures
    ]


def run_pdfsig(pdf: bytes, folder: Path) -> str:
    """The words of pdfsig; its exit status says nothing."""
    path = folder / "signed.pdf"
    path.write_bytes(pdf)
    done = subprocess.run(
        ["pdfsig", path], check=False, capture_output=True, text=True, timeout=60
    )
    return done.stdout


def assert_valid(pdf: bytes, signer: SoftwareSigner, folder: Path) -> None:
    """The last signature is valid and total for pyHanko and pdfsig."""
    status = validate(pdf, signer)[-1]
    assert status.bottom_line, status.pretty_print_details()
    assert status.coverage is SignatureCoverageLevel.ENTIRE_FILE
    words = run_pdfsig(pdf, folder).rsplit("Signature #", maxsplit=1)[-1]
    assert "\n  - Signature Validation: Signature is Valid." in words
    assert "\n  - Total document signed" in words
