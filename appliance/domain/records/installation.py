"""What the record says of the installation as a whole."""

from datetime import datetime
from typing import Protocol

from appliance.domain.generation import Generation
from appliance.domain.ids import IntegratorId


class InstallationRecords(Protocol):
    """Its mark on the folder of documents; which restore of it this is."""

    async def documents_mark(self) -> str | None:
        """What marks its folder of documents; None until one was marked."""
        ...

    async def mark_documents(self, mark: str) -> bool:
        """Say what marks it; False: that was said already."""
        ...

    async def generation(self) -> Generation:
        """The take-over that this record is of.

        Source: docs/backup.md "One HSM, one record".
        """
        ...

    async def lock_generation(self) -> Generation:
        """The same; others who lock it wait for the end of this transaction."""
        ...

    async def set_generation(self, generation: Generation) -> None:
        """Say it."""
        ...

    async def last_backup(self) -> datetime | None:
        """When the last backup was made; None: none ever was."""
        ...

    async def newest_documents(self, limit: int) -> list[tuple[IntegratorId, str]]:
        """Integrator and SHA-256 of the documents that came in last."""
        ...
