"""On SQLite too what is claimed and listed is found by an index.

SQLite plans by what indexes there are, not by how many rows: no large record is needed.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

from appliance.domain.ids import IntegratorId
from appliance.domain.mail.mails import MailKind, NewMail
from appliance.domain.vocab import RequestState
from appliance.integrators.event_store import PendingEventStore
from appliance.mail.mail_store import MailStore
from appliance.record.backlog_store import BacklogStore
from appliance.record.unit_of_work import Transaction
from appliance.requests.request_store import RequestStore
from appliance.signing.expiry import ExpiryJob
from appliance.webhooks.message_queue import Full, MessageQueue
from tests.support.factories.signing_front import SigningFront
from tests.support.installation.record import CoreFixture

SMALL: Final = ("integrator", "activation_key", "worker_status", "table_compatibility")
"""Tables that a record of any size has few rows of."""


@contextmanager
def explained() -> Iterator[list[tuple[str, str]]]:
    """Each step by which a statement of the block runs, and the statement."""
    found: list[tuple[str, str]] = []

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
        found.extend((row[3], statement) for row in looking.fetchall())
        looking.close()

    event.listen(Engine, "before_cursor_execute", explain)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", explain)


@contextmanager
def whole_tables() -> Iterator[list[str]]:
    """Steps that read all of a table, of the statements that run in the block."""
    found: list[str] = []
    with explained() as steps:
        yield found
    found.extend(
        f"{step}: {statement}"
        for step, statement in steps
        if step.startswith("SCAN ") and " USING " not in step
        if step.split()[1] not in SMALL
    )


async def ways(
    core: CoreFixture, table: str, work: Callable[[Transaction], Awaitable[object]]
) -> set[str]:
    """How the rows of a table are come by in some work."""
    with explained() as steps:
        async with core.store.write() as transaction:
            await work(transaction)
    return {
        step.partition(" USING ")[2]
        for step, _ in steps
        if step.split()[:2] in (["SEARCH", table], ["SCAN", table])
    }


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


async def test_outbox_reads_pending_events_alone(sqlite_core: CoreFixture) -> None:
    """Not all that is kept of what happened."""

    async def look(transaction: Transaction) -> None:
        await PendingEventStore(transaction).any_pending()
        await PendingEventStore(transaction).pending(10)

    (way,) = await ways(sqlite_core, "integrator_event", look)
    assert "ix_integrator_event_pending" in way


async def test_delivery_reads_pending_messages_alone(sqlite_core: CoreFixture) -> None:
    """Not all messages to each endpoint; earlier ones of the same request beside."""
    now = sqlite_core.now

    async def claim(transaction: Transaction) -> None:
        queue = MessageQueue(transaction)
        full = Full(["x"], [IntegratorId("y")])
        await queue.any_due(now, full)
        await queue.claim_next("a/b", now, timedelta(minutes=1), full)
        await queue.any_stranded()
        await queue.withdraw()
        await queue.waiting()

    found = await ways(sqlite_core, "webhook_message", claim)
    assert all(
        "ix_webhook_message_pending" in way or "(id=?)" in way for way in found
    ), found


async def test_mail_reads_no_sent_mails(sqlite_core: CoreFixture) -> None:
    """What was sent in the last hour, and counts, are read in an index."""
    now = sqlite_core.now
    signer = await sqlite_core.add_signer(credential=False)
    async with sqlite_core.store.write() as transaction:
        waiting = NewMail(signer.person, MailKind.SIGNED, now)
        await MailStore(transaction).add(waiting)

    async def share(transaction: Transaction) -> None:
        await MailStore(transaction).waiting_shares(now, now - timedelta(hours=1))
        await MailStore(transaction).ended()

    found = await ways(sqlite_core, "mail_message", share)
    assert found == {
        # Pending ones, then those that ended in each way.
        "INDEX ix_mail_message_state_ended (state=?)",
        "INDEX ix_mail_message_state_ended (state=? AND ended>?)",
        "COVERING INDEX ix_mail_message_state_ended",
    }
