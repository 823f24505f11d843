"""Credentials as their holders and administrators see them."""

from dataclasses import dataclass, field
from datetime import datetime

from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.vocab import CredentialState, RevocationReason, VouchedBy


@dataclass(frozen=True, slots=True)
class CredentialView:
    """A key and the certificate that it has now."""

    id: CredentialId
    person: PersonId
    state: CredentialState
    mode: str
    """`wrapped` or `resident`."""
    algorithm: str
    """`rsa-2048`, `ec-p256` …"""
    holder: str
    """The CN of the certificate's subject; the recorded name where it is unreadable."""
    cuil: str
    """Eleven digits, of the holder."""
    issuer: str
    """The CN of the certificate's issuer; empty: the certificate cannot be read."""
    serial: str
    """Hexadecimal (see `serial_text`); empty likewise."""
    not_before: datetime
    not_after: datetime
    vouched_by: VouchedBy
    sha256: str
    """Of the certificate, hex."""
    outside: bool
    """Certified by an outside CA."""
    certificate: bytes = field(repr=False)
    """DER."""
    chain: tuple[bytes, ...] = field(repr=False)
    """DER, issuer first, without the root."""
    reason: RevocationReason | None = None
    """Why it was revoked."""
    revoked_at: datetime | None = None

    @property
    def is_readable(self) -> bool:
        """True for a certificate; who writes to the record may write other bytes."""
        return bool(self.serial)
