"""What outside CAs say of their certificates, as far as it is kept on the record.

Whoever fetched it, all of it is checked here again: a role that has no network believes
nothing that another role kept.

Source: RFC 6960; RFC 5280, 6.3; docs/levels.md.
"""

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.pki.certificates import KeptStatus, StatusKind
from appliance.domain.requests.levels import ValidationData
from appliance.pki.validation.certificate_rules import extension
from appliance.pki.validation.external_status_store import (
    ExternalStatusStore,
    status_subject,
)
from appliance.record.unit_of_work import Database
from worker.network.crl import checked_list
from worker.network.ocsp import checked_answer
from worker.network.revocation_check import BadStatusError, CheckedStatus
from worker.network.status_urls import list_addresses


@dataclass(frozen=True, slots=True)
class Asked:
    """A certificate whose status is wanted, and who issued it."""

    certificate: x509.Certificate
    issuer: x509.Certificate
    subject: str
    since: datetime | None
    """What is kept and older than this is asked for again."""


@dataclass(frozen=True, slots=True)
class Found:
    """What says whether it is revoked."""

    status: CheckedStatus
    data: ValidationData


class RecordedStatus:
    """Reads and checks what is kept.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of(
        self, certificate: bytes, issuer: bytes, since: datetime | None = None
    ) -> ValidationData:
        """What proves that one certificate is good; see `StatusAuthority`.

        Args:
            certificate: DER.
            issuer: of it, DER.
            since: what is older does not do.

        Raises:
            ApplianceError: `REVOCATION_UNAVAILABLE`: nothing that is kept does;
                `CERTIFICATE_NOT_USABLE`: it is revoked; `STORE_UNAVAILABLE`.
        """
        asked = asking(certificate, issuer, since)
        found = await self._answer(asked)
        if found is None or not _is_of(found, since):
            found = await self._list(asked)
        if found is None or not _is_of(found, since):
            raise ApplianceError(ErrorCode.REVOCATION_UNAVAILABLE)
        if found.status.is_revoked:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        return found.data

    async def _answer(self, asked: Asked) -> Found | None:
        """By OCSP."""
        for kind in (StatusKind.OCSP_NOW, StatusKind.OCSP):
            held = self._again(asked, await self._kept(kind, asked.subject))
            if held is not None:
                return await self._complete(asked, held)
        return None

    async def _list(self, asked: Asked) -> Found | None:
        """By CRL."""
        newest = None
        for url in list_addresses(asked.certificate):
            kept = await self._kept(StatusKind.CRL, list_subject(asked, url))
            held = await self._list_again(asked, kept)
            if held is not None and (
                newest is None or held.status.this_update > newest.status.this_update
            ):
                newest = held
        return newest

    def _again(self, asked: Asked, kept: KeptStatus | None) -> Found | None:
        """What is kept, if it still holds: a responder's certificate ends too."""
        if kept is None:
            return None
        try:
            return self._read_answer(asked, kept.der, None, self._clock.now())
        except BadStatusError:
            return None

    def _read_answer(
        self, asked: Asked, der: bytes, nonce: bytes | None, now: datetime
    ) -> Found:
        """An answer, checked.

        Raises:
            BadStatusError: it is not good.
        """
        status = checked_answer(der, asked.certificate, asked.issuer, nonce, now)
        responders = () if status.responder is None else (status.responder,)
        return Found(status, ValidationData(responders, ocsps=(der,)))

    async def _complete(self, asked: Asked, found: Found | None) -> Found | None:
        """An answer with what proves its responder, where that needs proof itself.

        None where there is none: then a list tells more.

        Source: RFC 6960, 4.2.2.2.1.
        """
        if found is None or found.status.responder is None or found.status.is_revoked:
            return found
        responder = x509.load_der_x509_certificate(found.status.responder)
        if extension(responder, x509.OCSPNoCheck) is not None:
            return found
        of = status_subject(found.status.responder)
        proof = await self._list(Asked(responder, asked.issuer, of, asked.since))
        if proof is None or proof.status.is_revoked:
            return None
        return Found(found.status, found.data.with_more(proof.data))

    async def _list_again(self, asked: Asked, kept: KeptStatus | None) -> Found | None:
        """A list that is kept, if it holds for this certificate too, and now."""
        if kept is None:
            return None
        try:
            return await self._read_list(asked, kept.der, self._clock.now())
        except BadStatusError:
            return None

    async def _read_list(self, asked: Asked, der: bytes, now: datetime) -> Found:
        """A list, checked in a thread: some have millions of entries.

        Raises:
            BadStatusError: it is not good.
        """
        status = await asyncio.to_thread(
            checked_list, der, asked.certificate, asked.issuer, now
        )
        return Found(status, ValidationData(crls=(der,)))

    async def _kept(self, kind: StatusKind, subject: str) -> KeptStatus | None:
        """What is on the record and may still be used."""
        async with self._store.read() as transaction:
            kept = await ExternalStatusStore(transaction).get(kind, subject)
        return kept if kept and kept.next_update > self._clock.now() else None


def asking(certificate: bytes, issuer: bytes, since: datetime | None) -> Asked:
    """A question about one certificate.

    Args:
        certificate: DER.
        issuer: of it, DER.
        since: what is kept and older is asked for again.
    """
    return Asked(
        x509.load_der_x509_certificate(certificate),
        x509.load_der_x509_certificate(issuer),
        status_subject(certificate),
        since,
    )


def _is_of(found: Found, since: datetime | None) -> bool:
    return since is None or found.status.this_update >= since


def is_young(kept: KeptStatus, asked: Asked) -> bool:
    """Return whether what is kept need not be asked for again.

    Args:
        kept: of the record.
        asked: the question.
    """
    return asked.since is None or kept.this_update >= asked.since


def list_subject(asked: Asked, url: str) -> str:
    """What a list is kept under: an address alone could be any CA's."""
    issuer = asked.issuer.public_bytes(Encoding.DER)
    return hashlib.sha256(hashlib.sha256(issuer).digest() + url.encode()).hexdigest()
