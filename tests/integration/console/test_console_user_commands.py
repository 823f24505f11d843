"""`rubrica console-user`: administrators made and unmade at the command line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.cli import main

SETTINGS = """\
data_dir = "."
run_dir = "run"
trial = true
[hsm.firma]
label = "firma"
pin_file = "pin"
[hsm.pki]
label = "pki"
pin_file = "pin"
[secrets]
pepper_file = "pepper"
data_key_file = "data"
document_key_file = "document"
lookup_key_file = "lookup"
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command on a fresh installation; its exit status and what it says."""
    for name in ("pepper", "data", "document", "lookup"):
        (tmp_path / name).write_text((name[0] * 32).encode().hex())
        (tmp_path / name).chmod(0o600)
    (tmp_path / "run").mkdir()
    (tmp_path / "password").write_text("una clave de consola\n")
    settings = tmp_path / "settings.toml"
    settings.write_text(SETTINGS)

    def command(*args: str) -> tuple[int, str]:
        status = main(["--settings", str(settings), *args])
        said = capsys.readouterr()
        return status, said.err + said.out

    assert command("migrate")[0] == 0
    for name in ("eva", "marta"):
        given = ("--password-file", str(tmp_path / "password"))
        assert command("console-user", "create", name, *given)[0] == 0
    return command


def test_administrators_are_unmade_at_the_command_line(
    run: Run, tmp_path: Path
) -> None:
    """Each command says what it did; the last one who can sign in stays."""
    assert run("console-user", "disable", "eva")[0] == 0
    status, listed = run("console-user", "list")
    assert status == 0
    assert re.search(r"^eva +disabled +0 +- ", listed, re.MULTILINE)
    assert re.search(r"^marta +enabled +0 +- ", listed, re.MULTILINE)
    status, said = run("console-user", "disable", "marta")
    assert status != 0
    assert "last administrator" in said
    assert run("console-user", "enable", "eva")[0] == 0
    status, said = run("console-user", "reset-totp", "eva")
    assert status == 0
    assert said.count("otpauth://totp/") == 1
    password = ("--password-file", str(tmp_path / "password"))
    assert run("console-user", "passwd", "eva", *password)[0] == 0
    assert run("console-user", "end-sessions", "eva")[1].endswith("ended: 0\n")


@pytest.mark.parametrize(
    "command", ["disable", "enable", "reset-totp", "passwd", "end-sessions"]
)
def test_nobody_by_that_name_is_said_in_words(run: Run, command: str) -> None:
    """One sentence, and an exit status that is none of success."""
    status, said = run("console-user", command, "nadie")

    assert status != 0
    assert "There is no such administrator." in said
    assert "Traceback" not in said


@pytest.mark.parametrize("words", [("create", "ana"), ("passwd", "eva")])
def test_limit_of_a_password_is_the_administrators(
    run: Run, tmp_path: Path, words: tuple[str, str]
) -> None:
    """The same limit at once, however short the password is."""
    file = tmp_path / "short"
    for password in ("corta", "una clave 9", "x" * 1025):
        file.write_text(password)

        status, said = run("console-user", *words, "--password-file", str(file))

        assert status == 1
        assert "Allowed: 12 characters or more, up to 1024 bytes." in said


@pytest.mark.parametrize(
    "words",
    [
        ("verify", "{}"),
        ("request", "create", "{}", "--integrator", "i", "--person", "20267565393"),
        ("console-user", "create", "ana", "--password-file", "{}"),
    ],
)
def test_file_that_is_not_there_is_what_was_asked_for(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Whichever command names it: a sentence, and exit status 1."""
    absent = str(tmp_path / "absent")

    status, said = run(*(word.format(absent) for word in words))

    assert status == 1
    assert f"{absent}: cannot be read (No such file or directory)\n" in said


def test_requests_are_listed_with_their_signers(run: Run) -> None:
    """Whose each of them is stands in a column of its own."""
    status, said = run("request", "list")

    assert status == 0
    head = said.splitlines()[-1].split()
    assert head[:5] == ["id", "estado", "reason", "signer", "integrator"]


def test_wrong_tries_are_forgotten_at_the_command_line(run: Run) -> None:
    """How many is told; an address that is none is refused before anything."""
    status, said = run("console-user", "unblock", "eva", "--address", "192.0.2.1")
    assert status == 0
    assert "eva: wrong tries forgotten: 0\n" in said
    wrong = run("console-user", "unblock", "eva", "--address", "http://[")
    assert wrong[0] == 2
    assert "is no IP address" in wrong[1]
    status, said = run("console-user", "unblock", "nadie")
    assert status != 0
    status, said = run("person", "unblock", "20-26756539-3")
    assert status != 0
