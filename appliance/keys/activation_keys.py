"""What a signing host publishes of its activation keys.

The private halves are the worker's business (`worker.signing.activation_keys`); here
are the rows by which fronts know the public ones.
"""

from datetime import datetime

from appliance.core.unit_of_work import Database
from appliance.domain.activation import ActivationFormat, ActivationKey
from appliance.keys.worker_store import ActivationKeyStore


class PublishedKeys:
    """The rows of activation keys.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store

    async def has(self, host: str, epoch: int, public: bytes) -> bool:
        """Whether exactly this key stands published.

        Args:
            host: whose.
            epoch: of the key.
            public: X25519, 32 bytes.
        """
        async with self._store.read() as transaction:
            keys = await ActivationKeyStore(transaction).published(epoch)
        return any(
            (key.host, key.epoch, key.public) == (host, epoch, public) for key in keys
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
