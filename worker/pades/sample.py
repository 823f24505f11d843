"""Sample document, by which a new certificate is tried before anybody relies on it.

    prepared = prepare_sample(identity, method, now)
    value = …  # a key signs `prepared.digest` by `method.scheme`
    pdf = complete_sample(prepared, value, identity, method)

It says nothing that anybody could be held to, and is stored nowhere.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from appliance.domain.vocab import Restriction
from worker.pades.algorithms import SignatureMethod
from worker.pades.cms import assemble
from worker.pades.prepare import PreparedSignature, SignaturePlan, prepare
from worker.pades.self_check import check

_FIELD: Final = "Muestra"
_CONTENT: Final = (
    b"BT /F1 12 Tf 72 720 Td (Muestra sin efecto. Sample without effect.) Tj ET"
)
_RESOURCES: Final = b"<< /Font << /F1 5 0 R >> >>"
_OBJECTS: Final = (
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
    b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources %s >>" % _RESOURCES,
    b"<< /Length %d >>\nstream\n%s\nendstream" % (len(_CONTENT), _CONTENT),
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
)


@dataclass(frozen=True, slots=True)
class SampleIdentity:
    """Signer of a sample."""

    name: str
    certificate: bytes = field(repr=False)
    """DER."""
    chain: tuple[bytes, ...] = field(repr=False)
    """DER, issuer first, without the root."""


def _file() -> bytes:
    """Write the sample with its cross-references."""
    body, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, content in enumerate(_OBJECTS, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    entries = b"".join(b"%010d 00000 n \n" % each for each in offsets)
    size, start = len(_OBJECTS) + 1, len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, entries)
    body += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        start,
    )
    return bytes(body)


SAMPLE: Final = _file()
"""One page, one line."""


def prepare_sample(
    signer: SampleIdentity, method: SignatureMethod, at: datetime
) -> PreparedSignature:
    """Make the revision that an invisible signature adds to the sample.

    Args:
        signer: with whose certificate it is to be signed.
        method: scheme and digest of the key.
        at: claimed signing time, aware.

    Raises:
        ApplianceError: `CERTIFICATE_NOT_USABLE`: no key that signs documents.
    """
    plan = SignaturePlan(
        field_name=_FIELD,
        layout=None,
        restriction=Restriction.NO_VALUE,
        signed_at=at,
        signer_name=signer.name,
        certificate=signer.certificate,
        chain=signer.chain,
        method=method,
    )
    return prepare(SAMPLE, plan, None)


def complete_sample(
    prepared: PreparedSignature,
    value: bytes,
    signer: SampleIdentity,
    method: SignatureMethod,
) -> bytes:
    """Put the signature value in, and check the result as any document's.

    Args:
        prepared: from `prepare_sample`.
        value: of the signature: RSA's octets, or DER of Ecdsa-Sig-Value.
        signer: as in `prepare_sample`.
        method: likewise.

    Returns:
        The signed sample.

    Raises:
        SignatureCheckError: the key is not the certificate's.
    """
    increment = assemble(
        prepared.increment,
        contents_at=prepared.contents_at,
        contents_length=prepared.contents_length,
        signed_attributes=prepared.signed_attributes,
        signature=value,
        method=method,
        certificate=signer.certificate,
        chain=signer.chain,
    )
    check(SAMPLE, increment, signer.certificate)
    return SAMPLE + increment
