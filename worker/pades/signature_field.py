"""The signature field of a new signature: a new one, or one of the document's own."""

from dataclasses import dataclass

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    TextStringObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import (
    FieldMDPSpec,
    MDPPerm,
    SignatureFormField,
    ensure_sig_flags,
)

from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.keys import DigestAlgorithm
from worker.pades.appearance.fonts import StampFonts
from worker.pades.appearance.form_xobject import show
from worker.pades.pdf.document import (
    entry,
    find_page,
    form_fields,
    hang,
    unique_name,
)
from worker.pades.pdf.form_fields import SignatureField, signature_fields, widget_rect

_DIGEST_BIT = 64
_NEAR_PT = 0.01


@dataclass(frozen=True, slots=True)
class FieldLook:
    """How a signature's field is seen, and what is said of it where it is heard."""

    layout: StampLayout | None
    """The stamp, in the box of one of its widgets; None to show nothing."""
    fonts: StampFonts | None
    """For the stamp; None where none is shown."""
    picture: LogoPicture | None
    """The logo that the layout names."""
    spoken: str
    """What has it read aloud, and shown by some readers, by more than its name."""


@dataclass(frozen=True, slots=True)
class FieldLock:
    """What signing a field locks, by its `/Lock`."""

    policy: FieldMDPSpec | None = None
    permission: MDPPerm | None = None
    """P of the lock: what is permitted in the document from then on."""


def add_field(
    revision: IncrementalPdfFileWriter,
    name: str,
    look: FieldLook,
    signature: IndirectObject,
) -> None:
    """Add a signature field, which is its own widget, and fill it.

    pyHanko's own way to add a field finds the page by `/Count`, which files lie
    about; so the field is hung up here, and the rest is pyHanko's.

    Args:
        revision: the open file.
        name: wished, without dots; made unique.
        look: of the field.
        signature: reference of the signature dictionary.
    """
    layout = look.layout
    fields = form_fields(revision)
    page = find_page(revision, layout.page if layout else 1)
    widget = SignatureFormField(
        unique_name(name, fields),
        box=layout.rect if layout else None,
        include_on_page=page,
    )
    if layout:
        show(revision, widget, layout, look.fonts, look.picture)
    widget[pdf_name("/TU")] = TextStringObject(look.spoken)
    hang(revision, widget, page, fields, signature)


def fill_field(
    revision: IncrementalPdfFileWriter,
    name: str,
    look: FieldLook,
    signature: IndirectObject,
    digest: DigestAlgorithm,
) -> FieldLock:
    """Fill an empty signature field of the document.

    Args:
        revision: the open file.
        name: fully qualified.
        look: of the field; what the document says of it aloud already stays.
        signature: reference of the signature dictionary.
        digest: of the signature, as seed values may demand one.

    Returns:
        What the field wants to be locked.

    Raises:
        DocumentRefusedError: `SIGNATURE_FIELD_NOT_FOUND`, `SIGNATURE_FIELD_FILLED`,
            `SIGNATURE_FIELD_DEMANDS`.
    """
    fields = [*signature_fields(revision.root)]
    found = [field for field in fields if field.name == name]
    if not found:
        raise DocumentRefusedError(ErrorCode.SIGNATURE_FIELD_NOT_FOUND)
    field = next((each for each in found if each.value is None), None)
    if field is None:
        raise DocumentRefusedError(ErrorCode.SIGNATURE_FIELD_FILLED)
    _check_digest(field, digest)
    if look.layout:
        widget = _widget_at(field, look.layout)
        show(revision, widget, look.layout, look.fonts, look.picture)
        revision.update_container(widget)
    # Earlier signatures would look broken: to validators this is a change of the form.
    is_first = all(each.value is None for each in fields)
    if is_first and "/TU" not in field.node:
        field.node[pdf_name("/TU")] = TextStringObject(look.spoken)
    field.node[pdf_name("/V")] = signature
    revision.update_container(field.node)
    ensure_sig_flags(revision)
    return _lock(field)


def _check_digest(field: SignatureField, digest: DigestAlgorithm) -> None:
    """Refuse a digest that the field's seed values do not take.

    Raises:
        DocumentRefusedError: `SIGNATURE_FIELD_DEMANDS`.
    """
    seeds = entry(field.node, "/SV", DictionaryObject)
    methods = entry(seeds, "/DigestMethod", ArrayObject)
    if methods is None or not (entry(seeds, "/Ff", int) or 0) & _DIGEST_BIT:
        return
    taken = {str(word).lower().replace("-", "") for word in methods}
    if digest.value not in taken:
        raise DocumentRefusedError(
            ErrorCode.SIGNATURE_FIELD_DEMANDS, params={"needs": "DigestMethod"}
        )


def _widget_at(field: SignatureField, layout: StampLayout) -> DictionaryObject:
    """The widget whose box the stamp was laid out for.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`: none has it.
    """
    for widget in field.widgets:
        rect = widget_rect(widget)
        if rect is not None and all(
            abs(one - other) < _NEAR_PT
            for one, other in zip(rect, layout.rect, strict=True)
        ):
            return widget
    raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "the field's box is not there")


def _lock(field: SignatureField) -> FieldLock:
    """What the field's `/Lock` says.

    Source: ISO 32000-2, table 236.
    """
    lock = entry(field.node, "/Lock", DictionaryObject)
    if lock is None:
        return FieldLock()
    level = entry(lock, "/P", int)
    return FieldLock(
        FieldMDPSpec.from_pdf_object(lock), None if level is None else MDPPerm(level)
    )
