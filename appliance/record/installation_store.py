"""What the record says of the installation as a whole, in SQL."""

from datetime import datetime
from typing import Final

from sqlalchemy import select

from appliance.database.engines import open_engines
from appliance.database.tables import document, installation
from appliance.database.upsert import insert_into
from appliance.domain.audit.verification import AuditCheck
from appliance.domain.ids import IntegratorId
from appliance.domain.keys.generation import NONE, Generation
from appliance.record.unit_of_work import Store, store_faults
from appliance.settings import Settings

DOCUMENTS: Final = "documents"
"""Row of the mark on the folder of documents."""
GENERATION: Final = "generation"
"""Row of the last take-over, as text; none: there was none."""
BACKUP: Final = "backup"
"""Row of when the last backup was made; none: none ever was."""
AUDIT: Final = "audit"
"""Row of the outcome of the last `rubrica audit verify`; none: it never ran."""
RESTORED: Final = Generation(-1)
"""What stands there when a backup was brought back."""


class InstallationStore(Store):
    """Its mark on the folder of documents; which restore of it this is."""

    async def documents_mark(self) -> str | None:
        """What marks its folder of documents; None until one was marked."""
        return await self._value(DOCUMENTS)

    async def mark_documents(self, mark: str) -> bool:
        """Say what marks it; False: that was said already."""
        done = await self._connection.execute(
            insert_into(self._connection, installation)
            .values(name=DOCUMENTS, value=mark)
            .on_conflict_do_nothing()
        )
        return done.rowcount == 1

    async def generation(self) -> Generation:
        """The take-over that this record is of.

        Source: docs/backup.md "One HSM, one record".
        """
        return Generation.parse(await self._value(GENERATION) or str(NONE))

    async def lock_generation(self) -> Generation:
        """The same; others who lock it wait for the end of this transaction."""
        # A row that is not there can be locked by nobody.
        await self._connection.execute(
            insert_into(self._connection, installation)
            .values(name=GENERATION, value=str(NONE))
            .on_conflict_do_nothing()
        )
        query = select(installation.c.value).where(installation.c.name == GENERATION)
        locked = await self._connection.execute(query.with_for_update())
        return Generation.parse(locked.scalar_one())

    async def set_generation(self, generation: Generation) -> None:
        """Say it."""
        told = insert_into(self._connection, installation).values(
            name=GENERATION, value=str(generation)
        )
        await self._connection.execute(
            told.on_conflict_do_update(
                index_elements=["name"], set_={"value": told.excluded.value}
            )
        )

    async def last_backup(self) -> datetime | None:
        """When the last backup was made; None: none ever was."""
        told = await self._value(BACKUP)
        return None if told is None else datetime.fromisoformat(told)

    async def last_audit_check(self) -> AuditCheck | None:
        """Outcome of the last check of the whole audit; None: there was none."""
        told = await self._value(AUDIT)
        return None if told is None else AuditCheck.parse(told)

    async def _value(self, name: str) -> str | None:
        query = select(installation.c.value).where(installation.c.name == name)
        value: str | None = (await self._connection.execute(query)).scalar()
        return value

    async def newest_documents(self, limit: int) -> list[tuple[IntegratorId, str]]:
        """Integrator and SHA-256 of the documents that came in last."""
        rows = await self._connection.execute(
            select(document.c.integrator, document.c.sha256)
            .order_by(document.c.created.desc())
            .limit(limit)
        )
        return [(IntegratorId(row.integrator), row.sha256) for row in rows]


async def note_audit_check(settings: Settings, outcome: AuditCheck) -> None:
    """Keep the outcome of a check of the whole audit.

    Nothing is added to the audit, not even a chain: who checks it leaves it as it is.

    Args:
        settings: of the installation.
        outcome: of the check.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`.
    """
    engines = open_engines(settings)
    try:
        with store_faults():
            async with engines.writing() as connection:
                told = insert_into(connection, installation).values(
                    name=AUDIT, value=outcome.to_text()
                )
                await connection.execute(
                    told.on_conflict_do_update(
                        index_elements=["name"], set_={"value": told.excluded.value}
                    )
                )
    finally:
        await engines.dispose()
