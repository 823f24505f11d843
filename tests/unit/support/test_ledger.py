"""The auditor itself: which certificate and which intents it expects."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.database import tables
from appliance.domain.vocab import IntentState, ItemState
from tests.support.appliance.ledger import Ledger, _certificate_at, _intents

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


def ledger(**rows: list[dict[str, Any]]) -> Ledger:
    """A ledger of some rows alone."""
    made: dict[str, Any] = {
        name: [SimpleNamespace(credential="c", **row) for row in found]
        for name, found in rows.items()
    }
    made["credential"] = [SimpleNamespace(id="c", certificate=b"outside 2")]
    made["certificate"].append(
        SimpleNamespace(credential="another", issued=START, der=b"of another")
    )
    names = {table.name for table in tables.metadata.tables.values()}
    assert made.keys() <= names
    return _ledger(made)


def _ledger(rows: dict[str, Any], after: int = 0) -> Ledger:
    blank: dict[str, Any] = dict.fromkeys(Ledger.__dataclass_fields__)
    return Ledger(**{**blank, "rows": rows, "read_at": START, "after": after})


@pytest.mark.parametrize(
    ("days", "certificate"),
    [(0.5, b"own 1"), (1.5, b"own 2"), (2.5, b"outside 1"), (3.5, b"outside 2")],
)
def test_signature_has_the_certificate_of_its_time(
    days: float, certificate: bytes
) -> None:
    """Renewed by our own CA after a day, twice by an outside one later."""
    whole = ledger(
        certificate=[
            {"issued": START, "der": b"own 1"},
            {"issued": START + DAY, "der": b"own 2"},
        ],
        former_certificate=[
            {"replaced": START + 3 * DAY, "certificate": b"outside 1"},
            {"replaced": START + 2 * DAY, "certificate": b"own 2"},
        ],
    )

    assert _certificate_at(whole, "c", START + days * DAY) == certificate


@pytest.mark.parametrize(
    ("state", "after", "signature", "sound"),
    [
        (ItemState.DONE, 0, b"made", True),
        (ItemState.DONE, 7, b"made", True),
        (ItemState.FAILED, 0, b"made", False),
        (ItemState.FAILED, 6, b"made", False),
        (ItemState.FAILED, 7, b"made", True),
        (ItemState.FAILED, 7, None, False),
        (ItemState.DONE, 7, None, False),
    ],
)
def test_completed_intent_is_of_a_document_that_was_keyed(
    state: ItemState, after: int, signature: bytes | None, sound: bool
) -> None:
    """Request 7's key was used: wrong if it failed, but for what was looked at."""
    used = {"id": 1, "activation": "a", "item": 0, "closed": START}
    item = {"activation": "a", "seq": 0, "request": 7, "signature": signature}
    rows = {
        "intent": [SimpleNamespace(**used, state=IntentState.COMPLETED.value)],
        "activation_item": [SimpleNamespace(**item, state=state.value)],
    }

    assert (list(_intents(_ledger(rows, after))) == []) is sound
