"""Describes one PDF, or refuses it by name; runs in a confined job only."""

import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyhanko.pdf_utils.crypt import AuthStatus
from pyhanko.pdf_utils.crypt.permissions import StandardPermissions
from pyhanko.pdf_utils.generic import DictionaryObject
from pyhanko.pdf_utils.misc import PdfDecodeLimitError
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.xref import ObjectHeaderReadError

from appliance.domain.documents.inspected import FindingKind, Inspection
from appliance.domain.documents.verification import Answer, Check, worst
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.pades.appearance.fonts import StampFonts
from worker.pades.pdf.predictors import use_all_predictors
from worker.pades.pdf.revision import demand_extensible
from worker.sandbox.inspect.active_content import ActiveContent
from worker.sandbox.inspect.content_bombs import unfold_pages
from worker.sandbox.inspect.formless_fields import demand_form
from worker.sandbox.inspect.forms import (
    certification_level,
    count_signatures,
    form_fields,
    has_usage_rights,
    has_xfa,
    is_xfa_dynamic,
    leaves_appearances_open,
    signature_marks,
)
from worker.sandbox.inspect.hidden_annotations import find_hidden
from worker.sandbox.inspect.hidden_content import find_kept_back
from worker.sandbox.inspect.hidden_text import examine_text
from worker.sandbox.inspect.missing_appearances import find_missing_appearances
from worker.sandbox.inspect.object_scan import scan_objects
from worker.sandbox.inspect.odd_annotations import find_odd_annotations
from worker.sandbox.inspect.one_decryption import demand_one_decryption
from worker.sandbox.inspect.pages import page_box, walk_pages
from worker.sandbox.inspect.pdf_objects import Budget
from worker.sandbox.inspect.signature_permissions import signing_facts
from worker.sandbox.inspect.single_reading import demand_single_reading
from worker.sandbox.inspect.trailer_checks import is_well_ended
from worker.sandbox.shown_fields import find_other_values
from worker.sandbox.trial.trial_signature import prove_signable
from worker.sandbox.verify.verify import weigh

use_all_predictors()
_STEPS: Final = 500_000
_OF_SIGNATURES: Final = {
    Answer.NO: FindingKind.SIGNATURE_BROKEN,
    Answer.UNCHECKED: FindingKind.SIGNATURE_UNCHECKED,
}
# Either lets a reader sign (ISO 32000-2, table 22).
_MAY_SIGN: Final = (
    StandardPermissions.ALLOW_ANNOTS_FORM_FILLING
    | StandardPermissions.ALLOW_FORM_FILLING
)


class _Reader(PdfFileReader):
    """A reader that takes an encryption dictionary within the trailer, strictly too.

    MuPDF writes it there. Source: ISO 32000-2, table 15.
    """

    @property
    def encrypt_dict(self) -> DictionaryObject | None:
        """The encryption dictionary."""
        if "/Encrypt" in self.trailer:
            raw = self.trailer.raw_get("/Encrypt")
            if isinstance(raw, DictionaryObject):
                return raw
        return super().encrypt_dict


def inspect(pdf: bytes, limit: int, fonts: StampFonts | None = None) -> Inspection:
    """Describe a PDF and prove that it can be signed.

    It is read strictly first; one that only tolerant reading understands is
    described from that, and called damaged. Whatever is said of it holds for all
    programs, since a file that they may read differently is refused.

    Args:
        pdf: the whole file.
        limit: most pages that are taken.
        fonts: of the stamps that are tried; None: none is.

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
    if not is_well_ended(pdf):
        described = _with_finding(described, FindingKind.DAMAGED)
    last = demand_single_reading(pdf, limit, signed=described.signatures > 0)
    described = replace(described, last_number=last)
    if FindingKind.ENCRYPTED_EMPTY_PASSWORD in described.findings:
        demand_one_decryption(pdf)
    earlier = weigh(pdf) if described.signatures else {}
    _prove(pdf, limit, described, fonts, earlier)
    answer = worst(each.answer for each in earlier.values())
    if answer is not Answer.YES:
        described = _with_finding(described, _OF_SIGNATURES[answer])
    return described


def _describe(pdf: bytes, limit: int, *, strict: bool) -> Inspection:
    """Read the file once and say what it holds.

    Raises:
        DocumentRefusedError: by a `PDF_*` code.
    """
    reader = _Reader(io.BytesIO(pdf), strict=strict)
    findings = _open(reader)
    catalog = reader.root
    tree = walk_pages(catalog, limit)
    has_content = unfold_pages(tree.pages, strict=strict)
    budget = Budget(_STEPS)
    demand_form(catalog, tree.pages, budget)
    fields = form_fields(catalog, budget)
    if has_xfa(catalog):
        if is_xfa_dynamic(catalog, tree.pages, has_content=has_content):
            raise DocumentRefusedError(ErrorCode.PDF_XFA)
        findings.add(FindingKind.XFA_STATIC)
    active = ActiveContent(budget)
    active.scan_catalog(catalog)
    for node in [page.node for page in tree.pages]:
        active.scan_page(node)
    for raw in fields:
        active.scan_node(raw)
    hidden = find_hidden(tree.pages, fields, budget)
    findings |= active.found | hidden.found
    findings |= find_missing_appearances(tree.pages, budget)
    findings |= find_odd_annotations(tree.pages, budget)
    if not leaves_appearances_open(catalog):
        findings |= find_other_values(pdf, tree.pages, budget)
    findings |= find_kept_back(reader, tree.pages, budget)
    scan = scan_objects(pdf, tree.pages, findings)
    findings |= scan.found
    findings |= examine_text(pdf, hidden.covering, lacks_programs=scan.lacks_programs)
    for finding, is_so in (
        (FindingKind.HYBRID_XREF, reader.xrefs.hybrid_xrefs_present),
        (FindingKind.COUNT_LIES, tree.count_lies),
        (FindingKind.APPEARANCES_LEFT_OPEN, leaves_appearances_open(catalog)),
        (FindingKind.USAGE_RIGHTS, has_usage_rights(catalog)),
        (FindingKind.DAMAGED, tree.gaps),
    ):
        if is_so:
            findings.add(finding)
    return Inspection(
        size_bytes=len(pdf),
        pages=tuple(page_box(page) for page in tree.pages),
        findings=tuple(sorted(findings)),
        signatures=count_signatures(fields),
        docmdp=certification_level(catalog),
        marks=signature_marks(tree.pages, fields, budget),
        signing=signing_facts(catalog, tree.pages),
    )


def _open(reader: PdfFileReader) -> set[FindingKind]:
    """Open an encrypted file with the empty password.

    Returns:
        What is told of its encryption, nothing where there is none.

    Raises:
        DocumentRefusedError: `PDF_PASSWORD_NEEDED` or `PDF_ENCRYPTED`.
    """
    if "/Encrypt" not in reader.trailer:
        return set()
    try:
        demand_extensible(reader.security_handler)
        opened = reader.decrypt("")
    except (DocumentRefusedError, MemoryError):
        raise
    except Exception as exc:
        if reader.strict:
            raise  # tolerant reading may still understand it
        reason = type(exc).__name__
        # A table that leads elsewhere says nothing of the encryption.
        is_damaged = isinstance(exc, ObjectHeaderReadError)
        code = ErrorCode.PDF_MALFORMED if is_damaged else ErrorCode.PDF_ENCRYPTED
        raise DocumentRefusedError(code, reason) from exc
    if opened.status is AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED)
    found = {FindingKind.ENCRYPTED_EMPTY_PASSWORD}
    # An empty password that is the owner's grants everything.
    allowed = opened.permission_flags
    if opened.status is AuthStatus.USER and not (
        isinstance(allowed, StandardPermissions) and allowed & _MAY_SIGN
    ):
        found.add(FindingKind.SIGNING_RESTRICTED)
    return found


def _prove(
    pdf: bytes,
    limit: int,
    described: Inspection,
    fonts: StampFonts | None,
    earlier: Mapping[str, Check],
) -> None:
    """Prove that it can be signed; of an encrypted file, blame the encryption.

    Not where its signature alone would fail: that can be mended in an encrypted file.

    Raises:
        DocumentRefusedError: it cannot.
    """
    try:
        prove_signable(pdf, limit, described, fonts, earlier)
    except (MemoryError, PdfDecodeLimitError):
        raise
    except Exception as exc:
        if isinstance(exc, DocumentRefusedError) and exc.code is ErrorCode.PDF_LOCKED:
            return  # it is described, and refused by what that says
        if _is_unverifiable(exc):
            raise
        if FindingKind.ENCRYPTED_EMPTY_PASSWORD not in described.findings:
            raise
        reason = type(exc).__name__
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, reason) from exc


def _is_unverifiable(exc: Exception) -> bool:
    return (
        isinstance(exc, DocumentRefusedError) and exc.code is ErrorCode.PDF_UNVERIFIABLE
    )


def _with_finding(inspection: Inspection, finding: FindingKind) -> Inspection:
    """Add a finding, keeping them sorted and without repeats."""
    findings = tuple(sorted({*inspection.findings, finding}))
    return replace(inspection, findings=findings)
