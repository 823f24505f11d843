"""What proves that certificates were good: the paths, OCSP answers and CRLs.

Of the internal CA all of it lies on the record, signed ahead; no network is asked.
Of others it is asked for over the network, by the role that has one.

Source: EN 319 142-1, 5.4.2; design §3, 5.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache, reduce
from itertools import pairwise
from typing import Final, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.pki.certificates import serial_text
from appliance.domain.pki.outside_material import MissingMaterialError, WantedMaterial
from appliance.domain.requests.levels import ValidationData
from appliance.domain.vocab import CertificateState
from appliance.pki.ca_certificates import AuthorityFiles
from appliance.pki.publication import Publishing
from appliance.pki.publication_store import PublicationStore
from appliance.record.unit_of_work import Database, Transaction

_WAIT_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.1
_PATH_MOST: Final = 8

Anchors = Callable[[], Awaitable[Sequence[bytes]]]
"""Reads the roots that are trusted, DER."""


class StatusAuthority(Protocol):
    """Tells whether certificates of outside CAs are revoked."""

    async def of(
        self, certificate: bytes, issuer: bytes, since: datetime | None = None
    ) -> ValidationData:
        """What proves that one certificate is good, as of now.

        Args:
            certificate: DER.
            issuer: of it, DER.
            since: what is kept and older is asked for again; where nothing younger
                can be had, it does.

        Raises:
            ApplianceError: `REVOCATION_UNAVAILABLE`: nobody tells;
                `CERTIFICATE_NOT_USABLE`: it is revoked.
        """
        ...


class ValidationSource:
    """Gathers validation data.

    Args:
        store: the record.
        clock: the time.
        authority: certificates of the internal CA.
        publishing: asks for an answer that is missing, as of a new certificate.
        wait_s: longest wait for that, in seconds.
        outside: asks other CAs; None: this role has no network.
        anchors: roots of other CAs, which chains are without.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        authority: AuthorityFiles,
        publishing: Publishing,
        wait_s: float = _WAIT_S,
        outside: StatusAuthority | None = None,
        anchors: Anchors | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._authority = authority
        self._publishing = publishing
        self._wait_s = wait_s
        self._outside = outside
        self._anchors = anchors

    def abroad(self, outside: StatusAuthority, anchors: Anchors) -> "ValidationSource":
        """The same, which knows of other CAs too.

        Args:
            outside: tells of their certificates.
            anchors: roots of theirs, which chains are without.
        """
        return ValidationSource(
            self._store,
            self._clock,
            self._authority,
            self._publishing,
            self._wait_s,
            outside,
            anchors,
        )

    def is_internal(self, certificate: bytes) -> bool:
        """Whether the internal CA answers for a certificate.

        Args:
            certificate: DER.
        """
        return _is_issued(certificate, self._authority.ca)

    async def of(
        self,
        certificate: bytes,
        others: Sequence[bytes] = (),
        since: datetime | None = None,
    ) -> ValidationData:
        """What the validation of one certificate needs, as of now.

        Args:
            certificate: a signer's or a TSA's, DER.
            others: what may stand above it, in any order, DER; what is no
                certificate is passed over.
            since: an outside CA is asked again where what is kept of it is older.

        Raises:
            ApplianceError: `REVOCATION_UNAVAILABLE`: not all of it is there now;
                `CERTIFICATE_NOT_USABLE`: one of them is revoked.
        """
        anchors = () if self._anchors is None else await self._anchors()
        own = (self._authority.ca, self._authority.root)
        path = _path(certificate, (*anchors, *own, *others))
        if path[-1] == self._authority.root:
            return await self._published(path)
        # A document may bring a chain of anybody's, with addresses of anybody's.
        if path[-1] not in anchors:
            raise ApplianceError(ErrorCode.REVOCATION_UNAVAILABLE)
        return await self._ask_outside(path, since)

    async def _ask_outside(
        self, path: tuple[bytes, ...], since: datetime | None
    ) -> ValidationData:
        """What other CAs say.

        Raises:
            MissingMaterialError: what they say is to be fetched first.
            ApplianceError: as `of`.
        """
        if self._outside is None:
            raise ApplianceError(ErrorCode.REVOCATION_UNAVAILABLE)
        data = ValidationData(certificates=path)
        missing: list[WantedMaterial] = []
        for certificate, issuer in pairwise(path):
            try:
                found = await self._outside.of(certificate, issuer, since)
            except MissingMaterialError as exc:
                # All of it is fetched at once.
                missing += exc.wanted
                continue
            data = data.with_more(found)
        if missing:
            raise MissingMaterialError(missing)
        return data

    async def _published(self, path: tuple[bytes, ...]) -> ValidationData:
        """What the internal CA published, or is about to.

        Raises:
            ApplianceError: as `of`.
        """
        deadline = asyncio.get_running_loop().time() + self._wait_s
        while True:
            told: list[ValidationData] = []
            async with self._store.read() as transaction:
                for certificate, issuer in pairwise(path):
                    found = await self._status(transaction, certificate, issuer)
                    if found is None:
                        break
                    told.append(found)
                else:
                    data = ValidationData(certificates=path)
                    return reduce(ValidationData.with_more, told, data)
            # Each time: a task that was asked for before may have had its last look
            # at what is due before this certificate was.
            await self._publishing.submit()
            if asyncio.get_running_loop().time() > deadline:
                raise ApplianceError(ErrorCode.REVOCATION_UNAVAILABLE)
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _status(
        self, transaction: Transaction, certificate: bytes, issuer: bytes
    ) -> ValidationData | None:
        """Whether one certificate is revoked, told by its issuer; None: not yet.

        Raises:
            ApplianceError: as `of`.
        """
        now = self._clock.now()
        issuers = {
            self._authority.ca: self._authority.ca_id,
            self._authority.root: self._authority.root_id,
        }
        if issuer not in issuers:
            raise ApplianceError(ErrorCode.REVOCATION_UNAVAILABLE)
        found = await PublicationStore(transaction).status(
            _serial(certificate), issuers[issuer], now
        )
        if found.state not in {None, CertificateState.VALID}:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_USABLE)
        if found.answer is not None:
            return ValidationData(_responders(found.answer), ocsps=(found.answer,))
        # Where answers are made for it, this one was not yet.
        if found.is_answered or found.crl is None:
            return None
        return ValidationData(crls=(found.crl,))


class SharedValidationSource:
    """Validation data of documents completed together, each piece gathered once.

    Args:
        source: gathers it.
    """

    def __init__(self, source: ValidationSource) -> None:
        self._source = source
        self._found: dict[tuple[object, ...], ValidationData | ApplianceError] = {}

    async def of(
        self,
        certificate: bytes,
        others: Sequence[bytes] = (),
        since: datetime | None = None,
    ) -> ValidationData:
        """See `ValidationSource.of`; what cannot be had is waited for once.

        Raises:
            ApplianceError: as that.
        """
        asked = certificate, tuple(others), since
        if asked not in self._found:
            try:
                self._found[asked] = await self._source.of(certificate, others, since)
            except ApplianceError as exc:
                self._found[asked] = exc
        found = self._found[asked]
        if isinstance(found, ApplianceError):
            raise found
        return found


@lru_cache(maxsize=256)
def _serial(certificate: bytes) -> str:
    return serial_text(x509.load_der_x509_certificate(certificate).serial_number)


@lru_cache(maxsize=256)
def _path(certificate: bytes, others: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """From a certificate up to its root, by names and keys.

    Raises:
        ApplianceError: `REVOCATION_UNAVAILABLE`: no root is among the others.
    """
    pool = {each: read for each in others if (read := _read(each)) is not None}
    path, last = [certificate], x509.load_der_x509_certificate(certificate)
    while last.issuer != last.subject:
        above = next(
            (der for der, each in pool.items() if _issued(each, last)),
            None,
        )
        if above is None or len(path) >= _PATH_MOST:
            raise ApplianceError(ErrorCode.REVOCATION_UNAVAILABLE)
        path.append(above)
        last = pool[above]
    return tuple(path)


def _read(der: bytes) -> x509.Certificate | None:
    """A certificate that a signature carries; None for what is none."""
    try:
        read = x509.load_der_x509_certificate(der)
        # These are parsed when they are asked for.
        _ = read.issuer, read.subject
    except (ValueError, x509.InvalidVersion):
        return None
    return read


@lru_cache(maxsize=256)
def _is_issued(certificate: bytes, issuer: bytes) -> bool:
    return _issued(
        x509.load_der_x509_certificate(issuer),
        x509.load_der_x509_certificate(certificate),
    )


def _issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except Exception:  # noqa: BLE001 (whatever is wrong, it is not the issuer)
        return False
    return True


@lru_cache(maxsize=1024)
def _responders(answer: bytes) -> tuple[bytes, ...]:
    """Certificates that an answer carries, DER."""
    carried: Iterable[x509.Certificate] = ocsp.load_der_ocsp_response(
        answer
    ).certificates
    return tuple(each.public_bytes(Encoding.DER) for each in carried)
