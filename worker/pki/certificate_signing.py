"""One certificate made with the CA's key in the HSM, and checked."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization

from appliance.domain.errors import HsmRefusedError
from hsm_config.pkcs11.objects import CA_KEY
from hsm_config.provisioning.ca_certificates import new_serial
from hsm_config.provisioning.ca_hierarchy import BACKDATE
from worker.hsm.session import HsmSession
from worker.pki.certificate_profiles import Extensions, PublicKey


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate and what one wants to know of it."""

    certificate: bytes
    """DER."""
    chain: tuple[bytes, ...]
    """DER, issuer first; not the root, which a verifier has or does not trust."""
    not_before: datetime
    """Aware, in UTC."""
    not_after: datetime
    """Aware, in UTC."""
    serial: int
    """Positive, up to 128 bits."""


async def certify(
    session: HsmSession,
    ca: x509.Certificate,
    name: x509.Name,
    public: PublicKey,
    validity: timedelta,
    extensions: Extensions,
    now: datetime,
) -> IssuedCertificate:
    """Have the CA's key sign a certificate, and check it.

    Args:
        session: the HSM.
        ca: certificate of the CA's key.
        name: of the subject.
        public: its key.
        validity: how long it is good; the CA's end may be nearer.
        extensions: what else stands in it.
        now: aware.

    Raises:
        HsmUnavailableError: the HSM cannot be used now.
        HsmRefusedError: the CA's certificate is not of its key.
    """
    start = now.replace(microsecond=0) - BACKDATE
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(ca.subject)
        .public_key(public)
        .serial_number(new_serial())
        .not_valid_before(max(start, ca.not_valid_before_utc))
        .not_valid_after(min(start + validity, ca.not_valid_after_utc))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    signed = await session.with_private_key(
        CA_KEY, lambda key: builder.sign(key, hashes.SHA256())
    )
    try:
        signed.verify_directly_issued_by(ca)
    except (InvalidSignature, ValueError, TypeError) as exc:
        msg = "the CA certificate is not of the CA's key"
        raise HsmRefusedError(msg) from exc
    return IssuedCertificate(
        certificate=signed.public_bytes(serialization.Encoding.DER),
        chain=(ca.public_bytes(serialization.Encoding.DER),),
        not_before=signed.not_valid_before_utc,
        not_after=signed.not_valid_after_utc,
        serial=signed.serial_number,
    )
