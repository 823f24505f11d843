"""Fetches what signing workers want of servers outside, and publishes nothing.

Notified, it is quick; it also looks by itself every few seconds. What cannot be had is
tried again, each time after a longer rest, as long as somebody waits for it; what is
not required is tried once. What came is stored, and the signing worker notified, which
checks all of it again.

Source: design §1, 3; docs/signing.md "Material from outside"; reliability F22, F24.
"""

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Final, Protocol

import structlog
from structlog.contextvars import bound_contextvars

from appliance.bootstrap import WorkChannel
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, UpkeepWorkId, upkeep_work
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.outside_material import (
    JobClaim,
    JobKind,
    Material,
    MaterialKind,
)
from appliance.domain.ports import WorkNotifier
from appliance.pki.validation.validation_material import (
    StatusAuthority,
    ValidationSource,
)
from appliance.settings import SigningSettings
from appliance.signing.outside_material import MaterialWork
from worker.failpoints import DELIVERED, FETCHED, crash_point
from worker.leased_worker import FencedOffError, GiveBack, LeasedWorker, Work
from worker.network.tsa_failover import OutsideAuthorities
from worker.pades.timestamp_token import read_token

_log = structlog.get_logger(__name__)
_REST_MOST: Final = timedelta(seconds=60)
_DOUBLINGS: Final = 6
_AWAY: Final = frozenset({ErrorCode.TSA_UNAVAILABLE, ErrorCode.REVOCATION_UNAVAILABLE})


class Materials(Protocol):
    """Gets one piece of material."""

    async def timestamp(self, material: Material) -> bytes:
        """A token."""

    async def status(self, material: Material) -> None:
        """Have a certificate's status kept on the record."""


@dataclass(frozen=True, slots=True)
class OutsideServers:
    """The servers outside, for one piece at a time.

    Args:
        authorities: TSAs.
        status_authority: CAs, whose answers it keeps on the record.
        source: gathers what proves the certificate of a TSA.
    """

    authorities: OutsideAuthorities
    status_authority: StatusAuthority
    source: ValidationSource

    async def timestamp(self, material: Material) -> bytes:
        """A token for what is to be stamped.

        Args:
            material: the piece.

        Raises:
            ApplianceError: `TSA_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        subject = material.subject
        token = await self.authorities.stamp(
            subject["tsa"],
            bytes.fromhex(subject["imprint"]),
            DigestAlgorithm(subject["digest"]),
            material.nonce,
        )
        if subject["proven"]:
            await self._prove(token)
        return token

    async def _prove(self, token: bytes) -> None:
        """Have the status of a TSA's certificate kept, too: it is wanted next.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        read = read_token(token)
        try:
            await self.source.of(read.certificate, read.certificates)
        except ApplianceError as exc:
            if exc.code is ErrorCode.STORE_UNAVAILABLE:
                raise
            # The signing worker asks for it by name.
            _log.info("material.tsa_unproven", code=exc.code.value)

    async def status(self, material: Material) -> None:
        """Have a certificate's status kept on the record.

        Args:
            material: the piece.

        Raises:
            ApplianceError: `REVOCATION_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        subject = material.subject
        since = subject["since"]
        try:
            await self.status_authority.of(
                base64.b64decode(subject["certificate"]),
                base64.b64decode(subject["issuer"]),
                None if since is None else datetime.fromisoformat(since),
            )
        except ApplianceError as exc:
            # That it is revoked is an answer too, and kept as one.
            if exc.code is not ErrorCode.CERTIFICATE_NOT_USABLE:
                raise


@dataclass(slots=True)
class MaterialFetcher:
    """Fetches the material of jobs, a few jobs at a time.

    Args:
        work: this worker's transactions.
        servers: where it comes from.
        work_channel: hears of work.
        work_notifier: wakes signing workers.
        settings: how often it looks, and how many it has in hand.
    """

    work: MaterialWork
    servers: Materials
    work_channel: WorkChannel
    work_notifier: WorkNotifier
    settings: SigningSettings
    _has_released: bool = field(init=False, default=False)
    _jobs: Work[JobClaim] = field(init=False)
    _worker: LeasedWorker = field(init=False)

    def __post_init__(self) -> None:
        self._jobs = Work(
            "material",
            attrgetter("id"),
            self._next_job,
            self.work.renew,
            self._fetch,
            self.settings.renew_s,
        )
        self._worker = LeasedWorker([self._jobs], self.settings.poll_s)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop; what is in hand then is let finish.

        Args:
            stop: set when it is to.
        """
        await self._worker.run(stop, self._listen())

    async def _listen(self) -> None:
        """Wake at each message of the channel of work; Redis may come and go."""
        async for _ in self.work_channel.listen():
            self._worker.wake.set()

    async def _next_job(self) -> JobClaim | None:
        """Take a job, if a hand is free.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if not self._has_released:
            # Of an earlier start of this slot, which is dead.
            await self.work.release_own()
            self._has_released = True
        if len(self._jobs.in_hand) >= self.settings.concurrency:
            return None
        return await self.work.claim_next()

    async def _fetch(self, claim: JobClaim) -> GiveBack | None:
        """Fetch what is wanted; how to end the claim.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        has_news, waits_for = False, None
        for material in claim.wanted:
            with bound_contextvars(of=claim.kind.value):
                code = await self._fetch_one(claim, material)
            if code is not None and material.is_required:
                waits_for = code
            else:
                has_news = True
        rest = timedelta(seconds=2 ** min(claim.tries, _DOUBLINGS))
        return partial(
            self._end, claim, waits_for, min(rest, _REST_MOST), has_news=has_news
        )

    async def _fetch_one(self, claim: JobClaim, material: Material) -> ErrorCode | None:
        """Fetch one piece and store it; or why it cannot be had.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        token = None
        try:
            if material.kind is MaterialKind.TIMESTAMP:
                token = await self.servers.timestamp(material)
            else:
                await self.servers.status(material)
        except ApplianceError as exc:
            if exc.code not in _AWAY:
                raise
            reason = getattr(exc, "reason", "") or exc.code.value
            _log.warning(
                "material.missed",
                kind=material.kind.value,
                code=exc.code.value,
                reason=reason,
            )
            if not await self.work.missed(claim, material, reason):
                raise FencedOffError from exc
            return exc.code
        crash_point(FETCHED)
        if not await self.work.deliver(claim, material, token):
            raise FencedOffError
        crash_point(DELIVERED)
        return None

    async def _end(
        self,
        claim: JobClaim,
        waits_for: ErrorCode | None,
        rest: timedelta,
        *,
        has_news: bool,
    ) -> None:
        """End the claim, and notify a signing worker where there is news for it."""
        is_woken = await self.work.end(
            claim, has_news=has_news, waits_for=waits_for, rest=rest
        )
        if is_woken:
            work: ActivationId | UpkeepWorkId = ActivationId(claim.id)
            if claim.kind is JobKind.UPKEEP:
                work = upkeep_work(claim.id)
            await self.work_notifier.notify(work)
