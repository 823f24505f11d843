"""What the console tells of an event's detail."""

from admin_ui import audit_words
from appliance.domain.vocab import EventKind


def test_first_value_is_told_by_what_it_is() -> None:
    """Not as something after nothing."""
    detail = {"after": 28, "before": None, "session": "s"}

    shown = audit_words.shown(detail, EventKind.SESSION_REQUEST)

    assert shown == {"request": 28, "session": "s"}


def test_next_value_is_told_by_what_both_are() -> None:
    """A session for a batch goes from one request to the next."""
    detail = {"after": 28, "before": 27, "session": "s"}

    shown = audit_words.shown(detail, EventKind.SESSION_REQUEST)

    assert list(shown.items()) == [
        ("formerRequest", 27),
        ("request", 28),
        ("session", "s"),
    ]
    assert shown.keys() <= audit_words.LABELS.keys()


def test_before_comes_before_after() -> None:
    """Though the record keeps members by their names' order."""
    detail = {"after": {"x": 1}, "before": {"x": 2}, "key": "s"}

    assert list(audit_words.shown(detail, EventKind.API_KEY_ROTATED)) == [
        "key",
        "before",
        "after",
    ]


def test_record_that_was_brought_back_has_a_word() -> None:
    """It took over without a number of before."""
    detail = {"after": 3, "before": "restored"}

    shown = audit_words.shown(detail, EventKind.HSM_TAKEN_OVER)

    assert list(shown) == ["before", "after"]
    assert shown["before"] in audit_words.VALUES["before"]


def test_what_did_not_change_is_left_as_it_is() -> None:
    """Empty lists tell nothing; a position is counted from 1."""
    detail = {"code": "X", "kinds": [], "item": 2}

    assert audit_words.shown(detail, EventKind.TASK_FAILED) == {"code": "X", "item": 3}
