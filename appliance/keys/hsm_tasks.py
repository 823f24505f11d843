"""What a front asks of the HSM: rows claimed by workers like activations.

Source: design §3 "Chores", §4 "Enrolment".
"""

import asyncio
import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, TaskId
from appliance.domain.keys.hsm_keys import KeyAlgorithm
from appliance.domain.people.identity import Credential, Person
from appliance.domain.pki.certificates import CertificateRecord
from appliance.domain.ports import WorkNotifier
from appliance.domain.signing.activation import IssueBinding, Seal
from appliance.domain.signing.hsm_tasks import TaskClaim, TaskStatus, slot_host
from appliance.domain.vocab import EventKind, TaskKind, TaskState, VouchedBy
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_events import task_created, task_event
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.key_facts import KeyFacts
from appliance.people.person_store import PersonStore
from appliance.pki.certificate_store import CertificateStore
from appliance.record.unit_of_work import Database, Transaction

_LEASE: Final = timedelta(seconds=30)
TASK_ATTEMPTS: Final = 5
"""Claims after which a task is given up (see `ExpiryJob.fail_tasks`)."""
ORPHAN_AGE: Final = timedelta(hours=1)
"""How long ago a resident key was begun that nobody is making any more."""
_LOOK_AGAIN_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class IssueOrder:
    """What an `issue` task needs, read when it is claimed."""

    person: Person
    binding: IssueBinding
    """What the unlock key is bound to, by what stands recorded."""

    @property
    def algorithm(self) -> KeyAlgorithm:
        """Kind of the new key."""
        return self.binding.algorithm

    @property
    def vouched_by(self) -> VouchedBy:
        """Who answers for the person."""
        return self.binding.vouched_by


async def submit_issue(
    transaction: Transaction,
    binding: IssueBinding,
    seals: tuple[Seal, ...],
    clock: Clock,
    actor: str = "operator",
) -> None:
    """Ask for a key and a certificate, within the caller's transaction."""
    given: dict[str, object] = {
        "person": binding.person,
        "vouchedBy": binding.vouched_by.value,
        "algorithm": binding.algorithm.value,
    }
    await HsmTaskStore(transaction).add(
        binding.task,
        TaskKind.ISSUE,
        given,
        clock.now(),
        person=binding.person,
        seals=seals,
    )
    transaction.audit.add(
        task_created(binding.task, TaskKind.ISSUE, actor, {"person": binding.person})
    )


def issue_binding(
    task: TaskId, person: PersonId, vouched_by: VouchedBy, algorithm: KeyAlgorithm
) -> IssueBinding:
    """What an `issue` task's unlock key is bound to.

    The credential has the task's id, so that one task makes one credential.
    """
    return IssueBinding(task, person, CredentialId(task), algorithm, vouched_by)


class HsmTasks:
    """The use cases of HSM tasks, for those who ask and those who do.

    Args:
        store: the record.
        clock: the time.
        worker: the worker's slot, `signing/<host>/<n>`, where a worker does
            tasks; else the role.
        process: id of this process start.
        work_notifier: wakes a worker; without, one looks every few seconds.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        worker: str,
        process: str,
        work_notifier: WorkNotifier | None = None,
    ) -> None:
        self._store = store
        self._work_notifier = work_notifier
        self._clock = clock
        self._worker = worker
        self._host = slot_host(worker)
        self._owner = f"{worker}/{process}"

    async def wait(self, task: TaskId, timeout_s: float) -> dict[str, object]:
        """Wait until a task is done; its output.

        Raises:
            ApplianceError: `TASK_FAILED`, or `HSM_UNAVAILABLE` after the time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        if self._work_notifier is not None:
            await self._work_notifier.notify(task)
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
        async with self._store.read() as transaction:
            status = await HsmTaskStore(transaction).status(task)
        if status is None:
            raise ApplianceError(
                ErrorCode.TASK_FAILED, params={"reason": "no such task"}
            )
        return status

    async def claim_next(
        self, kinds: Collection[TaskKind] = tuple(TaskKind)
    ) -> TaskClaim | None:
        """Take the oldest task that nobody has in hand; looks before it locks.

        Args:
            kinds: which can be done now; each claim uses up an attempt.
        """
        if not await self.any_claimable(kinds):
            return None
        async with self._store.write() as transaction:
            return await HsmTaskStore(transaction).claim_next(
                self._owner,
                self._host,
                self._clock.now(),
                _LEASE,
                TASK_ATTEMPTS,
                kinds,
            )

    async def any_claimable(self, kinds: Collection[TaskKind]) -> bool:
        """Return whether a task of these kinds waits for a worker of this host."""
        now = self._clock.now()
        async with self._store.read() as transaction:
            return await HsmTaskStore(transaction).any_claimable(
                self._host, now, TASK_ATTEMPTS, kinds
            )

    async def renew(self, claim: TaskClaim) -> bool:
        """Prolong the lease; False when another claim came since."""
        async with self._store.write() as transaction:
            return await HsmTaskStore(transaction).renew(
                claim, self._clock.now() + _LEASE
            )

    async def issue_order(self, claim: TaskClaim) -> IssueOrder:
        """Read what an `issue` task is about.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `ACTIVATION_EXPIRED` for one of a
                version that sealed nothing.
        """
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).get(
                PersonId(str(claim.input["person"]))
            )
        if person is None:
            raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
        if "algorithm" not in claim.input:
            raise ApplianceError(ErrorCode.ACTIVATION_EXPIRED)
        vouched_by = VouchedBy(str(claim.input["vouchedBy"]))
        algorithm = KeyAlgorithm(str(claim.input["algorithm"]))
        return IssueOrder(
            person, issue_binding(claim.id, person.id, vouched_by, algorithm)
        )

    async def sample_intended(
        self, claim: TaskClaim, digest: str, key: KeyFacts
    ) -> bool:
        """Record, before a new key is used, the exact digest that it is to sign.

        Args:
            claim: of an `issue` task.
            digest: of the sample's signed attributes, hex.
            key: that is to sign it, and its new certificate.

        Returns:
            False when another claim came since: the key must not be used.
        """
        async with self._store.write() as transaction:
            until = self._clock.now() + _LEASE
            if not await HsmTaskStore(transaction).renew(claim, until):
                return False
            transaction.audit.add(
                task_event(
                    EventKind.SAMPLE_INTENDED,
                    f"worker:{self._worker}",
                    claim,
                    {
                        "person": str(claim.input["person"]),
                        "credential": claim.id,
                        "digest": digest,
                        **key.detail(),
                    },
                )
            )
            return True

    async def issued(
        self,
        claim: TaskClaim,
        credential: Credential,
        certificate: CertificateRecord,
    ) -> bool:
        """Commit a credential whose key was tested, and the task with it."""
        async with self._store.write() as transaction:
            output: dict[str, object] = {"credential": credential.id}
            if not await HsmTaskStore(transaction).close(claim, TaskState.DONE, output):
                return False
            await CredentialStore(transaction).add(credential)
            await CertificateStore(transaction).add(certificate)
            transaction.audit.add(
                task_event(
                    EventKind.CREDENTIAL_ISSUED,
                    f"worker:{self._worker}",
                    claim,
                    {
                        "person": credential.person,
                        "credential": credential.id,
                        "keyMode": credential.key_mode.value,
                        "spkiSha256": hashlib.sha256(credential.spki).hexdigest(),
                        "vouchedBy": credential.vouched_by.value,
                        "serial": certificate.serial,
                    },
                )
            )
            return True

    async def failed(self, claim: TaskClaim, reason: str, layer: str = "") -> bool:
        """Give a task up.

        Args:
            claim: of it.
            reason: code of the error.
            layer: check that refused the credential's key, for the audit.
        """
        async with self._store.write() as transaction:
            if not await HsmTaskStore(transaction).close(
                claim, TaskState.FAILED, None, reason
            ):
                return False
            transaction.audit.add(
                task_event(
                    EventKind.TASK_FAILED,
                    f"worker:{self._worker}",
                    claim,
                    {"reason": reason, **({"layer": layer} if layer else {})},
                )
            )
            return True

    async def orphan_destroyed(self, task: str, person: str, count: int) -> None:
        """Record that a resident key was destroyed that came to nothing.

        Args:
            task: that it was made for.
            person: likewise.
            count: objects on the token that there were.
        """
        async with self._store.write() as transaction:
            transaction.audit.add(
                AuditEvent(
                    EventKind.KEY_ORPHAN_DESTROYED,
                    f"worker:{self._worker}",
                    detail={"task": task, "person": person, "objects": count},
                )
            )
