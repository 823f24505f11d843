"""State of an installation as its record knows it.

For operators: `/metrics`, `rubrica status` and the console read the same.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from appliance.console.expiry_notices import Expiry
from appliance.console.health_store import (
    ConsoleHealthStore,
    MailFaults,
    WebhookFaults,
)
from appliance.domain.audit.verification import AuditCheck
from appliance.domain.clock import Clock
from appliance.domain.pki.trust_store import ExpiringKind
from appliance.domain.requests.levels import UpkeepCount
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.keys.worker_store import WorkerStore
from appliance.pki.ca_certificates import read_authority
from appliance.pki.publication_store import PublicationStore
from appliance.record.backlog_store import BacklogStore
from appliance.record.installation_store import InstallationStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import Settings, SettingsError
from appliance.signing.level_maintenance import OVERDUE
from appliance.signing.level_maintenance_store import LevelMaintenanceStore

LATE: Final = timedelta(seconds=60)
"""What nobody has in hand for longer wants looking at."""
SEEN: Final = timedelta(days=1)
"""Processes that gave no sign of life for longer are forgotten."""
MAILS_LOST: Final = timedelta(days=1)
"""Mails that were refused or given up count for so long."""
_LEFT: Final = 4
"""So does what has less than that part of its time left: it is renewed at half."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits: nobody has it in hand, or it is put off for a TSA or CA."""

    name: str
    """`activations`, `outside` (what needs the network), `hsm_tasks` or `batches`."""
    length: int
    oldest: datetime | None
    """When the oldest of it came."""
    is_late: bool


@dataclass(frozen=True, slots=True)
class Publication:
    """What verifiers ask for, until when it is good."""

    name: str
    """`issuing` or `root` of a CRL; `ocsp` of the answer that ends first."""
    this_update: datetime
    next_update: datetime
    is_old: bool
    """It should have been made anew long ago."""


@dataclass(frozen=True, slots=True)
class InstallationState:
    """All that the record knows of how the installation stands."""

    queues: tuple[Queue, ...]
    publications: tuple[Publication, ...]
    workers: tuple[WorkerStatus, ...]
    """The last sign of life of each process of the last day."""
    overdue: tuple[UpkeepCount, ...]
    """Signed documents that have waited too long for their level or timestamp."""
    webhooks: WebhookFaults
    mails: MailFaults
    revoked_signers: int
    """Signers whose certificate is revoked while a request waits for them."""
    backup: datetime | None
    """When the last one was made; None: none ever was."""
    audit: AuditCheck | None
    """Outcome of its last check; None: there was none."""
    first_ends: dict[ExpiringKind, datetime]
    """When the first certificate of each kind ends."""


async def look(
    store: Database, clock: Clock, settings: Settings, expiry: Expiry
) -> InstallationState:
    """Read the state of the installation.

    Args:
        store: the record.
        clock: the time.
        settings: of the installation, which name the CA's certificates.
        expiry: knows the ends of certificates.

    Raises:
        ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
    """
    now = clock.now()
    ends = await expiry.first_ends()
    async with store.read() as transaction:
        installation = InstallationStore(transaction)
        faults = ConsoleHealthStore(transaction)
        levels = LevelMaintenanceStore(transaction)
        return InstallationState(
            queues=await _queues(transaction, now),
            publications=await _publications(transaction, now, settings),
            workers=tuple(await WorkerStore(transaction).alive(now - SEEN)),
            overdue=tuple(await levels.counted(now, now - OVERDUE)),
            webhooks=await faults.webhooks(),
            mails=await faults.mails(now - MAILS_LOST),
            revoked_signers=await faults.revoked_signers(),
            backup=await installation.last_backup(),
            audit=await installation.last_audit_check(),
            first_ends=ends,
        )


async def _queues(transaction: Transaction, now: datetime) -> tuple[Queue, ...]:
    backlog = BacklogStore(transaction)
    found = {
        "activations": await backlog.activations(now, outside=False),
        "outside": await backlog.activations(now, outside=True),
        "hsm_tasks": await backlog.tasks(now),
        "batches": await backlog.batches(now),
    }
    return tuple(
        Queue(
            name,
            each.length,
            each.oldest,
            is_late=each.oldest is not None and now - each.oldest > LATE,
        )
        for name, each in found.items()
    )


async def _publications(
    transaction: Transaction, now: datetime, settings: Settings
) -> tuple[Publication, ...]:
    try:
        authority = read_authority(settings)
    except SettingsError:
        # Before `hsm init`, which the log tells of.
        return ()
    found = []
    for name, issuer in (("issuing", authority.ca_id), ("root", authority.root_id)):
        crl = await PublicationStore(transaction).crl(issuer)
        if crl is not None:
            found.append((name, crl.this_update, crl.next_update))
    first = await PublicationStore(transaction).first_to_end(now)
    if first is not None:
        found.append(("ocsp", first.this_update, first.next_update))
    return tuple(
        Publication(name, made, ends, is_old=(ends - now) * _LEFT < ends - made)
        for name, made, ends in found
    )
