"""What a signing host publishes of its activation keys.

The private halves are the worker's business (`worker.signing.activation_keys`); here
are the rows by which fronts know the public ones.
"""

from datetime import datetime

from appliance.domain.signing.activation import ActivationFormat, ActivationKey
from appliance.keys.signing_hosts import ALIVE
from appliance.keys.worker_store import ActivationKeyStore, WorkerStore
from appliance.record.unit_of_work import Database


class PublishedKeys:
    """The rows of activation keys.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store

    async def find(self, host: str, epoch: int, public: bytes) -> ActivationKey | None:
        """Return exactly this key as it is published; None if it is not.

        Args:
            host: whose.
            epoch: of the key.
            public: X25519, 32 bytes.
        """
        async with self._store.read() as transaction:
            keys = await ActivationKeyStore(transaction).published(epoch)
        wanted = (host, epoch, public)
        return next(
            (key for key in keys if (key.host, key.epoch, key.public) == wanted), None
        )

    async def earlier_peers(self, host: str, now: datetime) -> bool:
        """Return whether a worker of the release before is alive on a host.

        Args:
            host: its name.
            now: the time.
        """
        async with self._store.read() as transaction:
            alive = await WorkerStore(transaction).alive(now - ALIVE)
        return any(
            status.slot.startswith(f"signing/{host}/")
            and status.activation_format is None
            for status in alive
        )

    async def publish(self, key: ActivationKey) -> None:
        """Have fronts seal to a key, and to no other of that host and epoch."""
        async with self._store.write() as transaction:
            await ActivationKeyStore(transaction).publish(key)

    async def forget_old(self, now: datetime) -> int:
        """Delete the keys of every host whose private halves are gone by now.

        Args:
            now: the time.

        Returns:
            How many there were.
        """
        count = 0
        async with self._store.write() as transaction:
            for kind in ActivationFormat:
                count += await ActivationKeyStore(transaction).forget(
                    kind.first_epoch, kind.oldest_kept(now)
                )
        return count
