"""Two validators that are not ours: pyHanko and poppler's pdfsig.

They agree on a good signature. pdfsig says by its text alone what is wrong (its
exit status is 0 for a broken signature), knows no trust in our roots, and does
not check document timestamps.
"""

import io
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pikepdf
from asn1crypto import x509
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import async_validate_pdf_signature
from pyhanko.sign.validation.pdf_embedded import EmbeddedPdfSignature
from pyhanko.sign.validation.status import PdfSignatureStatus
from pyhanko_certvalidator import ValidationContext

from tests.support.processes.event_loops import run_apart

_PDFSIG_S: Final = 60
_TIMESTAMPS: Final = {"unknown", "ETSI.RFC3161"}
"""Subfilter of a document timestamp, as older and newer versions of Poppler say it."""
_HEADER: Final = re.compile(r"^Signature #\d+:$", re.MULTILINE)


def read_pdf(pdf: bytes, password: str | None = None) -> PdfFileReader:
    """Open a PDF for reading, with the empty password if need be."""
    reader = PdfFileReader(io.BytesIO(pdf), strict=False)
    if reader.encrypted:
        reader.decrypt((password or "").encode())
    return reader


@dataclass(frozen=True, slots=True)
class PdfsigSignature:
    """What pdfsig says of one signature."""

    text: str
    """All its lines."""

    def _value(self, label: str) -> str:
        found = re.search(rf"^  - {label}: (.*)$", self.text, re.MULTILINE)
        return found[1].strip() if found else ""

    @property
    def signer(self) -> str:
        """Common name in the certificate."""
        return self._value("Signer Certificate Common Name")

    @property
    def subfilter(self) -> str:
        """Kind of signature, `ETSI.CAdES.detached` for PAdES."""
        return self._value("Signature Type")

    @property
    def is_timestamp(self) -> bool:
        """Whether it is a document timestamp, which pdfsig does not look into."""
        return self.subfilter in _TIMESTAMPS

    @property
    def valid(self) -> bool:
        """Whether digest and signature value are right."""
        return self._value("Signature Validation") == "Signature is Valid."

    @property
    def whole_document(self) -> bool:
        """Whether it covers the file to its last byte."""
        return "\n  - Total document signed" in self.text


def pdfsig(pdf: Path | bytes, *, password: str | None = None) -> list[PdfsigSignature]:
    """Ask pdfsig about every signature, in the order of the file.

    Args:
        pdf: the document or its path.
        password: the user password, where it needs one.

    Returns:
        One for each; an empty list for a document without any.
    """
    if isinstance(pdf, bytes):
        with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
            file.write(pdf)
            file.flush()
            return pdfsig(Path(file.name), password=password)
    options = [] if password is None else ["-upw", password]
    try:
        done = subprocess.run(
            ["pdfsig", "-nocert", *options, str(pdf)],
            capture_output=True,
            check=False,
            # It speaks the reader's language.
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
            timeout=_PDFSIG_S,
        )
    except subprocess.TimeoutExpired:
        return []  # no verdict
    text = done.stdout.decode("utf-8", errors="replace")
    return [PdfsigSignature(part) for part in _HEADER.split(text)[1:]]


@dataclass(frozen=True, slots=True)
class PyhankoVerdict:
    """What pyHanko says of one signature."""

    good: bool
    """Its bottom line: intact, valid, trusted, no change that is not allowed."""
    intact: bool
    valid: bool
    trusted: bool
    coverage: str
    """`ENTIRE_FILE`, `ENTIRE_REVISION`, `CONTIGUOUS_BLOCK_FROM_START`, `UNCLEAR`."""
    changes: str
    """What later revisions changed: `NONE`, `LTA_UPDATES`, … or `UNKNOWN`."""
    signer: x509.Certificate
    details: str
    """All of it in words, for a failing test."""


def pyhanko_verdicts(
    pdf: bytes, roots: Sequence[bytes], *, password: str | None = None
) -> list[PyhankoVerdict]:
    """Ask pyHanko about every signature, in the order of the file.

    Args:
        pdf: the document.
        roots: DER certificates that are trusted, and nothing else.
        password: to open an encrypted document; empty where it opens by itself.
    """
    trusted = [x509.Certificate.load(root) for root in roots]
    signatures = read_pdf(pdf, password).embedded_regular_signatures
    return [_verdict(each, trusted) for each in signatures]


def pyhanko_valid(
    pdf: bytes, roots: Sequence[bytes], *, password: str | None = None
) -> bool:
    """Say whether a document has signatures and pyHanko likes each of them."""
    verdicts = pyhanko_verdicts(pdf, roots, password=password)
    return bool(verdicts) and all(verdict.good for verdict in verdicts)


def assert_valid(pdf: bytes, root: bytes) -> None:
    """The last signature is valid and total for pyHanko and pdfsig.

    Args:
        pdf: the document.
        root: the one trusted certificate, DER.
    """
    verdict = pyhanko_verdicts(pdf, [root])[-1]
    assert verdict.good, verdict.details
    assert verdict.coverage == "ENTIRE_FILE"
    seen = pdfsig(pdf)[-1]
    assert (seen.valid, seen.whole_document) == (True, True), seen.text


def signature_values(pdf: bytes) -> list[bytes]:
    """The value of every signature, in the order of the file.

    They stay when a later revision or a timestamp raises a signature's level.
    """
    return [
        each.signer_info["signature"].native
        for each in read_pdf(pdf).embedded_regular_signatures
    ]


def _verdict(
    embedded: EmbeddedPdfSignature, trusted: list[x509.Certificate]
) -> PyhankoVerdict:
    """Validate one signature with nothing fetched from anywhere."""
    context = ValidationContext(trust_roots=trusted, allow_fetching=False)
    status: PdfSignatureStatus = run_apart(
        async_validate_pdf_signature(embedded, context)
    )
    level = status.modification_level
    coverage = status.coverage
    return PyhankoVerdict(
        good=status.bottom_line,
        intact=status.intact,
        valid=status.valid,
        trusted=status.trusted,
        coverage="UNCLEAR" if coverage is None else coverage.name,
        changes="UNKNOWN" if level is None else level.name,
        signer=status.signing_cert,
        details=status.pretty_print_details(),
    )


def signature_boxes(pdf: bytes) -> list[tuple[int, float, float, float, float]]:
    """Visible signatures: page (from 1) and rectangle in user space, in order."""
    boxes = []
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        for number, page in enumerate(opened.pages, start=1):
            for note in page.get("/Annots", pikepdf.Array()).as_list():
                x0, y0, x1, y1 = (float(side) for side in note.Rect.as_list())
                if note.get("/FT") == "/Sig" and x1 > x0 and y1 > y0:
                    boxes.append((number, x0, y0, x1, y1))
    return boxes
