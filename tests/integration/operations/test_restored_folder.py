"""`rubrica restore --compose`: the folder of containers is what it was.

Source: docs/backup.md "In containers".
"""

import json
import os
import subprocess
from pathlib import Path
from stat import S_IMODE

import pytest

from appliance.cli import main
from appliance.operations import compose, system
from appliance.operations.backup import places
from appliance.operations.backup.archive import writing
from appliance.operations.setup_answers import Answers
from appliance.settings import Settings, load_settings

ROOT = Path(__file__).parents[3]
MADE = "2026-11-24T08:32:06+00:00"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it gives files to others")


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as setup makes it, with PINs and what a sample's person knows."""
    monkeypatch.setattr(system, "COMPOSE", ROOT / "packaging/compose")
    folder = tmp_path / "first"
    folder.mkdir()
    compose.make(folder, Answers.of({}))
    for name in ("hsm/firma.pin", "hsm/pki.pin", "secrets/sample-person.json"):
        path = folder / name
        path.write_text(f"{name}\n")
        path.chmod(0o600)
        os.chown(path, compose.USER, compose.USER)
    return folder


@pytest.fixture
def carried(first: Path, tmp_path: Path) -> Path:
    """A folder with the key, and both backups as containers make them."""
    folder = tmp_path / "carried"
    folder.mkdir()
    key = folder / "key"
    subprocess.run(["age-keygen", "-o", str(key)], check=True, capture_output=True)
    public = ["age-keygen", "-y", str(key)]
    told = subprocess.run(public, check=True, capture_output=True, text=True)
    recipients = [f"--recipient={told.stdout.strip()}"]
    about = {"made": MADE, "rubrica": "0", "keys": {}}
    settings = load_settings(first / "settings.toml")
    with writing(folder / "record", recipients) as archive:
        record = {**about, "kind": "record", "tables": "0002"}
        archive.add_bytes("about.json", json.dumps(record).encode())
        archive.add_file(places.SETTINGS, first / "settings.toml")
        archive.add_bytes("contents.json", json.dumps(archive.tally.told()).encode())
    with writing(folder / "secrets", recipients) as archive:
        secrets = {**about, "kind": "secrets", "tables": None}
        archive.add_bytes("about.json", json.dumps(secrets).encode())
        for name, path in secrets_of(first, settings):
            archive.add_file(name, path)
        archive.add_bytes(places.SOFTHSM_CONF, b"directories.tokendir = /x\n")
        archive.add_bytes(f"{places.TOKENS}one/token.object", b"token")
        archive.add_bytes("contents.json", json.dumps(archive.tally.told()).encode())
    return folder


def secrets_of(folder: Path, settings: Settings) -> list[tuple[str, Path]]:
    """Names and files of the secrets, those that are in the folder."""
    found = []
    for key, path in places.secret_places(settings):
        here = compose.place_in(folder, path)
        if here is not None and here.is_file():
            found.append((places.SECRETS + key, here))
    return found


def restored(folder: Path, carried: Path) -> int:
    """Run it; its status."""
    files = ["--backup", str(carried / "record"), "--secrets", str(carried / "secrets")]
    key = ["--identity", str(carried / "key")]
    return main(["restore", "--compose", str(folder), *files, *key])


def seen(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, owner and content of all that is in a folder."""
    return {
        path.relative_to(folder).as_posix(): (
            S_IMODE(path.stat().st_mode),
            path.stat().st_uid,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


def test_folder_is_what_it_was(first: Path, carried: Path, tmp_path: Path) -> None:
    """Every file, with owner and mode; tokens are a volume's. Again, all is kept."""
    second = tmp_path / "second"
    second.mkdir()

    assert restored(second, carried) == 0
    assert seen(second) == seen(first)
    assert "hsm/firma.pin" in seen(second)
    assert restored(second, carried) == 0
    assert seen(second) == seen(first)


def test_another_key_that_is_there_stays(
    carried: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the rest is not made for it."""
    second = tmp_path / "second"
    (second / "secrets").mkdir(parents=True)
    (second / "secrets/pepper").write_text("another\n")

    assert restored(second, carried) == 78
    assert "move it away" in capsys.readouterr().err
    assert (second / "secrets/pepper").read_text() == "another\n"
    assert not (second / "compose.yaml").exists()


def test_without_secrets_or_elsewhere_it_is_refused(
    carried: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is made."""
    second = tmp_path / "second"
    one = ["--backup", str(carried / "record"), "--identity", str(carried / "key")]

    assert main(["restore", "--compose", str(second), *one]) == 2
    assert "--secrets" in capsys.readouterr().err
    monkeypatch.setattr(system, "COMPOSE", tmp_path / "none")
    assert restored(second, carried) == 78
    assert "for the image" in capsys.readouterr().err
    assert not second.exists()
