"""Sealed values and keyed look-ups."""

from pathlib import Path

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.settings import SettingsError
from appliance.storage.secretbox import LookupKey, SecretBox, read_key_file

PLACE = {"table": "login_secret", "row": "p1", "column": "totp_sealed"}


def test_sealed_value_opens_in_its_place() -> None:
    """What was sealed comes back; no two sealings are alike."""
    box = SecretBox(b"k" * 32)

    one, two = box.seal(b"seed", **PLACE), box.seal(b"seed", **PLACE)

    assert box.open(one, **PLACE) == b"seed"
    assert one != two
    assert b"seed" not in one


@pytest.mark.parametrize("changed", ["table", "row", "column"])
def test_sealed_value_refused_elsewhere(changed: str) -> None:
    """A value moved to another table, row or column does not open."""
    box = SecretBox(b"k" * 32)
    sealed = box.seal(b"seed", **PLACE)

    with pytest.raises(ApplianceError) as caught:
        box.open(sealed, **{**PLACE, changed: "other"})

    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE


@pytest.mark.parametrize("at", [0, 1, 13, -1])
def test_sealed_value_refused_when_altered(at: int) -> None:
    """A changed byte anywhere is noticed."""
    box = SecretBox(b"k" * 32)
    sealed = bytearray(box.seal(b"seed", **PLACE))
    sealed[at] ^= 1

    with pytest.raises(ApplianceError):
        box.open(bytes(sealed), **PLACE)


@pytest.mark.parametrize("sealed", [b"", b"\x01", b"\x01" + b"n" * 12])
def test_sealed_value_refused_when_cut(sealed: bytes) -> None:
    """Too short a value is refused like an altered one."""
    with pytest.raises(ApplianceError):
        SecretBox(b"k" * 32).open(sealed, **PLACE)


def test_index_depends_on_key_purpose_and_value() -> None:
    """One index is never another's."""
    indexes = {
        LookupKey(b"k" * 32).index("a", "b"),
        LookupKey(b"j" * 32).index("a", "b"),
        LookupKey(b"k" * 32).index("b", "b"),
        LookupKey(b"k" * 32).index("a", "c"),
        LookupKey(b"k" * 32).index("ab", ""),
    }

    assert len(indexes) == 5
    assert all(len(index) == 64 for index in indexes)


def test_key_file_read(tmp_path: Path) -> None:
    """64 hex digits with mode 0600 are a key."""
    path = tmp_path / "key"
    path.write_text("ab" * 32 + "\n")
    path.chmod(0o600)

    assert read_key_file(path) == b"\xab" * 32


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        ("ab" * 32, 0o640, "0600"),
        ("ab" * 32, 0o604, "0600"),
        ("ab" * 31, 0o600, "64 hex digits"),
        ("zz" * 32, 0o600, "64 hex digits"),
        ("ñ" * 32, 0o600, "64 hex digits"),
    ],
)
def test_key_file_refused(tmp_path: Path, text: str, mode: int, told: str) -> None:
    """A key that others can read, or that is none, is refused by path."""
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(mode)

    with pytest.raises(SettingsError) as caught:
        read_key_file(path)

    assert str(path) in str(caught.value)
    assert told in str(caught.value)
    assert text not in str(caught.value)


def test_key_file_refused_when_missing(tmp_path: Path) -> None:
    """A missing file is told by path."""
    with pytest.raises(SettingsError, match="cannot be read"):
        read_key_file(tmp_path / "none")
