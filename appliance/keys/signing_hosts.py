"""The hosts that may sign now.

A host is alive when a worker of it said so, and is chosen when its activation key is
believed (`host_belief`): who can write to the database alone, or has a PIN besides,
cannot have an unlock key sealed to a key of their own.

Source: design §4 "Activation keys", "What stands beside the seal".
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import HsmUnavailableError
from appliance.domain.signing.activation import ActivationKey, newest_of_each
from appliance.keys.host_belief import KeyBelief, KeyStanding
from appliance.keys.worker_store import ActivationKeyStore, WorkerStore
from appliance.record.unit_of_work import Database, Transaction

ALIVE: Final = timedelta(seconds=15)
"""How long a worker counts as alive after it said so."""
READY: Final = "ok"
"""An unlock key can be sealed to a host now."""
NOT_ADMITTED: Final = "HOST_NOT_ADMITTED"
"""Workers have their HSM, and none of their hosts is admitted on this machine."""
NO_HOST: Final = "HSM_UNAVAILABLE"
"""No signing host can be sealed to, for another reason."""
_STRANGERS: Final = frozenset({KeyStanding.NOT_ADMITTED, KeyStanding.OTHER_HOST_KEY})


class SigningHosts:
    """Chooses the hosts that an unlock key is sealed to.

    Args:
        store: the record.
        belief: decides which published keys count.
        clock: the time.
    """

    def __init__(self, store: Database, belief: KeyBelief, clock: Clock) -> None:
        self._store = store
        self._belief = belief
        self._clock = clock

    async def live(self) -> tuple[ActivationKey, ...]:
        """Return the key of each host that can sign now, eight at the most.

        Raises:
            HsmUnavailableError: there is none.
        """
        async with self._store.read() as transaction:
            return await self.live_in(transaction)

    async def live_in(self, transaction: Transaction) -> tuple[ActivationKey, ...]:
        """Do as `live` does, within the caller's transaction.

        Raises:
            HsmUnavailableError: there is none.
        """
        hosts, published = await self._published(transaction)
        if not hosts:
            msg = "no signing worker has its HSM"
            raise HsmUnavailableError(msg)
        if chosen := self._chosen(hosts, published):
            return chosen
        if strangers := self._strangers(hosts, published):
            named = ", ".join(strangers)
            msg = (
                f"signing host {named} is not admitted on this machine by the key that "
                "it has: rubrica hsm admit"
            )
            raise HsmUnavailableError(msg)
        msg = "no signing host has an activation key of a pinned identity"
        raise HsmUnavailableError(msg)

    async def readiness(self) -> str:
        """Return `READY`, or why no host can be sealed to."""
        async with self._store.read() as transaction:
            hosts, published = await self._published(transaction)
        if self._chosen(hosts, published):
            return READY
        return NOT_ADMITTED if self._strangers(hosts, published) else NO_HOST

    async def _published(
        self, transaction: Transaction
    ) -> tuple[list[str], list[ActivationKey]]:
        """Return the hosts whose workers have their HSM, and all published keys."""
        now = self._clock.now()
        # Workers first: each publishes its host's key before it says it is alive.
        hosts = await WorkerStore(transaction).signing_hosts(now - ALIVE)
        since = self._belief.oldest.epoch_at(now) - 1
        return hosts, await ActivationKeyStore(transaction).published(since)

    def _chosen(
        self, hosts: Sequence[str], published: Sequence[ActivationKey]
    ) -> tuple[ActivationKey, ...]:
        believed = [
            key
            for key in published
            if self._belief.standing(key) is KeyStanding.BELIEVED
        ]
        return tuple(newest_of_each(believed, hosts, self._clock.now()))

    def _strangers(
        self, hosts: Sequence[str], published: Sequence[ActivationKey]
    ) -> list[str]:
        """Return live hosts whose keys are signed by no admitted host key."""
        return sorted(
            {
                key.host
                for key in published
                if key.host in hosts and self._belief.standing(key) in _STRANGERS
            }
        )
