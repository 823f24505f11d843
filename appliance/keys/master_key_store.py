"""Which master key wraps which users' keys, in SQL."""

from datetime import datetime

from sqlalchemy import false, func, or_, select, true, update

from appliance.database.tables import credential, hsm_task
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    KeyNeeds,
    MasterWrapped,
    WrapMethod,
)
from appliance.domain.vocab import CredentialState, TaskState
from appliance.record.unit_of_work import Store


class MasterKeyStore(Store):
    """Wrapped keys by the master key that wraps them, over one connection."""

    async def counts(self) -> dict[int, int]:
        """How many keys there are under each version."""
        rows = await self._connection.execute(
            select(credential.c.master, func.count().label("keys"))
            .where(credential.c.master.is_not(None))
            .group_by(credential.c.master)
        )
        return {row.master: row.keys for row in rows}

    async def otherwise(
        self,
        version: int,
        method: WrapMethod | None,
        after: CredentialId | None,
        limit: int,
    ) -> list[MasterWrapped]:
        """Keys that another version wraps, or another method, by id."""
        column = credential.c
        rows = await self._connection.execute(
            select(column.id, column.master, column.blob_w, column.method_w)
            .where(
                true() if after is None else column.id > after,
                # Neither of a resident key.
                or_(
                    column.master != version,
                    false() if method is None else column.method_w != method.value,
                ),
                column.blob_w.is_not(None),
            )
            .order_by(column.id)
            .limit(limit)
        )
        return [
            MasterWrapped(
                CredentialId(row.id), row.master, row.blob_w, WrapMethod(row.method_w)
            )
            for row in rows
        ]

    async def rewrapped(self, old: MasterWrapped, new: MasterWrapped) -> bool:
        """Have another version wrap a key; False if it changed meanwhile."""
        result = await self._connection.execute(
            update(credential)
            .where(
                credential.c.id == old.credential,
                credential.c.master == old.master,
                credential.c.blob_w == old.blob_w,
            )
            .values(master=new.master, blob_w=new.blob_w, method_w=new.method_w.value)
        )
        return result.rowcount == 1

    async def needs(self) -> list[KeyNeeds]:
        """What each key in force needs of an HSM."""
        column = credential.c
        rows = await self._connection.execute(
            select(
                column.id,
                column.person,
                column.algorithm,
                column.method_k,
            )
            .where(column.state == CredentialState.ACTIVE.value)
            .order_by(column.id)
        )
        return [
            KeyNeeds(
                CredentialId(row.id),
                PersonId(row.person),
                KeyAlgorithm(row.algorithm),
                None if row.method_k is None else WrapMethod(row.method_k),
            )
            for row in rows
        ]

    async def in_the_making(self, at: datetime) -> int:
        """How many tasks of the HSM some worker has in hand."""
        found = await self._connection.execute(
            select(func.count()).where(
                hsm_task.c.state == TaskState.RUNNING.value,
                hsm_task.c.lease_until > at,
            )
        )
        count: int = found.scalar_one()
        return count
