"""Rows that somebody alters who can write to the database, and nothing else.

with altered(appliance, tables.credential, credential.id, cka_id=theirs.cka_id):
    refused = sign(client, person, request)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Table, select, update

from appliance.bootstrap import ServiceRegistry
from tests.support.appliance.appliance import Appliance


@contextmanager
def altered(
    appliance: Appliance, table: Table, row: str, **values: Any
) -> Iterator[None]:
    """Have a row say something else for a while.

    Args:
        appliance: whose record it is.
        table: with a column `id`.
        row: id.
        values: by column.
    """
    columns = [table.c[name] for name in values]

    async def change(front: ServiceRegistry, then: dict[str, Any]) -> dict[str, Any]:
        async with front.core.store.write() as transaction:
            query = select(*columns).where(table.c.id == row)
            found = (await transaction.connection.execute(query)).one()
            statement = update(table).where(table.c.id == row).values(then)
            done = await transaction.connection.execute(statement)
            assert done.rowcount == 1
            return dict(found._mapping)

    before = appliance.do(lambda front: change(front, values))
    try:
        yield
    finally:
        appliance.do(lambda front: change(front, before))
