"""Reads what a finished file carries: its signatures and timestamps, in order."""

import io
from collections.abc import Collection
from dataclasses import dataclass, field

from cryptography import x509
from pyhanko.pdf_utils.generic import DictionaryObject, IndirectObject
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.fields import enumerate_sig_fields
from pyhanko.sign.validation.pdf_embedded import EmbeddedPdfSignature

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from worker.pades.dss import vri_key
from worker.pades.pdf.document import entry
from worker.pades.pdf.predictors import use_all_predictors
from worker.pades.pdf.revision import refusing
from worker.pades.timestamp_token import TimestampToken, read_token

use_all_predictors()
_STAMP = "signature_time_stamp_token"


@dataclass(frozen=True, slots=True)
class Embedded:
    """A signature, or a document timestamp."""

    contents: bytes = field(repr=False)
    """Its Contents, the zeros that fill its place included."""
    certificate: bytes = field(repr=False)
    """Of the signer or of the TSA, DER."""
    others: tuple[bytes, ...] = field(repr=False)
    """What else it carries, DER."""
    token: TimestampToken | None
    """The timestamp over the signature's value; of a document timestamp, itself."""
    is_timestamp: bool = False
    """Whether it is a document timestamp."""
    has_data: bool = False
    """Whether the file keeps data of its validation."""


def embedded(pdf: bytes) -> list[Embedded]:
    """The signatures and timestamps of a file, oldest first; none is verified.

    What the document brought along may be of any kind: what of that cannot be read
    is left out. The last one was made here.

    Args:
        pdf: the whole file, which this appliance made.

    Raises:
        DocumentRefusedError: it cannot be read, or its last signature cannot.
    """
    with refusing():
        reader = PdfFileReader(io.BytesIO(pdf), strict=False)
        if reader.encrypted:
            reader.decrypt("")
        fields = [*enumerate_sig_fields(reader, filled_status=True)]
        fields.sort(key=lambda found: _revision(reader, found[2]))
        kept = _kept(reader)
        read = [_read(reader, name, field, kept) for name, _, field in fields]
        if not read or read[-1] is None:
            raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, "its own signature")
        return [each for each in read if each is not None]


def _revision(reader: PdfFileReader, sig_field: DictionaryObject) -> int:
    """The revision that a signature came with, from 0."""
    value = sig_field.get_object().raw_get("/V")
    if not isinstance(value, IndirectObject):
        return 0
    return int(reader.xrefs.get_last_change(value.reference))


def _kept(reader: PdfFileReader) -> Collection[str]:
    """Names of what the document security store has data of."""
    store = entry(reader.root, "/DSS", DictionaryObject)
    return set(entry(store, "/VRI", DictionaryObject) or ())


def _read(
    reader: PdfFileReader,
    name: str,
    sig_field: DictionaryObject,
    kept: Collection[str],
) -> Embedded | None:
    """One signature or timestamp; None for what cannot be read."""
    try:
        each = EmbeddedPdfSignature(reader, sig_field, name)
        contents = bytes(each.pkcs7_content)
        is_timestamp = each.sig_object_type == "/DocTimeStamp"
        token = read_token(contents) if is_timestamp else None
        unsigned = each.signer_info["unsigned_attrs"]
        for attribute in () if is_timestamp else unsigned:
            if attribute["type"].native == _STAMP:
                token = read_token(attribute["values"][0].dump())
        certificate = each.signer_cert.dump()
        for one in (certificate, certificate if token is None else token.certificate):
            read = x509.load_der_x509_certificate(one)
            # These are parsed when they are asked for.
            _ = read.issuer, read.subject, read.not_valid_after_utc
        return Embedded(
            contents=contents,
            certificate=certificate,
            others=tuple(one.dump() for one in each.other_embedded_certs),
            token=token,
            is_timestamp=is_timestamp,
            has_data=vri_key(contents) in kept,
        )
    except Exception:  # noqa: BLE001 (crafted files raise errors of every kind)
        return None
