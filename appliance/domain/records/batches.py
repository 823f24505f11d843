"""Batches whose caller was told to look again."""

from datetime import datetime
from typing import Protocol

from appliance.domain.ids import BatchId
from appliance.domain.requests.batch import BatchRow


class BatchRecords(Protocol):
    """Batches, kept until they are of no more use."""

    async def put(self, row: BatchRow) -> None:
        """Keep a batch, in the place of what was kept of an earlier call."""
        ...

    async def get(self, batch: BatchId) -> BatchRow | None:
        """A batch by id."""
        ...

    async def sweep(self, before: datetime) -> int:
        """Forget batches that were last asked for before that; how many."""
        ...
