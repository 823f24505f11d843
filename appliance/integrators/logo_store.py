"""Logos in SQL."""

from datetime import datetime
from typing import Final

from sqlalchemy import bindparam, delete, select

from appliance.database.tables import logo, logo_use
from appliance.database.upsert import insert_into
from appliance.domain.appearance.details import Logo, LogoPicture
from appliance.record.unit_of_work import Store

INSTALLATION = ""
"""The scope of those whose integrator has no logo of its own."""
_FIRST: Final = (
    select(logo.c.sha256, logo.c.width, logo.c.height)
    .join(logo_use, logo_use.c.logo == logo.c.sha256)
    .where(logo_use.c.scope.in_(bindparam("scopes", expanding=True)))
    # The installation's is the empty word, before every other.
    .order_by(logo_use.c.scope.desc())
    .limit(1)
)


class LogoStore(Store):
    """Logos, and whose stamps show them."""

    async def of(self, scope: str, *, own: bool = False) -> Logo | None:
        """The logo of an integrator, else the installation's, unless `own` is asked."""
        scopes = [scope] if own else [INSTALLATION, scope]
        found = await self._connection.execute(_FIRST, {"scopes": scopes})
        row = found.first()
        return None if row is None else Logo(row.sha256, row.width, row.height)

    async def picture(self, sha256: str) -> LogoPicture | None:
        """A logo with its pixels, in use or not."""
        query = select(logo).where(logo.c.sha256 == sha256)
        row = (await self._connection.execute(query)).first()
        if row is None:
            return None
        return LogoPicture(Logo(row.sha256, row.width, row.height), row.deflated)

    async def use(self, scope: str, picture: LogoPicture, at: datetime) -> None:
        """Show a logo from now on, in the place of another."""
        own = picture.logo
        await self._connection.execute(
            insert_into(self._connection, logo)
            .values(
                sha256=own.sha256,
                width=own.width_px,
                height=own.height_px,
                deflated=picture.deflated,
                added=at,
            )
            .on_conflict_do_nothing()
        )
        await self._connection.execute(
            insert_into(self._connection, logo_use)
            .values(scope=scope, logo=own.sha256, since=at)
            .on_conflict_do_update(
                index_elements=["scope"], set_={"logo": own.sha256, "since": at}
            )
        )

    async def drop(self, scope: str) -> bool:
        """Show none of its own any more; False if there was none."""
        result = await self._connection.execute(
            delete(logo_use).where(logo_use.c.scope == scope)
        )
        return result.rowcount == 1
