"""Keeps published documents at their level: raises them, and stamps them anew.

Runs in the workers that can stamp. Each look takes one document in hand, and holds
it for as long as it takes; what a worker that dies had in hand is taken by another
when its lease is over, and what it stored without the record naming it is nobody's.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import upkeep_work
from appliance.domain.pki.outside_material import MissingMaterialError, WantedMaterial
from appliance.domain.ports import BlobStore, WorkNotifier
from appliance.domain.requests.levels import UpkeepClaim
from appliance.domain.requests.request import SignedDocumentView
from appliance.record.unit_of_work import Database
from appliance.signing.level_maintenance import UpkeepWork, upkeep_overdue
from worker.failpoints import UPKEEP_STORED, crash_point
from worker.leased_worker import keep_lease
from worker.signing.level_extension import ExtensionResult, Levels
from worker.signing.outside_material import MaterialReader

_log = structlog.get_logger(__name__)
_REST: Final = timedelta(seconds=30)
_REST_MOST: Final = timedelta(hours=6)
_DOUBLINGS: Final = 10
_RENEW_S: Final = 20.0
_TELL_EVERY: Final = timedelta(hours=1)
_UNTRIED: Final = "NOT_TRIED"


class LevelUpkeep:
    """Does what is due of published documents.

    Args:
        work: this worker's transactions.
        documents: where PDFs are.
        levels: adds timestamps and validation data.
        materials: what was fetched of servers outside.
        work_notifier: wakes the role that fetches more.
        renew_s: time between two renewals of a lease, in seconds.
    """

    def __init__(
        self,
        work: UpkeepWork,
        documents: BlobStore,
        levels: Levels,
        materials: MaterialReader,
        work_notifier: WorkNotifier,
        renew_s: float = _RENEW_S,
    ) -> None:
        self._work = work
        self._documents = documents
        self._levels = levels
        self._materials = materials
        self._work_notifier = work_notifier
        self._renew_s = renew_s

    async def run(self) -> int:
        """Do all that is due now; how many documents got on.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        count = 0
        while (claim := await self._work.claim_next()) is not None:
            # A large document or a slow TSA may outlast the lease.
            async with keep_lease(partial(self._work.renew, claim), self._renew_s):
                count += await self._keep(claim)
        return count

    async def _keep(self, claim: UpkeepClaim) -> bool:
        """Take one document on; a failure puts it off, each time for longer."""
        before = await self._work.newest(claim)
        try:
            reached, sha256, size = await self._raise(claim, before)
        except MissingMaterialError as exc:
            if exc.is_refused:
                return await self._put_off(claim, exc)
            return await self._have_fetched(claim, exc.wanted)
        except ApplianceError as exc:
            return await self._put_off(claim, exc)
        except Exception:  # noqa: BLE001 (whatever is wrong with one, the others are kept)
            _log.exception("upkeep.failed", request=claim.request)
            return await self._put_off(claim, ApplianceError(ErrorCode.INTERNAL))
        crash_point(UPKEEP_STORED, claim.request)
        done = await self._work.raised(
            claim, before, sha256, size, reached.level, reached.upkeep
        )
        if done:
            _log.info(
                "document.raised", request=claim.request, reached=reached.level.value,
                sha256=sha256,
            )  # fmt: skip
        return done

    async def _raise(
        self, claim: UpkeepClaim, before: SignedDocumentView
    ) -> tuple[ExtensionResult, str, int]:
        """What came of it, with hash and size of the stored result.

        Raises:
            ApplianceError: as `Levels.keep`, and as of documents.
        """
        pdf = await self._documents.get(claim.integrator, before.sha256)
        materials = await self._materials.of(claim.id) if claim.outside else None
        reached = await self._levels.keep(pdf, claim.wanted, claim.tsa, materials)
        sha256 = before.sha256
        if reached.appended:
            sha256 = await self._documents.put(
                claim.integrator, pdf, reached.appended, signed=True
            )
        return reached, sha256, len(pdf) + len(reached.appended)

    async def _have_fetched(
        self, claim: UpkeepClaim, wanted: Sequence[WantedMaterial]
    ) -> bool:
        """Have the role with a network fetch what is missing: nothing got on."""
        if await self._work.want(claim, wanted):
            await self._work_notifier.notify(upkeep_work(claim.id))
        return False

    async def _put_off(self, claim: UpkeepClaim, exc: ApplianceError) -> bool:
        """Leave one for later: nothing got on."""
        rest = min(_REST * 2 ** min(claim.tries, _DOUBLINGS), _REST_MOST)
        _log.warning(
            "upkeep.put_off", request=claim.request, code=exc.code.value,
            reason=getattr(exc, "reason", ""), rest_s=rest.total_seconds(),
        )  # fmt: skip
        await self._work.failed(claim, exc.code, rest)
        return False


class OverdueUpkeep:
    """Tells in the log, every hour, what has been due for too long.

    Each failure is logged by who had it; this tells as well of what nobody tries,
    because the workers that could are away.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next: datetime | None = None

    async def run(self) -> None:
        """Tell of it if an hour has passed.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        if self._next is not None and now < self._next:
            return
        for each in await upkeep_overdue(self._store, self._clock):
            _log.warning(
                "upkeep.overdue",
                code=each.reason or _UNTRIED,
                what="raise" if each.is_below else "renew",
                wanted=each.wanted.value,
                documents=each.documents,
                since=each.oldest.isoformat(timespec="seconds"),
            )
        self._next = now + _TELL_EVERY
