"""The audit's chains read again: what breaks one is found, and where."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, text, update

from appliance.database import tables
from appliance.database.engines import open_engines
from appliance.domain.audit.record import GENESIS, AuditEvent, chain
from appliance.domain.vocab import EventKind
from appliance.record import audit_check
from appliance.record.audit_chain_store import AuditChainStore
from appliance.record.audit_check import AuditChains
from tests.support.factories.fakes import NOON
from tests.support.installation.installation import Installation
from tests.support.installation.record import CoreFixture
from tests.support.processes.command_folder import CommandFolder, make_command_folder

pytestmark = pytest.mark.storage

ROW, WRITER = tables.audit_event, tables.audit_writer


async def write(core: CoreFixture, count: int) -> str:
    """A process that writes that many rows; its id."""
    core.clock.forward(1)
    store = core.other_store()
    async with store.write() as transaction:
        for number in range(count):
            event = AuditEvent(EventKind.LINK_CREATED, "system", detail={"a": number})
            transaction.audit.add(event)
        writers = await AuditChainStore(transaction).writers(None, 1)
    return writers[0].id


async def execute(core: CoreFixture, statement: object) -> None:
    """Change the record behind everybody's back."""
    engines = open_engines(core.settings)
    async with engines.writer.begin() as connection:
        await connection.execute(statement)  # type: ignore[call-overload]  # any statement
    await engines.dispose()


async def faults(core: CoreFixture) -> dict[str, tuple[int, int | None]]:
    """By process: rows that are right, and where its chain is broken."""
    return {
        chain.writer.id: (chain.checked, chain.broken_at)
        async for chain in AuditChains(core.store).every()
    }


async def test_whole_chains_are_all_read(
    core: CoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps and pages, however few rows and processes they have."""
    monkeypatch.setattr(audit_check, "_STEP", 2)
    monkeypatch.setattr(audit_check, "_WRITERS", 2)
    written = {await write(core, count): count for count in (1, 2, 3, 4, 5)}

    found = await faults(core)

    assert {writer: found[writer] for writer in written} == {
        writer: (count, None) for writer, count in written.items()
    }
    assert all(broken is None for _, broken in found.values())


def _fresh(writer: str) -> dict[str, object]:
    """A row after the last of five, its hash right for itself."""
    event = AuditEvent(EventKind.LINK_CREATED, "system", detail={})
    row = chain(writer, 6, GENESIS, NOON, event)
    return {
        "writer": writer,
        "n": 6,
        "prev": row.prev,
        "hash": row.hash,
        "at": row.at,
        "event": event.event.value,
        "actor": event.actor,
        "detail": event.detail,
    }


@pytest.mark.parametrize(
    ("harm", "broken_at"),
    [
        ("detail", 3),
        ("event", 3),
        ("no json", 3),
        ("hash", 3),
        ("gone", 3),
        ("all gone", 1),
        ("last gone", 5),
        ("added", 6),
        ("two", 2),
    ],
)
async def test_each_chain_names_its_first_fault(
    core: CoreFixture, monkeypatch: pytest.MonkeyPatch, harm: str, broken_at: int
) -> None:
    """Altered, unreadable, removed or added; the chains beside it are whole."""
    monkeypatch.setattr(audit_check, "_STEP", 2)
    before, writer, after = [await write(core, count) for count in (2, 5, 3)]
    mine = ROW.c.writer == writer
    third = update(ROW).where(mine, ROW.c.n == 3)
    statements = {
        "detail": third.values(detail={"a": 7}),
        "event": third.values(event="no.such_event"),
        "no json": text(
            "UPDATE audit_event SET detail = '{' WHERE writer = :writer AND n = 3"
        ).bindparams(writer=writer),
        "hash": third.values(hash="0" * 64),
        "gone": delete(ROW).where(mine, ROW.c.n == 3),
        "all gone": delete(ROW).where(mine),
        "last gone": delete(ROW).where(mine, ROW.c.n == 5),
        "added": insert(ROW).values(_fresh(writer)),
        "two": update(ROW).where(mine, ROW.c.n.in_((2, 4))).values(actor="nadie"),
    }

    await execute(core, statements[harm])

    found = await faults(core)
    assert found[writer] == (broken_at - 1, broken_at)
    assert (found[before], found[after]) == ((2, None), (3, None))


async def test_cut_chain_does_not_hide_behind_its_writer(core: CoreFixture) -> None:
    """Rows cut off, and the number of the last with them: the hash shows it."""
    writer = await write(core, 5)
    await execute(core, delete(ROW).where(ROW.c.writer == writer, ROW.c.n > 3))
    await execute(core, update(WRITER).where(WRITER.c.id == writer).values(n=3))

    assert (await faults(core))[writer] == (3, 3)


def test_command_checks_every_chain(tmp_path: Path) -> None:
    """Status 0 and the counts; 1 and each place once something was altered."""
    make_command_folder(tmp_path)
    place = CommandFolder(tmp_path)
    place.run("migrate")
    for name in ("acme", "otra", "una-mas"):
        place.run("integrator", "create", name, "ACME S.A.")
    said = place.run("audit", "verify").splitlines()
    # The fourth is of `migrate`, which marked the folder of documents.
    explained = "requests 0, people 0: all explained"
    assert said[-1] == f"chains 4, rows 3: all whole; {explained}"
    only = place.run("audit", "verify", "--chains-only").splitlines()
    # Who checks the audit leaves it as it is.
    assert only == ["chains 4, rows 3: all whole"]
    assert place.run("audit", "reconcile").splitlines() == [explained]

    with closing(sqlite3.connect(tmp_path / "rubrica.db")) as database:
        (writer,) = database.execute(
            "SELECT min(id) FROM audit_writer WHERE n = 1"
        ).fetchone()
        database.execute(
            "UPDATE audit_event SET actor = 'nadie' WHERE writer = ?", (writer,)
        )
        database.commit()
    *_, fault, total = place.run("audit", "verify", status=1).splitlines()

    assert fault.startswith(f"broken: process {writer} (operator, started ")
    assert "row 1 of 1 is missing, altered or added" in fault
    assert total == f"chains 4, rows 2: 1 broken; {explained}"


async def test_console_shows_all_chains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit leads to them; a broken one is said, a long one left to the command."""
    async with Installation(tmp_path).console() as console:
        await console.sign_in()
        assert 'href="/admin/audit/chains"' in (await console.get("/admin/audit")).text
        whole = (await console.get("/admin/audit/chains")).text
        assert "Las cadenas de esta página están enteras" in whole
        assert "rubrica audit verify" in whole

        engines = open_engines(console.services.settings)
        async with engines.writer.begin() as connection:
            await connection.execute(update(ROW).where(ROW.c.n == 1).values(actor="x"))
        await engines.dispose()
        broken = (await console.get("/admin/audit/chains")).text
        assert "cortada" in broken
        assert "Cortada en la fila 1" in broken

        monkeypatch.setattr(audit_check, "_PAGE_ROWS", 0)
        assert "Sin verificar" in (await console.get("/admin/audit/chains")).text
        for cursor in ("x", "~"):
            address = f"/admin/audit/chains?cursor={cursor}"
            assert (await console.get(address)).status == 400
