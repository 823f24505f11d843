"""The hosts that may sign now.

A host is believed when its activation key bears the signature of a worker
identity that this front has pinned: who can write to the database alone cannot
have an unlock key sealed to a key of their own.

Source: design §4 "Activation keys".
"""

from datetime import timedelta
from typing import Final

from appliance.core.unit_of_work import Database, Transaction
from appliance.domain.activation import (
    ActivationKey,
    key_statement,
    newest_of_each,
)
from appliance.domain.clock import Clock
from appliance.domain.errors import HsmUnavailableError
from appliance.domain.ports import WorkerIdentities
from appliance.keys.activation_format import PinnedFormat
from appliance.keys.worker_store import ActivationKeyStore, WorkerStore

ALIVE: Final = timedelta(seconds=15)
"""How long a worker counts as alive after it said so."""
_REMEMBERED: Final = 1000


class SigningHosts:
    """Chooses the hosts that an unlock key is sealed to.

    Args:
        store: the record.
        identities: those that are pinned.
        clock: the time.
        installation: the setting of that name.
        pinned: the oldest activation format that counts here.
    """

    def __init__(
        self,
        store: Database,
        identities: WorkerIdentities,
        clock: Clock,
        installation: str,
        pinned: PinnedFormat,
    ) -> None:
        self._store = store
        self._identities = identities
        self._clock = clock
        self._installation = installation
        self._pinned = pinned
        self._believed: set[ActivationKey] = set()

    async def live(self) -> tuple[ActivationKey, ...]:
        """The newest key of each host that can sign now, eight at the most.

        Raises:
            HsmUnavailableError: there is none.
        """
        async with self._store.read() as transaction:
            return await self.live_in(transaction)

    async def live_in(self, transaction: Transaction) -> tuple[ActivationKey, ...]:
        """As `live`, within the caller's transaction.

        Raises:
            HsmUnavailableError: there is none.
        """
        now = self._clock.now()
        # Workers first: each publishes its host's key before it says it is alive.
        hosts = await WorkerStore(transaction).signing_hosts(now - ALIVE)
        published = await ActivationKeyStore(transaction).published()
        if not hosts:
            msg = "no signing worker has its HSM"
            raise HsmUnavailableError(msg)
        believed = [
            key for key in published if key in self._believed or self._believe(key)
        ]
        if chosen := newest_of_each(believed, hosts, now, self._pinned.oldest):
            return tuple(chosen)
        msg = "no signing host has an activation key of a pinned identity"
        raise HsmUnavailableError(msg)

    def _believe(self, key: ActivationKey) -> bool:
        """Whether a pinned identity signed that this key is that host's."""
        statement = key_statement(self._installation, key.host, key.epoch, key.public)
        if not self._identities.signed(key.identity, statement, key.signature):
            return False
        if len(self._believed) >= _REMEMBERED:
            self._believed.clear()
        self._believed.add(key)
        return True
