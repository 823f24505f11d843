"""Idempotency keys: what each was first used for."""

from datetime import datetime
from typing import Protocol


class IdempotencyRecords(Protocol):
    """One row a scope and key."""

    async def remembered(self, scope: str, key: str) -> str | None:
        """The fingerprint that an idempotency key was first used with."""
        ...

    async def remember(
        self, scope: str, key: str, fingerprint: str, at: datetime
    ) -> None:
        """Bind an idempotency key to a fingerprint.

        Raises:
            ApplianceError: `IDEMKEY_CONFLICT` when it is bound to another.
        """
        ...

    async def rebind(
        self, scope: str, key: str, fingerprint: str, at: datetime
    ) -> None:
        """Have a key stand for something, whatever it stood for, from now on."""
        ...

    async def forget(self, before: datetime, limit: int) -> int:
        """Delete keys that were first used before then, the oldest; how many."""
        ...
