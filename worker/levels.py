"""Takes a signature to the level that its profile asks for, as far as that goes now.

    made = await levels.timestamp(value, profile)
    reached = await levels.complete(signed, checked, certificate, chain, profile)

No user's key is needed: any worker may do it, any number of times. What cannot be
had now is waited for (`required`) or comes later (`preferred`), by an appended
revision: what was published is the beginning of what follows.

Source: EN 319 142-1, 6.3; reliability F22, F24; docs/levels.md.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog
from cryptography import x509

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, TsaUnavailableError
from appliance.domain.hsm import DigestAlgorithm
from appliance.domain.levels import (
    SignatureProfile,
    Upkeep,
    ValidationData,
    reaches,
)
from appliance.domain.ports import TimestampAuthority
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from appliance.services.validation_data import ValidationSource
from worker.pdf.check import (
    CheckedSignature,
    SignatureCheckError,
    check_end,
    check_timestamp,
)
from worker.pdf.document_timestamp import fill_timestamp, prepare_timestamp
from worker.pdf.dss import Validated, add_dss
from worker.pdf.embedded import Embedded, embedded
from worker.pdf.token import TimestampToken

_log = structlog.get_logger(__name__)
_L = SignatureLevel
TOKEN_BYTES: Final = 10_240
"""Room for the token of a TSA of which none was seen yet."""
_SPARE_BYTES: Final = 64
"""What one token may be longer than another of the same TSA: serial number, time."""
AWAY: Final = frozenset({ErrorCode.TSA_UNAVAILABLE, ErrorCode.REVOCATION_UNAVAILABLE})
"""What a later try may do for."""
_SOON: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of it."""

    appended: bytes = field(repr=False)
    """What follows the bytes that it started from."""
    level: SignatureLevel
    upkeep: Upkeep | None
    """What is due later."""


class Levels:
    """Adds timestamps and validation data.

    Args:
        tsa: stamps.
        source: gathers validation data.
        clock: the time.
        settles: time after which the validation data of this moment is followed by
            younger, which the first renewal of a B-LTA document adds.
        renewal: time before the end of the newest timestamp's certificate that a
            document is stamped anew.
    """

    def __init__(
        self,
        tsa: TimestampAuthority,
        source: ValidationSource,
        clock: Clock,
        settles: timedelta,
        renewal: timedelta,
    ) -> None:
        self._tsa = tsa
        self._source = source
        self._clock = clock
        self._settles = settles
        self._renewal = renewal
        self._token_bytes: dict[DigestAlgorithm, int] = {}

    async def token_bytes(
        self, profile: SignatureProfile, digest: DigestAlgorithm
    ) -> int:
        """Room that a signature is to leave for its timestamp, in bytes.

        As long as a first token of the same TSA, made for nothing else, and a little
        more; while none can be had, enough for those of others. A token that does
        not fit is no loss: a document timestamp takes its place.

        Args:
            profile: of the signature.
            digest: of its timestamp's imprint.
        """
        if profile.level is _L.B_B:
            return 0
        known = self._token_bytes.get(digest)
        if known is None:
            try:
                sample = await self._tsa.stamp(bytes(digest.size_bytes), digest)
            except ApplianceError:
                return TOKEN_BYTES
            known = self._token_bytes[digest] = len(sample) + _SPARE_BYTES
        return known

    async def token(
        self, value: bytes, digest: DigestAlgorithm, profile: SignatureProfile
    ) -> bytes | None:
        """A timestamp over a signature's value.

        Args:
            value: the signature's.
            digest: of the imprint.
            profile: of the signature.

        Returns:
            None where none is asked for, or none can be had and that is preferred.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`, where one is required.
        """
        if profile.level is _L.B_B:
            return None
        try:
            imprint = hashlib.new(digest.value, value).digest()
            return await self._tsa.stamp(imprint, digest)
        except ApplianceError as exc:
            _pass_over(exc, profile.timestamp_policy)
            return None

    async def complete(
        self,
        signed: tuple[bytes, ...],
        checked: CheckedSignature,
        certificate: bytes,
        chain: tuple[bytes, ...],
        profile: SignatureProfile,
    ) -> Reached:
        """Take a signature from its timestamp on to its level.

        Args:
            signed: the file, in parts, ending with the signature.
            checked: that signature.
            certificate: the signer's, DER.
            chain: its issuers, DER.
            profile: of the signature.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`, `REVOCATION_UNAVAILABLE`, where it is
                required; `CERTIFICATE_NOT_USABLE`: the certificate is revoked.
        """
        one = Embedded(checked.contents, certificate, chain, checked.token)
        reached = _L.B_T if checked.token else _L.B_B
        if reaches(reached, profile.level):
            # Nothing is to be appended: the file is not joined for it.
            return Reached(b"", reached, None)
        pdf = b"".join(signed)
        start = len(pdf)
        try:
            reached, pdf = await self._raise(
                pdf, [one], reached, profile.level, profile.digest
            )
        except _Partly as exc:
            _pass_over(exc.cause, profile.timestamp_policy)
            reached, pdf = exc.reached, exc.pdf
        return Reached(pdf[start:], reached, self._following(reached, profile.level))

    async def keep(self, pdf: bytes, wanted: SignatureLevel) -> Reached:
        """Raise a published document, or stamp it anew.

        Args:
            pdf: its newest version.
            wanted: the level it is to have.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`, `REVOCATION_UNAVAILABLE`.
        """
        found = await asyncio.to_thread(embedded, pdf)
        tokens = [each.token for each in found if each.token is not None]
        reached = _L.B_T if tokens else _L.B_B
        digest = tokens[-1].digest if tokens else DigestAlgorithm.SHA256
        start = len(pdf)
        try:
            reached, pdf = await self._raise(pdf, found, reached, wanted, digest)
        except _Partly as exc:
            if len(exc.pdf) == start:
                raise exc.cause from exc
            upkeep = self._following(exc.reached, wanted)
            return Reached(exc.pdf[start:], exc.reached, upkeep)
        newest = await asyncio.to_thread(embedded, pdf)
        self._refuse_no_gain(found, newest)
        return Reached(pdf[start:], reached, self._renewal_of(newest, wanted))

    def _refuse_no_gain(self, before: list[Embedded], after: list[Embedded]) -> None:
        """Refuse a renewal by the certificate that is about to end.

        As when the CA itself ends: each one would add a revision, and not a day.

        Raises:
            TsaUnavailableError: the TSA has no other one yet.
        """
        former = next((each for each in reversed(before) if each.is_timestamp), None)
        if former is None or former.token is None:
            return
        is_due = _end_of(former.token) - self._renewal <= self._clock.now()
        if is_due and after[-1].certificate == former.certificate:
            msg = "the TSA has no certificate that lasts longer than the timestamp's"
            raise TsaUnavailableError(msg)

    def _following(
        self, reached: SignatureLevel, wanted: SignatureLevel
    ) -> Upkeep | None:
        """What is due of a document that was just made."""
        now = self._clock.now()
        if not reaches(reached, wanted):
            return Upkeep(wanted, now + _SOON)
        if wanted is _L.B_LTA:
            return Upkeep(wanted, now + self._settles)
        return None

    def _renewal_of(
        self, found: list[Embedded], wanted: SignatureLevel
    ) -> Upkeep | None:
        """When a document is to be stamped anew, by what stamped it last."""
        if wanted is not _L.B_LTA:
            return None
        token = next(each.token for each in reversed(found) if each.is_timestamp)
        if token is None:  # a document timestamp is one
            raise ApplianceError(ErrorCode.INTERNAL)
        due = _end_of(token) - self._renewal
        # Never at once again, however short a TSA's certificates are.
        return Upkeep(wanted, max(due, self._clock.now() + self._settles))

    async def _raise(
        self,
        pdf: bytes,
        found: list[Embedded],
        reached: SignatureLevel,
        wanted: SignatureLevel,
        digest: DigestAlgorithm,
    ) -> tuple[SignatureLevel, bytes]:
        """Append what is missing, in order.

        Raises:
            _Partly: something cannot be had now; with what was reached.
            ApplianceError: `CERTIFICATE_NOT_USABLE`, as `complete`.
        """
        try:
            if not reaches(reached, _L.B_T):
                pdf, stamp = await self._stamped(pdf, digest)
                found, reached = [*found, stamp], _L.B_T
            if reaches(wanted, _L.B_LT):
                pdf = await self._with_data(pdf, found)
                reached = _L.B_LT
            if wanted is _L.B_LTA:
                pdf, stamp = await self._stamped(pdf, digest)
                reached = _L.B_LTA
                pdf = await self._with_data_of_newest(pdf, found, stamp)
        except ApplianceError as exc:
            if exc.code not in AWAY:
                raise
            raise _Partly(exc, reached, pdf) from exc
        return reached, pdf

    async def _with_data(self, pdf: bytes, found: list[Embedded]) -> bytes:
        """The file with the validation data of its signatures and timestamps.

        Raises:
            ApplianceError: as `ValidationSource.of`.
        """
        validated = []
        for each in found:
            data = await self._data(each)
            if data is not None:
                validated.append(Validated(each.contents, data))
        increment = await asyncio.to_thread(add_dss, pdf, validated)
        if not increment:
            return pdf
        check_end(pdf, increment)
        return pdf + increment

    async def _with_data_of_newest(
        self, pdf: bytes, found: list[Embedded], stamp: Embedded
    ) -> bytes:
        """The file with data of a TSA's certificate that it did not have yet.

        Without it the newest timestamp is good for nobody who asks no network. What
        cannot be had now comes with the next renewal: the level is reached.

        Args:
            pdf: the file, which ends with the timestamp.
            found: what it had before.
            stamp: the timestamp.
        """
        tokens = [each.token for each in found if each.token is not None]
        if stamp.certificate in [token.certificate for token in tokens]:
            return pdf
        try:
            return await self._with_data(pdf, [stamp])
        except ApplianceError as exc:
            if exc.code not in AWAY:
                raise
            _log.info("level.newest_without_data", code=exc.code.value)
            return pdf

    async def _data(self, one: Embedded) -> ValidationData | None:
        """What one of them needs; None for what has ended and was kept in time.

        Raises:
            ApplianceError: as `ValidationSource.of`.
        """
        data = await self._data_of(one, one.certificate, one.others)
        token = one.token
        if token is not None and token.certificate != one.certificate:
            more = await self._data_of(one, token.certificate, token.certificates)
            data = data.with_more(more)
        return data if data.certificates else None

    async def _data_of(
        self, one: Embedded, certificate: bytes, others: tuple[bytes, ...]
    ) -> ValidationData:
        """What one certificate needs now; nothing where nobody can tell it any more.

        What was revoked since leaves a document as good as it was: its data of
        before is in the store. A document timestamp is followed by another one.

        Raises:
            ApplianceError: as `ValidationSource.of`.
        """
        if not _is_alive(certificate, self._clock.now()):
            return ValidationData()
        try:
            return await self._source.of(certificate, others)
        except ApplianceError as exc:
            is_revoked = exc.code is ErrorCode.CERTIFICATE_NOT_USABLE
            if is_revoked and (one.has_data or one.is_timestamp):
                return ValidationData()
            raise

    async def _stamped(
        self, pdf: bytes, digest: DigestAlgorithm
    ) -> tuple[bytes, Embedded]:
        """The file with a document timestamp.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`.
        """
        room = self._token_bytes.get(digest, TOKEN_BYTES)
        prepared = await asyncio.to_thread(prepare_timestamp, pdf, digest, room)
        token = await self._tsa.stamp(prepared.imprint, digest)
        increment = fill_timestamp(prepared, token)
        checked = await asyncio.to_thread(check_timestamp, pdf, increment)
        stamp = checked.token
        if stamp is None:
            msg = "a document timestamp is one"
            raise SignatureCheckError(msg)
        return pdf + increment, Embedded(
            checked.contents,
            stamp.certificate,
            stamp.certificates,
            stamp,
            is_timestamp=True,
        )


class _Partly(Exception):  # noqa: N818 (it tells how far it went)
    """Not all could be had.

    Args:
        cause: why.
        reached: the level reached.
        pdf: the file at that level.
    """

    def __init__(
        self, cause: ApplianceError, reached: SignatureLevel, pdf: bytes
    ) -> None:
        super().__init__(cause)
        self.cause = cause
        self.reached = reached
        self.pdf = pdf


def _pass_over(exc: ApplianceError, policy: TimestampPolicy) -> None:
    """Go on without what cannot be had now, where the policy allows it.

    Raises:
        ApplianceError: it does not, or this is nothing that waiting mends.
    """
    if exc.code not in AWAY or policy is TimestampPolicy.REQUIRED:
        raise exc
    _log.warning("level.later", code=exc.code.value, reason=getattr(exc, "reason", ""))


def _is_alive(certificate: bytes, now: datetime) -> bool:
    """Whether somebody still answers for a certificate."""
    return x509.load_der_x509_certificate(certificate).not_valid_after_utc > now


def _end_of(token: TimestampToken) -> datetime:
    return x509.load_der_x509_certificate(token.certificate).not_valid_after_utc
