"""Describes one PDF, or refuses it by name; runs in a confined job only."""

import io
import re
from dataclasses import replace
from typing import Final

from pyhanko.pdf_utils.crypt import AuthStatus, StandardSecurityHandler
from pyhanko.pdf_utils.misc import PdfDecodeLimitError
from pyhanko.pdf_utils.reader import PdfFileReader

from appliance.domain.document import FindingKind, Inspection
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.sandbox.active import ActiveContent
from worker.sandbox.content import unfold_pages
from worker.sandbox.forms import (
    certification_level,
    count_signatures,
    form_fields,
    has_xfa,
    is_xfa_dynamic,
)
from worker.sandbox.objects import Budget
from worker.sandbox.pages import page_box, walk_pages
from worker.sandbox.signable import prove_signable
from worker.sandbox.signing_facts import signing_facts
from worker.sandbox.verify import has_broken

_STEPS: Final = 500_000
_TAIL_BYTES: Final = 1024
_TAIL: Final = re.compile(rb"%%EOF\s*\Z")


def inspect(pdf: bytes, limit: int) -> Inspection:
    """Describe a PDF and prove that it can be signed.

    It is read strictly first; one that only tolerant reading understands is
    described from that, and called damaged.

    Args:
        pdf: the whole file.
        limit: most pages that are taken.

    Raises:
        DocumentRefusedError: it cannot be taken in, by a `PDF_*` code.
        PdfDecodeLimitError: it unfolds too far.
    """
    try:
        described = _describe(pdf, limit, strict=True)
    except (DocumentRefusedError, PdfDecodeLimitError, MemoryError, RecursionError):
        raise
    except Exception:  # noqa: BLE001 (broken files raise anything; read tolerantly)
        tolerant = _describe(pdf, limit, strict=False)
        described = _with_finding(tolerant, FindingKind.DAMAGED)
    if not _TAIL.search(pdf, max(0, len(pdf) - _TAIL_BYTES)):
        described = _with_finding(described, FindingKind.DAMAGED)
    _prove(pdf, limit, described)
    if described.signatures and has_broken(pdf):
        described = _with_finding(described, FindingKind.SIGNATURE_BROKEN)
    return described


def _describe(pdf: bytes, limit: int, *, strict: bool) -> Inspection:
    """Read the file once and say what it holds.

    Raises:
        DocumentRefusedError: by a `PDF_*` code.
    """
    reader = PdfFileReader(io.BytesIO(pdf), strict=strict)
    findings = set[FindingKind]()
    if _open(reader):
        findings.add(FindingKind.ENCRYPTED_EMPTY_PASSWORD)
    catalog = reader.root
    tree = walk_pages(catalog, limit)
    has_content = unfold_pages(tree.pages, strict=strict)
    budget = Budget(_STEPS)
    fields = form_fields(catalog, budget)
    if has_xfa(catalog):
        if is_xfa_dynamic(catalog, tree.pages, has_content=has_content):
            raise DocumentRefusedError(ErrorCode.PDF_XFA)
        findings.add(FindingKind.XFA_STATIC)
    active = ActiveContent(budget)
    active.scan_catalog(catalog)
    for node in [page.node for page in tree.pages]:
        active.scan_page(node)
    for node in fields:
        active.scan_node(node)
    for finding, is_so in (
        (FindingKind.HYBRID_XREF, reader.xrefs.hybrid_xrefs_present),
        (FindingKind.COUNT_LIES, tree.count_lies),
        (FindingKind.DAMAGED, tree.gaps),
    ):
        if is_so:
            findings.add(finding)
    return Inspection(
        size_bytes=len(pdf),
        pages=tuple(page_box(page) for page in tree.pages),
        findings=tuple(sorted(findings | active.found)),
        signatures=count_signatures(fields),
        docmdp=certification_level(catalog),
        signing=signing_facts(catalog, tree.pages),
    )


def _open(reader: PdfFileReader) -> bool:
    """Open an encrypted file with the empty password.

    Returns:
        True when it is encrypted at all.

    Raises:
        DocumentRefusedError: `PDF_PASSWORD_NEEDED` or `PDF_ENCRYPTED`.
    """
    if "/Encrypt" not in reader.trailer:
        return False
    try:
        is_standard = isinstance(reader.security_handler, StandardSecurityHandler)
        status = reader.decrypt("").status if is_standard else None
    except MemoryError:
        raise
    except Exception as exc:
        if reader.strict:
            raise  # tolerant reading may still understand it
        reason = type(exc).__name__
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, reason) from exc
    if status is None:
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, "not by password")
    if status is AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED)
    return True


def _prove(pdf: bytes, limit: int, described: Inspection) -> None:
    """Prove that it can be signed; of an encrypted file, blame the encryption.

    Raises:
        DocumentRefusedError: it cannot.
    """
    try:
        prove_signable(pdf, limit)
    except (MemoryError, PdfDecodeLimitError):
        raise
    except Exception as exc:
        if FindingKind.ENCRYPTED_EMPTY_PASSWORD not in described.findings:
            raise
        reason = type(exc).__name__
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, reason) from exc


def _with_finding(inspection: Inspection, finding: FindingKind) -> Inspection:
    """Add a finding, keeping them sorted and without repeats."""
    findings = tuple(sorted({*inspection.findings, finding}))
    return replace(inspection, findings=findings)
