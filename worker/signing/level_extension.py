"""Takes a signature to the level that its profile asks for, as far as that goes now.

    made = await levels.token(value, digest, profile)
    reached = await levels.complete(signed, checked, certificate, chain, profile)

Servers outside are asked by another role: of what they told, `Materials` has what was
delivered, and raises `MissingMaterialError` for what is to be fetched first.

A level is reached by appended revisions, in order: a document timestamp where the
signature has none, validation data (DSS), a document timestamp over these. No user's
key is needed: any worker may do it, any number of times. What cannot be had now is
waited for (`required`) or comes later (`preferred`), by one more revision: what was
published is the beginning of what follows.

What was revoked since leaves a document as good as it was: the data of before is in
the store, and a document timestamp is followed by another one. Nobody answers any
more for what has ended.

Source: EN 319 142-1, 5.4 and 6.3; reliability F22, F24; docs/levels.md.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from cryptography import x509

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, TsaUnavailableError
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.outside_material import (
    Draft,
    MissingMaterialError,
    WantedMaterial,
)
from appliance.domain.ports import OwnTimestampAuthority
from appliance.domain.requests.levels import (
    INTERNAL,
    SignatureProfile,
    Upkeep,
    ValidationData,
    reaches,
)
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from appliance.pki.validation.validation_material import (
    SharedValidationSource,
    ValidationSource,
)
from worker.pades.addition_check import check_additions
from worker.pades.document_timestamp import (
    PreparedTimestamp,
    fill_timestamp,
    prepare_timestamp,
)
from worker.pades.dss import Validated, add_dss
from worker.pades.existing_signatures import Embedded, embedded
from worker.pades.incremental_file import GrowingFile
from worker.pades.reading_limits import read_apart
from worker.pades.self_check import (
    CheckedSignature,
    SignatureCheckError,
    check_end,
    check_timestamp,
)
from worker.pades.timestamp_token import TimestampToken
from worker.signing.outside_material import Materials

_log = structlog.get_logger(__name__)
_L = SignatureLevel
_SOON: Final = timedelta(seconds=30)
_TOKEN_BYTES: Final = 10_240
"""Room for the token of a TSA of which none was seen yet."""
_SPARE_BYTES: Final = 64
"""What one token may be longer than another of the same TSA: serial number, time."""
AWAY: Final = frozenset({ErrorCode.TSA_UNAVAILABLE, ErrorCode.REVOCATION_UNAVAILABLE})
"""What a later try may do for."""
_UNPROVEN: Final = AWAY | {ErrorCode.CERTIFICATE_NOT_USABLE}
"""What validation data can be missing for."""


@dataclass(frozen=True, slots=True)
class ExtensionResult:
    """What came of it."""

    appended: bytes = field(repr=False)
    """What follows the bytes that it started from."""
    level: SignatureLevel
    upkeep: Upkeep | None
    """What is due later."""


@dataclass(frozen=True, slots=True)
class _Target:
    """What a document is to be raised to, and how."""

    wanted: SignatureLevel
    digest: DigestAlgorithm
    tsa: tuple[str, ...]
    """Names of the authorities to ask."""
    source: ValidationSource | SharedValidationSource
    is_kept: bool = False
    """Whether it is a published document: outside CAs are then asked for data that
    is younger than what it proves. At once it is what can be had."""
    materials: Materials | None = None
    """What was delivered of servers outside; None: none is needed."""
    is_required: bool = True
    """Whether nothing is published below the level."""
    base: str = ""
    """Names the bytes that are extended; empty where no draft continues them."""

    @property
    def is_proven(self) -> bool:
        """Whether TSAs' certificates need a status."""
        return reaches(self.wanted, _L.B_LT)

    def has_drafts(self, reached: SignatureLevel) -> bool:
        """True where TSAs outside are asked for a document timestamp."""
        is_stamped = self.wanted is _L.B_LTA or not reaches(reached, _L.B_T)
        return is_stamped and self.tsa != INTERNAL


class _PartialExtensionError(Exception):
    """Not all could be had.

    Args:
        cause: why.
        reached: the level reached; what takes the file there was appended.
    """

    def __init__(self, cause: ApplianceError, reached: SignatureLevel) -> None:
        super().__init__(cause)
        self.cause = cause
        self.reached = reached


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
    """

    def __init__(
        self,
        tsa: OwnTimestampAuthority,
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
        self._seen_bytes: dict[DigestAlgorithm, int] = {}
        """Room that the internal TSA's tokens take, once one was seen."""

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
            return _TOKEN_BYTES
        if digest not in self._seen_bytes:
            try:
                await self._own([bytes(digest.size_bytes)], digest)
            except ApplianceError:
                return _TOKEN_BYTES
        return self._seen_bytes[digest]

    async def token(
        self, value: bytes, digest: DigestAlgorithm, profile: SignatureProfile
    ) -> bytes | None:
        """A timestamp over a signature's value; see `tokens`.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`, where one is required.
        """
        return (await self.tokens((value,), digest, profile))[0]

    async def tokens(
        self,
        values: Sequence[bytes],
        digest: DigestAlgorithm,
        profile: SignatureProfile,
        materials: Materials | None = None,
    ) -> list[bytes | None]:
        """Timestamps over signatures' values, one each.

        Args:
            values: the signatures'.
            digest: of the imprints.
            profile: of the signatures.
            materials: of the activation, where the profile names authorities outside.

        Returns:
            None where none is asked for, or none can be had and that is preferred.

        Raises:
            MissingMaterialError: some are to be fetched.
            ApplianceError: `TSA_UNAVAILABLE`, where one is required.
        """
        if profile.level is _L.B_B:
            return [None] * len(values)
        imprints = [hashlib.new(digest.value, value).digest() for value in values]
        try:
            if profile.tsa == INTERNAL:
                return [*await self._own(imprints, digest)]
            return [
                await _delivered(materials).stamp(
                    profile.tsa,
                    imprint,
                    digest,
                    is_required=profile.timestamp_policy is TimestampPolicy.REQUIRED,
                    is_proven=reaches(profile.level, _L.B_LT),
                )
                for imprint in imprints
            ]
        except ApplianceError as exc:
            _pass_over(exc, profile.timestamp_policy)
            return [None] * len(values)

    def shared_source(
        self, materials: Materials | None = None, *, is_required: bool = True
    ) -> SharedValidationSource:
        """Validation data for documents that are completed together.

        Args:
            materials: of their activation, where some is of outside CAs.
            is_required: whether nothing is published without it.
        """
        if materials is None:
            return SharedValidationSource(self._source)
        return SharedValidationSource(self._abroad(materials, is_required=is_required))

    def _abroad(self, materials: Materials, *, is_required: bool) -> ValidationSource:
        status = materials.status(is_required=is_required)
        return self._source.abroad(status, materials.anchors)

    async def missing(
        self,
        certificate: bytes,
        chain: tuple[bytes, ...],
        profile: SignatureProfile,
        source: SharedValidationSource,
    ) -> Sequence[WantedMaterial]:
        """What a signature lacks of outside CAs, before it has a timestamp.

        So that both are fetched at once.

        Args:
            certificate: the signer's, DER.
            chain: its issuers, DER.
            profile: of the signature.
            source: of `shared_source`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        is_needed = reaches(profile.level, _L.B_LT)
        if not is_needed or self._source.is_internal(certificate):
            return ()
        try:
            await source.of(certificate, chain)
        except MissingMaterialError as exc:
            return exc.wanted
        except ApplianceError as exc:
            if exc.code not in _UNPROVEN:
                raise
        return ()

    async def complete(
        self,
        signed: tuple[bytes, ...],
        checked: CheckedSignature,
        certificate: bytes,
        chain: tuple[bytes, ...],
        profile: SignatureProfile,
        source: SharedValidationSource | None = None,
        materials: Materials | None = None,
    ) -> ExtensionResult:
        """Take a signature from its timestamp on to its level.

        Args:
            signed: the file, in parts, ending with the signature.
            checked: that signature.
            certificate: the signer's, DER.
            chain: its issuers, DER.
            profile: of the signature.
            source: of `shared_source`, where others are completed with it.
            materials: of the activation, where servers outside are needed.

        Raises:
            MissingMaterialError: some of it is to be fetched.
            ApplianceError: `TSA_UNAVAILABLE`, `REVOCATION_UNAVAILABLE`, where it is
                required; `CERTIFICATE_NOT_USABLE`: the certificate is revoked.
        """
        one = Embedded(checked.contents, certificate, chain, checked.token)
        reached = _L.B_T if checked.token else _L.B_B
        if reaches(reached, profile.level):
            # Nothing is to be appended: the file is not joined for it.
            return ExtensionResult(b"", reached, None)
        file = GrowingFile(signed)
        due = self._settles if profile.level is _L.B_LTA else None
        try:
            is_required = profile.timestamp_policy is TimestampPolicy.REQUIRED
            target = _Target(
                profile.level,
                profile.digest,
                profile.tsa,
                source or self.shared_source(materials, is_required=is_required),
                materials=materials,
                is_required=is_required,
            )
            if materials is not None and target.has_drafts(reached):
                target = replace(target, base=_base(signed))
            reached = await self._extend(file, [one], reached, target)
        except _PartialExtensionError as exc:
            _pass_over(exc.cause, profile.timestamp_policy)
            reached, due = exc.reached, _SOON
        if materials is not None:
            await _check(file, sum(map(len, signed)))
        upkeep = None
        if due is not None:
            is_internal = self._source.is_internal(certificate)
            is_outside = profile.has_outside_tsa or (
                reaches(profile.level, _L.B_LT) and not is_internal
            )
            due_at = self._clock.now() + due
            upkeep = Upkeep(profile.level, due_at, profile.tsa, is_outside)
        return ExtensionResult(file.appended, reached, upkeep)

    async def keep(
        self,
        pdf: bytes,
        wanted: SignatureLevel,
        tsa: tuple[str, ...] = INTERNAL,
        materials: Materials | None = None,
    ) -> ExtensionResult:
        """Raise a published document, or stamp it anew.

        Args:
            pdf: its newest version.
            wanted: the level it is to have.
            tsa: names of the authorities of its profile.
            materials: of its upkeep, where servers outside are needed.

        Raises:
            MissingMaterialError: some of it is to be fetched.
            ApplianceError: `TSA_UNAVAILABLE`, `REVOCATION_UNAVAILABLE`.
        """
        found = await read_apart(embedded, pdf)
        # An earlier signature's timestamp says nothing of this document's own.
        own = found[_own_from(found) :]
        tokens = [each.token for each in own if each.token is not None]
        reached = _L.B_T if tokens else _L.B_B
        digest = tokens[-1].digest if tokens else DigestAlgorithm.SHA256
        file = GrowingFile((pdf,))
        try:
            target = _Target(
                wanted,
                digest,
                tsa,
                self.shared_source(materials, is_required=False),
                is_kept=True,
                materials=materials,
                # A published document waits for its next try in any case.
                is_required=False,
            )
            if materials is not None and target.has_drafts(reached):
                target = replace(target, base=_base((pdf,)))
            reached = await self._extend(file, found, reached, target)
        except _PartialExtensionError as exc:
            if not file.appended:
                raise exc.cause from exc
            upkeep = Upkeep(wanted, self._clock.now() + _SOON)
            await _check(file, len(pdf))
            return ExtensionResult(file.appended, exc.reached, upkeep)
        newest = await read_apart(embedded, file.content)
        await _check(file, len(pdf))
        self._refuse_no_gain(found, newest)
        return ExtensionResult(file.appended, reached, self._renewal_of(newest, wanted))

    async def _own(
        self, imprints: Sequence[bytes], digest: DigestAlgorithm
    ) -> list[bytes]:
        """Tokens of the internal TSA, one for each imprint.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`.
        """
        tokens = await self._tsa.stamp_all(imprints, digest)
        # With a new certificate it may make longer ones than before.
        needed = max(map(len, tokens)) + _SPARE_BYTES
        self._seen_bytes[digest] = max(needed, self._seen_bytes.get(digest, 0))
        return tokens

    async def _extend(
        self,
        file: GrowingFile,
        found: list[Embedded],
        reached: SignatureLevel,
        target: _Target,
    ) -> SignatureLevel:
        """Append what is missing, in order.

        Args:
            file: grows by it.
            found: its signatures and timestamps.
            reached: its level.
            target: what it is to have.

        Returns:
            The level reached.

        Raises:
            _PartialExtensionError: something cannot be had now; with what was reached.
            MissingMaterialError: something is to be fetched first.
            ApplianceError: `CERTIFICATE_NOT_USABLE`, as `complete`.
        """
        draft = None
        if target.materials is not None and target.base:
            draft = await target.materials.draft(target.base)
        # An archive timestamp, where an earlier try came as far.
        newest = None
        try:
            if draft is not None and draft.is_archive:
                reached = _L.B_LT
                found, newest = await self._resume(file, draft, found, target)
            elif not reaches(reached, _L.B_T):
                found = await self._stamped(file, draft, found, target)
                reached = _L.B_T
            if reaches(target.wanted, _L.B_LT) and newest is None:
                await self._add_data(file, found, target)
                reached = _L.B_LT
            if target.wanted is _L.B_LTA:
                newest = newest or await self._add_timestamp(
                    file, target, is_archive=True
                )
                reached = _L.B_LTA
                await self._add_data_of_newest(file, found, newest, target)
        except ApplianceError as exc:
            if exc.code not in AWAY or _is_fetched(exc):
                raise
            raise _PartialExtensionError(exc, reached) from exc
        return reached

    async def _stamped(
        self,
        file: GrowingFile,
        draft: Draft | None,
        found: list[Embedded],
        target: _Target,
    ) -> list[Embedded]:
        """Append a document timestamp in the place of a signature's own.

        Raises:
            ApplianceError: as `_add_timestamp`.
        """
        if draft is None:
            return [*found, await self._add_timestamp(file, target)]
        found, newest = await self._resume(file, draft, found, target)
        return [*found, newest]

    async def _resume(
        self, file: GrowingFile, draft: Draft, found: list[Embedded], target: _Target
    ) -> tuple[list[Embedded], Embedded]:
        """Go on at a document timestamp that an earlier try has prepared.

        Returns:
            What the file has before that timestamp; and the timestamp.

        Raises:
            ApplianceError: as `_fill`.
        """
        file.append(draft.appended)
        await self._fill(file, draft, target)
        return await _with_stamps(file, found)

    async def _fill(self, file: GrowingFile, draft: Draft, target: _Target) -> None:
        """Append a document timestamp that an earlier try has prepared.

        Raises:
            MissingMaterialError: its token is still to be fetched.
            ApplianceError: `TSA_UNAVAILABLE`; `SIGNING_FAILED`: it does not fit.
        """
        prepared = PreparedTimestamp(
            draft.increment, draft.contents_at, draft.contents_length, draft.imprint
        )
        room = draft.contents_length // 2
        token = await self._stamp(prepared, draft, target)
        if len(token) > room:
            await self._add_timestamp(
                file,
                target,
                is_archive=draft.is_archive,
                room=len(token) + _SPARE_BYTES,
            )
            return
        await _append_timestamp(file, prepared, token)

    async def _add_data(
        self, file: GrowingFile, found: list[Embedded], target: _Target
    ) -> None:
        """Append the validation data of signatures and timestamps.

        What the document brought along may be of anybody: data of that is welcome
        and not waited for.

        Raises:
            ApplianceError: as `ValidationSource.of`.
        """
        validated = []
        missing: list[WantedMaterial] = []
        own = _own_from(found)
        for place, each in enumerate(found):
            try:
                data = await self._needed_data(each, target)
            except MissingMaterialError as exc:
                # All of it is fetched at once; one try is enough for what was brought.
                is_own = place >= own
                missing += [
                    replace(one, is_required=one.is_required and is_own)
                    for one in exc.wanted
                    if is_own or not one.again
                ]
                continue
            except ApplianceError as exc:
                if place >= own or exc.code not in _UNPROVEN:
                    raise
                continue
            if data is not None:
                validated.append(Validated(each.contents, data))
        if missing:
            raise MissingMaterialError(missing)
        increment = await read_apart(add_dss, file.content, validated)
        if increment:
            check_end(file.content, increment)
        file.append(increment)

    async def _needed_data(
        self, one: Embedded, target: _Target
    ) -> ValidationData | None:
        """What one of them needs; None for what has ended and was kept in time.

        Args:
            one: a signature or timestamp.
            target: of its document. Of a published one data is asked for that is
                younger than what it proves.

        Raises:
            ApplianceError: as `ValidationSource.of`; `TSA_UNAVAILABLE`: the
                certificate of the TSA is revoked, and another one is to stamp.
        """
        now, token, data = self._clock.now(), one.token, ValidationData()
        since = token.at if target.is_kept and token is not None else None
        asked = [(one.certificate, one.others)]
        if token is not None and token.certificate != one.certificate:
            asked.append((token.certificate, token.certificates))
        certificate = one.certificate
        missing: list[WantedMaterial] = []
        try:
            for certificate, others in asked:
                # Nobody answers for one that is over.
                ends = x509.load_der_x509_certificate(certificate).not_valid_after_utc
                if ends > now:
                    try:
                        found = await target.source.of(certificate, others, since)
                    except MissingMaterialError as exc:
                        missing += exc.wanted
                        continue
                    data = data.with_more(found)
        except ApplianceError as exc:
            is_away = exc.code is ErrorCode.REVOCATION_UNAVAILABLE
            if not is_away and (one.has_data or one.is_timestamp):
                return None
            is_revoked = exc.code is ErrorCode.CERTIFICATE_NOT_USABLE
            if is_revoked and certificate != one.certificate:
                raise ApplianceError(ErrorCode.TSA_UNAVAILABLE) from exc
            raise
        if missing:
            raise MissingMaterialError(missing)
        return data if data.certificates else None

    async def _add_data_of_newest(
        self, file: GrowingFile, found: list[Embedded], stamp: Embedded, target: _Target
    ) -> None:
        """Append data of a TSA's certificate that the file did not have yet.

        Without it the newest timestamp is good for nobody who asks no network. What
        cannot be had now comes with the next renewal: the level is reached.
        """
        tokens = [each.token for each in found if each.token is not None]
        if stamp.certificate in [token.certificate for token in tokens]:
            return
        try:
            await self._add_data(file, [stamp], target)
        except ApplianceError as exc:
            if exc.code not in _UNPROVEN or _is_fetched(exc):
                raise
            _log.info("level.newest_without_data", code=exc.code.value)

    async def _add_timestamp(
        self,
        file: GrowingFile,
        target: _Target,
        *,
        is_archive: bool = False,
        room: int = _TOKEN_BYTES,
    ) -> Embedded:
        """Append a document timestamp.

        Raises:
            MissingMaterialError: its token is to be fetched; with the draft.
            ApplianceError: `TSA_UNAVAILABLE`.
        """
        if target.tsa == INTERNAL:
            room = self._seen_bytes.get(target.digest, room)
        while True:
            prepared = await read_apart(
                prepare_timestamp, file.content, target.digest, room
            )
            draft = Draft(
                target.base,
                is_archive,
                file.appended,
                prepared.increment,
                prepared.contents_at,
                prepared.contents_length,
                prepared.imprint,
                target.digest,
            )
            token = await self._stamp(prepared, draft, target)
            if len(token) <= room:
                return await _append_timestamp(file, prepared, token)
            room = len(token) + _SPARE_BYTES

    async def _stamp(
        self, prepared: PreparedTimestamp, draft: Draft, target: _Target
    ) -> bytes:
        """A token over a document timestamp's bytes.

        Raises:
            MissingMaterialError: it is to be fetched; with the draft.
            ApplianceError: `TSA_UNAVAILABLE`.
        """
        if target.tsa == INTERNAL:
            return (await self._own([prepared.imprint], target.digest))[0]
        return await _delivered(target.materials).stamp(
            target.tsa,
            prepared.imprint,
            draft.digest,
            is_required=target.is_required,
            is_proven=target.is_proven,
            draft=draft,
        )

    def _refuse_no_gain(self, before: list[Embedded], after: list[Embedded]) -> None:
        """Refuse a renewal by the certificate that is about to end.

        As when the CA itself ends: each one would add a revision, and not a day.

        Raises:
            TsaUnavailableError: the TSA has no other one yet.
        """
        own = before[_own_from(before) :]
        former = next((each.token for each in reversed(own) if each.is_timestamp), None)
        if former is None or _end_of(former) - self._renewal > self._clock.now():
            return
        if after[-1].certificate == former.certificate:
            msg = "the TSA has no certificate that lasts longer than the timestamp's"
            raise TsaUnavailableError(msg)

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


def _delivered(materials: Materials | None) -> Materials:
    """What was delivered of servers outside.

    Raises:
        ApplianceError: `TSA_UNAVAILABLE`: nobody may ask any.
    """
    if materials is None:
        raise ApplianceError(ErrorCode.TSA_UNAVAILABLE)
    return materials


async def _append_timestamp(
    file: GrowingFile, prepared: PreparedTimestamp, token: bytes
) -> Embedded:
    """Complete a document timestamp, check it, and append it.

    Raises:
        ApplianceError: `SIGNING_FAILED`: it is not over these bytes.
    """
    increment = fill_timestamp(prepared, token)
    checked = await asyncio.to_thread(check_timestamp, file.content, increment)
    stamp = checked.token
    if stamp is None:
        msg = "a document timestamp is one"
        raise SignatureCheckError(msg)
    file.append(increment)
    return Embedded(
        checked.contents,
        stamp.certificate,
        stamp.certificates,
        stamp,
        is_timestamp=True,
    )


async def _check(file: GrowingFile, length: int) -> None:
    """Make sure that nothing but proofs follows what was signed or published.

    Raises:
        SignatureCheckError: something else does.
    """
    if file.appended:
        await read_apart(check_additions, file.content, length)


async def _with_stamps(
    file: GrowingFile, found: list[Embedded]
) -> tuple[list[Embedded], Embedded]:
    """What was found of a file, with its later document timestamps, and the newest."""
    known = {each.contents for each in found}
    *before, newest = await read_apart(embedded, file.content)
    own = before[_own_from(before) :]
    later = [one for one in own if one.is_timestamp and one.contents not in known]
    return [*found, *later], newest


def _base(parts: tuple[bytes, ...]) -> str:
    """Name a file's bytes, which are not joined for it."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _is_fetched(exc: ApplianceError) -> bool:
    """Whether something is still to be fetched: nobody knows yet if it can be had."""
    return isinstance(exc, MissingMaterialError) and not exc.is_refused


def _pass_over(exc: ApplianceError, policy: TimestampPolicy) -> None:
    """Go on without what cannot be had now, where the policy allows it.

    Raises:
        ApplianceError: it does not, or this is nothing that waiting mends.
    """
    is_required = policy is TimestampPolicy.REQUIRED
    if exc.code not in AWAY or is_required or _is_fetched(exc):
        raise exc
    _log.warning("level.later", code=exc.code.value, reason=getattr(exc, "reason", ""))


def _end_of(token: TimestampToken) -> datetime:
    return x509.load_der_x509_certificate(token.certificate).not_valid_after_utc


def _own_from(found: list[Embedded]) -> int:
    """Where what this appliance made last begins: with the last signature."""
    places = [place for place, each in enumerate(found) if not each.is_timestamp]
    return places[-1] if places else 0
