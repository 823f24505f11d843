"""Command lines that are wrong: said of the command that was typed, with status 2."""

import os
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.cli import EX_CONFIG, _told, main
from appliance.cli.command_parser import EX_USAGE, did_you_mean
from appliance.domain.errors import ApplianceError, ErrorCode

_WRONG: Final = (
    ("check-confg", "there is no command 'check-confg'; did you mean check-config?"),
    ("person lst", "there is no command 'lst'; did you mean list?"),
    ("person list --stat active --jsn", "it does not take --jsn; did you mean --json?"),
    ("verify a.pdf --quiet", "it does not take --quiet"),
    ("ready 5", "it does not take 5"),
    ("--setting x ready", "it does not take --setting; did you mean --settings?"),
    ("ready --settings x", "--settings goes before the command: rubrica --settings …"),
    ("person", "the following arguments are required: part"),
    ("ready --wait soon", "argument --wait: invalid float value: 'soon'"),
    ("person issue", "the following arguments are required"),
)


@pytest.mark.parametrize(("words", "told"), _WRONG)
def test_wrong_word_is_said_with_what_may_be_meant(
    capsys: pytest.CaptureFixture[str], words: str, told: str
) -> None:
    """In a few lines: what is wrong, this command's usage, and where more is told."""
    with pytest.raises(SystemExit) as ended:
        main(words.split())

    said = capsys.readouterr().err
    assert ended.value.code == EX_USAGE
    assert told in said.splitlines()[0]
    assert said.splitlines()[-1].endswith("--help tells more")
    assert "worker" not in said
    assert len(said.splitlines()) < 12


_DO_NOT_FIT: Final = (
    "demo host --integrator acme",
    "restore",
    "restore --list",
    "backup",
    "hsm admit",
    "hsm admit one --list",
)
"""Options of which one needs another, or excludes it."""


@pytest.mark.parametrize("words", _DO_NOT_FIT)
def test_options_that_do_not_fit_are_a_wrong_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """2, as docs/running.md has it; 78 stays for settings and files that they name."""
    settings = tmp_path / "settings.toml"
    assert main(["init", "--trial", str(tmp_path)]) == 0
    capsys.readouterr()

    assert main(["--settings", str(settings), *words.split()]) == EX_USAGE

    said = capsys.readouterr().err
    assert said.endswith(f"rubrica {words.partition(' ')[0]} --help tells more\n")


def test_settings_that_are_away_are_no_wrong_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command may be right."""
    assert main(["--settings", str(tmp_path / "no"), "check-config"]) == EX_CONFIG

    assert "--help" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "near"),
    [("--jsn", "; did you mean --json?"), ("--quite-another", ""), ("", "")],
)
def test_only_a_word_that_is_alike_is_named(typed: str, near: str) -> None:
    """One, or none."""
    assert did_you_mean(typed, ["--json", "--state"]) == near


def test_what_exists_already_is_named() -> None:
    """Which field, and what was given for it."""
    params: dict[str, object] = {"field": "name", "value": "marta"}
    error = ApplianceError(ErrorCode.ALREADY_EXISTS, params=params)

    assert _told(error) == "ALREADY_EXISTS: There is one already: name marta."


@pytest.mark.parametrize(
    ("command", "user", "hint"),
    [("check-config", 1000, True), ("check-config", 0, False), ("serve", 1000, False)],
)
def test_file_that_this_user_may_not_read_is_said_with_what_to_do(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    user: int,
    *,
    hint: bool,
) -> None:
    """Neither to root, nor by a role, whose unit hands it what it may read."""
    settings = tmp_path / "settings.toml"
    settings.touch()
    opened = Path.open

    def closed(path: Path, *args: Any, **options: Any) -> Any:
        if path == settings:
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", closed)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    words = [command, "api"] if command == "serve" else [command]
    assert main(["--settings", str(settings), *words]) == EX_CONFIG

    said = capsys.readouterr().err
    assert f"{settings}: cannot be read (Permission denied)" in said
    assert ("use sudo" in said) == hint


@pytest.mark.parametrize("user", [0, 1000])
def test_file_of_a_command_that_cannot_be_read_ends_with_1(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    user: int,
) -> None:
    """As docs/running.md has it, with the same advice."""
    assert main(["init", "--trial", str(tmp_path)]) == 0
    capsys.readouterr()
    path = tmp_path / "contrato.pdf"
    error = SystemExit(f"{path}: cannot be read (Permission denied)")
    error.__cause__ = PermissionError(13, "Permission denied")

    def refuse(_: Path) -> bytes:
        raise error

    monkeypatch.setattr("appliance.cli.verify.read_file", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: user)

    settings = str(tmp_path / "settings.toml")
    assert main(["--settings", settings, "verify", str(path)]) == 1

    said = capsys.readouterr().err
    assert said.startswith(f"{path}: cannot be read (Permission denied)")
    assert ("use sudo" in said) == (user != 0)
