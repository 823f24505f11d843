"""Reads what a finished file carries: its signatures and timestamps, in order."""

import io
from collections.abc import Collection
from dataclasses import dataclass, field

from pyhanko.pdf_utils.generic import DictionaryObject
from pyhanko.pdf_utils.reader import PdfFileReader

from worker.pdf.dss import vri_key
from worker.pdf.token import TimestampToken, read_token
from worker.stamp.revision import entry, refusing

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

    Args:
        pdf: the whole file, which this appliance made.

    Raises:
        DocumentRefusedError: it cannot be read.
    """
    with refusing():
        reader = PdfFileReader(io.BytesIO(pdf), strict=False)
        if reader.encrypted:
            reader.decrypt("")
        entries = _entries(reader)
        found = []
        for each in reader.embedded_signatures:
            contents = bytes(each.pkcs7_content)
            is_timestamp = each.sig_object_type == "/DocTimeStamp"
            token = read_token(contents) if is_timestamp else None
            unsigned = each.signer_info["unsigned_attrs"]
            for attribute in () if is_timestamp else unsigned:
                if attribute["type"].native == _STAMP:
                    token = read_token(attribute["values"][0].dump())
            found.append(
                Embedded(
                    contents=contents,
                    certificate=each.signer_cert.dump(),
                    others=tuple(one.dump() for one in each.other_embedded_certs),
                    token=token,
                    is_timestamp=is_timestamp,
                    has_data=vri_key(contents) in entries,
                )
            )
        return found


def _entries(reader: PdfFileReader) -> Collection[str]:
    """Names of what the document security store has entries of."""
    store = entry(reader.root, "/DSS", DictionaryObject)
    if store is None:
        return ()
    return set(entry(store, "/VRI", DictionaryObject) or ())
