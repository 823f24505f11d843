"""Key files: their format, who may read them, and noticing a change."""

import os
from pathlib import Path

import pytest

from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.secrets.key_files import KeyFile, read_key_ring, write_key_ring
from appliance.settings import SettingsError

ONE, TWO, THREE = (bytes([each]) * 32 for each in (0xAB, 0xCD, 0xEF))


def key_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    """A file with a text and a mode."""
    path = folder / "key"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_file_with_digits_alone_is_a_first_version(tmp_path: Path) -> None:
    """As every installation begins."""
    ring = read_key_ring(key_file(tmp_path, "ab" * 32 + "\n"))

    assert ring == KeyRing.of(ONE)


def test_file_with_versions_is_read(tmp_path: Path) -> None:
    """The highest one that is not to come is in use; comments do not count."""
    text = f"# a comment\n\n2 {'cd' * 32}\n1 {'ab' * 32}\n3 {'ef' * 32} next\n"

    ring = read_key_ring(key_file(tmp_path, text))

    assert ring == KeyRing(2, {1: ONE, 2: TWO, 3: THREE})
    assert ring.next == 3
    assert ring.versions == (2, 3, 1)


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        ("ab" * 32, 0o640, "0600"),
        ("ab" * 32, 0o604, "0600"),
        ("ab" * 31, 0o600, "64 hex digits"),
        ("zz" * 32, 0o600, "64 hex digits"),
        ("ñ" * 32, 0o600, "64 hex digits"),
        ("", 0o600, "64 hex digits"),
        (f"0 {'ab' * 32}", 0o600, "lines of a version"),
        (f"256 {'ab' * 32}", 0o600, "lines of a version"),
        (f"x {'ab' * 32}", 0o600, "lines of a version"),
        (f"1 {'ab' * 31}", 0o600, "lines of a version"),
        (f"1 {'ab' * 32} next", 0o600, "lines of a version"),
        (f"1 {'ab' * 32} soon", 0o600, "lines of a version"),
        (f"1 {'ab' * 32}\n1 {'cd' * 32}", 0o600, "lines of a version"),
        (f"1 {'ab' * 32} next\n2 {'cd' * 32}", 0o600, "lines of a version"),
        (
            f"1 {'ab' * 32}\n2 {'cd' * 32} next\n3 {'ef' * 32} next",
            0o600,
            "lines of a version",
        ),
        (f"{'ab' * 32}\n{'cd' * 32}", 0o600, "lines of a version"),
    ],
)
def test_file_is_refused(tmp_path: Path, text: str, mode: int, told: str) -> None:
    """By its path, without a word of what it holds."""
    path = key_file(tmp_path, text, mode)

    with pytest.raises(SettingsError) as caught:
        read_key_ring(path)

    assert str(path) in str(caught.value)
    assert told in str(caught.value)
    assert "ab" * 8 not in str(caught.value)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    """It is told by path."""
    with pytest.raises(SettingsError, match="cannot be read"):
        read_key_ring(tmp_path / "none")


@pytest.mark.parametrize(
    "ring",
    [
        KeyRing.of(ONE),
        KeyRing(2, {1: ONE, 2: TWO}),
        KeyRing(1, {1: ONE, 2: TWO}),
        KeyRing(200, {7: ONE, 200: TWO, 255: THREE}),
    ],
)
def test_written_ring_is_read_again(tmp_path: Path, ring: KeyRing) -> None:
    """With the mode that the file had, and nothing left beside it."""
    path = key_file(tmp_path, "ab" * 32, 0o400)

    write_key_ring(path, ring)

    assert read_key_ring(path) == ring
    assert path.stat().st_mode & 0o777 == 0o400
    assert [each.name for each in tmp_path.iterdir()] == ["key"]


def test_ring_that_cannot_be_written_leaves_the_file(tmp_path: Path) -> None:
    """Without a folder to write in there is no half of anything."""
    path = tmp_path / "none" / "key"

    with pytest.raises(SettingsError, match="cannot be written"):
        write_key_ring(path, KeyRing.of(ONE))


def test_change_is_noticed_without_a_restart(tmp_path: Path) -> None:
    """The next use has the new versions."""
    path = key_file(tmp_path, "ab" * 32)
    source = KeyFile(path)
    before = source.ring()

    write_key_ring(path, KeyRing(2, {1: ONE, 2: TWO}))

    assert before == KeyRing.of(ONE)
    assert source.ring() == KeyRing(2, {1: ONE, 2: TWO})


def test_file_that_becomes_unusable_leaves_what_was_known(tmp_path: Path) -> None:
    """Gone, or edited into something else: what runs, runs on."""
    path = key_file(tmp_path, "ab" * 32)
    source = KeyFile(path)

    path.write_text("a slip of the finger")
    assert source.ring() == KeyRing.of(ONE)
    path.unlink()
    assert source.ring() == KeyRing.of(ONE)
    key_file(tmp_path, "cd" * 32)
    os.utime(path, (1, 1))
    assert source.ring() == KeyRing.of(TWO)


def test_keys_show_in_no_repr(tmp_path: Path) -> None:
    """Neither of a ring nor of its file."""
    source = KeyFile(key_file(tmp_path, "ab" * 32))

    shown = repr(source) + repr(source.ring())

    assert "ab" * 4 not in shown
    assert "xab" not in shown
