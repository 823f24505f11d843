"""Puts what pyHanko found of a signature in our words; for confined jobs only."""

from typing import Final

from pyhanko.pdf_utils.xref import XRefSectionType
from pyhanko.sign.diff_analysis import DiffResult, ModificationLevel
from pyhanko.sign.validation import (
    EmbeddedPdfSignature,
    PdfSignatureStatus,
    SignatureCoverageLevel,
)

from appliance.domain.documents import SignatureReport

_TEXT_CHARS: Final = 200


def checked(
    title: str,
    signature: EmbeddedPdfSignature,
    status: PdfSignatureStatus,
    titles: set[str],
) -> SignatureReport:
    """What stands of a signature that could be checked.

    Args:
        title: of its field.
        signature: itself.
        status: what pyHanko found.
        titles: of the fields of all signatures, each of which has its own verdict.
    """
    subject = signature.signer_cert.subject.native
    when, docmdp = status.signer_reported_dt, signature.docmdp_level
    coverage = status.coverage or SignatureCoverageLevel.UNCLEAR
    intact = status.intact and status.valid
    covers = coverage >= SignatureCoverageLevel.ENTIRE_REVISION
    allowed = covers and _only_ltv_follows(status, titles)
    return SignatureReport(
        field=title[:_TEXT_CHARS],
        signer=text(subject.get("common_name")),
        signer_serial=text(subject.get("serial_number")),
        signed_at=None if when is None else when.isoformat(),
        intact=intact,
        trusted=status.trusted,
        covers_revision=covers,
        only_ltv_follows=allowed,
        docmdp=None if docmdp is None else docmdp.value,
        reason=_why(status, intact=intact, covers=covers, allowed=allowed),
        follows=_made_upon(signature),
    )


def _made_upon(signature: EmbeddedPdfSignature) -> int:
    """Where the cross-references begin of the revision before a signature's; 0: none.

    A hybrid file has two sections a revision, the second of which no startxref names.
    """
    xrefs = signature.reader.xrefs
    for revision in reversed(range(signature.signed_revision)):
        kind = xrefs.get_xref_container_info(revision).xref_section_type
        if kind is not XRefSectionType.HYBRID_STREAM:
            return int(xrefs.get_startxref_for_revision(revision))
    return 0


def _only_ltv_follows(status: PdfSignatureStatus, titles: set[str]) -> bool:
    """Say whether later revisions hold validation data, or sign once more.

    A later signature is listed with a verdict of its own, so it takes nothing
    from this one, unless this one certified against it.
    """
    diff = status.diff_result
    if not isinstance(diff, DiffResult) or not status.docmdp_ok:
        return False
    if diff.modification_level <= ModificationLevel.LTA_UPDATES:
        return True
    return (
        diff.modification_level is ModificationLevel.FORM_FILLING
        and diff.changed_form_fields <= titles
    )


def _why(
    status: PdfSignatureStatus, *, intact: bool, covers: bool, allowed: bool
) -> str:
    """Name the first thing that is wrong."""
    problem = status.trust_problem_indic
    for is_right, words in (
        (status.intact, "the signed bytes were changed"),
        (intact, "the signature value is wrong"),
        (covers, "it does not cover its whole revision"),
        (allowed, "the document was changed after it"),
        (status.trusted, f"the certificate is not trusted ({problem})"),
    ):
        if not is_right:
            return words
    return ""


def invalid(title: str, reason: str) -> SignatureReport:
    """The report of a signature that could not be checked at all.

    Args:
        title: of its field.
        reason: why.
    """
    return SignatureReport(
        field=title[:_TEXT_CHARS],
        signer="",
        signer_serial="",
        signed_at=None,
        intact=False,
        trusted=False,
        covers_revision=False,
        only_ltv_follows=False,
        docmdp=None,
        reason=reason,
    )


def failure(what: str, exc: Exception) -> str:
    """Name an exception without what it quotes of the file.

    Args:
        what: what it kept from being done.
        exc: it.
    """
    return f"{what}: {type(exc).__name__}"


def text(value: object) -> str:
    """A subject's attribute as text; of several the first counts.

    Args:
        value: as `Name.native` has it; empty for None.
    """
    if isinstance(value, list):
        value = value[0] if value else ""
    return str(value or "")[:_TEXT_CHARS]
