"""What waits for a worker, and how old what the CA published is.

For operators: `/metrics` and the console's *Salud* tell the same.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from appliance.core.backlog_store import BacklogStore
from appliance.core.unit_of_work import Database, Transaction
from appliance.domain.clock import Clock
from appliance.pki.ca_certificates import read_authority
from appliance.pki.publication_store import PublicationStore
from appliance.settings import Settings, SettingsError

LATE: Final = timedelta(seconds=60)
"""What nobody has in hand for longer wants looking at."""
_LEFT: Final = 4
"""So does what has less than that part of its time left: it is renewed at half."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits: nobody has it in hand, or it is put off for a TSA or CA."""

    name: str
    """`activations`, `outside` (what needs the network) or `hsm_tasks`."""
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
    """How the installation as a whole stands."""

    queues: tuple[Queue, ...]
    publications: tuple[Publication, ...]


async def look(store: Database, clock: Clock, settings: Settings) -> InstallationState:
    """Look at the record.

    Args:
        store: the record.
        clock: the time.
        settings: of the installation, which name the CA's certificates.

    Raises:
        ApplianceError: `OVERLOADED`, `STORE_UNAVAILABLE`.
    """
    now = clock.now()
    async with store.read() as transaction:
        return InstallationState(
            await _queues(transaction, now),
            await _publications(transaction, now, settings),
        )


async def _queues(transaction: Transaction, now: datetime) -> tuple[Queue, ...]:
    backlog = BacklogStore(transaction)
    found = {
        "activations": await backlog.activations(now, outside=False),
        "outside": await backlog.activations(now, outside=True),
        "hsm_tasks": await backlog.tasks(now),
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
