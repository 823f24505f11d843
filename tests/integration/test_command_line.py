"""The command line's ways to say no."""

import subprocess
import sys
from pathlib import Path

import pytest

from appliance.commands import main

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

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from appliance.commands import main; sys.exit(main())",
            *("--settings", str(settings), "check-config"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (78, "")
    (line,) = done.stderr.splitlines()
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


def test_missing_document_key_exits_78_with_one_line(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An installation from before that file: one line, which names it."""
    (settings.parent / "run").mkdir()

    status = main(["--settings", str(settings), "worker", "chores"])

    assert status == 78
    said = capsys.readouterr().err
    path = settings.parent / "document-key"
    assert said == f"{path}: cannot be read (No such file or directory)\n"


def test_settings_named_by_the_variable(
    settings: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`RUBRICA_SETTINGS` names the file where the option does not."""
    monkeypatch.setenv("RUBRICA_SETTINGS", str(settings))

    assert main(["check-config"]) == 0
    assert str(settings) in capsys.readouterr().out
