"""What a worker writes of the upkeep of published documents.

A later version of a signed document is a row of its own; the newest is handed out,
all are kept. Two workers may believe that they have the same one in hand; the record
believes one of them.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.pki.outside_material import JobKind, WantedMaterial
from appliance.domain.requests.levels import Upkeep, UpkeepClaim, UpkeepCount
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import EventKind, SignatureLevel
from appliance.record.unit_of_work import Database
from appliance.requests.request_store import RequestStore
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from appliance.signing.outside_material_store import OutsideMaterialStore

_LEASE: Final = timedelta(minutes=2)
_FETCHED_WITHIN: Final = timedelta(minutes=10)
"""Time after which an upkeep is looked at again, though nobody delivered anything."""
_MATERIAL_KEPT: Final = timedelta(hours=1)
"""Time after which material that nobody took up is deleted."""
OVERDUE: Final = timedelta(hours=1)
"""What has been due for longer is told to who runs the installation: a worker takes
what is due within seconds, unless there is very much of it."""


class UpkeepWork:
    """The use cases of a worker that keeps levels.

    Args:
        store: the record.
        clock: the time.
        worker: the worker's slot.
    """

    def __init__(self, store: Database, clock: Clock, worker: str) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker

    async def claim_next(self) -> UpkeepClaim | None:
        """Take one document that something is due of; most looks take no lock."""
        now = self._clock.now()
        async with self._store.read() as transaction:
            if not await LevelMaintenanceStore(transaction).any_due(now):
                return None
        async with self._store.write() as transaction:
            return await LevelMaintenanceStore(transaction).claim_next(
                self._worker, now, _LEASE
            )

    async def renew(self, claim: UpkeepClaim) -> bool:
        """Prolong the lease of what is in hand; False when another claim came since."""
        async with self._store.write() as transaction:
            return await LevelMaintenanceStore(transaction).renew(
                claim, self._clock.now() + _LEASE
            )

    async def want(
        self, claim: UpkeepClaim, wanted: Collection[WantedMaterial]
    ) -> bool:
        """Have the role with a network fetch what is missing.

        Args:
            claim: of the caller.
            wanted: the pieces, one at least.

        Returns:
            False when another claim came since.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            upkeeps = LevelMaintenanceStore(transaction)
            if not await upkeeps.wait(claim, now + _FETCHED_WITHIN):
                return False
            is_left = await OutsideMaterialStore(transaction).want(
                claim.id, JobKind.UPKEEP, wanted, now, now + _MATERIAL_KEPT, _LEASE
            )
            if not is_left:
                # All of it came in the meantime.
                await upkeeps.wait(claim, now)
            return True

    async def newest(self, claim: UpkeepClaim) -> SignedDocumentView:
        """The newest version of the document in hand.

        Raises:
            ApplianceError: `INTERNAL`: there is none.
        """
        async with self._store.read() as transaction:
            found = await DocumentStore(transaction).signed(claim.request)
        if found is None:
            raise ApplianceError(ErrorCode.INTERNAL)
        return found

    async def raised(
        self,
        claim: UpkeepClaim,
        before: SignedDocumentView,
        sha256: str,
        size_bytes: int,
        level: SignatureLevel,
        following: Upkeep | None,
    ) -> bool:
        """Publish a later version, and note what is due of it next.

        Args:
            claim: of the caller.
            before: the version that it begins with.
            sha256: of the new one; the same as before when nothing was to be added.
            size_bytes: of the new one.
            level: that it has.
            following: what is due next.

        Returns:
            False when another claim came since: nothing was changed.
        """
        now = self._clock.now()
        async with self._store.write() as transaction:
            if not await LevelMaintenanceStore(transaction).done(claim, following):
                return False
            if claim.outside:
                await OutsideMaterialStore(transaction).remove([claim.id])
            if sha256 == before.sha256:
                return True
            after = SignedDocumentView(
                request=before.request,
                integrator=before.integrator,
                file_name=before.file_name,
                sha256=sha256,
                size_bytes=size_bytes,
                level=level.value,
                version=before.version + 1,
            )
            await DocumentStore(transaction).sealed(before.request, after, now)
            await RequestStore(transaction).raised(before.request, level.value)
            transaction.audit.add(
                AuditEvent(
                    EventKind.DOCUMENT_RAISED,
                    f"worker:{self._worker}",
                    integrator=before.integrator,
                    request=before.request,
                    attempt=claim.fence,
                    detail={
                        "version": after.version,
                        "before": {"sha256": before.sha256, "level": before.level},
                        "after": {"sha256": sha256, "level": level.value},
                    },
                )
            )
            return True

    async def failed(
        self, claim: UpkeepClaim, code: ErrorCode, rest: timedelta
    ) -> bool:
        """Put one off; the audit tells of the first failure in a row.

        Args:
            claim: of the caller.
            code: why.
            rest: until the next try.
        """
        async with self._store.write() as transaction:
            due = self._clock.now() + rest
            if not await LevelMaintenanceStore(transaction).failed(
                claim, due, code.value
            ):
                return False
            if claim.outside:
                # The next try begins anew: what was fetched would be too old.
                await OutsideMaterialStore(transaction).remove([claim.id])
            if claim.tries == 0:
                transaction.audit.add(
                    AuditEvent(
                        EventKind.UPKEEP_FAILED,
                        f"worker:{self._worker}",
                        integrator=claim.integrator,
                        request=claim.request,
                        attempt=claim.fence,
                        detail={"wanted": claim.wanted.value, "reason": code.value},
                    )
                )
            return True


async def upkeep_counts(store: Database, clock: Clock) -> list[UpkeepCount]:
    """What published documents still need, the longest waiting first.

    Args:
        store: the record.
        clock: the time.
    """
    async with store.read() as transaction:
        return await LevelMaintenanceStore(transaction).counted(clock.now())


async def upkeep_overdue(store: Database, clock: Clock) -> list[UpkeepCount]:
    """The same, of documents whose upkeep has been due for more than an hour.

    Args:
        store: the record.
        clock: the time.
    """
    now = clock.now()
    async with store.read() as transaction:
        return await LevelMaintenanceStore(transaction).counted(now, now - OVERDUE)
