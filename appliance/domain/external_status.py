"""What outside CAs said of certificates: answers and lists that may be used again."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class StatusKind(StrEnum):
    """What is kept."""

    OCSP = "ocsp"
    """An OCSPResponse about one certificate."""
    CRL = "crl"
    """A CertificateList from one address."""
    REVOKED = "revoked"
    """A certificate that was found revoked; without a document."""


@dataclass(frozen=True, slots=True)
class KeptStatus:
    """An answer or list that was checked when it came."""

    kind: StatusKind
    subject: str
    """SHA-256, hex: of a certificate; of a CA's name and key, and an address."""
    der: bytes = field(repr=False)
    this_update: datetime
    next_update: datetime
    revoked_at: datetime | None = None
    """Of `REVOKED`: since when; None for what was found before this was kept."""
    reason: str = ""
    """Of `REVOKED`: CRLReason by its name in RFC 5280; empty: the CA told none."""
