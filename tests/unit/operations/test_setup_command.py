"""`rubrica setup`: which of its steps run; what they make is looked at where they are.

Source: tests/functional/installation/test_production.py runs it whole.
"""

import errno
import os
from pathlib import Path
from typing import Final

import pytest

from appliance.cli import main
from appliance.operations import system
from appliance.operations.setup import steps
from appliance.operations.setup_answers import Answers, settings_text
from appliance.settings import SettingsError
from tests.unit.operations.test_setup_answers import GIVEN

_WRITING: Final = (
    *("make_users_and_folders", "make_secrets", "make_documents_place"),
    *("make_servers", "take_pins", "make_database"),
)
_STARTING: Final = (
    *("prepare_hsm", "check_settings", "start"),
    *("make_administrator", "sign_sample"),
)


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that ran, in order, of an installation that has its settings."""
    settings = tmp_path / "settings.toml"
    settings.write_text(settings_text(Answers.of(GIVEN)))
    monkeypatch.setattr(system, "SETTINGS", settings)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    found: list[str] = []
    for name in (*_WRITING, *_STARTING):
        monkeypatch.setattr(steps, name, lambda *_, n=name, **__: found.append(n))
    return found


def test_setup_goes_to_the_end(ran: list[str]) -> None:
    """The HSM after all that is written, the roles after the HSM."""
    assert main(["setup"]) == 0

    assert ran == [*_WRITING, *_STARTING]


def test_no_start_writes_and_ends_before_the_hsm(
    ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What goes on from there is told."""
    assert main(["setup", "--no-start"]) == 0

    assert ran == list(_WRITING)
    assert "nothing was started" in capsys.readouterr().out


def test_containers_are_never_started_by_it(
    ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So the two options are a mistake together."""
    assert main(["setup", "--compose", str(tmp_path), "--no-start"]) == 2

    assert ran == []
    assert "--no-start" in capsys.readouterr().err


def test_disk_that_is_full_is_one_sentence(
    ran: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the step after it is not begun."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/etc/rubrica/x")

    monkeypatch.setattr(steps, "make_documents_place", fail)

    assert main(["setup"]) == 78

    told = capsys.readouterr().err
    assert told == "setup: /etc/rubrica/x: No space left on device\n"
    assert ran[-1] == "make_secrets"


def test_answers_that_no_start_leaves_are_told(
    ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who gave them waits for what they say, and the next run has none of them."""
    answers = tmp_path / "answers.toml"
    answers.write_text('backup_file = "/root/backup.toml"\n')

    assert main(["setup", "--no-start", "--answers", str(answers)]) == 0

    assert "not used yet: backup_file" in capsys.readouterr().out
    assert ran == list(_WRITING)


def test_answers_that_are_settings_already_are_told(
    ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong or right; what is still used is looked at before anything is made."""
    secret = tmp_path / "password"
    secret.write_text("too short\n")
    answers = tmp_path / "answers.toml"
    answers.write_text(
        'hsm_profile = "none"\nadministrator = "ana"\n'
        f'administrator_password_file = "{secret}"\n'
    )
    words = ["setup", "--answers", str(answers)]

    assert main(words) == 78

    said = capsys.readouterr()
    assert "not looked at, since there are settings: hsm_profile\n" in said.out
    assert said.err == (
        f"administrator_password_file: {secret}: the password of an administrator "
        "has 12 characters or more, up to 1024 bytes\n"
    )
    assert ran == ["make_users_and_folders"]
    secret.unlink()
    assert main(words) == 0


def test_failure_comes_after_what_was_made(
    ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipe as well, where both go to one file."""

    def fail(*_: object) -> None:
        raise SettingsError("it failed")

    monkeypatch.setattr(steps, "make_database", fail)
    log = tmp_path / "log"
    log.touch()
    with (
        log.open("a", encoding="utf-8") as out,
        log.open("a", buffering=1, encoding="utf-8") as err,
    ):
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        assert main(["setup"]) == 78

    lines = log.read_text().splitlines()
    assert lines[0].startswith("kept  ")
    assert lines[-1] == "it failed"
    assert ran == list(_WRITING[:-1])
