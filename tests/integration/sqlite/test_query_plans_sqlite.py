"""On SQLite too what is claimed and listed is found by an index.

SQLite plans by what indexes there are, not by how many rows: no large record is needed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

from appliance.core.backlog_store import BacklogStore
from appliance.domain.vocab import RequestState
from appliance.requests.request_store import RequestStore
from appliance.signing.expiry import ExpiryJob
from tests.support.factories.core import CoreFixture
from tests.support.factories.signing_front import SigningFront

SMALL: Final = ("integrator", "activation_key", "worker_status", "table_compatibility")
"""Tables that a record of any size has few rows of."""


@contextmanager
def whole_tables() -> Iterator[list[str]]:
    """Steps that read all of a table, of the statements that run in the block."""
    found: list[str] = []

    def explain(
        connection: Connection,
        cursor: object,
        statement: str,
        parameters: Any,
        *rest: object,
    ) -> None:
        del cursor, rest
        if not statement.startswith(("SELECT", "UPDATE", "DELETE")):
            return
        looking = connection.connection.cursor()
        looking.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        steps = [row[3] for row in looking.fetchall()]
        looking.close()
        found.extend(
            f"{step}: {statement}"
            for step in steps
            if step.startswith("SCAN ") and " USING " not in step
            if step.split()[1] not in SMALL
        )

    event.listen(Engine, "before_cursor_execute", explain)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", explain)


async def test_signing_reads_no_table_whole(sqlite_front: SigningFront) -> None:
    """A call of firmar, and the claim of its activation."""
    request = await sqlite_front.new_request()

    with whole_tables() as found:
        await sqlite_front.signed(sqlite_front.command(request, key="once"))

    assert found == []


async def test_lists_and_sweeps_read_no_table_whole(sqlite_core: CoreFixture) -> None:
    """What people ask for, and the chores every few seconds."""
    signer = await sqlite_core.add_signer()
    job = ExpiryJob(
        sqlite_core.store, sqlite_core.completion_notifier, sqlite_core.clock
    )

    with whole_tables() as found:
        async with sqlite_core.store.read() as transaction:
            for states in ((RequestState.PENDING,), tuple(RequestState)):
                await RequestStore(transaction).of_person(
                    signer.person, states, limit=51
                )
            await BacklogStore(transaction).activations(sqlite_core.now, outside=False)
            await BacklogStore(transaction).tasks(sqlite_core.now)
        await job.expire_activations()
        await job.expire_requests()
        await job.fail_tasks()
        await job.forget()
        await sqlite_core.claiming().release_own()

    assert found == []
