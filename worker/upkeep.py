"""Keeps published documents at their level: raises them, and stamps them anew.

Runs in the workers that can stamp. Each look takes one document in hand; what a
worker that dies had in hand is taken by another when its lease is over, and what it
stored without the record naming it is nobody's.
"""

from datetime import timedelta
from typing import Final

import structlog

from appliance.domain.errors import ApplianceError
from appliance.domain.levels import UpkeepClaim
from appliance.domain.ports import DocumentStore
from appliance.services.upkeep import UpkeepWork
from worker.crash_points import UPKEEP_STORED, crash_point
from worker.levels import Levels

_log = structlog.get_logger(__name__)
_REST: Final = timedelta(seconds=30)
_REST_MOST: Final = timedelta(hours=6)
_DOUBLINGS: Final = 10


class LevelUpkeep:
    """Does what is due of published documents.

    Args:
        work: this worker's transactions.
        documents: where PDFs are.
        levels: adds timestamps and validation data.
    """

    def __init__(
        self, work: UpkeepWork, documents: DocumentStore, levels: Levels
    ) -> None:
        self._work = work
        self._documents = documents
        self._levels = levels

    async def run(self) -> int:
        """Do all that is due now; how many documents got on.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        count = 0
        while (claim := await self._work.claim_next()) is not None:
            count += await self._keep(claim)
        return count

    async def _keep(self, claim: UpkeepClaim) -> bool:
        """Take one document on; a failure puts it off, each time for longer."""
        before = await self._work.newest(claim)
        try:
            pdf = await self._documents.get(claim.integrator, before.sha256)
            reached = await self._levels.keep(pdf, claim.wanted, claim.tsa)
            sha256 = before.sha256
            if reached.appended:
                sha256 = await self._documents.put(
                    claim.integrator, pdf, reached.appended, signed=True
                )
        except ApplianceError as exc:
            rest = min(_REST * 2 ** min(claim.tries, _DOUBLINGS), _REST_MOST)
            _log.warning(
                "upkeep.put_off", request=claim.request, code=exc.code.value,
                rest_s=rest.total_seconds(),
            )  # fmt: skip
            await self._work.failed(claim, exc.code, rest)
            return False
        crash_point(UPKEEP_STORED, claim.request)
        done = await self._work.raised(
            claim,
            before,
            sha256,
            len(pdf) + len(reached.appended),
            reached.level,
            reached.upkeep,
        )
        if done:
            _log.info(
                "document.raised", request=claim.request, level=reached.level.value,
                sha256=sha256,
            )  # fmt: skip
        return done
