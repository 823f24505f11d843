"""Fills a signature field of the document's own, as its seed values and lock have it.

Source: ISO 32000-2, 12.7.5.5.
"""

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
)

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from worker.pades.pdf.document import FieldLook, entry, flag_signatures
from worker.pades.pdf.form_fields import SignatureField, signature_fields, widget_rect

_DIGEST_BIT = 64
_NEAR_PT = 0.01


@dataclass(frozen=True, slots=True)
class FieldLock:
    """What signing a field locks, by its `/Lock`."""

    policy: FieldMDPSpec | None = None
    permission: MDPPerm | None = None
    """P of the lock: what is permitted in the document from then on."""


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
    if look.box is not None and look.draw is not None:
        widget = _widget_at(field, look.box)
        is_turned = "/MK" in widget
        look.draw(revision, widget)
        if not is_turned:
            # The appearance is turned by its own Matrix. Of a field that was there a
            # new /MK is a change of the form to validators.
            widget.pop("/MK", None)
        revision.update_container(widget)
    # Earlier signatures would look broken: to validators this is a change of the form.
    is_first = all(each.value is None for each in fields)
    if is_first and "/TU" not in field.node:
        field.node[pdf_name("/TU")] = TextStringObject(look.spoken)
    field.node[pdf_name("/V")] = signature
    revision.update_container(field.node)
    flag_signatures(revision)
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


def _widget_at(
    field: SignatureField, box: tuple[float, float, float, float]
) -> DictionaryObject:
    """The widget whose box the stamp was laid out for.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`: none has it.
    """
    for widget in field.widgets:
        rect = widget_rect(widget)
        if rect is not None and all(
            abs(one - other) < _NEAR_PT for one, other in zip(rect, box, strict=True)
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
