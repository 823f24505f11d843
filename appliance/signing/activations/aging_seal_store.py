"""Seals to private halves that are about to be deleted, in SQL."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import or_, select, update

from appliance.database.tables import activation, activation_seal
from appliance.domain.ids import ActivationId, CredentialId, PersonId
from appliance.domain.signing.activation import ActivationFormat, Claim, Seal
from appliance.domain.vocab import ActivationState
from appliance.record.unit_of_work import Store
from appliance.signing.activations.activation_queue import documents_of, is_in


class AgingSealStore(Store):
    """Activations that may still need a key, and whose seal to a host ages."""

    async def due(self, host: str, epoch: int, at: datetime) -> list[Claim]:
        """Return activations whose seal to a host is of that epoch or an earlier one.

        They are read as a worker claims them, and are claimed by nobody thereby.

        Args:
            host: its name.
            epoch: of a key; older ones of its format count too.
            at: the time.
        """
        rows = await self._connection.execute(
            select(activation, activation_seal.c.epoch, activation_seal.c.sealed)
            .join(activation_seal, activation_seal.c.activation == activation.c.id)
            .where(
                activation_seal.c.host == host,
                activation_seal.c.epoch >= ActivationFormat.WHOLE.first_epoch,
                activation_seal.c.epoch <= epoch,
                or_(
                    is_in(ActivationState.WAITING) & (activation.c.claim_by > at),
                    is_in(ActivationState.KEYING) & (activation.c.key_until > at),
                ),
            )
            .order_by(activation.c.id)
        )
        return [
            Claim(
                id=ActivationId(row.id),
                person=PersonId(row.person),
                credential=CredentialId(row.credential),
                state=ActivationState(row.state),
                fence=row.fence,
                factors=tuple(row.factors),
                created=row.created,
                claim_by=row.claim_by,
                key_until=row.key_until or row.claim_by,
                documents=await documents_of(self._connection, row.id),
                seal=Seal(host, row.epoch, row.sealed),
            )
            for row in rows.all()
        ]

    async def replace(
        self, renewed: Collection[tuple[ActivationId, Seal, Seal]]
    ) -> int:
        """Put seals in the place of those that they renew; return how many.

        One that was erased or renewed meanwhile stays as it is.

        Args:
            renewed: activation, the seal that ages, and the new one.
        """
        count = 0
        for owner, old, new in renewed:
            result = await self._connection.execute(
                update(activation_seal)
                .where(
                    activation_seal.c.activation == owner,
                    activation_seal.c.host == old.host,
                    activation_seal.c.epoch == old.epoch,
                )
                .values(epoch=new.epoch, sealed=new.sealed)
            )
            count += result.rowcount
        return count
