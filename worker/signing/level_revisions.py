"""Appends what takes a document from one level to the next, in order.

    file = GrowingFile(pdf)
    reached = await raiser.raise_to(file, found, reached, aim)

Source: EN 319 142-1, 5.4 and 6.3.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys import DigestAlgorithm
from appliance.domain.ports import TimestampAuthority
from appliance.domain.requests.levels import INTERNAL, reaches
from appliance.domain.vocab import SignatureLevel
from appliance.pki.validation.validation_material import ValidationSource
from worker.pades.document_timestamp import (
    PreparedTimestamp,
    fill_timestamp,
    prepare_timestamp,
)
from worker.pades.dss import Validated, add_dss
from worker.pades.existing_signatures import Embedded
from worker.pades.incremental_file import GrowingFile
from worker.pades.reading_limits import read_apart
from worker.pades.self_check import SignatureCheckError, check_end, check_timestamp
from worker.signing.validation_material import needed_data

_log = structlog.get_logger(__name__)
_L = SignatureLevel
TOKEN_BYTES: Final = 10_240
"""Room for the token of a TSA of which none was seen yet."""
SPARE_BYTES: Final = 64
"""What one token may be longer than another of the same TSA: serial number, time."""
AWAY: Final = frozenset({ErrorCode.TSA_UNAVAILABLE, ErrorCode.REVOCATION_UNAVAILABLE})
"""What a later try may do for."""
_UNPROVEN: Final = AWAY | {ErrorCode.CERTIFICATE_NOT_USABLE}
"""What validation data can be missing for."""
Authorities = Callable[[tuple[str, ...]], TimestampAuthority]
"""Gives the authority that asks those of these names, in order."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What a document is to be raised to, and how."""

    wanted: SignatureLevel
    digest: DigestAlgorithm
    tsa: tuple[str, ...]
    """Names of the authorities to ask."""
    is_kept: bool = False
    """Whether it is a published document: outside CAs are then asked for data that
    is younger than what it proves. At once it is what can be had."""


class Partly(Exception):  # noqa: N818 (it tells how far it went)
    """Not all could be had.

    Args:
        cause: why.
        reached: the level reached; what takes the file there was appended.
    """

    def __init__(self, cause: ApplianceError, reached: SignatureLevel) -> None:
        super().__init__(cause)
        self.cause = cause
        self.reached = reached


class Raiser:
    """Adds timestamps and validation data.

    Args:
        tsa: the internal one.
        source: gathers validation data.
        clock: the time.
        outside: the authorities that profiles name; None: this role has no network.
    """

    def __init__(
        self,
        tsa: TimestampAuthority,
        source: ValidationSource,
        clock: Clock,
        outside: Authorities | None,
    ) -> None:
        self._tsa = tsa
        self._source = source
        self._clock = clock
        self._outside = outside
        self.token_bytes: dict[DigestAlgorithm, int] = {}
        """Room that the internal TSA's tokens take, once one was seen."""

    async def stamp(
        self, tsa: tuple[str, ...], imprint: bytes, digest: DigestAlgorithm
    ) -> bytes:
        """A token of the authorities of these names.

        Args:
            tsa: names, in the order to ask them.
            imprint: digest of what is stamped.
            digest: what made the imprint.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`.
        """
        if tsa == INTERNAL:
            token = await self._tsa.stamp(imprint, digest)
            # With a new certificate it may make longer ones than before.
            needed = len(token) + SPARE_BYTES
            self.token_bytes[digest] = max(needed, self.token_bytes.get(digest, 0))
            return token
        if self._outside is None:
            raise ApplianceError(ErrorCode.TSA_UNAVAILABLE)
        return await self._outside(tsa).stamp(imprint, digest)

    async def raise_to(
        self,
        file: GrowingFile,
        found: list[Embedded],
        reached: SignatureLevel,
        aim: Aim,
    ) -> SignatureLevel:
        """Append what is missing, in order.

        Args:
            file: grows by it.
            found: its signatures and timestamps.
            reached: its level.
            aim: what it is to have.

        Returns:
            The level reached.

        Raises:
            Partly: something cannot be had now; with what was reached.
            ApplianceError: `CERTIFICATE_NOT_USABLE`, as `complete`.
        """
        try:
            if not reaches(reached, _L.B_T):
                stamp = await self._add_timestamp(file, aim)
                found, reached = [*found, stamp], _L.B_T
            if reaches(aim.wanted, _L.B_LT):
                await self._add_data(file, found, aim)
                reached = _L.B_LT
            if aim.wanted is _L.B_LTA:
                stamp = await self._add_timestamp(file, aim)
                reached = _L.B_LTA
                await self._add_data_of_newest(file, found, stamp, aim)
        except ApplianceError as exc:
            if exc.code not in AWAY:
                raise
            raise Partly(exc, reached) from exc
        return reached

    async def _add_data(
        self, file: GrowingFile, found: list[Embedded], aim: Aim
    ) -> None:
        """Append the validation data of signatures and timestamps.

        What the document brought along may be of anybody: data of that is welcome
        and not waited for.

        Raises:
            ApplianceError: as `ValidationSource.of`.
        """
        validated = []
        own = own_from(found)
        for place, each in enumerate(found):
            try:
                data = await needed_data(
                    self._source, each, self._clock.now(), is_kept=aim.is_kept
                )
            except ApplianceError as exc:
                if place >= own or exc.code not in _UNPROVEN:
                    raise
                continue
            if data is not None:
                validated.append(Validated(each.contents, data))
        increment = await read_apart(add_dss, file.content, validated)
        if increment:
            check_end(file.content, increment)
        file.append(increment)

    async def _add_data_of_newest(
        self, file: GrowingFile, found: list[Embedded], stamp: Embedded, aim: Aim
    ) -> None:
        """Append data of a TSA's certificate that the file did not have yet.

        Without it the newest timestamp is good for nobody who asks no network. What
        cannot be had now comes with the next renewal: the level is reached.
        """
        tokens = [each.token for each in found if each.token is not None]
        if stamp.certificate in [token.certificate for token in tokens]:
            return
        try:
            await self._add_data(file, [stamp], aim)
        except ApplianceError as exc:
            if exc.code not in _UNPROVEN:
                raise
            _log.info("level.newest_without_data", code=exc.code.value)

    async def _add_timestamp(self, file: GrowingFile, aim: Aim) -> Embedded:
        """Append a document timestamp.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`.
        """
        room = TOKEN_BYTES
        if aim.tsa == INTERNAL:
            room = self.token_bytes.get(aim.digest, TOKEN_BYTES)
        prepared = await _prepared(file, aim, room)
        token = await self.stamp(aim.tsa, prepared.imprint, aim.digest)
        if len(token) > room:
            prepared = await _prepared(file, aim, len(token) + SPARE_BYTES)
            token = await self.stamp(aim.tsa, prepared.imprint, aim.digest)
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


async def _prepared(file: GrowingFile, aim: Aim, room: int) -> PreparedTimestamp:
    """A document timestamp with room for a token, in bytes."""
    return await read_apart(prepare_timestamp, file.content, aim.digest, room)


def own_from(found: list[Embedded]) -> int:
    """Where what this appliance made last begins: with the last signature.

    Args:
        found: signatures and timestamps of a file, oldest first.
    """
    places = [place for place, each in enumerate(found) if not each.is_timestamp]
    return places[-1] if places else 0
