"""The keys that integrators' documents are encrypted with, sealed."""

from datetime import datetime
from typing import Final, Protocol

from appliance.domain.ids import IntegratorId

KEY_TABLE: Final = "document_key"
KEY_COLUMN: Final = "key_sealed"
"""Where a key stands, and what it is sealed for."""


class DocumentKeyRecords(Protocol):
    """One row an integrator that has documents."""

    async def get(self, integrator: IntegratorId) -> bytes | None:
        """An integrator's key, sealed."""
        ...

    async def add(
        self, integrator: IntegratorId, sealed: bytes, created: datetime
    ) -> bool:
        """Record a key; False when there is one, which stays."""
        ...

    async def remove(self, integrator: IntegratorId) -> bool:
        """Forget a key; whether there was one."""
        ...
