"""What is to be signed for the CA: drafts of CRLs and OCSP answers, and when.

A publication is due when half of its time is over.

Source: RFC 5280, 5; RFC 6960; RFC 5019.
"""

from collections.abc import Sequence
from datetime import timedelta

from appliance.domain.clock import Clock
from appliance.domain.pki.certificates import (
    AnswerDraft,
    CertificateRecord,
    Crl,
    CrlDraft,
    RevokedEntry,
)
from appliance.domain.vocab import CertificateState
from appliance.pki.publication_store import PublicationStore
from appliance.pki.revocation_store import RevocationStore
from appliance.record.unit_of_work import Transaction
from appliance.settings import PkiSettings


class RevocationBuilder:
    """Drafts by the settings' times.

    Args:
        clock: the time.
        settings: how long publications are good.
    """

    def __init__(self, clock: Clock, settings: PkiSettings) -> None:
        self._clock = clock
        self._crl_validity = timedelta(seconds=settings.crl_validity_s)
        self._ocsp_validity = timedelta(seconds=settings.ocsp_validity_s)

    def is_due(self, crl: Crl | None) -> bool:
        """Whether a CA needs another CRL than this one."""
        return (
            crl is None or crl.next_update <= self._clock.now() + self._crl_validity / 2
        )

    async def any_due(self, transaction: Transaction, issuers: Sequence[str]) -> bool:
        """Whether anything is to be signed.

        Args:
            transaction: the caller's.
            issuers: the CAs, the one that certifies signers first.
        """
        for issuer in issuers:
            if self.is_due(await PublicationStore(transaction).crl(issuer)):
                return True
        now = self._clock.now()
        return await PublicationStore(transaction).any_due(
            issuers[0], now, now + self._ocsp_validity / 2
        )

    async def unanswered(
        self, transaction: Transaction, issuer: str, limit: int
    ) -> list[CertificateRecord]:
        """Certificates that need an answer, the longest waiting first.

        Args:
            transaction: the caller's.
            issuer: the CA that certifies signers.
            limit: how many at most.
        """
        now = self._clock.now()
        return await PublicationStore(transaction).due(
            issuer, now, now + self._ocsp_validity / 2, limit
        )

    async def crl(
        self, transaction: Transaction, issuer: str, new: Sequence[RevokedEntry] = ()
    ) -> CrlDraft:
        """The CRL that follows on a CA's last one.

        Args:
            transaction: the caller's.
            issuer: the CA.
            new: entries that are not on the record as revoked yet.
        """
        # The number is read first: an entry that comes in between makes this
        # draft's number taken, never its list too short.
        last = await PublicationStore(transaction).crl(issuer)
        entries = await RevocationStore(transaction).revoked(issuer)
        start = self._clock.now().replace(microsecond=0)
        return CrlDraft(
            issuer=issuer,
            number=1 if last is None else last.number + 1,
            entries=(*entries, *new),
            this_update=start,
            next_update=start + self._crl_validity,
        )

    def answer(
        self, certificate: CertificateRecord, state: CertificateState
    ) -> AnswerDraft:
        """The answer that a certificate is in a state."""
        start = self._clock.now().replace(microsecond=0)
        return AnswerDraft(
            serial=certificate.serial,
            state=state,
            revoked_at=certificate.revoked_at,
            reason=certificate.reason,
            this_update=start,
            next_update=start + self._ocsp_validity,
        )
