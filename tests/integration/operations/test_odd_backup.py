"""Files that anybody with the public key can make: a sentence, whatever they hold.

Source: docs/backup.md "Bring it back".
"""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from appliance.operations.backup import record
from appliance.operations.backup.archive import reading, writing
from appliance.operations.backup.restoring import Restored, refuse_apart, take_all
from appliance.settings import SettingsError
from tests.integration.operations.test_backup_setup import settings_with

pytestmark = pytest.mark.full


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """An identity of age's, with its recipient's file beside it."""
    path = tmp_path / "key"
    subprocess.run(["age-keygen", "-o", str(path)], check=True, capture_output=True)
    subprocess.run(
        ["age-keygen", "-y", "-o", str(tmp_path / "public"), str(path)], check=True
    )
    return path


def made(folder: Path, about: str) -> Path:
    """A file that says so of itself."""
    path = folder / "backup"
    with writing(path, [f"--recipients-file={folder / 'public'}"]) as archive:
        archive.add_bytes("about.json", about.encode())
        archive.add_bytes("contents.json", json.dumps(archive.tally.told()).encode())
    return path


@pytest.mark.parametrize(
    "about",
    [
        '{"kind": "record"}',
        '{"kind": "record", "tables": null}',
        '{"kind": "record", "tables": []}',
        f'{{"kind": "record", "tables": {"9" * 5000}}}',
        "[" * 5000,
        "[1]",
    ],
)
def test_what_says_odd_things_of_itself_is_refused(
    tmp_path: Path, key: Path, about: str
) -> None:
    """Before anything is made of it."""
    backup = made(tmp_path, about)
    with pytest.raises(SettingsError, match=rf"^{backup}: is cut off or damaged"):
        take_all(backup, key, "record", Restored({}), lambda *_: None)
    with pytest.raises(SettingsError, match=rf"^{backup}: "):
        refuse_apart(backup, backup, key)


def test_database_that_is_none_is_refused(tmp_path: Path) -> None:
    """Nothing of it takes the database's place."""
    dumped = tmp_path / "dumped"
    for content in (b"no database" * 500, b""):
        dumped.write_bytes(content)
        with pytest.raises(SettingsError, match=r"^database: what the backup has"):
            record.bring_back(settings_with(tmp_path), dumped, 2)

    assert not (tmp_path / "rubrica.db").exists()


def test_archive_is_read_to_its_end(tmp_path: Path, key: Path) -> None:
    """Empty blocks after the last member, more than a pipe holds."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("about.json"))
    backup = tmp_path / "backup"
    subprocess.run(
        ["age", "--encrypt", f"--recipients-file={tmp_path / 'public'}", "-o", backup],
        input=tar.getvalue() + bytes(1 << 20),
        check=True,
    )

    assert [name for name, _, _ in reading(backup, key)] == ["about.json"]
