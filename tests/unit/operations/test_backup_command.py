"""`rubrica backup` and `restore`: options that are none, faults of the system, ends.

Source: docs/backup.md "Make one".
"""

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from appliance.cli import EX_CONFIG, main
from appliance.operations.backup import command, fetching
from appliance.operations.backup import work_folder as work_folder_module
from appliance.operations.backup.destinations import FolderDestination
from appliance.operations.backup.names import RECORD, BackupName
from appliance.operations.backup.work_folder import remove_dead, work_folder

NOW = datetime(2026, 11, 24, 8, 32, 6, tzinfo=UTC)


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """As before: the commands are told by them to stop."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def test_fewer_than_none_are_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """As in the file."""
    with pytest.raises(SystemExit):
        main(["backup", "--to", "/nowhere", "--keep", "-1"])

    assert "--keep" in capsys.readouterr().err


def test_fault_without_a_number_has_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As tarfile's, of a file that grew shorter while it was read."""

    def fail(*_: object) -> None:
        msg = "unexpected end of data"
        raise OSError(msg)

    monkeypatch.setattr(command, "load_settings", fail)

    assert main(["backup", "--to", "/nowhere"]) == EX_CONFIG
    assert capsys.readouterr().err == "backup: unexpected end of data\n"


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN])
def test_end_of_the_session_stops_it_unless_nohup_said_no(
    monkeypatch: pytest.MonkeyPatch, before: signal.Handlers
) -> None:
    """As SIGTERM does: by an exception, which takes away what was begun."""
    stopped = before is signal.SIG_DFL
    signal.signal(signal.SIGHUP, before)
    monkeypatch.setattr(
        command, "load_settings", lambda _: os.kill(os.getpid(), signal.SIGHUP)
    )

    assert (main(["backup", "--config", "/nowhere"]) == 130) is stopped


def test_what_somebody_else_removes_meanwhile_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs at once: the second one has nothing left to remove."""
    file = BackupName(RECORD, None, NOW).file
    FolderDestination(tmp_path).remove(file)
    monkeypatch.setattr(Path, "glob", lambda *_: iter([tmp_path / "rubrica-gone"]))

    remove_dead(tmp_path, "rubrica-*", NOW)

    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_at_work_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes: a restore reads for days what it fetched at first."""
    monkeypatch.setattr(work_folder_module, "WORK", tmp_path)
    later = datetime.now(UTC) + timedelta(days=2)
    (tmp_path / "rubrica-fetch-dead").mkdir()

    with work_folder("rubrica-fetch-") as folder:
        (folder / "backup").write_bytes(b"x")
        remove_dead(tmp_path, "rubrica-fetch-*", later)

        assert list(tmp_path.iterdir()) == [folder]
        assert (folder / "backup").read_bytes() == b"x"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--identity", "{none}"], "{none}: is not there\n"),
        (["--identity", "{key}", "--secrets", "{none}"], "{none}: is not there\n"),
        (
            ["--identity", "{key}", "--drill"],
            "--secrets: is not there; a drill needs it\n",
        ),
    ],
)
def test_what_is_missing_is_told_before_anything_is_fetched(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    told: str,
) -> None:
    """A record of terabytes may be hours away."""

    def fetched(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(fetching, "fetched", fetched)
    names = {"none": tmp_path / "none", "key": tmp_path / "key"}
    names["key"].touch()
    given = [each.format(**names) for each in options]

    status = main(["restore", "--backup", "s3://backups/rubrica", *given])

    assert (status, capsys.readouterr().err) == (EX_CONFIG, told.format(**names))
