"""Appends a document timestamp: a TSA's word that the whole file existed.

    prepared = prepare_timestamp(pdf, DigestAlgorithm.SHA256, room)
    token = await tsa.stamp(prepared.imprint, DigestAlgorithm.SHA256)
    pdf += fill_timestamp(prepared, token)

Source: ISO 32000-2, 12.8.5; EN 319 142-1, 5.4.3.
"""

from dataclasses import dataclass, field
from typing import Final

from pyhanko.sign.signers.pdf_byterange import DocumentTimestamp

from appliance.domain.keys.hsm_keys import DigestAlgorithm
from worker.pades.appearance.archival import leave_blank
from worker.pades.byte_range_digest import FileDigests
from worker.pades.cms import fill_contents
from worker.pades.pdf.document import FieldLook, add_field, declare_pades
from worker.pades.pdf.revision import open_revision, refusing

_LOOK: Final = FieldLook("Sello de tiempo", draw=leave_blank)


@dataclass(frozen=True, slots=True)
class PreparedTimestamp:
    """A document timestamp that lacks nothing but its token."""

    increment: bytes = field(repr=False)
    """All that follows the file's bytes, with zeros in Contents."""
    contents_at: int
    """Where in `increment` the hexadecimal digits of Contents start."""
    contents_length: int
    """How many digits there are."""
    imprint: bytes
    """Digest of all but Contents."""


def prepare_timestamp(
    pdf: bytes, digest: DigestAlgorithm, token_bytes: int
) -> PreparedTimestamp:
    """Make the revision that a document timestamp adds, all but its token.

    Args:
        pdf: the whole file.
        digest: of the imprint.
        token_bytes: room for the token, in bytes.

    Raises:
        DocumentRefusedError: the file cannot be read or extended.
    """
    timestamp = DocumentTimestamp(bytes_reserved=2 * token_bytes)
    with open_revision(pdf) as revision, refusing():
        declare_pades(revision)
        reference = revision.add_object(timestamp)
        add_field(revision, "Sello-de-tiempo", _LOOK, reference)
        increment, start, end = revision.write_reserving(pdf, timestamp)
    return PreparedTimestamp(
        increment=increment,
        contents_at=start + 1,
        contents_length=end - start - 2,
        imprint=FileDigests(pdf).covering(digest.value, increment, start, end),
    )


def fill_timestamp(prepared: PreparedTimestamp, token: bytes) -> bytes:
    """Complete the increment; the result has the same length.

    Args:
        prepared: from `prepare_timestamp`.
        token: TimeStampToken over its imprint, DER.

    Raises:
        ApplianceError: `SIGNING_FAILED`: the token is longer than its place.
    """
    return fill_contents(
        prepared.increment, prepared.contents_at, prepared.contents_length, token
    )
