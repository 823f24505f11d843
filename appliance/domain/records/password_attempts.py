"""Attempts at the signing password.

A check takes a running slot before Argon2 and closes it after, so that no
number of parallel guesses gets past the count (decisions "attempts").
"""

from datetime import datetime
from typing import Protocol

from appliance.domain.ids import PersonId, RequestId
from appliance.domain.vocab import SlotOutcome


class SlotRecords(Protocol):
    """Attempts at the signing password."""

    async def running(self, person: PersonId, since: datetime) -> int:
        """How many checks of a person are running, begun after `since`."""
        ...

    async def take(
        self, person: PersonId, request: RequestId | None, at: datetime
    ) -> str:
        """Begin a check; gives the slot's id."""
        ...

    async def wrong_before(
        self,
        person: PersonId,
        request: RequestId | None,
        verifier_sha256: str,
        since: datetime,
    ) -> bool:
        """Whether this same wrong password was counted since then, here."""
        ...

    async def close(
        self, slot: str, outcome: SlotOutcome, verifier_sha256: str | None
    ) -> None:
        """End a check; the verifier is kept of wrong passwords alone."""
        ...

    async def sweep(self, before: datetime) -> int:
        """Forget slots older than that."""
        ...
