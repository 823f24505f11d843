"""Prepares a signature: the revision to be appended, and what is to be signed.

    prepared = prepare(original, plan, fonts)
    value = …  # the key signs `prepared.digest` by `plan.method`, in the HSM
    increment = assemble(prepared.increment, …, signature=value, …)
    check(original, increment, plan.certificate)
    signed_pdf = original + increment

The original bytes are never changed. Nothing here needs a key.
"""

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from pyhanko.sign.fields import MDPPerm, SigSeedSubFilter
from pyhanko.sign.signers.cms_embedder import SigMDPSetup
from pyhanko.sign.signers.pdf_byterange import SignatureObject

from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.vocab import Restriction
from worker.pades.algorithms import SignatureMethod
from worker.pades.appearance.archival import leave_blank
from worker.pades.appearance.fonts import StampFonts
from worker.pades.appearance.form_xobject import show
from worker.pades.byte_range_digest import FileDigests
from worker.pades.cms import (
    SignerParts,
    longest_signed_data,
    signed_attributes,
    signer_parts,
)
from worker.pades.pdf.document import (
    FieldLook,
    add_field,
    declare_pades,
    refuse_if_closed,
)
from worker.pades.pdf.revision import open_revision, refusing
from worker.pades.signature_field import FieldLock, fill_field

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
    above: int = 0
    """Number above which new objects are numbered; at least `/Size` less one."""


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

    Source: EN 319 142-1 5.3, 6.3; ISO 32000-2, 12.8 (12.8.2: transform methods);
    decisions "restriccion".
    """
    digest = plan.method.digest
    parts = signer_parts(plan.certificate, plan.chain, plan.method)
    look = _look(plan, fonts)
    signature = _dictionary(plan, parts)
    hashed = FileDigests.of(original, digests)
    with open_revision(original) as revision, refusing():
        revision.number_above(plan.above)
        revision.identify(_identity(plan, hashed))
        refuse_if_closed(revision, plan.restriction)
        declare_pades(revision)
        reference = revision.add_object(signature)
        if plan.existing is None:
            add_field(revision, plan.field_name, look, reference)
            lock = FieldLock()
        else:
            lock = fill_field(revision, plan.existing, look, reference, digest)
        # What the signature forbids: by the command, and by its field's lock.
        permission = _PERMISSIONS.get(plan.restriction)
        SigMDPSetup(
            digest.value,
            certify=permission is not None,
            field_lock=lock.policy,
            docmdp_perms=permission or lock.permission,
        ).apply(reference, revision)
        increment, start, end = revision.write_reserving(original, signature)
    document_digest = hashed.covering(digest.value, increment, start, end)
    attributes = signed_attributes(parts, document_digest)
    return PreparedSignature(
        increment=increment,
        contents_at=start + 1,
        contents_length=end - start - 2,
        document_digest=document_digest,
        signed_attributes=attributes,
        digest=plan.method.hash(attributes),
    )


def _identity(plan: SignaturePlan, hashed: FileDigests) -> bytes:
    """Bytes that tell this revision from others: of what, by whom, where and when."""
    original = hashed.covering(plan.method.digest.value, b"", 0, 0)
    name = plan.existing or plan.field_name
    told = f"{name}\0{plan.signed_at.isoformat()}\0".encode(errors="surrogatepass")
    return original + told + plan.certificate


def _dictionary(plan: SignaturePlan, parts: SignerParts) -> SignatureObject:
    """The signature dictionary, with room in Contents for the longest CMS."""
    return SignatureObject(
        timestamp=plan.signed_at,
        subfilter=SigSeedSubFilter.PADES,
        name=plan.signer_name,
        location=plan.place,
        reason=plan.reason,
        bytes_reserved=2 * longest_signed_data(parts, plan.token_bytes),
    )


def _look(plan: SignaturePlan, fonts: StampFonts | None) -> FieldLook:
    """How the field is seen and heard."""
    spoken, layout = plan.spoken or plan.signer_name, plan.layout
    if layout is None:
        return FieldLook(spoken, draw=leave_blank)
    draw = partial(show, layout, fonts, plan.picture)
    return FieldLook(spoken, layout.page, layout.rect, draw)
