"""What outside CAs said of certificates: answers and lists that may be used again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol


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


class OutsideStatusRecords(Protocol):
    """One row a kind and subject, the newest."""

    async def get(self, kind: StatusKind, subject: str) -> KeptStatus | None:
        """What is kept."""
        ...

    async def any_revoked(self, subjects: Sequence[str]) -> bool:
        """Whether one of these certificates was found revoked."""
        ...

    async def revoked(self, limit: int) -> list[KeptStatus]:
        """Certificates that were found revoked, the newest first."""
        ...

    async def put(self, new: KeptStatus) -> None:
        """Keep it, unless what is kept is younger."""
        ...

    async def remove(self, kind: StatusKind, subject: str) -> None:
        """Keep it no longer."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete answers and lists whose nextUpdate is before then; how many.

        What was found revoked stays.
        """
        ...
