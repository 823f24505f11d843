"""What outside CAs say of their certificates: asked, checked, kept, and used again.

OCSP first, then CRLs, by the addresses in the certificate. What is good is kept on
the record up to its nextUpdate, for every worker. A certificate that was found revoked
stays known as that, so that its key is not used again.

Source: reliability F24; RFC 6960; RFC 5280, 6.3; docs/levels.md.
"""

import asyncio
import hashlib
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.pki.certificates import KeptStatus, StatusKind
from appliance.domain.requests.levels import ValidationData
from appliance.metrics import metrics
from appliance.pki.revocation import Revocations
from appliance.pki.validation.certificate_rules import der_of
from appliance.pki.validation.external_status_store import (
    ExternalStatusStore,
)
from appliance.record.unit_of_work import Database
from appliance.settings import RevocationSettings
from worker.circuit_breaker import CircuitBreaker
from worker.network.guarded_http import FAILURES, GuardedHttp, host_of
from worker.network.recorded_status import (
    Asked,
    Found,
    RecordedStatus,
    asking,
    is_young,
    list_subject,
)
from worker.network.revocation_check import BadStatusError, CheckedStatus
from worker.network.status_urls import list_addresses, responder_addresses

_log = structlog.get_logger(__name__)
for _kind in (StatusKind.OCSP, StatusKind.CRL):
    for _outcome in ("good", "failed"):
        # Told from the start: an increase from nothing is none to Prometheus.
        metrics.STATUS_REQUESTS.labels(_kind.value, _outcome)
_ANSWER_BYTES: Final = 65_536
_REQUEST: Final = "application/ocsp-request"
_NONCE_BYTES: Final = 32
_MOMENT: Final = timedelta(minutes=15)
"""Time in which the signing worker takes up an answer without a nextUpdate."""


class ExternalStatus(RecordedStatus):
    """Asks outside CAs; see `StatusAuthority`.

    Args:
        settings: limits.
        http: fetches.
        store: the record.
        clock: the time.
    """

    def __init__(
        self,
        settings: RevocationSettings,
        http: GuardedHttp,
        store: Database,
        clock: Clock,
    ) -> None:
        super().__init__(store, clock)
        self._settings = settings
        self._http = http
        self._revocations = Revocations(store, clock)
        self._rests: dict[str, datetime] = {}
        self._quiet = CircuitBreaker()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(
        self, certificate: bytes, issuer: bytes, since: datetime | None = None
    ) -> ValidationData:
        """What proves that one certificate is good; see `StatusAuthority`.

        Raises:
            ApplianceError: `REVOCATION_UNAVAILABLE`; `CERTIFICATE_NOT_USABLE`: it
                is revoked; `STORE_UNAVAILABLE`.
        """
        asked = asking(certificate, issuer, since)
        # One at a time of a CA: its list is fetched once, not by each at once.
        async with self._locks[hashlib.sha256(issuer).hexdigest()]:
            found = await self._answer(asked) or await self._list(asked)
            if found is None:
                raise ApplianceError(ErrorCode.REVOCATION_UNAVAILABLE)
            await self._note(asked, found.status)
        if found.status.is_revoked:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        return found.data

    async def _note(self, asked: Asked, status: CheckedStatus) -> None:
        """Remember that it is revoked, or that it is no longer (a hold's end)."""
        async with self._store.read() as transaction:
            known = await ExternalStatusStore(transaction).get(
                StatusKind.REVOKED, asked.subject
            )
        if status.is_revoked is (known is not None):
            return
        async with self._store.write() as transaction:
            if not status.is_revoked:
                await ExternalStatusStore(transaction).remove(
                    StatusKind.REVOKED, asked.subject
                )
                return
            row = KeptStatus(
                StatusKind.REVOKED, asked.subject, b"", status.this_update,
                status.next_update, status.revoked_at, status.reason,
            )  # fmt: skip
            await ExternalStatusStore(transaction).put(row)
            if not status.is_on_hold:
                # As was told by its CA, so that its holder need not find it out.
                await self._revocations.found(
                    transaction, der_of(asked.certificate), status.reason
                )
        _log.warning(
            "revocation.found", certificate=asked.subject, reason=status.reason
        )

    async def _answer(self, asked: Asked) -> Found | None:
        """By OCSP: what is kept, else what the first responder says that answers."""
        kept = await self._kept(StatusKind.OCSP, asked.subject)
        held = self._again(asked, kept)
        if kept is not None and held is not None and is_young(kept, asked):
            return await self._complete(asked, held)

        async def ask(url: str) -> Found:
            nonce = secrets.token_bytes(_NONCE_BYTES)
            question = _question(asked, nonce)
            der = await self._http.post(url, _REQUEST, question, _ANSWER_BYTES)
            return self._read_answer(asked, der, nonce, self._clock.now())

        urls = responder_addresses(asked.certificate)
        found = await self._first(StatusKind.OCSP, urls, ask)
        if found is not None:
            await self._keep(StatusKind.OCSP, asked.subject, found)
        return await self._complete(asked, found or held)

    async def _list(self, asked: Asked) -> Found | None:
        """By CRL: what is kept, else what the first address gives that answers."""
        fallback = None
        for url in list_addresses(asked.certificate):
            kept = await self._kept(StatusKind.CRL, list_subject(asked, url))
            held = await self._list_again(asked, kept)
            if kept is not None and held is not None and is_young(kept, asked):
                return held
            fallback = fallback or held

        async def fetch(url: str) -> Found:
            der = await self._http.get(url, self._settings.crl_limit_bytes)
            found = await self._read_list(asked, der, self._clock.now())
            await self._keep(StatusKind.CRL, list_subject(asked, url), found)
            return found

        urls = list_addresses(asked.certificate)
        return await self._first(StatusKind.CRL, urls, fetch) or fallback

    async def _first(
        self,
        kind: StatusKind,
        urls: list[str],
        ask: Callable[[str], Awaitable[Found]],
    ) -> Found | None:
        """The first good answer; what failed a while ago is asked last."""
        now = self._clock.now()
        may = filter(self._quiet.is_over, urls)
        for url in sorted(may, key=lambda one: self._rests.get(one, now) > now):
            try:
                with self._quiet.asking(url):
                    found = await ask(url)
            except (BadStatusError, *FAILURES) as exc:
                rest = timedelta(seconds=self._settings.rest_s)
                self._rests[url] = self._clock.now() + rest
                reason = str(exc) or type(exc).__name__
                metrics.count_status(kind.value, good=False)
                _log.warning("revocation.failed", host=host_of(url), reason=reason)
            else:
                self._rests.pop(url, None)
                metrics.count_status(kind.value, good=True)
                return found
        return None

    async def _keep(self, kind: StatusKind, subject: str, found: Found) -> None:
        status, data = found.status, found.data
        (der,) = data.ocsps or data.crls
        if status.next_update <= (now := self._clock.now()):
            if kind is not StatusKind.OCSP:
                return
            # It names no nextUpdate: good for what it was asked for, and no more.
            moment = KeptStatus(
                StatusKind.OCSP_NOW, subject, der, status.this_update, now + _MOMENT
            )
            async with self._store.write() as transaction:
                await ExternalStatusStore(transaction).put(moment)
            return
        row = KeptStatus(kind, subject, der, status.this_update, status.next_update)
        async with self._store.write() as transaction:
            await ExternalStatusStore(transaction).put(row)


def _question(asked: Asked, nonce: bytes) -> bytes:
    """An OCSPRequest, DER. Source: RFC 6960, 4.1; RFC 5019, 2.1.1 (SHA-1)."""
    request = (
        ocsp.OCSPRequestBuilder()
        .add_certificate(asked.certificate, asked.issuer, hashes.SHA1())  # noqa: S303 (it only names)
        .add_extension(x509.OCSPNonce(nonce), critical=False)
        .build()
    )
    return request.public_bytes(Encoding.DER)
