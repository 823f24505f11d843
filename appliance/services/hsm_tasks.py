"""What a front asks of the HSM: rows claimed by workers like activations.

Source: design §3 "Chores", §4 "Enrolment".
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from appliance.domain.audit import AuditEvent
from appliance.domain.certificates import CertificateRecord
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, TaskId
from appliance.domain.person import Credential, Person
from appliance.domain.records import Records, Store
from appliance.domain.records.tasks import TaskClaim, TaskStatus
from appliance.domain.vocab import EventKind, TaskKind, TaskState, VouchedBy

_LEASE: Final = timedelta(seconds=30)
TASK_ATTEMPTS: Final = 5
"""Claims after which a task is given up (see `Sweeping.fail_tasks`)."""
_LOOK_AGAIN_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class IssueOrder:
    """What an `issue` task needs, read when it is claimed."""

    person: Person
    vouched_by: VouchedBy


async def submit_issue(
    records: Records,
    person: PersonId,
    vouched_by: VouchedBy,
    clock: Clock,
    task: TaskId,
    actor: str = "operator",
) -> None:
    """Ask for a key and a certificate, within the caller's transaction."""
    given: dict[str, object] = {"person": person, "vouchedBy": vouched_by.value}
    await records.tasks.add(task, TaskKind.ISSUE, given, clock.now())
    records.audit.add(
        AuditEvent(
            EventKind.TASK_CREATED,
            actor,
            detail={"task": task, "kind": TaskKind.ISSUE.value, "person": person},
        )
    )


class HsmTasks:
    """The use cases of HSM tasks, for those who ask and those who do.

    Args:
        store: the record.
        clock: the time.
        worker: the worker's slot where a worker does tasks; else the role.
        process: id of this process start.
    """

    def __init__(self, store: Store, clock: Clock, worker: str, process: str) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._owner = f"{worker}/{process}"

    async def wait(self, task: TaskId, timeout_s: float) -> dict[str, object]:
        """Wait until a task is done; its output.

        Raises:
            ApplianceError: `TASK_FAILED`, or `HSM_UNAVAILABLE` after the time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while loop.time() < deadline:
            status = await self._status(task)
            if status.state is TaskState.DONE:
                return status.output
            if status.state is TaskState.FAILED:
                raise ApplianceError(
                    ErrorCode.TASK_FAILED, params={"reason": status.reason}
                )
            await asyncio.sleep(_LOOK_AGAIN_S)
        raise ApplianceError(ErrorCode.HSM_UNAVAILABLE)

    async def _status(self, task: TaskId) -> TaskStatus:
        async with self._store.read() as records:
            status = await records.tasks.status(task)
        if status is None:
            raise ApplianceError(
                ErrorCode.TASK_FAILED, params={"reason": "no such task"}
            )
        return status

    async def claim_next(self) -> TaskClaim | None:
        """Take the oldest task that nobody has in hand; looks before it locks."""
        now = self._clock.now()
        async with self._store.read() as records:
            if not await records.tasks.any_claimable(now, TASK_ATTEMPTS):
                return None
        async with self._store.write() as records:
            return await records.tasks.claim_next(
                self._owner, now, _LEASE, TASK_ATTEMPTS
            )

    async def renew(self, claim: TaskClaim) -> bool:
        """Prolong the lease; False when another claim came since."""
        async with self._store.write() as records:
            return await records.tasks.renew(claim, self._clock.now() + _LEASE)

    async def issue_order(self, claim: TaskClaim) -> IssueOrder:
        """Read what an `issue` task is about.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`.
        """
        async with self._store.read() as records:
            person = await records.people.get(PersonId(str(claim.input["person"])))
        if person is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        return IssueOrder(person, VouchedBy(str(claim.input["vouchedBy"])))

    async def issued(
        self,
        claim: TaskClaim,
        credential: Credential,
        spki_sha256: str,
        certificate: CertificateRecord,
    ) -> bool:
        """Commit a credential whose key was tested, and the task with it."""
        async with self._store.write() as records:
            output: dict[str, object] = {"credential": credential.id}
            if not await records.tasks.close(claim, TaskState.DONE, output):
                return False
            await records.credentials.add(credential, spki_sha256)
            await records.certificates.add(certificate)
            records.audit.add(
                AuditEvent(
                    EventKind.CREDENTIAL_ISSUED,
                    f"worker:{self._worker}",
                    attempt=claim.fence,
                    detail={
                        "task": claim.id,
                        "person": credential.person,
                        "credential": credential.id,
                        "spkiSha256": spki_sha256,
                        "vouchedBy": credential.vouched_by.value,
                        "serial": certificate.serial,
                    },
                )
            )
            return True

    async def failed(self, claim: TaskClaim, reason: str) -> bool:
        """Give a task up."""
        async with self._store.write() as records:
            if not await records.tasks.close(claim, TaskState.FAILED, None, reason):
                return False
            records.audit.add(
                AuditEvent(
                    EventKind.TASK_FAILED,
                    f"worker:{self._worker}",
                    attempt=claim.fence,
                    detail={"task": claim.id, "reason": reason},
                )
            )
            return True
