"""Certificates of the internal CA on their way to be revoked, and those that are."""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from appliance.domain.certificates import RevokedEntry
from appliance.domain.ids import CredentialId, TaskId
from appliance.domain.vocab import RevocationReason


class RevocationRecords(Protocol):
    """What is being revoked, by which task, and what is revoked."""

    async def begin(
        self,
        credential: CredentialId,
        at: datetime,
        reason: RevocationReason,
        task: TaskId,
    ) -> int:
        """Have a credential's valid certificates be revoked by a task; how many."""
        ...

    async def begin_own(
        self,
        serials: Collection[str],
        at: datetime,
        reason: RevocationReason,
        task: TaskId,
    ) -> int:
        """Have valid certificates of the appliance's own be revoked; how many."""
        ...

    async def retry(self, credential: CredentialId, task: TaskId) -> None:
        """Give what is being revoked another task."""
        ...

    async def complete(self, serials: Collection[str]) -> int:
        """What was being revoked is; how many."""
        ...

    async def stalled(self, limit: int) -> list[CredentialId]:
        """Credentials being revoked by a task that was given up."""
        ...

    async def stalled_own(self) -> list[str]:
        """Serials of the appliance's own, being revoked by a task given up."""
        ...

    async def retry_own(self, serials: Collection[str], task: TaskId) -> None:
        """Give those another task."""
        ...

    async def revoked(self, issuer: str) -> list[RevokedEntry]:
        """Every revoked certificate of a CA, by time."""
        ...
