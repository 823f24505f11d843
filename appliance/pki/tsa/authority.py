"""The internal TSA for others: a question becomes an HSM task, its token an answer.

Source: design §3 "Chores"; RFC 3161.
"""

import base64
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from appliance.admission.fair_queue import FairLimits, FairQueue
from appliance.admission.work_owner import WORK_OWNER
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, TsaUnavailableError
from appliance.domain.ids import TaskId, new_id
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.certificates import serial_text
from appliance.domain.pki.timestamps import (
    IssuedTimestamp,
    TimestampQuestion,
    TimestampRefusal,
)
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import EventKind, TaskKind, TaskState
from appliance.keys.hsm_task_events import task_event
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.pki.tsa.tsp_messages import granted, read_question, refused
from appliance.record.unit_of_work import Database

_WAIT_S: Final = 10.0
_LIMITS: Final = FairLimits(
    places=64, per_share=32, per_party=32, waiting=0, retry_after_s=5, for_anybody=True
)
"""Questions that one process has waiting, and one address of them; more are turned
away at once."""
_KEPT: Final = timedelta(hours=1)
_AWAY: Final = frozenset({ErrorCode.HSM_UNAVAILABLE, ErrorCode.TASK_FAILED})


class Timestamps:
    """The use case of whoever asks over HTTP.

    Args:
        store: the record.
        clock: the time.
        tasks: waits for what workers do, and wakes one.
        wait_s: longest wait for a token, in seconds.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        tasks: HsmTasks,
        wait_s: float = _WAIT_S,
    ) -> None:
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._wait_s = wait_s
        self._queue = FairQueue(_LIMITS, "tsa")

    async def answer(self, request: bytes) -> bytes:
        """Answer a TimeStampReq by a TimeStampResp, both DER.

        Args:
            request: from anybody.

        Raises:
            TsaUnavailableError: no worker stamped it in time.
            ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
        """
        question = read_question(request)
        if isinstance(question, TimestampRefusal):
            return refused(question)
        async with self._queue.place(WORK_OWNER.get()):
            return granted(await self._token(question))

    async def stamp(self, imprint: bytes, digest: DigestAlgorithm) -> bytes:
        """Stamp for a role of this installation; see `TimestampAuthority`.

        Raises:
            TsaUnavailableError: no worker stamped it in time.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        return await self._token(TimestampQuestion(imprint, digest))

    async def stamp_all(
        self, imprints: Sequence[bytes], digest: DigestAlgorithm
    ) -> list[bytes]:
        """Stamp several; see `OwnTimestampAuthority`.

        Raises:
            TsaUnavailableError: no worker stamped them in time.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        return [await self.stamp(imprint, digest) for imprint in imprints]

    async def _token(self, question: TimestampQuestion) -> bytes:
        task = TaskId(new_id())
        now = self._clock.now()
        given = _given(question, now + timedelta(seconds=self._wait_s))
        async with self._store.write() as transaction:
            await HsmTaskStore(transaction).add(task, TaskKind.TIMESTAMP, given, now)
        try:
            output = await self._tasks.wait(task, self._wait_s)
        except ApplianceError as exc:
            if exc.code in _AWAY:
                raise TsaUnavailableError(str(exc)) from exc
            raise
        return base64.b64decode(str(output["token"]))


class TimestampWork:
    """A worker's transactions of `timestamp` tasks.

    Args:
        store: the record.
        clock: the time.
        worker: the worker's slot, or the role that forgets.
    """

    def __init__(self, store: Database, clock: Clock, worker: str) -> None:
        self._store = store
        self._clock = clock
        self._actor = f"worker:{worker}"

    def question(self, claim: TaskClaim) -> TimestampQuestion:
        """What a task is about.

        Raises:
            TsaUnavailableError: nobody waits for it any more.
            ValueError: it has no digest of its kind.
        """
        given = claim.input
        if self._clock.now() > datetime.fromisoformat(str(given["until"])):
            msg = "too late"
            raise TsaUnavailableError(msg)
        nonce, digest = given["nonce"], DigestAlgorithm(str(given["digest"]))
        imprint = bytes.fromhex(str(given["imprint"]))
        if len(imprint) != digest.size_bytes:
            raise ValueError
        return TimestampQuestion(
            imprint,
            digest,
            nonce=None if nonce is None else int(str(nonce), 16),
            certificates=given["certificates"] is True,
            null_parameters=given["nullParameters"] is True,
        )

    async def stamped(self, claim: TaskClaim, issued: IssuedTimestamp) -> bool:
        """End a task with its token; False when another claim came since."""
        token = base64.b64encode(issued.token).decode("ascii")
        async with self._store.write() as transaction:
            output: dict[str, object] = {"token": token}
            if not await HsmTaskStore(transaction).close(claim, TaskState.DONE, output):
                return False
            transaction.audit.add(
                task_event(
                    EventKind.TIMESTAMP_ISSUED,
                    self._actor,
                    claim,
                    {
                        "serial": serial_text(issued.serial),
                        "time": issued.time.isoformat(timespec="milliseconds"),
                        "digest": str(claim.input["digest"]),
                        "imprint": str(claim.input["imprint"]),
                    },
                )
            )
            return True

    async def forget(self) -> int:
        """Delete tasks that ended and were made an hour ago; how many."""
        async with self._store.write() as transaction:
            before = self._clock.now() - _KEPT
            return await HsmTaskStore(transaction).sweep(TaskKind.TIMESTAMP, before)


def _given(question: TimestampQuestion, until: datetime) -> dict[str, object]:
    """A question as it stands in its task."""
    return {
        "imprint": question.imprint.hex(),
        "digest": question.digest.value,
        "nonce": None if question.nonce is None else f"{question.nonce:x}",
        "certificates": question.certificates,
        "nullParameters": question.null_parameters,
        "until": until.isoformat(),
    }
