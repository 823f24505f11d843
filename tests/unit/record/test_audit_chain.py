"""The chain of audit rows: what a row's hash covers, and what breaks it."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from appliance.domain.audit.record import (
    GENESIS,
    AuditEvent,
    AuditRow,
    chain,
    first_break,
)
from appliance.domain.vocab import EventKind

AT = datetime(2026, 5, 25, 12, 0, 0, 120, tzinfo=UTC)


def rows(count: int, writer: str = "w") -> list[AuditRow]:
    """A chain of that many rows."""
    made: list[AuditRow] = []
    for n in range(1, count + 1):
        prev = made[-1].hash if made else GENESIS
        event = AuditEvent(EventKind.KEY_USED, "system", request=n, detail={"n": n})
        made.append(chain(writer, n, prev, AT + timedelta(seconds=n), event))
    return made


def test_hash_is_sha256_of_canonical_json() -> None:
    """Written out: RFC 8785 JSON of all else, times in UTC to the microsecond."""
    event = AuditEvent(
        EventKind.KEY_USED,
        "worker:signing/h/1",
        request=7,
        activation="a",
        attempt=2,
        detail={"z": 1, "á": "ñ"},
    )
    written = (
        '{"activation":"a","actor":"worker:signing/h/1",'
        '"at":"2026-05-25T12:00:00.000120+00:00","attempt":2,'
        '"detail":{"z":1,"á":"ñ"},"event":"key.used","integrator":null,"n":1,'
        f'"prev":"{GENESIS}","request":7,"writer":"w"}}'
    )

    row = chain("w", 1, GENESIS, AT, event)

    assert row.hash == hashlib.sha256(written.encode()).hexdigest()


def test_hash_same_whatever_the_zone() -> None:
    """A moment is a moment, in whichever zone it is told."""
    event = AuditEvent(EventKind.KEY_USED, "system")
    here = AT.astimezone(timezone(timedelta(hours=-3)))

    assert chain("w", 1, GENESIS, AT, event).hash == (
        chain("w", 1, GENESIS, here, event).hash
    )


@pytest.mark.parametrize("count", [0, 1, 5])
def test_whole_chain_has_no_break(count: int) -> None:
    """A chain as it was written hangs together."""
    assert first_break(rows(count)) is None


@pytest.mark.parametrize(
    "edit",
    [
        lambda row: replace(row, at=row.at + timedelta(microseconds=1)),
        lambda row: replace(row, writer="v"),
        lambda row: replace(row, prev="0" * 64),
        lambda row: replace(row, hash="0" * 64),
        lambda row: replace(row, event=replace(row.event, actor="operator")),
        lambda row: replace(row, event=replace(row.event, event=EventKind.SIGN_LOCKED)),
        lambda row: replace(row, event=replace(row.event, integrator="i")),
        lambda row: replace(row, event=replace(row.event, request=None)),
        lambda row: replace(row, event=replace(row.event, activation="a")),
        lambda row: replace(row, event=replace(row.event, attempt=1)),
        lambda row: replace(row, event=replace(row.event, detail={"n": 4})),
    ],
)
@pytest.mark.parametrize("at", [0, 2, 4])
def test_edited_row_is_found(edit: object, at: int) -> None:
    """Every field is covered, in the first row, the last and between."""
    chained = rows(5)
    chained[at] = edit(chained[at])  # type: ignore[operator]  # a function

    # Row 1 hangs on nothing: its `prev` is the one of the genesis already.
    if chained == rows(5):
        assert first_break(chained) is None
    else:
        assert first_break(chained) == at + 1


@pytest.mark.parametrize("at", [0, 1, 3])
def test_deleted_row_is_found(at: int) -> None:
    """The number that is missing is named."""
    chained = rows(5)
    del chained[at]

    assert first_break(chained) == at + 1


def test_renumbered_after_deletion_is_found() -> None:
    """Closing the gap by new numbers does not help."""
    chained = rows(5)
    del chained[1]
    renumbered = [replace(row, n=n) for n, row in enumerate(chained, start=1)]

    assert first_break(renumbered) == 2


def test_reordered_rows_are_found() -> None:
    """Two rows that change places are both out of place."""
    chained = rows(5)
    chained[1], chained[2] = chained[2], chained[1]

    assert first_break(chained) == 2


def test_inserted_row_is_found() -> None:
    """A row made well, put between two others, breaks the one after it."""
    chained = rows(5)
    event = AuditEvent(EventKind.KEY_USED, "intruder")
    chained.insert(2, chain("w", 3, chained[1].hash, AT, event))

    assert first_break(chained) == 4


def test_row_of_another_writer_is_found() -> None:
    """A row of another chain does not hang here."""
    chained = rows(5)
    chained[2] = rows(5, "other")[2]

    assert first_break(chained) == 3
