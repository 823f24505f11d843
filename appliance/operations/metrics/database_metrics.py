"""What only the database knows, for `/metrics`: asked by the chores every few seconds.

The role that serves figures asks no database: whoever reaches its listener reaches
nothing behind it. What could not be learned is not told: an old number would look like
one of now.
"""

import asyncio
import math
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import structlog

from appliance.console.expiry_notices import Expiry
from appliance.console.installation_state import Publication, Queue, look
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError
from appliance.domain.mail.mails import MailState
from appliance.keys.signing_hosts import ALIVE
from appliance.keys.worker_store import WorkerStore
from appliance.mail.mail_store import MailStore
from appliance.mail.notice_store import NoticeStore
from appliance.metrics import metrics
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import Settings
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from appliance.system.clock_check import ClockCheck
from appliance.webhooks.message_queue import MessageQueue

EVERY_S: Final = 10.0
"""Time between two looks."""
_LONGEST_S: Final = 5.0
_DISK_S: Final = 2.0
"""Longest wait for the room on the documents' disk, in seconds."""
_HSM_STATES: Final = ("ready", "unavailable", "left", "pin")
_MAIL: Final = "mail"
_OF_THE_RECORD: Final = (
    metrics.OCSP_THIS_UPDATE,
    metrics.OCSP_NEXT_UPDATE,
    metrics.SIGNERS_ENDING,
    metrics.CLOCK_OFF,
    metrics.BACKUP_MADE,
    metrics.WEBHOOKS_PENDING,
    metrics.WEBHOOKS_OLDEST,
    metrics.WEBHOOKS_FAILING,
    metrics.WEBHOOKS_STOPPED,
    metrics.MAILS_UNDELIVERED,
    metrics.REVOKED_WAITING,
)
_BY_LABEL: Final = (
    metrics.QUEUE_LENGTH,
    metrics.QUEUE_OLDEST,
    metrics.MAILS_ENDED,
    metrics.SIGNING_WORKERS,
    metrics.BEHIND,
    metrics.BEHIND_OLDEST,
    metrics.CRL_THIS_UPDATE,
    metrics.CRL_NEXT_UPDATE,
    metrics.NOT_AFTER,
)
_log = structlog.get_logger(__name__)


class RecordMetrics:
    """Looks at the record for an installation's figures.

    Args:
        store: the record.
        clock: the time.
        expiry: knows what ends.
        clock_check: knows how far the clock is off.
        settings: of the installation.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        expiry: Expiry,
        clock_check: ClockCheck,
        settings: Settings,
    ) -> None:
        self._store = store
        self._clock = clock
        self._expiry = expiry
        self._clock_check = clock_check
        self._settings = settings
        self._disk: asyncio.Future[float] | None = None

    async def look(self) -> None:
        """Look once, for a bounded time."""
        await self._look_at_disk()
        began = time.monotonic()
        try:
            async with asyncio.timeout(_LONGEST_S):
                await self._look()
        except BaseException as exc:
            _forget()
            metrics.RECORD_UP.set(0)
            if not isinstance(exc, ApplianceError | TimeoutError):
                raise
            code = exc.code.value if isinstance(exc, ApplianceError) else "TIMEOUT"
            _log.warning("metrics.record_away", code=code)
        else:
            metrics.RECORD_UP.set(1)
        metrics.RECORD_SECONDS.set(time.monotonic() - began)

    async def _look_at_disk(self) -> None:
        # A network file system that hangs keeps its thread; the next look takes no
        # other one.
        if self._disk is None or self._disk.done():
            measuring = asyncio.to_thread(_free_bytes, self._settings)
            self._disk = asyncio.ensure_future(measuring)
        await asyncio.wait({self._disk}, timeout=_DISK_S)
        metrics.DISK_FREE.set(self._disk.result() if self._disk.done() else math.nan)

    async def _look(self) -> None:
        now = self._clock.now()
        async with self._store.read() as transaction:
            await _workers(transaction, now)
            await _levels(transaction, now)
            await _webhooks(transaction, now)
            await _mails(transaction, now)
        state = await look(self._store, self._clock, self._settings, self._expiry)
        never = math.nan if self._settings.trial else 0.0
        made, audit = state.backup, state.audit
        metrics.BACKUP_MADE.set(made.timestamp() if made else never)
        metrics.WEBHOOKS_STOPPED.set(state.webhooks.stopped)
        metrics.MAILS_UNDELIVERED.set(state.mails.count)
        metrics.REVOKED_WAITING.set(state.revoked_signers)
        metrics.AUDIT_WRONG.set(audit.broken + audit.findings if audit else math.nan)
        metrics.AUDIT_CHECKED.set(audit.at.timestamp() if audit else math.nan)
        _queues(state.queues, now)
        _publications(state.publications)
        metrics.NOT_AFTER.clear()
        for kind, end in state.first_ends.items():
            metrics.NOT_AFTER.labels(kind.value).set(end.timestamp())
        metrics.SIGNERS_ENDING.set((await self._expiry.overview()).signers)
        off = (await self._clock_check.look()).off
        metrics.CLOCK_OFF.set(off.total_seconds())


def _queues(queues: Sequence[Queue], now: datetime) -> None:
    for queue in queues:
        age_s = (now - queue.oldest).total_seconds() if queue.oldest else 0.0
        metrics.QUEUE_LENGTH.labels(queue.name).set(queue.length)
        metrics.QUEUE_OLDEST.labels(queue.name).set(max(0.0, age_s))


def _publications(publications: Sequence[Publication]) -> None:
    for gauge in (metrics.OCSP_THIS_UPDATE, metrics.OCSP_NEXT_UPDATE):
        gauge.set(math.nan)
    for by_ca in (metrics.CRL_THIS_UPDATE, metrics.CRL_NEXT_UPDATE):
        by_ca.clear()
    for each in publications:
        made, ends = metrics.OCSP_THIS_UPDATE, metrics.OCSP_NEXT_UPDATE
        if each.name != "ocsp":
            made = metrics.CRL_THIS_UPDATE.labels(each.name)
            ends = metrics.CRL_NEXT_UPDATE.labels(each.name)
        made.set(each.this_update.timestamp())
        ends.set(each.next_update.timestamp())


async def _workers(transaction: Transaction, now: datetime) -> None:
    alive = await WorkerStore(transaction).alive(now - ALIVE)
    states = [one.hsm for one in alive if one.slot.startswith("signing/")]
    for state in _HSM_STATES:
        metrics.SIGNING_WORKERS.labels(state).set(states.count(state))


async def _mails(transaction: Transaction, now: datetime) -> None:
    length, ages, ended = 0, [0.0], Counter[MailState]()
    for store in (MailStore(transaction), NoticeStore(transaction)):
        due, oldest = await store.standing(now)
        length += due
        if oldest is not None:
            ages.append((now - oldest).total_seconds())
        ended.update(await store.ended())
    metrics.QUEUE_LENGTH.labels(_MAIL).set(length)
    metrics.QUEUE_OLDEST.labels(_MAIL).set(max(ages))
    for state in MailState:
        if state is not MailState.PENDING:
            metrics.MAILS_ENDED.labels(state.value).set(ended[state])


async def _levels(transaction: Transaction, now: datetime) -> None:
    due = [
        one
        for one in await LevelMaintenanceStore(transaction).counted(now, now)
        if one.is_below
    ]
    metrics.BEHIND.clear()
    metrics.BEHIND_OLDEST.clear()
    for level in {one.wanted for one in due}:
        of_level = [one for one in due if one.wanted is level]
        oldest = min(one.oldest for one in of_level)
        metrics.BEHIND.labels(level.value).set(sum(one.overdue for one in of_level))
        metrics.BEHIND_OLDEST.labels(level.value).set((now - oldest).total_seconds())


async def _webhooks(transaction: Transaction, now: datetime) -> None:
    waiting = await MessageQueue(transaction).waiting()
    age_s = (now - waiting.oldest).total_seconds() if waiting.oldest else 0.0
    metrics.WEBHOOKS_PENDING.set(waiting.count)
    metrics.WEBHOOKS_OLDEST.set(max(0.0, age_s))
    metrics.WEBHOOKS_FAILING.set(waiting.failing)


def _free_bytes(settings: Settings) -> float:
    if settings.documents.url is not None:
        # How much room a bucket has, nobody says; no figure is no alert.
        return math.nan
    try:
        return shutil.disk_usage(settings.documents_dir).free
    except OSError:
        # Nothing was ever stored, or the disk is gone.
        return math.nan


def _forget() -> None:
    for gauge in _OF_THE_RECORD:
        gauge.set(math.nan)
    for gauge in _BY_LABEL:
        gauge.clear()
