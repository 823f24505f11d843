"""People, requests and tokens, made by the code of whatever tree runs this file.

    python -P tree_script.py SETTINGS enrol < ORDERS > PEOPLE
    python -P tree_script.py SETTINGS ask < ORDERS > REQUESTS
    python -P tree_script.py SETTINGS copy OTHER_SETTINGS
    python -P tree_script.py SETTINGS work SLOT

It imports nothing of the tests: with `PYTHONPATH` at another tree, every module is that
tree's. `enrol` and `ask` read and write JSON.

A person whose order is `quick` has a login password that opens nothing. `work` is a
signing worker that leaves out the sample of a new key, which is most of an enrolment's
time. Keys, certificates, locks, rows and audit are those of any enrolment. `copy` puts
the rows of another installation's database in place of its own.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from unittest.mock import AsyncMock, patch

from sqlalchemy import select

from appliance.bootstrap import ServiceRegistry, open_front
from appliance.cli import main
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import PersonId, TaskId
from appliance.domain.vocab import VouchedBy
from appliance.identity.people import NewPersonOrder
from appliance.requests.intake import IntakeOrder
from appliance.settings import load_settings
from worker.pki.sample_signature import SampleSignatures

Json = dict[str, Any]


def _of_this_tree(*names: str) -> Any:
    """Import a module by the first of its names, newest first, that the tree has."""
    *newer, oldest = names
    for name in newer:
        with suppress(ModuleNotFoundError):
            return import_module(name)
    return import_module(oldest)


_engines: Final = _of_this_tree(
    "appliance.database.engines", "appliance.core.database.engines"
)
_tables: Final = _of_this_tree(
    "appliance.database.tables", "appliance.core.database.tables"
)
_hashing: Final = _of_this_tree(
    "appliance.keys.password_hashing", "appliance.core.secrets.password_hashing"
)
_AT_ONCE: Final = 50
_CALLS: Final = 4
_ROWS: Final = 500
_TASK_S: Final = 600.0
_INTEGRATOR: Final = "demo"


async def enrol(front: ServiceRegistry, orders: Sequence[Json]) -> list[Json]:
    """Record people, and wait until each has a certificate."""
    plain = [order for order in orders if not order["quick"]]
    quick = [order for order in orders if order["quick"]]
    unused = AsyncMock(return_value="$argon2id$v=19$m=64,t=1,p=1$AAAA$AAAA")
    people = await _enrolled(front, plain)
    with patch.object(_hashing.Passwords, "hash", unused):
        return people + await _enrolled(front, quick)


async def _enrolled(front: ServiceRegistry, orders: Sequence[Json]) -> list[Json]:
    places = asyncio.Semaphore(_CALLS)
    people: list[Json] = []
    for start in range(0, len(orders), _AT_ONCE):
        some = orders[start : start + _AT_ONCE]
        more = await asyncio.gather(*(_create(front, order, places) for order in some))
        # While these are waited for, workers have those of now to do.
        await _wait(front, people[-_AT_ONCE:])
        people += more
    await _wait(front, people[-_AT_ONCE:])
    return people


async def _create(
    front: ServiceRegistry, order: Json, places: asyncio.Semaphore
) -> Json:
    new = NewPersonOrder(
        cuil=order["cuil"],
        name=order["name"],
        email=f"{order['cuil']}@example.org",
        login_password=f"entrada {order['cuil']}",
        signing_password=order["password"],
        vouched_by=VouchedBy.OFFICER,
    )
    async with places:
        made = await front.people.create_person(new)
    return {**order, "id": made.id, "credential": made.task}


async def _wait(front: ServiceRegistry, people: Sequence[Json]) -> None:
    for each in people:
        await front.tasks.wait(TaskId(each["credential"]), _TASK_S)


async def ask(front: ServiceRegistry, orders: Sequence[Json]) -> list[Json]:
    """Ask a person for a signature for each order; with a token of theirs."""
    try:
        await front.integrators.create("operator", _INTEGRATOR, "Integrador")
    except ApplianceError as exc:
        if exc.code.value != "ALREADY_EXISTS":
            raise
    tokens: dict[str, str] = {}
    asked = []
    for order in orders:
        person = PersonId(order["id"])
        if person not in tokens:
            factors, now = ("pwd", "otp"), front.clock.now()
            tokens[person] = (await front.tokens.issue(person, factors, now)).token
        intake = IntakeOrder(
            integrator_code=_INTEGRATOR,
            cuil=order["cuil"],
            file_name="contrato.pdf",
            expires=None,
            origin="operador",
            actor="operator",
        )
        pdf = Path(order["file"]).read_bytes()
        request = await front.intake.create_request(intake, pdf)
        asked.append({**order, "request": request, "token": tokens[person]})
    return asked


async def _with_front(settings: Path, what: str) -> None:
    work = {"enrol": enrol, "ask": ask}[what]
    opened = open_front(load_settings(settings), SystemClock(), "operator")
    async with opened as front:
        done = await work(front, json.load(sys.stdin))
    json.dump(done, sys.stdout)


async def _copy(target: Path, source: Path) -> None:
    """Copy every row; both databases have this tree's tables."""
    theirs, ours = (
        _engines.open_engines(load_settings(file)) for file in (source, target)
    )
    async with theirs.reader.connect() as reading, ours.writer.begin() as writing:
        for table in reversed(_tables.metadata.sorted_tables):
            await writing.execute(table.delete())
        for table in _tables.metadata.sorted_tables:
            found = (await reading.execute(select(table))).mappings()
            while rows := found.fetchmany(_ROWS):
                await writing.execute(table.insert(), [dict(row) for row in rows])
    await theirs.dispose()
    await ours.dispose()


def _work(settings: Path, slot: str) -> int:
    words = ["--settings", str(settings), "worker", "signing", "--slot", slot]
    with patch.object(SampleSignatures, "prove", AsyncMock()):
        return main(words)


if __name__ == "__main__":
    file, what, *more = sys.argv[1:]
    if what == "work":
        sys.exit(_work(Path(file), *more))
    if what == "copy":
        asyncio.run(_copy(Path(file), *map(Path, more)))
        sys.exit()
    asyncio.run(_with_front(Path(file), what))
