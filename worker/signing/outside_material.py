"""Material of servers outside, as a signing worker uses it: checked, or wanted.

    materials = await reader.of(activation.id)
    token = await materials.stamp(names, imprint, digest, is_required=True)

Whatever a role with a network delivered is checked here again before it becomes part
of a document. What is missing is stated by `MissingMaterialError`.

Source: docs/signing.md "Material from outside"; RFC 3161; RFC 6960; RFC 5280, 6.3.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Final

import structlog

from appliance.domain.errors import ApplianceError, ErrorCode, TsaUnavailableError
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.outside_material import (
    Draft,
    Material,
    MaterialKind,
    MaterialState,
    MissingMaterialError,
    WantedMaterial,
    material_key,
    status_subject,
    timestamp_subject,
)
from appliance.domain.pki.timestamps import TimestampQuestion, new_nonce
from appliance.domain.ports import TimestampAuthority
from appliance.domain.requests.levels import INTERNAL_TSA, ValidationData
from appliance.pki.validation.validation_material import Anchors
from appliance.settings import TimestampSettings
from appliance.signing.outside_material import MaterialDesk
from worker.network.recorded_status import RecordedStatus
from worker.network.tsa_response import BadTimestampError, check_token

_log = structlog.get_logger(__name__)
_NEGLECTED: Final = "no role with a network took it"


@dataclass(frozen=True, slots=True)
class MaterialReader:
    """Opens the material of activations and upkeeps.

    Args:
        desk: what the record has of it.
        settings: the authorities outside, by name.
        status: answers and lists that are kept.
        own: the internal TSA.
        stampers: roots that are trusted for timestamps, DER.
        anchors: roots of outside CAs, for any purpose.
    """

    desk: MaterialDesk
    settings: TimestampSettings
    status: RecordedStatus
    own: TimestampAuthority
    stampers: Callable[[], Awaitable[Sequence[bytes]]]
    anchors: Anchors

    async def of(self, job: str) -> "Materials":
        """Material of an activation or an upkeep.

        Args:
            job: its id.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        pieces, is_neglected = await self.desk.of(job)
        known = {each.key: each for each in pieces}
        return Materials(self, job, known, is_neglected=is_neglected)

    def policies(self, names: Sequence[str]) -> set[str | None]:
        """The policies by which some authorities are asked to stamp.

        Args:
            names: of the settings.
        """
        return {each.policy for each in self.settings.outside if each.name in names}


class Materials:
    """What an activation or an upkeep has of servers outside.

    Args:
        reader: checks it.
        job: whose it is.
        pieces: by key.
        is_neglected: whether nobody fetches what is still wanted.
    """

    def __init__(
        self,
        reader: MaterialReader,
        job: str,
        pieces: dict[str, Material],
        *,
        is_neglected: bool,
    ) -> None:
        self._reader = reader
        self._job = job
        self._pieces = pieces
        self._is_neglected = is_neglected
        self.anchors = reader.anchors

    async def draft(self, base: str) -> Draft | None:
        """The newest draft of a document timestamp after some bytes.

        Args:
            base: as `Draft.base`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        return await self._reader.desk.draft(self._job, base)

    async def stamp(
        self,
        names: Sequence[str],
        imprint: bytes,
        digest: DigestAlgorithm,
        *,
        is_required: bool,
        is_proven: bool,
        draft: Draft | None = None,
    ) -> bytes:
        """A token of the authorities of some names, of the first that gave one.

        Args:
            names: in the order to ask them.
            imprint: digest of what is stamped.
            digest: algorithm of the imprint.
            is_required: whether nothing is published without it.
            is_proven: whether the status of the authority's certificate is needed too.
            draft: of the document timestamp that the token is for.

        Raises:
            MissingMaterialError: it is to be fetched.
            TsaUnavailableError: none of them gave one.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        reasons: list[str] = []
        refused: MissingMaterialError | None = None
        for is_own, group in groupby(names, key=INTERNAL_TSA.__eq__):
            try:
                if is_own:
                    return await self._reader.own.stamp(imprint, digest)
                subject = timestamp_subject(
                    [*group], imprint, digest, is_proven=is_proven
                )
                want = WantedMaterial(
                    MaterialKind.TIMESTAMP,
                    subject,
                    ErrorCode.TSA_UNAVAILABLE,
                    # One try is enough where the own one would stamp.
                    is_required and INTERNAL_TSA not in names,
                    new_nonce(),
                    draft,
                )
                return await self._token(want, imprint, digest)
            except MissingMaterialError as exc:
                if not exc.is_refused:
                    raise
                refused = exc
            except ApplianceError as exc:
                if exc.code is not ErrorCode.TSA_UNAVAILABLE:
                    raise
                reasons.append(getattr(exc, "reason", "") or str(exc))
        raise refused or TsaUnavailableError("; ".join(reasons))

    async def _token(
        self, want: WantedMaterial, imprint: bytes, digest: DigestAlgorithm
    ) -> bytes:
        """The token that was delivered, checked.

        Raises:
            MissingMaterialError: none was, or one that cannot be used.
            TsaUnavailableError: none was to be had.
        """
        piece = self._pieces.get(want.key)
        if piece is None:
            if want.draft is not None and not want.is_required and self._failed(want):
                raise TsaUnavailableError("asked in vain for the signature's own")
            raise MissingMaterialError([want])
        if piece.state is MaterialState.FAILED:
            raise TsaUnavailableError(piece.reason)
        if piece.token is None:
            if self._is_neglected and not want.is_required:
                raise TsaUnavailableError(_NEGLECTED)
            raise MissingMaterialError([want])
        try:
            check_token(
                piece.token,
                TimestampQuestion(imprint, digest, nonce=piece.nonce),
                self._reader.policies(want.subject["tsa"]),
                await self._reader.stampers(),
                (piece.wanted_at, self._reader.desk.now()),
            )
        except BadTimestampError as exc:
            _log.warning("material.refused", kind=want.kind.value, reason=str(exc))
            raise MissingMaterialError([replace(want, again=True)]) from exc
        return piece.token

    def _failed(self, want: WantedMaterial) -> bool:
        """Whether the same authorities failed for this activation already."""
        return any(
            each.kind is MaterialKind.TIMESTAMP
            and each.state is MaterialState.FAILED
            and each.subject["tsa"] == want.subject["tsa"]
            for each in self._pieces.values()
        )

    def status(self, *, is_required: bool) -> "MaterialStatus":
        """A `StatusAuthority` of what was delivered.

        Args:
            is_required: whether nothing is published without it.
        """
        return MaterialStatus(self, is_required=is_required)

    async def status_of(
        self,
        certificate: bytes,
        issuer: bytes,
        since: datetime | None,
        *,
        is_required: bool,
    ) -> ValidationData:
        """See `StatusAuthority.of`.

        Raises:
            MissingMaterialError: it is to be fetched.
            ApplianceError: `REVOCATION_UNAVAILABLE`: nobody tells;
                `CERTIFICATE_NOT_USABLE`: it is revoked; `STORE_UNAVAILABLE`.
        """
        subject = status_subject(certificate, issuer, since)
        piece = self._pieces.get(material_key(MaterialKind.STATUS, subject))
        is_given_up = self._is_neglected and not is_required
        is_settled = piece is not None and piece.state is not MaterialState.WANTED
        try:
            # Once others were asked, what is older does as well.
            return await self._reader.status.of(
                certificate, issuer, None if is_settled or is_given_up else since
            )
        except ApplianceError as exc:
            if exc.code is not ErrorCode.REVOCATION_UNAVAILABLE:
                raise
            is_failed = piece is not None and piece.state is MaterialState.FAILED
            if is_failed or (piece is not None and is_given_up):
                raise
            is_there = piece is not None and piece.state is MaterialState.THERE
            if is_there:
                _log.warning("material.refused", kind=MaterialKind.STATUS.value)
            raise MissingMaterialError(
                [
                    WantedMaterial(
                        MaterialKind.STATUS,
                        subject,
                        ErrorCode.REVOCATION_UNAVAILABLE,
                        is_required,
                        again=is_there,
                    )
                ]
            ) from exc


@dataclass(frozen=True, slots=True)
class MaterialStatus:
    """The status of certificates of outside CAs, as it was delivered.

    Args:
        materials: of one activation or upkeep.
        is_required: whether nothing is published without it.
    """

    materials: Materials = field(repr=False)
    is_required: bool

    async def of(
        self, certificate: bytes, issuer: bytes, since: datetime | None = None
    ) -> ValidationData:
        """See `StatusAuthority`.

        Raises:
            ApplianceError: as `Materials.status_of`.
        """
        return await self.materials.status_of(
            certificate, issuer, since, is_required=self.is_required
        )
