"""Persons with wrapped keys of a real HSM, many of them and fast.

Few keys are made; the other rows are clones of theirs, which sign all the same:
what a row is bound to by its password is not looked at here.
"""

from collections.abc import Sequence

from sqlalchemy import insert, select

from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.domain.clock import Clock
from appliance.domain.ids import new_id
from appliance.domain.keys.hsm_keys import (
    KeyAlgorithm,
    SignatureScheme,
    WrapMethod,
    WrappedKey,
)
from appliance.settings import Settings

_BATCH = 500


async def add_keys(
    settings: Settings,
    clock: Clock,
    keys: Sequence[WrappedKey],
    count: int,
    first: int = 0,
) -> None:
    """Record so many persons with a key each, taking turns with the keys given.

    Args:
        settings: the installation.
        clock: the time.
        keys: made in its HSM.
        count: of persons.
        first: number of the first one, where there are some already.
    """
    people, credentials = [], []
    now = clock.now()
    for number in range(first, first + count):
        key, person = keys[number % len(keys)], new_id()
        people.append(
            {
                "id": person,
                "cuil": f"{number:011}",
                "name": "P",
                "email_sealed": b"-",
                "email_index": f"{number:064}",
                "locale": "es",
                "state": "active",
                "vouched_by": "demo",
                "created": now,
            }
        )
        credentials.append(
            {
                "id": new_id(),
                "person": person,
                "key_mode": "wrapped",
                "algorithm": key.algorithm.value,
                "key_version": 1,
                "key_token": "firma",
                "master": key.master,
                "blob_w": key.blob_w,
                "method_w": key.method_w.value,
                "method_k": key.method_k.value,
                # In the place of what the password would open.
                "outer": key.blob_k,
                "spki": key.spki,
                "spki_sha256": f"{number:064}",
                "certificate": b"-",
                "chain": b"",
                "not_before": now,
                "not_after": now,
                "vouched_by": "demo",
                "state": "active",
                "created": now,
            }
        )
    engines = open_engines(settings)
    for start in range(0, count, _BATCH):
        async with engines.writer.begin() as connection:
            part = slice(start, start + _BATCH)
            await connection.execute(insert(tables.person), people[part])
            await connection.execute(insert(tables.credential), credentials[part])
    await engines.dispose()


async def read_keys(settings: Settings) -> list[WrappedKey]:
    """Every wrapped key as its row has it now."""
    engines = open_engines(settings)
    column = tables.credential.c
    async with engines.reader.connect() as connection:
        rows = await connection.execute(
            select(tables.credential)
            .where(column.master.is_not(None))
            .order_by(column.id)
        )
        keys = [
            WrappedKey(
                algorithm=KeyAlgorithm(row.algorithm),
                spki=row.spki,
                master=row.master,
                blob_w=row.blob_w,
                method_w=WrapMethod(row.method_w),
                blob_k=row.outer,
                method_k=WrapMethod(row.method_k),
            )
            for row in rows
        ]
    await engines.dispose()
    return keys


SCHEME = SignatureScheme.ECDSA
"""Of the keys that tests make, which are on P-256 for speed."""
