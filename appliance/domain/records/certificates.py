"""Certificates of the internal CA, its CRLs and its OCSP answers."""

from datetime import datetime
from typing import Protocol

from appliance.domain.certificates import (
    CertificateRecord,
    CertificateView,
    Crl,
    OcspAnswer,
)
from appliance.domain.ids import CredentialId
from appliance.domain.vocab import CertificateKind


class CertificateRecords(Protocol):
    """What the internal CA certified."""

    async def add(self, new: CertificateRecord) -> None:
        """Record a certificate."""
        ...

    async def get(self, serial: str, *, lock: bool = False) -> CertificateRecord | None:
        """A certificate by its serial; `lock` keeps others from changing it."""
        ...

    async def newest(
        self, kind: CertificateKind, issuer: str
    ) -> CertificateRecord | None:
        """The one of a kind and CA that ends last and is not revoked."""
        ...

    async def in_force(self, kind: CertificateKind) -> list[CertificateRecord]:
        """The one of a kind that ends last, of each CA; none that is revoked."""
        ...

    async def of_kind(self, kind: CertificateKind) -> list[CertificateRecord]:
        """Every certificate of one of the appliance's own kinds, newest first."""
        ...

    async def of_credential(self, credential: CredentialId) -> list[CertificateRecord]:
        """A credential's certificates, newest first."""
        ...

    async def views(self, limit: int, before: str | None) -> list[CertificateView]:
        """Signers' certificates, newest first.

        Args:
            limit: how many at most.
            before: serial of the last one seen; those issued earlier.
        """
        ...

    async def view(self, serial: str) -> CertificateView | None:
        """A signer's certificate by its serial."""
        ...

    async def expiring(
        self, after: datetime, until: datetime, limit: int
    ) -> list[CertificateView]:
        """Certificates that somebody signs with and that end in that time.

        Soonest first; the credential is active.
        """
        ...

    async def renewable(
        self, after: datetime, until: datetime, limit: int
    ) -> list[CredentialId]:
        """Credentials in use by active people whose certificate ends in that time.

        Soonest first; those that an outside CA certified are not among them.
        """
        ...


class PublicationRecords(Protocol):
    """CRLs and OCSP answers, the newest of each."""

    async def crl(self, issuer: str) -> Crl | None:
        """The CRL of a CA."""
        ...

    async def put_crl(self, new: Crl) -> bool:
        """Put a CRL in the place of the one before it.

        False, and nothing changed, unless its number is the next one: another
        worker published meanwhile.
        """
        ...

    async def answer(self, serial: str) -> OcspAnswer | None:
        """The answer for a certificate."""
        ...

    async def put_answer(self, new: OcspAnswer) -> bool:
        """Put an answer in the place of the one before it.

        False, and nothing changed, when the certificate is no longer in the
        state that the answer tells.
        """
        ...

    async def due(
        self, issuer: str, now: datetime, horizon: datetime, limit: int
    ) -> list[CertificateRecord]:
        """Signers' certificates that need an answer, the longest waiting first.

        Those that have not ended and whose answer is missing, or says another
        state, or is out of date by the horizon. One that is being revoked is
        left to the revocation.
        """
        ...

    async def any_due(self, issuer: str, now: datetime, horizon: datetime) -> bool:
        """Whether `due` would give one."""
        ...

    async def first_to_end(self, now: datetime) -> OcspAnswer | None:
        """The answer that ends first, of certificates that have not."""
        ...

    async def sweep(self, before: datetime) -> int:
        """Delete answers that were out of date by then; how many."""
        ...
