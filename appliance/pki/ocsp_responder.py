"""What anybody may ask of the internal CA: certificates, CRLs, OCSP answers.

All of it was signed before and lies on the record. A stranger's question causes
work of the HSM in one case: a known certificate whose answer is missing or out of
date, and then once for its time.

Source: RFC 5280; RFC 6960; RFC 5019.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, TypeVar

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.pki.certificates import STATUS_KINDS, Crl, OcspAnswer, serial_text
from appliance.domain.vocab import CertificateState
from appliance.pki.ca_certificates import AuthorityFiles, read_authority
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication import Publishing
from appliance.pki.publication_store import PublicationStore
from appliance.record.unit_of_work import Database
from appliance.settings import Settings, SettingsError

_T = TypeVar("_T")
_WAIT_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.25


class Issuer(Enum):
    """The two CAs."""

    ROOT = "root"
    CA = "ca"


class OcspRefusal(Enum):
    """Why a question has no signed answer. Source: RFC 6960, 2.3; RFC 5019, 2.2.3."""

    MALFORMED = ocsp.OCSPResponseStatus.MALFORMED_REQUEST
    TRY_LATER = ocsp.OCSPResponseStatus.TRY_LATER
    UNAUTHORIZED = ocsp.OCSPResponseStatus.UNAUTHORIZED
    """Not of this CA, or not known to it."""

    @property
    def der(self) -> bytes:
        """The unsigned response that says so."""
        built = ocsp.OCSPResponseBuilder.build_unsuccessful(self.value)
        return built.public_bytes(Encoding.DER)


@dataclass(frozen=True, slots=True)
class Published:
    """Something signed, and how long it may be kept."""

    der: bytes = field(repr=False)
    this_update: datetime
    next_update: datetime


@dataclass(frozen=True, slots=True)
class _Question:
    """Whose status is asked for."""

    name_sha1: bytes
    key_sha1: bytes
    serial: int


class OcspResponder:
    """The use cases of whoever checks a signature.

    Args:
        store: the record.
        clock: the time.
        settings: of the installation, for its files.
        publishing: asks for what is missing.
        wait_s: longest wait for that, in seconds.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        settings: Settings,
        publishing: Publishing,
        wait_s: float = _WAIT_S,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._publishing = publishing
        self._wait_s = wait_s
        self._files: AuthorityFiles | None = None

    def certificate(self, issuer: Issuer) -> bytes:
        """A CA's certificate, DER.

        Raises:
            ApplianceError: `NOT_FOUND` before `rubrica hsm init` made it.
        """
        files = self._authority()
        return files.root if issuer is Issuer.ROOT else files.ca

    async def crl(self, issuer: Issuer) -> Published:
        """A CA's newest CRL.

        Raises:
            ApplianceError: `HSM_UNAVAILABLE`: the first one is not signed yet;
                `NOT_FOUND` as `certificate`.
        """
        files = self._authority()
        name = files.root_id if issuer is Issuer.ROOT else files.ca_id

        async def look() -> Crl | None:
            async with self._store.read() as transaction:
                return await PublicationStore(transaction).crl(name)

        found = await look() or await self._ask_for(look)
        if found is None:
            raise ApplianceError(ErrorCode.HSM_UNAVAILABLE)
        return Published(found.der, found.this_update, found.next_update)

    async def answer(self, request: bytes) -> Published | OcspRefusal:
        """Answer an OCSP request.

        Args:
            request: OCSPRequest, DER, from anybody; one certificate, named by
                SHA-1. A nonce or signature in it is passed over.
        """
        try:
            files = self._authority()
        except ApplianceError:
            return OcspRefusal.UNAUTHORIZED
        question = _parse(request)
        if isinstance(question, OcspRefusal):
            return question
        ours = (files.ca_name_sha1, bytes.fromhex(files.ca_id))
        if (question.name_sha1, question.key_sha1) != ours:
            return OcspRefusal.UNAUTHORIZED
        return await self._status(serial_text(question.serial), files.ca_id)

    async def _status(self, serial: str, issuer: str) -> Published | OcspRefusal:
        """The answer for a certificate, made now if it has to be."""

        async def look() -> OcspAnswer | None:
            async with self._store.read() as transaction:
                found = await PublicationStore(transaction).answer(serial)
            fresh = found is not None and found.next_update > self._clock.now()
            return found if fresh else None

        found = await look()
        if found is None:
            async with self._store.read() as transaction:
                known = await CertificateStore(transaction).get(serial)
            if (
                known is None
                or known.kind not in STATUS_KINDS
                or known.issuer != issuer
                or known.not_after <= self._clock.now()
            ):
                return OcspRefusal.UNAUTHORIZED
            if known.state is not CertificateState.REVOKING:
                found = await self._ask_for(look)
        if found is None:
            return OcspRefusal.TRY_LATER
        return Published(found.der, found.this_update, found.next_update)

    async def _ask_for(self, look: Callable[[], Awaitable[_T | None]]) -> _T | None:
        """Have what is due signed, and wait for it a little."""
        deadline = asyncio.get_running_loop().time() + self._wait_s
        while (found := await look()) is None:
            # Each time: a task that was asked for before may look no more.
            await self._publishing.submit()
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(_LOOK_AGAIN_S)
        return found

    def _authority(self) -> AuthorityFiles:
        """The CA's files, read once.

        Raises:
            ApplianceError: `NOT_FOUND`.
        """
        if self._files is None:
            try:
                self._files = read_authority(self._settings)
            except SettingsError as exc:
                raise ApplianceError(ErrorCode.NOT_FOUND) from exc
        return self._files


def _parse(request: bytes) -> _Question | OcspRefusal:
    """Read a request, which may be anything."""
    try:
        asked = ocsp.load_der_ocsp_request(request)
    except (ValueError, NotImplementedError):
        # Several certificates in one request are none of this profile.
        return OcspRefusal.MALFORMED
    try:
        if not isinstance(asked.hash_algorithm, hashes.SHA1):  # noqa: S303 (RFC 5019, 2.1.1)
            return OcspRefusal.UNAUTHORIZED
        return _Question(
            asked.issuer_name_hash, asked.issuer_key_hash, asked.serial_number
        )
    except UnsupportedAlgorithm:
        return OcspRefusal.UNAUTHORIZED
    except ValueError:
        return OcspRefusal.MALFORMED
