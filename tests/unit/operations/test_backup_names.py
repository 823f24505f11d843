"""What backups are called, and which of them go.

Source: docs/backup.md "Make one".
"""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.operations.backup.names import (
    RECORD,
    SECRETS,
    BackupName,
    installation_id,
    to_forget,
)

NOW = datetime(2026, 11, 24, 8, 32, 6, tzinfo=UTC)
OURS, OTHER = "0123456789ab", "ba9876543210"
_TIMES = st.integers(0, 10**9).map(lambda each: NOW + timedelta(seconds=each - 10**8))
_NAMES = st.builds(
    BackupName,
    st.sampled_from([RECORD, SECRETS]),
    st.sampled_from([None, OURS, OTHER]),
    _TIMES,
)


@given(_NAMES)
def test_name_says_what_it_was_made_of(name: BackupName) -> None:
    """Both ways."""
    assert BackupName.of(name.file) == name


@pytest.mark.parametrize(
    "file",
    [
        "rubrica-20261124T083206Z.tar.age.sha256",
        "rubrica-secrets-0123456789AB-20261124T083206Z.tar.age",
        "rubrica-20261324T083206Z.tar.age",
        "rubrica-0123456789ab-20261124T083206Z.tar.age\n",
        "x/rubrica-20261124T083206Z.tar.age",
        "rubrica-note.txt",
    ],
)
def test_other_names_are_no_backups(file: str) -> None:
    """They are never removed."""
    assert BackupName.of(file) is None


@given(st.lists(_NAMES, max_size=30), st.integers(1, 5))
def test_only_our_own_older_ones_go(names: list[BackupName], keep: int) -> None:
    """Of the same kind; so many are left, and of the rest the newest."""
    newest = BackupName(RECORD, OURS, NOW)
    files = sorted({each.file for each in names} | {newest.file, "note.txt"})

    gone = [BackupName.of(each) for each in to_forget(files, newest, keep)]

    assert all(
        each and (each.kind, each.installation) == (RECORD, OURS) for each in gone
    )
    ours = {each for each in names if (each.kind, each.installation) == (RECORD, OURS)}
    left = (ours | {newest}) - set(gone)
    assert newest in left
    assert len(left) == min(keep, len(ours | {newest}))
    oldest_left = min((each.made for each in left - {newest}), default=None)
    if oldest_left is not None:
        assert all(each and each.made <= oldest_left for each in gone)


def test_installation_without_a_mark_removes_nothing() -> None:
    """Nobody could tell whose the others are."""
    older = BackupName(RECORD, None, NOW - timedelta(days=1)).file

    assert to_forget([older], BackupName(RECORD, None, NOW), 1) == []
    assert installation_id(None) is None
    assert installation_id("one") != installation_id("other")
