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
    NumberObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.misc import PdfError
from pyhanko.sign.fields import (
    MDPPerm,
    SignatureFormField,
    SigSeedSubFilter,
    ensure_sig_flags,
    enumerate_sig_fields,
)
from pyhanko.sign.signers.cms_embedder import SigMDPSetup
from pyhanko.sign.signers.constants import ESIC_EXTENSION_1
from pyhanko.sign.signers.pdf_byterange import SignatureObject

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.stamp import StampLayout
from appliance.domain.vocab import Restriction
from worker.pdf.cms import longest_signed_data, signed_attributes, signer_parts
from worker.pdf.method import SignatureMethod
from worker.pdf.reserved import FileDigests, reserve
from worker.stamp import (
    StampFonts,
    add_annotation,
    find_page,
    open_revision,
    write_stamp,
)
from worker.stamp.revision import entry, refusing

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
    fonts: StampFonts,
    digests: FileDigests | None = None,
) -> PreparedSignature:
    """Make the revision that a signature adds, all but the signature value.

    Args:
        original: the whole PDF as it stands.
        plan: what the signature is to be.
        fonts: from `worker.stamp.load_fonts`.
        digests: of `original`; give the same to `check`, and it is hashed once.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`.
        DocumentRefusedError: `PDF_ALREADY_SIGNED` for a certification of a signed
            file, `PDF_LOCKED` for a file certified against changes, or another
            `PDF_*` code for a file that cannot be read or extended.

    Source: EN 319 142-1 5.3, 6.3; ISO 32000-2, 12.8; decisions "restriccion".
    """
    parts = signer_parts(plan.certificate, plan.chain, plan.method)
    signature = SignatureObject(
        timestamp=plan.signed_at,
        subfilter=SigSeedSubFilter.PADES,
        name=plan.signer_name,
        bytes_reserved=2 * longest_signed_data(parts, plan.token_bytes),
    )
    revision = open_revision(original)
    with refusing():
        _refuse_if_closed(revision, plan.restriction)
        declare_pades(revision)
        _add_field(revision, plan, fonts, revision.add_object(signature))
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


def _add_field(
    revision: IncrementalPdfFileWriter,
    plan: SignaturePlan,
    fonts: StampFonts,
    signature: IndirectObject,
) -> None:
    """Add the signature field, which is its own widget, and fill it.

    pyHanko's own way to add a field finds the page by `/Count`, which files lie
    about; so the field is hung up here, and the rest is pyHanko's.
    """
    fields = form_fields(revision)
    layout = plan.layout
    page = find_page(revision, layout.page if layout else 1)
    widget = SignatureFormField(
        unique_name(plan.field_name, fields),
        box=layout.rect if layout else None,
        include_on_page=page,
    )
    if layout:
        widget[pdf_name("/AP")] = DictionaryObject(
            {pdf_name("/N"): write_stamp(revision, layout, fonts)}
        )
        if layout.rotate:
            widget[pdf_name("/MK")] = DictionaryObject(
                {pdf_name("/R"): NumberObject(layout.rotate)}
            )
    hang(revision, widget, page, fields, signature)
    permission = _PERMISSIONS.get(plan.restriction)
    if permission is not None:
        SigMDPSetup(
            plan.method.digest.value, certify=True, docmdp_perms=permission
        ).apply(signature, revision)


def hang(
    revision: IncrementalPdfFileWriter,
    widget: SignatureFormField,
    page: IndirectObject,
    fields: ArrayObject,
    value: IndirectObject,
) -> None:
    """Hang a new, filled field into the form and on its page.

    Args:
        revision: the open file.
        widget: the field, which is its own widget.
        page: from `find_page`.
        fields: from `form_fields`.
        value: the signature or document timestamp.
    """
    widget[pdf_name("/V")] = value
    widget_ref = revision.add_object(widget)
    fields.append(widget_ref)
    revision.update_container(fields)
    add_annotation(revision, page, widget_ref)
    ensure_sig_flags(revision)


def form_fields(revision: IncrementalPdfFileWriter) -> ArrayObject:
    """The form's list of fields, made where it is missing or broken.

    Args:
        revision: the open file.
    """
    root = revision.root
    form = entry(root, "/AcroForm", DictionaryObject)
    if form is None:
        form = DictionaryObject()
        root[pdf_name("/AcroForm")] = revision.add_object(form)
        revision.update_root()
    fields = entry(form, "/Fields", ArrayObject)
    if fields is None:
        fields = form[pdf_name("/Fields")] = ArrayObject()
        revision.update_container(form)
    return fields


def unique_name(wish: str, fields: ArrayObject) -> str:
    """The name, with a number where a field of the form has it already.

    Args:
        wish: without dots.
        fields: from `form_fields`.
    """
    objects = (fields[at] for at in range(len(fields)))
    taken = {entry(found, "/T", str) for found in objects}
    name, number = wish, 1
    while name in taken:
        number += 1
        name = f"{wish}-{number}"
    return name
