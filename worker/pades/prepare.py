"""Prepares a signature: the revision to be appended, and what is to be signed.

    prepared = prepare(original, plan, fonts)
    value = …  # the key signs `prepared.digest` by `plan.method`, in the HSM
    increment = assemble(prepared.increment, …, signature=value, …)
    check(original, increment, plan.certificate)
    signed_pdf = original + increment

The original bytes are never changed. Nothing here needs a key.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfError
from pyhanko.sign.fields import (
    MDPPerm,
    SigSeedSubFilter,
    enumerate_sig_fields,
)
from pyhanko.sign.signers.cms_embedder import SigMDPSetup
from pyhanko.sign.signers.constants import ESIC_EXTENSION_1
from pyhanko.sign.signers.pdf_byterange import SignatureObject

from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.vocab import Restriction
from worker.pades.algorithms import SignatureMethod
from worker.pades.appearance.fonts import StampFonts
from worker.pades.byte_range import FileDigests, reserve
from worker.pades.cms import longest_signed_data, signed_attributes, signer_parts
from worker.pades.pdf.revision import entry, open_revision, refusing
from worker.pades.signature_field import FieldLock, FieldLook, add_field, fill_field

_PDF_2_0 = (2, 0)
_PERMISSIONS = {
    Restriction.NO_CHANGES_ALLOWED: MDPPerm.NO_CHANGES,
    Restriction.FORM_FILLING: MDPPerm.FILL_FORMS,
    Restriction.FORM_FILLING_AND_ANNOTATIONS: MDPPerm.ANNOTATE,
}


@dataclass(frozen=True, slots=True)
class SignaturePlan:
    """What one signature is to be."""

    field_name: str
    """Wished name of the signature field, without dots; made unique."""
    layout: StampLayout | None
    """The stamp, or None for an invisible signature."""
    restriction: Restriction
    signed_at: datetime
    """The claimed signing time, aware."""
    signer_name: str
    certificate: bytes = field(repr=False)
    """The signer's, DER."""
    chain: tuple[bytes, ...] = field(repr=False)
    """Its issuers, DER."""
    method: SignatureMethod
    """How the certificate's key signs."""
    existing: str | None = None
    """Full name of the document's own empty field to be signed; None: a new one."""
    picture: LogoPicture | None = None
    """The logo that the layout names."""
    spoken: str = ""
    """What stands for its mark where that is read aloud; empty: the signer's name."""
    reason: str | None = None
    """Why it is signed."""
    place: str | None = None
    """Where it is signed."""
    token_bytes: int = 0
    """Room for a signature timestamp, in bytes; 0: none is to come."""


@dataclass(frozen=True, slots=True)
class PreparedSignature:
    """A signature that lacks nothing but its value; every part can be stored."""

    increment: bytes = field(repr=False)
    """All that follows the original bytes, with zeros in Contents."""
    contents_at: int
    """Where in `increment` the hexadecimal digits of Contents start."""
    contents_length: int
    """How many digits there are."""
    document_digest: bytes
    """Digest of the bytes in the ByteRange, by the plan's method."""
    signed_attributes: bytes
    """DER of SET OF, as it is hashed for signing."""
    digest: bytes
    """Digest of `signed_attributes`: what the key signs; 32, 48 or 64 bytes."""


def prepare(
    original: bytes,
    plan: SignaturePlan,
    fonts: StampFonts | None,
    digests: FileDigests | None = None,
) -> PreparedSignature:
    """Make the revision that a signature adds, all but the signature value.

    Args:
        original: the whole PDF as it stands.
        plan: what the signature is to be.
        fonts: from `worker.pades.appearance.load_fonts`; None: nothing is shown.
        digests: of `original`; give the same to `check`, and it is hashed once.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`.
        DocumentRefusedError: `PDF_ALREADY_SIGNED` for a certification of a signed
            file, `PDF_LOCKED` for a file certified against changes, another
            `PDF_*` code for a file that cannot be read or extended, or a
            `SIGNATURE_FIELD_*` code for a field that cannot be filled.

    Source: EN 319 142-1 5.3, 6.3; ISO 32000-2, 12.8; decisions "restriccion".
    """
    parts = signer_parts(plan.certificate, plan.chain, plan.method)
    signature = SignatureObject(
        timestamp=plan.signed_at,
        subfilter=SigSeedSubFilter.PADES,
        name=plan.signer_name,
        location=plan.place,
        reason=plan.reason,
        bytes_reserved=2 * longest_signed_data(parts, plan.token_bytes),
    )
    with open_revision(original) as revision, refusing():
        _refuse_if_closed(revision, plan.restriction)
        declare_pades(revision)
        reference = revision.add_object(signature)
        said = plan.spoken or plan.signer_name
        look = FieldLook(plan.layout, fonts, plan.picture, said)
        lock = None
        if plan.existing is None:
            add_field(revision, plan.field_name, look, reference)
        else:
            digest = plan.method.digest
            lock = fill_field(revision, plan.existing, look, reference, digest)
        _restrict(revision, plan, reference, lock)
        reserved = reserve(revision, original, signature, plan.method.digest, digests)
    attributes = signed_attributes(parts, reserved.digest)
    return PreparedSignature(
        increment=reserved.increment,
        contents_at=reserved.contents_at,
        contents_length=reserved.contents_length,
        document_digest=reserved.digest,
        signed_attributes=attributes,
        digest=plan.method.hash(attributes),
    )


def _refuse_if_closed(
    revision: IncrementalPdfFileWriter, restriction: Restriction
) -> None:
    """Refuse what earlier signatures do not allow.

    Raises:
        DocumentRefusedError: `PDF_LOCKED` or `PDF_ALREADY_SIGNED`.
    """
    if _docmdp(revision) == MDPPerm.NO_CHANGES.value:
        raise DocumentRefusedError(ErrorCode.PDF_LOCKED)
    if restriction is Restriction.NO_VALUE:
        return
    if next(enumerate_sig_fields(revision, filled_status=True), None) is not None:
        raise DocumentRefusedError(ErrorCode.PDF_ALREADY_SIGNED)


def _docmdp(revision: IncrementalPdfFileWriter) -> int | None:
    """P of the certification signature, or None.

    Source: ISO 32000-2, 12.8.2.2 (P is 2 when absent).
    """
    permissions = entry(revision.root, "/Perms", DictionaryObject)
    certification = entry(permissions, "/DocMDP", DictionaryObject)
    references = entry(certification, "/Reference", ArrayObject) or ArrayObject()
    for at in range(len(references)):
        if entry(references[at], "/TransformMethod", NameObject) == "/DocMDP":
            parameters = entry(references[at], "/TransformParams", DictionaryObject)
            return entry(parameters, "/P", int) or MDPPerm.FILL_FORMS.value
    return None


def declare_pades(revision: IncrementalPdfFileWriter) -> None:
    """Name the extension of PDF 1.7 that PAdES is; PDF 2.0 has it built in.

    A file whose own list of extensions is broken goes without: it is a hint.

    Args:
        revision: the open file.
    """
    if revision.output_version < _PDF_2_0:
        with suppress(PdfError):
            revision.register_extension(ESIC_EXTENSION_1)


def _restrict(
    revision: IncrementalPdfFileWriter,
    plan: SignaturePlan,
    signature: IndirectObject,
    lock: FieldLock | None,
) -> None:
    """Say what the signature forbids: by the command, and by its field's lock.

    Source: ISO 32000-2, 12.8.2 (transform methods).
    """
    permission = _PERMISSIONS.get(plan.restriction)
    policy = None if lock is None else lock.policy
    SigMDPSetup(
        plan.method.digest.value,
        certify=permission is not None,
        field_lock=policy,
        docmdp_perms=permission or (None if lock is None else lock.permission),
    ).apply(signature, revision)
