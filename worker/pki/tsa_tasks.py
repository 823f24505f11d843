"""HSM tasks of the internal TSA, for whoever asked over HTTP."""

from dataclasses import dataclass

import structlog

from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.pki.tsa.authority import TimestampWork
from worker.pki.tsa import InternalTsa

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TimestampTasks:
    """Does those tasks in a signing worker.

    Args:
        work: this worker's transactions.
        tsa: stamps.
    """

    work: TimestampWork
    tsa: InternalTsa

    async def run(self, claim: TaskClaim) -> None:
        """Stamp what a task is about.

        Raises:
            TsaUnavailableError: it cannot be stamped now, or comes too late; it
                is not put off, for somebody waits.
        """
        issued = await self.tsa.answer(self.work.question(claim))
        if await self.work.stamped(claim, issued):
            _log.info("task.stamped", task=claim.id, serial=f"{issued.serial:x}")
