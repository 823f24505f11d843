"""Versions of stored values: what changes them, and what they never show."""

from datetime import UTC, datetime, timedelta

import pytest

from appliance.record.edit_versions import shown, tag_of, version_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
VALUES = {
    "name": "ACME",
    "may_vouch": False,
    "reminder_days": [3, 7],
    "metadata": {"area": "legales"},
    "disabled": None,
    "seen": NOW,
    "totp": b"sealed",
}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("name", "ACME "),
        ("name", "acme"),
        ("name", ""),
        ("name", None),
        ("may_vouch", True),
        ("may_vouch", None),
        ("may_vouch", 0),
        ("reminder_days", [7, 3]),
        ("reminder_days", []),
        ("metadata", {"area": "legales", "b": ""}),
        ("disabled", NOW),
        ("disabled", ""),
        ("seen", NOW + timedelta(microseconds=1)),
        ("totp", b"sealed."),
    ],
)
def test_any_other_value_makes_another_version(name: str, other: object) -> None:
    """An edit is refused whatever was changed, if only by a character."""
    assert version_of({**VALUES, name: other}) != version_of(VALUES)


def test_equal_values_have_one_version() -> None:
    """The order of an object's members does not count, nor does that of a database."""
    one, two = {"a": 1, "b": [1]}, {"b": [1], "a": 1}

    assert version_of({"x": one}) == version_of({"x": two})


def test_values_do_not_run_together() -> None:
    """What moves from one value to its neighbour makes another version."""
    names = ("a", "b")

    assert version_of({"a": "12", "b": ""}, names) != version_of(
        {"a": "1", "b": "2"}, names
    )


def test_only_named_values_count() -> None:
    """Two forms of one row do not refuse each other."""
    renamed = {**VALUES, "name": "Otro"}

    assert version_of(renamed, ("disabled",)) == version_of(VALUES, ("disabled",))


def test_tag_is_a_hash_of_the_version() -> None:
    """An `ETag` has the form of all others and tells nothing of the values."""
    tag = tag_of(version_of(VALUES))

    assert len(tag) == 64
    assert set(tag) <= set("0123456789abcdef")


def test_secrets_are_not_shown() -> None:
    """They count for the version; no page and no answer has them."""
    assert shown(VALUES, ("name", "totp")) == {"name": "ACME"}


def test_unknown_type_is_refused() -> None:
    """A column of another type would be a value that is not compared."""
    with pytest.raises(TypeError):
        version_of({"a": object()})
