"""The audit of a writer: numbered without a hole, whatever fails or runs beside."""

import asyncio
import contextlib

import pytest
from sqlalchemy import event as sqlalchemy_event
from sqlalchemy import text

from appliance.database.engines import open_engines
from appliance.domain.audit.record import GENESIS, AuditEvent, first_break
from appliance.domain.vocab import EventKind
from appliance.record.unit_of_work import Database
from tests.support.installation.record import CoreFixture

pytestmark = pytest.mark.storage


def event(number: int = 1) -> AuditEvent:
    """An event that names a request."""
    return AuditEvent(
        EventKind.REQUEST_VIEWED,
        "person:x",
        integrator="i",
        request=number,
        activation="a",
        attempt=2,
        detail={"ñ": ["á", 1, None, True], "b": {"y": 1, "x": 2}},
    )


async def test_audit_reads_back_what_was_written(core: CoreFixture) -> None:
    """Every field of an event survives, and the first row hangs on nothing."""
    async with core.store.write() as transaction:
        transaction.audit.add(event())

    (row,) = await core.audit()

    assert (row.n, row.prev, row.at, row.event) == (1, GENESIS, core.now, event())


async def test_audit_keeps_order_within_and_between_transactions(
    core: CoreFixture,
) -> None:
    """Rows stand in the order in which they were added."""
    for numbers in ([1, 2, 3], [4], [5, 6]):
        async with core.store.write() as transaction:
            for number in numbers:
                transaction.audit.add(event(number))

    rows = await core.audit()

    assert [(row.n, row.event.request) for row in rows] == [(n, n) for n in range(1, 7)]


async def test_audit_has_no_hole_after_rollback(core: CoreFixture) -> None:
    """A transaction that fails leaves neither row nor number."""
    async with core.store.write() as transaction:
        transaction.audit.add(event(1))

    async def fail() -> None:
        async with core.store.write() as transaction:
            transaction.audit.add(event(2))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with core.store.write() as transaction:
        transaction.audit.add(event(3))

    rows = await core.audit()

    assert [(row.n, row.event.request) for row in rows] == [(1, 1), (2, 3)]


async def test_audit_asks_for_its_newest_row_only_after_a_rollback(
    core: CoreFixture,
) -> None:
    """The process that wrote it knows it; what it took back it asks for once."""
    engine = core.store._engines.writer.sync_engine
    asked: list[str] = []

    def note(_connection: object, _cursor: object, sql: str, *_rest: object) -> None:
        if sql.startswith("SELECT audit_writer"):
            asked.append(sql)

    async def write(number: int, *, fails: bool = False) -> None:
        async with core.store.write() as transaction:
            transaction.audit.add(event(number))
            if fails:
                await transaction.audit.flush()
                raise ZeroDivisionError

    found = []
    sqlalchemy_event.listen(engine, "before_cursor_execute", note)
    for number, fails in ((1, False), (2, False), (3, True), (4, False), (5, False)):
        with contextlib.suppress(ZeroDivisionError):
            await write(number, fails=fails)
        found.append(len(asked))
    sqlalchemy_event.remove(engine, "before_cursor_execute", note)

    rows = await core.audit()
    assert found == [0, 0, 0, 1, 1]
    assert [(row.n, row.event.request) for row in rows] == [
        (1, 1),
        (2, 2),
        (3, 4),
        (4, 5),
    ]
    assert first_break(rows) is None


async def test_audit_chain_holds_under_20_writers(core: CoreFixture) -> None:
    """Twenty at once, some failing, from the process's first transaction on."""

    async def write(number: int) -> None:
        async with core.store.write() as transaction:
            transaction.audit.add(event(number))
            await asyncio.sleep(0)
            if number % 4 == 0:
                raise ZeroDivisionError

    done = await asyncio.gather(
        *(write(number) for number in range(1, 21)), return_exceptions=True
    )

    rows = await core.audit()
    assert [type(each) for each in done].count(ZeroDivisionError) == 5
    assert [row.n for row in rows] == list(range(1, 16))
    assert {row.event.request for row in rows} == {n for n in range(1, 21) if n % 4}


async def test_audit_has_a_chain_for_each_process(core: CoreFixture) -> None:
    """Two process starts write side by side, each from number 1."""
    other = core.other_store()

    async def write(store: Database, number: int) -> None:
        async with store.write() as transaction:
            transaction.audit.add(event(number))

    await asyncio.gather(*(write((core.store, other)[n % 2], n) for n in range(10)))

    rows = await core.audit()
    assert sorted(row.n for row in rows) == sorted([*range(1, 6)] * 2)
    assert len({row.writer for row in rows}) == 2


async def test_audit_of_request_gives_its_rows_alone(core: CoreFixture) -> None:
    """Rows of one request, oldest first, of all writers."""
    other = core.other_store()
    for store, number in ((core.store, 7), (other, 8), (other, 7)):
        core.clock.forward(1)
        async with store.write() as transaction:
            transaction.audit.add(event(number))

    async with core.store.read() as transaction:
        rows = await transaction.audit.of_request(7)

    assert [row.event.request for row in rows] == [7, 7]
    assert rows[0].at < rows[1].at
    assert rows[0].writer != rows[1].writer


@pytest.mark.parametrize(
    "tamper",
    [
        "UPDATE audit_event SET actor = 'somebody' WHERE n = 2",
        "UPDATE audit_event SET detail = '{}' WHERE n = 2",
        "DELETE FROM audit_event WHERE n = 2",
    ],
)
async def test_audit_tampered_in_the_database_is_found(
    core: CoreFixture, tamper: str
) -> None:
    """An edited or deleted row breaks the chain where it stood."""
    for number in range(3):
        async with core.store.write() as transaction:
            transaction.audit.add(event(number))
    engines = open_engines(core.settings)
    async with engines.writer.begin() as connection:
        await connection.execute(text(tamper))
    await engines.dispose()

    async with core.store.read() as transaction:
        (writer,) = await transaction.audit.writers()
        assert first_break(await transaction.audit.of_writer(writer)) == 2
