"""Idempotency keys of what a backend asks for: a repeated order makes nothing new.

A key stands for one order of its integrator, of whatever kind, and for what came of it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.record.idempotency_store import IdempotencyStore
from appliance.record.unit_of_work import Database, Transaction

_Checked = TypeVar("_Checked")


@dataclass(frozen=True, slots=True)
class MadeBefore:
    """What an order with the same key came to."""

    id: str


async def is_key_known(store: Database, whose: IntegratorId, key: str | None) -> bool:
    """Whether something was ordered by a key: the same again makes nothing.

    Args:
        store: the record.
        whose: the integrator that orders.
        key: as it came; None: it has none.
    """
    if key is None:
        return False
    async with store.read() as transaction:
        known = IdempotencyStore(transaction)
        return await known.remembered(_scope_of(whose), key) is not None


async def release_key(
    transaction: Transaction, whose: IntegratorId, key: str | None, made: str
) -> None:
    """Free the key of an order that came to nothing.

    Args:
        transaction: the one that ends the order.
        whose: the integrator that ordered.
        key: as it came; None: the order has none.
        made: id of what came to nothing. A key that was forgotten meanwhile, and
            stands for another order, stays.
    """
    if key is None:
        return
    known, scope = IdempotencyStore(transaction), _made_scope_of(whose)
    if await known.remembered(scope, key) == made:
        await known.release(key, _scope_of(whose), scope)


def _scope_of(whose: IntegratorId) -> str:
    """Where it is kept what a key was first used for."""
    return f"backend-order:{whose}"


def _made_scope_of(whose: IntegratorId) -> str:
    """Idempotency scope of what an order came to."""
    return f"backend-made:{whose}"


@dataclass(frozen=True, slots=True)
class OrderKey:
    """The key of one order."""

    integrator: IntegratorId
    key: str | None
    """As it came; None: the order has none, and is always a new one."""
    fingerprint: str
    """What tells the order from another one, SHA-256 in hex."""

    async def unless_made(
        self, store: Database, check: Callable[[], Awaitable[_Checked]]
    ) -> _Checked | MadeBefore:
        """What an order's checks give, where none with this key was made before.

        Args:
            store: the record.
            check: makes them.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`, or what `check` raises.
        """
        if (earlier := await self._made_before(store)) is not None:
            return earlier
        try:
            return await check()
        except ApplianceError:
            # Another call of the same may have made it meanwhile, references and all.
            if (earlier := await self._made_before(store)) is None:
                raise
            return earlier

    async def _made_before(self, store: Database) -> MadeBefore | None:
        async with store.read() as transaction:
            earlier = await self.made(transaction)
        return None if earlier is None else MadeBefore(earlier)

    async def made(self, transaction: Transaction) -> str | None:
        """What an order with this key came to before: its id; None: there was none.

        Args:
            transaction: the caller's.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`: the key stands for another order.
        """
        if self.key is None:
            return None
        known = IdempotencyStore(transaction)
        used = await known.remembered(self._scope, self.key)
        if used is None:
            return None
        if used != self.fingerprint:
            raise ApplianceError(ErrorCode.IDEMKEY_CONFLICT)
        return await known.remembered(self._made_scope, self.key)

    async def bind(self, transaction: Transaction, at: datetime) -> str | None:
        """The same, with the key bound to this order from now on.

        Of two calls at once the second waits here until the first has committed.

        Args:
            transaction: the caller's, which makes what is asked for.
            at: the time.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT`.
        """
        if self.key is None:
            return None
        await IdempotencyStore(transaction).remember(
            self._scope, self.key, self.fingerprint, at
        )
        return await self.made(transaction)

    async def stands_for(
        self, transaction: Transaction, made: str, at: datetime
    ) -> None:
        """Remember what the order came to.

        Args:
            transaction: the one that bound it.
            made: id of that.
            at: the time.
        """
        if self.key is not None:
            await IdempotencyStore(transaction).remember(
                self._made_scope, self.key, made, at
            )

    @property
    def _scope(self) -> str:
        return _scope_of(self.integrator)

    @property
    def _made_scope(self) -> str:
        """Where it is kept what that came to."""
        return _made_scope_of(self.integrator)
