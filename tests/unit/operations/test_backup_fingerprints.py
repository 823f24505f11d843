"""Which secrets a record's backup goes with, told without telling them.

Source: docs/backup.md "Bring it back".
"""

from pathlib import Path

import pytest

from appliance.operations.backup.fingerprints import (
    Fingerprints,
    differing,
    fingerprints_in,
    fingerprints_of,
)
from appliance.settings import Settings
from tests.support.installation.settings import settings_in

OLD, NEW, OTHER = ("1" * 64, "2" * 64, "3" * 64)


def fingerprints(folder: Path, ring: str) -> Fingerprints:
    """Of an installation whose keys are all of one text."""
    key = folder / "secret"
    key.touch(0o600)
    key.write_text(ring)
    return fingerprints_of(settings(folder))


def settings(folder: Path) -> Settings:
    """Of that installation."""
    file = str(folder / "secret")
    names = ("pepper_file", "data_key_file", "document_key_file", "lookup_key_file")
    return settings_in(folder, secrets=dict.fromkeys(names, file))


def test_nothing_of_a_key_is_in_it(tmp_path: Path) -> None:
    """Neither are two keys alike."""
    found = fingerprints(tmp_path, OLD)

    assert set(found) == {
        *("pepper_file", "data_key_file", "document_key_file", "lookup_key_file")
    }
    assert OLD[:8] not in str(found)
    assert found != fingerprints(tmp_path, OTHER)


@pytest.mark.parametrize(
    ("record", "secrets", "fit"),
    [
        (OLD, OLD, True),
        (OLD, f"1 {OLD}\n2 {NEW}", True),
        (OLD, f"1 {OLD}\n2 {NEW} next", True),
        (f"1 {OLD}\n2 {NEW} next", OLD, True),
        (f"1 {OLD}\n2 {NEW}", f"2 {NEW}", True),
        (f"1 {OLD}\n2 {NEW}", OLD, False),
        (OLD, f"2 {NEW}", False),
        (OLD, f"1 {NEW}\n2 {OLD} next", True),
        (OLD, OTHER, False),
    ],
    ids=lambda value: str(value).replace("\n", "|")[:12],
)
def test_version_that_the_record_used_has_to_be_there(
    tmp_path: Path, record: str, secrets: str, fit: bool
) -> None:
    """Replaced since, it does as long as it is known."""
    others = differing(fingerprints(tmp_path, record), fingerprints(tmp_path, secrets))

    assert bool(others) is not fit


def test_what_tells_nothing_differs_in_nothing(tmp_path: Path) -> None:
    """Made without a right to the keys, or by somebody else."""
    found = fingerprints(tmp_path, OLD)
    (tmp_path / "secret").unlink()

    assert fingerprints_of(settings(tmp_path)) == {}
    odd: list[dict[str, object]] = [
        {},
        {"keys": []},
        {"keys": {"pepper_file": "x"}},
        {"keys": None},
    ]
    for told in odd:
        assert differing(fingerprints_in(told), found) == []
        assert differing(found, fingerprints_in(told)) == []
