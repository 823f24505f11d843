"""The command line's ways to say no."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from appliance.commands import main
from tests.parts.command_place import make_place, start_command

GOOD = """\
data_dir = "."
run_dir = "run"
[hsm.firma]
label = "firma"
pin_file = "pin"
[hsm.pki]
label = "pki"
pin_file = "pin"
[secrets]
pepper_file = "a"
data_key_file = "b"
lookup_key_file = "c"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A settings file that is good."""
    path = tmp_path / "settings.toml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def command(settings: Path, *words: str) -> tuple[int, str, str]:
    """Run the real command, in a process of its own: exit status, output, errors."""
    with start_command(settings, *words) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_good_settings_are_said_to_be_good(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 0, the file and the environment."""
    status = main(["--settings", str(settings), "check-config"])

    assert status == 0
    assert capsys.readouterr().out == f"{settings}: good (PREPROD)\n"


def test_bad_settings_exit_78_with_one_line(settings: Path) -> None:
    """The real command: one line on standard error, no trace, nothing else."""
    settings.write_text(GOOD + "[web]\nport = 80\n", encoding="utf-8")

    status, out, err = command(settings, "check-config")

    assert (status, out) == (78, "")
    (line,) = err.splitlines()
    assert line.startswith(f"{settings}: web.port: unknown key; allowed here: ")
    assert "listen_api" in line


@pytest.mark.parametrize("command", ["check-config", "migrate", "up"])
def test_missing_settings_exit_78(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Every command says so in the same words."""
    path = tmp_path / "none.toml"

    status = main(["--settings", str(path), command])

    assert status == 78
    said = capsys.readouterr().err
    assert said == f"{path}: cannot be read (No such file or directory)\n"


def test_missing_document_key_exits_78_with_one_line(settings: Path) -> None:
    """An installation from before that file: one line, which names it."""
    (settings.parent / "run").mkdir()

    # In a process of its own: a worker sets the log of its process up.
    status, _, err = command(settings, "worker", "chores")

    assert status == 78
    path = settings.parent / "document-key"
    assert err == f"{path}: cannot be read (No such file or directory)\n"


def test_invitation_refused_says_what_is_so(tmp_path: Path) -> None:
    """A wrong digit, nobody there, enrolled already: each in its words."""
    make_place(tmp_path)
    settings = tmp_path / "settings.toml"
    assert command(settings, "migrate")[0] == 0
    ana = ("person", "invite", "--cuil", "20-05536168-2")

    status, _, err = command(settings, *ana[:-1], "20-05536168-3")
    assert status == 1
    assert "the check digit does not match" in err
    status, _, err = command(settings, *ana)
    assert status == 1
    assert "--name and --email" in err
    named = ("--name", "Ana Núñez", "--email", "ana@demo.example")
    assert command(settings, *ana, *named)[0] == 0
    with closing(sqlite3.connect(tmp_path / "rubrica.db")) as database, database:
        database.execute("UPDATE person SET state = 'active'")
    status, _, err = command(settings, *ana)
    assert status == 1
    assert "has enrolled already" in err


def test_settings_named_by_the_variable(
    settings: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`RUBRICA_SETTINGS` names the file where the option does not."""
    monkeypatch.setenv("RUBRICA_SETTINGS", str(settings))

    assert main(["check-config"]) == 0
    assert str(settings) in capsys.readouterr().out
