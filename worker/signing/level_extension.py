"""Takes a signature to the level that its profile asks for, as far as that goes now.

    made = await levels.timestamp(value, profile)
    reached = await levels.complete(signed, checked, certificate, chain, profile)

No user's key is needed: any worker may do it, any number of times. What cannot be
had now is waited for (`required`) or comes later (`preferred`), by an appended
revision: what was published is the beginning of what follows.

Source: EN 319 142-1, 6.3; reliability F22, F24; docs/levels.md.
"""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from cryptography import x509

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, TsaUnavailableError
from appliance.domain.keys import DigestAlgorithm
from appliance.domain.ports import TimestampAuthority
from appliance.domain.requests.levels import (
    INTERNAL,
    SignatureProfile,
    Upkeep,
    reaches,
)
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from appliance.pki.validation.validation_material import ValidationSource
from worker.pades.existing_signatures import Embedded, embedded
from worker.pades.incremental_file import GrowingFile
from worker.pades.reading_limits import read_apart
from worker.pades.self_check import CheckedSignature
from worker.pades.timestamp_token import TimestampToken
from worker.signing.level_revisions import (
    AWAY,
    TOKEN_BYTES,
    Aim,
    Authorities,
    Partly,
    Raiser,
    own_from,
)

_log = structlog.get_logger(__name__)
_L = SignatureLevel
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
        tsa: the internal one.
        source: gathers validation data.
        clock: the time.
        settles: time after which the validation data of this moment is followed by
            younger, which the first renewal of a B-LTA document adds.
        renewal: time before the end of the newest timestamp's certificate that a
            document is stamped anew.
        outside: the ones that profiles name; None: this role has no network.
    """

    def __init__(
        self,
        tsa: TimestampAuthority,
        source: ValidationSource,
        clock: Clock,
        settles: timedelta,
        renewal: timedelta,
        outside: Authorities | None = None,
    ) -> None:
        self._raiser = Raiser(tsa, source, clock, outside)
        self._has_network = outside is not None
        self._source = source
        self._clock = clock
        self._settles = settles
        self._renewal = renewal

    def must_go_out(self, certificate: bytes, profile: SignatureProfile) -> bool:
        """Whether something is wanted that only a role with a network can have.

        Args:
            certificate: the signer's, DER.
            profile: of the signature.
        """
        return not self._has_network and self._is_outside(certificate, profile)

    def _is_outside(self, certificate: bytes, profile: SignatureProfile) -> bool:
        return profile.has_outside_tsa or (
            reaches(profile.level, _L.B_LT)
            and not self._source.is_internal(certificate)
        )

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
        if profile.has_outside_tsa:
            return TOKEN_BYTES
        known = self._raiser.token_bytes.get(digest)
        if known is None:
            try:
                await self._raiser.stamp(INTERNAL, bytes(digest.size_bytes), digest)
            except ApplianceError:
                return TOKEN_BYTES
            known = self._raiser.token_bytes[digest]
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
            return await self._raiser.stamp(profile.tsa, imprint, digest)
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
        file = GrowingFile(*signed)
        try:
            aim = Aim(profile.level, profile.digest, profile.tsa)
            reached = await self._raiser.raise_to(file, [one], reached, aim)
        except Partly as exc:
            _pass_over(exc.cause, profile.timestamp_policy)
            reached = exc.reached
        upkeep = self._following(reached, profile.level)
        if upkeep is not None:
            is_outside = self._is_outside(certificate, profile)
            upkeep = replace(upkeep, tsa=profile.tsa, outside=is_outside)
        return Reached(file.appended, reached, upkeep)

    async def keep(
        self, pdf: bytes, wanted: SignatureLevel, tsa: tuple[str, ...] = INTERNAL
    ) -> Reached:
        """Raise a published document, or stamp it anew.

        Args:
            pdf: its newest version.
            wanted: the level it is to have.
            tsa: names of the authorities of its profile.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`, `REVOCATION_UNAVAILABLE`.
        """
        found = await read_apart(embedded, pdf)
        # An earlier signature's timestamp says nothing of this document's own.
        own = found[own_from(found) :]
        tokens = [each.token for each in own if each.token is not None]
        reached = _L.B_T if tokens else _L.B_B
        digest = tokens[-1].digest if tokens else DigestAlgorithm.SHA256
        file = GrowingFile(pdf)
        try:
            aim = Aim(wanted, digest, tsa, is_kept=True)
            reached = await self._raiser.raise_to(file, found, reached, aim)
        except Partly as exc:
            if not file.appended:
                raise exc.cause from exc
            upkeep = self._following(exc.reached, wanted)
            return Reached(file.appended, exc.reached, upkeep)
        newest = await read_apart(embedded, file.content)
        self._refuse_no_gain(found, newest)
        return Reached(file.appended, reached, self._renewal_of(newest, wanted))

    def _refuse_no_gain(self, before: list[Embedded], after: list[Embedded]) -> None:
        """Refuse a renewal by the certificate that is about to end.

        As when the CA itself ends: each one would add a revision, and not a day.

        Raises:
            TsaUnavailableError: the TSA has no other one yet.
        """
        own = before[own_from(before) :]
        former = next((each.token for each in reversed(own) if each.is_timestamp), None)
        if former is None or _end_of(former) - self._renewal > self._clock.now():
            return
        if after[-1].certificate == former.certificate:
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


def _pass_over(exc: ApplianceError, policy: TimestampPolicy) -> None:
    """Go on without what cannot be had now, where the policy allows it.

    Raises:
        ApplianceError: it does not, or this is nothing that waiting mends.
    """
    if exc.code not in AWAY or policy is TimestampPolicy.REQUIRED:
        raise exc
    _log.warning("level.later", code=exc.code.value, reason=getattr(exc, "reason", ""))


def _end_of(token: TimestampToken) -> datetime:
    return x509.load_der_x509_certificate(token.certificate).not_valid_after_utc
