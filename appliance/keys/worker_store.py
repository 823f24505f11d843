"""Workers that report themselves, and the activation keys of their hosts, in SQL."""

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, delete, insert, select

from appliance.database.tables import activation_key, worker_status
from appliance.database.upsert import insert_into
from appliance.domain.signing.activation import ActivationFormat, ActivationKey
from appliance.domain.signing.hsm_tasks import WorkerStatus
from appliance.record.unit_of_work import Store

# Made once: each call that signs executes them.
_SIGNING: Final = select(worker_status.c.slot).where(
    worker_status.c.at > bindparam("since"),
    worker_status.c.slot.startswith("signing/"),
    worker_status.c.hsm == "ready",
)
_PUBLISHED: Final = (
    select(activation_key)
    .where(activation_key.c.epoch >= bindparam("since"))
    .order_by(activation_key.c.host, activation_key.c.epoch)
)


class WorkerStore(Store):
    """Who is alive."""

    async def beat(self, status: WorkerStatus) -> None:
        """Say that a worker is alive and how its HSM is."""
        await self._connection.execute(
            delete(worker_status).where(worker_status.c.slot == status.slot)
        )
        await self._connection.execute(
            insert(worker_status).values(
                slot=status.slot,
                process=status.process,
                at=status.at,
                hsm=status.hsm,
                reason=status.reason,
                activation_format=max(ActivationFormat).value,
            )
        )

    async def leave(self, slot: str, process: str) -> None:
        """Take back what a process said, unless another has its place by now."""
        await self._connection.execute(
            delete(worker_status).where(
                worker_status.c.slot == slot, worker_status.c.process == process
            )
        )

    async def alive(self, since: datetime) -> list[WorkerStatus]:
        """Workers that said so after `since`."""
        rows = await self._connection.execute(
            select(worker_status)
            .where(worker_status.c.at > since)
            .order_by(worker_status.c.slot)
        )
        return [
            WorkerStatus(
                row.slot,
                row.process,
                row.at,
                row.hsm,
                row.reason,
                row.activation_format,
            )
            for row in rows
        ]

    async def signing_hosts(self, since: datetime) -> list[str]:
        """Where signing workers said so after `since`, and have their HSM."""
        rows = await self._connection.execute(_SIGNING, {"since": since})
        # `signing/<host>/<n>`
        return [slot.split("/")[1] for slot in rows.scalars()]


class ActivationKeyStore(Store):
    """What signing hosts publish of their keys."""

    async def publish(self, key: ActivationKey) -> None:
        """Record a key, in the place of an earlier one of that host and epoch."""
        values = {
            "public": key.public,
            "identity": key.identity,
            "signature": key.signature,
            "made": key.made,
            "host_signature": key.host_signature,
        }
        await self._connection.execute(
            insert_into(self._connection, activation_key)
            .values(host=key.host, epoch=key.epoch, **values)
            .on_conflict_do_update(index_elements=["host", "epoch"], set_=values)
        )

    async def published(self, since: int = 0) -> list[ActivationKey]:
        """Keys of that epoch and later ones, by host and epoch; few are kept."""
        rows = await self._connection.execute(_PUBLISHED, {"since": since})
        return [
            ActivationKey(
                row.host,
                row.epoch,
                row.public,
                row.identity,
                row.signature,
                row.made,
                row.host_signature,
            )
            for row in rows
        ]

    async def forget(self, since: int, before: int) -> int:
        """Delete keys of a range of epochs; how many there were.

        Args:
            since: the first of them.
            before: the first that stays.
        """
        result = await self._connection.execute(
            delete(activation_key).where(
                activation_key.c.epoch >= since, activation_key.c.epoch < before
            )
        )
        return result.rowcount
