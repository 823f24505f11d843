"""Transactions around material of servers outside.

`MaterialDesk` is the signing worker's: it reads what came. `MaterialWork` is the
chores worker's: it claims what is wanted and writes what came. Neither publishes.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ErrorCode
from appliance.domain.pki.outside_material import (
    Draft,
    JobClaim,
    Material,
    MaterialState,
)
from appliance.record.unit_of_work import Database
from appliance.settings import SigningSettings
from appliance.signing.activations.activation_queue import NEGLECTED
from appliance.signing.outside_material_store import OutsideMaterialStore

_FORGET_AT_ONCE: Final = 500


def is_neglected(
    pieces: Sequence[Material],
    lease: datetime | None,
    now: datetime,
    patience: timedelta,
) -> bool:
    """Return whether nobody fetches what is wanted.

    Args:
        pieces: of one job.
        lease: end of the last lease of who fetches them, or of the rest after it.
        now: the time.
        patience: longest time that a piece waits for somebody.
    """
    waits = [one.wanted_at for one in pieces if one.state is MaterialState.WANTED]
    if not waits:
        return False
    since = min(waits) if lease is None else max(min(waits), lease)
    return now - since >= patience


class MaterialDesk:
    """What a signing worker reads.

    Args:
        store: the record.
        clock: the time.
        settings: length of leases.
    """

    def __init__(
        self, store: Database, clock: Clock, settings: SigningSettings
    ) -> None:
        self._store = store
        self._clock = clock
        self._patience = NEGLECTED * timedelta(seconds=settings.lease_s)

    def now(self) -> datetime:
        """The time."""
        return self._clock.now()

    async def of(self, job: str) -> tuple[Sequence[Material], bool]:
        """Material of an activation or upkeep.

        Returns:
            All of it; and whether the role with a network neglects what of it is
            still wanted.
        """
        async with self._store.read() as transaction:
            found, lease = await OutsideMaterialStore(transaction).of(job)
        return found, is_neglected(found, lease, self._clock.now(), self._patience)

    async def draft(self, job: str, base: str) -> Draft | None:
        """The newest draft that continues some bytes.

        Args:
            job: of the activation or upkeep.
            base: as `Draft.base`.
        """
        async with self._store.read() as transaction:
            return await OutsideMaterialStore(transaction).draft(job, base)


class MaterialWork:
    """What a chores worker writes.

    Args:
        store: the record.
        clock: the time.
        settings: length of leases.
        worker: the worker's slot.
        process: id of this process start.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        settings: SigningSettings,
        worker: str,
        process: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease = timedelta(seconds=settings.lease_s)
        self._prefix = f"{worker}/"
        self._owner = f"{worker}/{process}"

    async def release_own(self) -> int:
        """End the leases of earlier, dead starts of this worker's slot."""
        async with self._store.write() as transaction:
            return await OutsideMaterialStore(transaction).release_of(
                self._prefix, self._clock.now()
            )

    async def claim_next(self) -> JobClaim | None:
        """Claim a job with something to fetch; most looks take no lock."""
        now = self._clock.now()
        async with self._store.read() as transaction:
            if not await OutsideMaterialStore(transaction).any_claimable(now):
                return None
        async with self._store.write() as transaction:
            return await OutsideMaterialStore(transaction).claim_next(
                self._owner, now, self._lease
            )

    async def renew(self, claim: JobClaim) -> bool:
        """Prolong the lease; False when another claim came since."""
        async with self._store.write() as transaction:
            return await OutsideMaterialStore(transaction).renew(
                claim, self._clock.now() + self._lease
            )

    async def deliver(
        self, claim: JobClaim, material: Material, token: bytes | None = None
    ) -> bool:
        """Store a piece; False when another claim came since.

        Args:
            claim: of the caller.
            material: the piece.
            token: of a timestamp; a status is kept beside (`outside_status`).
        """
        async with self._store.write() as transaction:
            return await OutsideMaterialStore(transaction).settle(
                claim, material.key, MaterialState.THERE, token=token
            )

    async def missed(self, claim: JobClaim, material: Material, reason: str) -> bool:
        """Note that no server gave a piece; what is not required is not tried again.

        Args:
            claim: of the caller.
            material: the piece.
            reason: for operators, in English.

        Returns:
            False when another claim came since.
        """
        async with self._store.write() as transaction:
            store = OutsideMaterialStore(transaction)
            if material.is_required:
                return await store.failing(claim, material.key, reason)
            return await store.settle(claim, material.key, MaterialState.FAILED, reason)

    async def end(
        self,
        claim: JobClaim,
        *,
        has_news: bool,
        waits_for: ErrorCode | None,
        rest: timedelta,
    ) -> bool:
        """End a claim, and have the signing worker go on where there is news for it.

        Args:
            claim: of the caller.
            has_news: whether a piece was settled.
            waits_for: why an activation cannot be finished yet, if so.
            rest: time before what is still wanted is fetched again.

        Returns:
            Whether a signing worker is to be notified.
        """
        async with self._store.write() as transaction:
            now, store = self._clock.now(), OutsideMaterialStore(transaction)
            # The activation's row first, as the signing worker locks them.
            if waits_for is not None:
                await store.note(claim, waits_for.value)
            is_woken = has_news and await store.wake(claim, now)
            await store.let_go(claim, now if waits_for is None else now + rest)
        return is_woken

    async def forget(self) -> int:
        """Delete what is of no more use; returns the count of jobs."""
        now = self._clock.now()
        async with self._store.read() as transaction:
            if not await OutsideMaterialStore(transaction).any_over(now):
                return 0
        async with self._store.write() as transaction:
            return await OutsideMaterialStore(transaction).forget(now, _FORGET_AT_ONCE)
