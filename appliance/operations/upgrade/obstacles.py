"""Obstacles to closing an upgrade: processes, hosts, keys.

for each in await obstacles(settings, has_fronts=True):
    print(each.what, each.remedy)
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.bootstrap.hosts import open_belief
from appliance.database.engines import open_engines
from appliance.domain.clock import Clock, SystemClock
from appliance.domain.signing.activation import (
    ActivationFormat,
    ActivationKey,
    format_of,
)
from appliance.domain.signing.hsm_tasks import WorkerStatus, slot_host
from appliance.keys.host_belief import KeyBelief, KeyStanding
from appliance.keys.signing_hosts import ALIVE
from appliance.keys.worker_store import ActivationKeyStore, WorkerStore
from appliance.record.unit_of_work import Database
from appliance.secrets.admitted_hosts import AdmittedHosts
from appliance.settings import Settings

_FORGED: Final = "no machine is called that: look who writes to the database"
_NEWEST: Final = max(ActivationFormat)
_SYSTEM_CLOCK: Final = SystemClock()


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that is not ready, and what to do about it."""

    what: str
    remedy: str
    is_of_host: bool = True
    """A signing host that is not believed; else a process that is still to upgrade."""


async def obstacles(
    settings: Settings, *, has_fronts: bool, clock: Clock = _SYSTEM_CLOCK
) -> list[Obstacle]:
    """List what stands in the way of closing an upgrade on this machine.

    Args:
        settings: of the installation.
        has_fronts: this machine has a front, which must admit the signing hosts.
        clock: the time.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: the database is away.
    """
    store = Database(open_engines(settings), clock, "operator")
    try:
        async with store.read() as transaction:
            alive = await WorkerStore(transaction).alive(clock.now() - ALIVE)
            # Roles of hosts without fronts need not be allowed to read it.
            keys = (
                await ActivationKeyStore(transaction).published() if has_fronts else []
            )
    finally:
        await store.close()
    belief = open_belief(settings)
    found = list(_of_earlier_release(alive))
    if has_fronts:
        found += _of_hosts(settings, belief, alive, keys)
    return found


def _of_earlier_release(alive: Sequence[WorkerStatus]) -> Iterator[Obstacle]:
    for status in alive:
        if (status.activation_format or ActivationFormat.FIRST) < _NEWEST:
            host = slot_host(status.slot)
            yield Obstacle(
                f"{_shown(status.slot)}: runs the release before",
                f"on {_shown(host)}: upgrade, and restart its roles"
                if host.isprintable()
                else _FORGED,
                is_of_host=False,
            )


def _of_hosts(
    settings: Settings,
    belief: KeyBelief,
    alive: Sequence[WorkerStatus],
    keys: Sequence[ActivationKey],
) -> Iterator[Obstacle]:
    """Yield signing hosts that the fronts of this machine would not seal to."""
    hosts = {
        slot_host(status.slot)
        for status in alive
        if status.slot.startswith("signing/")
        and (status.activation_format or ActivationFormat.FIRST) >= _NEWEST
    }
    if not any(status.slot.startswith("signing/") for status in alive):
        yield Obstacle(
            "no signing worker is alive: it is not known which hosts to admit",
            "start the signing workers, and run it again",
            is_of_host=False,
        )
    admitted = AdmittedHosts(settings.signing_hosts_file)
    for host in sorted(hosts):
        of_host = [
            key for key in keys if key.host == host and format_of(key.epoch) is _NEWEST
        ]
        standings = {belief.standing(key) for key in of_host}
        if KeyStanding.BELIEVED not in standings:
            yield obstacle_of(host, standings, is_admitted=bool(admitted.key_of(host)))


def obstacle_of(
    host: str, standings: set[KeyStanding], *, is_admitted: bool
) -> Obstacle:
    """Say why no signing password is sealed to a host.

    Args:
        host: its name.
        standings: of its keys of the newest format.
        is_admitted: it is admitted on this machine.
    """
    if not host.isprintable():
        return Obstacle(f"signing host {_shown(host)}: has no name", _FORGED)
    # Names are rows, and people copy the command: it is one, whatever they say.
    typed, host = shlex.quote(host), _shown(host)
    how = f"on {host}: rubrica hsm host-key; here: rubrica hsm admit {typed} KEY"
    if not is_admitted:
        return Obstacle(f"signing host {host}: is not admitted on this machine", how)
    if not standings:
        return Obstacle(
            f"signing host {host}: has published no activation key of its own",
            f"on {host}: rubrica hsm host-key; rubrica hsm check",
        )
    if KeyStanding.OTHER_HOST_KEY in standings:
        return Obstacle(
            f"signing host {host}: is admitted by another key than it has", how
        )
    return Obstacle(
        f"signing host {host}: its activation keys are of no pinned worker identity",
        "copy pki/worker-identity.pem here from the machine of `rubrica hsm init`",
    )


def _shown(name: str) -> str:
    """Return a name of a row as a terminal shows it, without effects of its own."""
    return name if name.isprintable() else ascii(name)
