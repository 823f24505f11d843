"""The command line's ways to say no."""

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from importlib.metadata import version
from io import StringIO
from pathlib import Path

import pytest

from appliance.cli import _told, main
from appliance.cli.installation.ready import ask_until_ready
from appliance.cli.terminal import ask, say
from appliance.domain.errors import (
    SENTENCES,
    SIGNER_REPEATED,
    ApplianceError,
    CheckDigitError,
    DocumentRefusedError,
    ErrorCode,
    FieldInvalidError,
    HsmUnavailableError,
    SignersInvalidError,
)
from appliance.runtime.processes import bind
from appliance.settings import SettingsError, load_settings
from appliance.settings.web import INSTALLATION_HEADER
from tests.support.processes.command_folder import make_command_folder, start_command
from tests.support.processes.scratch import free_port
from worker.roles import _slot

_LOADED = """\
import contextlib, json, sys
from appliance.cli import main
for line in sys.stdin:
    with contextlib.suppress(SystemExit):
        main(["--settings", sys.argv[1], *line.split()])
heavy = {"alembic", "arq", "asyncio", "asyncpg", "cryptography", "hypercorn", "jinja2",
    "pikepdf", "pkcs11", "pyhanko", "quart", "redis", "sqlalchemy", "structlog"}
print(json.dumps(sorted(heavy & set(sys.modules))))
"""
"""Runs the commands of its input; its last line has the heavy libraries loaded."""
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
    """A settings file that is good, whose files are not there."""
    path = tmp_path / "settings.toml"
    path.write_text(GOOD, encoding="utf-8")
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A settings file that is good, and all the files that it names."""
    make_command_folder(tmp_path)
    for label in ("firma", "pki"):
        pin = tmp_path / f"{label}.pin"
        pin.write_text("1234")
        pin.chmod(0o600)
    fonts = tmp_path / "fonts"
    fonts.mkdir()
    path = tmp_path / "settings.toml"
    path.write_text(f'fonts_dir = "fonts"\n{path.read_text()}')
    return path


def command(settings: Path, *words: str) -> tuple[int, str, str]:
    """Run the real command, in a process of its own: exit status, output, errors."""
    with start_command(settings, *words) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_text_of_a_row_does_nothing_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It can neither rub out a line nor turn one round; tables and accents stay."""
    say("Ana \x1b[2K\x9b1A\r\u202egnp Núñez\tx\ny")

    said = capsys.readouterr().out
    assert said == "Ana \\x1b[2K\\x9b1A\\r\\u202egnp Núñez\tx\ny\n"


def test_what_needs_no_record_loads_none(place: Path) -> None:
    """Words on the terminal come at once: no library is loaded that takes its time.

    Whoever types `rubrica` waits for what it imports before it says anything.
    """
    said = subprocess.run(
        [sys.executable, "-c", _LOADED, str(place)],
        input="""\
--version
--help
person create --help
hsm rotate-master --help
demo host --help
check-config
""",
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert f"{place}: good (PREPROD)" in said
    assert json.loads(said.splitlines()[-1]) == []


def test_good_settings_are_said_to_be_good(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 0, the file and the environment; of a role, its name."""
    assert main(["--settings", str(place), "check-config"]) == 0
    assert main(["--settings", str(place), "check-config", "--role", "api"]) == 0

    assert capsys.readouterr().out == (
        f"{place}: good (PREPROD)\n{place}: good (PREPROD, api)\n"
    )


def faults(
    settings: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> dict[str, str]:
    """What `check-config` finds, by key."""
    assert main(["--settings", str(settings), "check-config", *words]) == 78
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line.removeprefix(f"{settings}: ") for line in err.splitlines()]
    return dict(line.split(": ", 1) for line in lines)


def test_files_that_are_missing_are_named(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All at once, each by its key and path, and where it comes from."""
    found = faults(settings, capsys)

    assert set(found) - {"fonts_dir"} == {
        "secrets.pepper_file",
        "secrets.data_key_file",
        "secrets.document_key_file",
        "secrets.lookup_key_file",
        "hsm.firma.pin_file",
        "hsm.pki.pin_file",
    }
    folder = settings.parent
    assert found["secrets.pepper_file"] == (
        f"{folder / 'a'}: cannot be read (No such file or directory); bring it back "
        "from a backup; a first one is made by `rubrica setup`, a trial's by "
        "`rubrica init FOLDER`"
    )
    assert "`rubrica hsm init` makes missing ones" in found["hsm.pki.pin_file"]


@pytest.mark.parametrize(
    ("role", "reads"),
    [
        ("api", {"pepper", "data_key", "document_key", "lookup_key"}),
        ("admin", {"data_key", "document_key", "lookup_key"}),
        ("chores", {"data_key", "document_key"}),
    ],
)
def test_role_is_told_of_its_own_files_alone(
    settings: Path, capsys: pytest.CaptureFixture[str], role: str, reads: set[str]
) -> None:
    """What others read is not its business, and often not readable to it."""
    found = faults(settings, capsys, "--role", role)

    assert set(found) == {f"secrets.{name}_file" for name in reads}


def test_signing_is_told_of_pins(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And of no key of the fronts."""
    found = faults(settings, capsys, "--role", "signing")

    assert set(found) - {"fonts_dir"} == {
        "secrets.document_key_file",
        "hsm.firma.pin_file",
        "hsm.pki.pin_file",
    }
    assert main(["--settings", str(settings), "check-config", "--role", "sandbox"]) == 0


def test_credential_is_looked_at_in_the_place_of_its_file(
    settings: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A role that systemd hands a copy of a file is told nothing of the file."""
    handed = tmp_path / "credentials"
    handed.mkdir()
    for name in ("a", "b"):
        (handed / name).write_text("ab" * 32)
        (handed / name).chmod(0o400)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(handed))

    found = faults(settings, capsys, "--role", "api")

    read = load_settings(settings).secrets
    assert (read.pepper_file.name, read.data_key_file.name) == ("a", "b")
    assert set(found) == {"secrets.document_key_file", "secrets.lookup_key_file"}


def test_files_that_hold_something_else_are_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Open to others, no key in it, no password, no profile of that name."""
    folder = place.parent
    (folder / "pepper").chmod(0o644)
    (folder / "data-key").write_text("hunter2")
    (folder / "pg").write_text("\n")
    text = place.read_text().replace(
        'url = "sqlite"', 'url = "postgresql://r@h/r"\npassword_file = "pg"'
    )
    place.write_text(
        text.replace("[hsm.firma]", '[hsm]\nprofile = "softhsm3"\n[hsm.firma]')
    )

    found = faults(place, capsys)

    assert set(found) == {
        "secrets.pepper_file",
        "secrets.data_key_file",
        "database.password_file",
        "hsm.profile",
    }
    assert "set its mode to 0600" in found["secrets.pepper_file"]
    assert "hunter2" not in found["secrets.data_key_file"]
    assert found["database.password_file"].startswith(f"{folder / 'pg'}: must hold")
    assert "profiles here: aws-cloudhsm, luna" in found["hsm.profile"]


def test_sessions_that_the_make_does_not_serve_are_a_fault_of_the_settings(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check-config` names the key of the profile; a trial's make serves several."""
    given = settings.read_text("utf-8")

    for profile, is_good in (("softhsm2", True), ("yubihsm2", False)):
        words = f'[hsm]\nprofile = "{profile}"\nsessions = 4\n[hsm.firma]'
        settings.write_text(given.replace("[hsm.firma]", words), "utf-8")
        said = faults(settings, capsys).get("hsm.sessions", "")
        assert ("quirks.several_threads" in said) is not is_good


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


def test_worker_without_its_folder_is_told_which(place: Path) -> None:
    """`run_dir` is made by the installation: it is named, without a traceback."""
    settings = load_settings(place)
    shutil.rmtree(settings.run_dir, ignore_errors=True)

    with (
        pytest.raises(SettingsError, match=r"signing-1\.lock: .*; is run_dir as it"),
        _slot(settings, "signing", 1),
    ):
        pass


def test_invitation_refused_says_what_is_so(tmp_path: Path) -> None:
    """A wrong digit, nobody there, enrolled already: each in its words."""
    make_command_folder(tmp_path)
    settings = tmp_path / "settings.toml"
    assert command(settings, "migrate")[0] == 0
    ana = ("person", "invite", "--cuil", "20-05536168-2")

    status, _, err = command(settings, *ana[:-1], "20-05536168-3")
    assert status == 1
    assert "The check digit of cuil does not fit" in err
    assert "digits is wrong" not in err
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
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`RUBRICA_SETTINGS` names the file where the option does not."""
    monkeypatch.setenv("RUBRICA_SETTINGS", str(place))

    assert main(["check-config"]) == 0
    assert str(place) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("request", "create", "a.pdf", "--days", "9" * 12), "--days"),
        (("request", "create", "a.pdf", "--days", "0"), "--days"),
        (("integrator", "key", "create", "acme", "x", "--days", "9" * 12), "--days"),
        (("integrator", "key", "rotate", "k", "--overlap", "inf"), "--overlap"),
        (("integrator", "key", "rotate", "k", "--overlap", "nan"), "--overlap"),
        (("request", "cancel", "9" * 20), "id"),
        (("request", "list", "--limit", "-1"), "--limit"),
    ],
)
def test_numbers_out_of_range_are_refused(
    settings: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    wrong: str,
) -> None:
    """Before anything is opened: what may be written, and where."""
    with pytest.raises(SystemExit) as ended:
        main(["--settings", str(settings), *words])

    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"argument {wrong}: " in said
    assert " from " in said


def test_reader_that_has_read_enough_is_no_error(place: Path) -> None:
    """As in `rubrica … | head -1`: no trace, and the status that a shell expects."""
    with start_command(place, "check-config") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        status = process.wait(timeout=120)

    assert (status, said) == (141, "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            FieldInvalidError("--person", "XX-XXXXXXXX-X"),
            (
                "FIELD_INVALID: The field --person has a value that is not allowed. "
                "Allowed: XX-XXXXXXXX-X."
            ),
        ),
        (
            CheckDigitError("--person", "XX-XXXXXXXX-X"),
            (
                "FIELD_INVALID: The check digit of --person does not fit: "
                "look at its digits again."
            ),
        ),
        (
            SignersInvalidError(SIGNER_REPEATED, cuil="20-26756539-3"),
            (
                "FIELD_INVALID: 20-26756539-3 is there more than once: "
                "each person signs once."
            ),
        ),
        (
            DocumentRefusedError(ErrorCode.PDF_MALFORMED, "PdfReadError"),
            f"PDF_MALFORMED: {SENTENCES[ErrorCode.PDF_MALFORMED]}",
        ),
        (
            HsmUnavailableError("no token of that label"),
            (
                f"HSM_UNAVAILABLE: {SENTENCES[ErrorCode.HSM_UNAVAILABLE]} "
                "(no token of that label)"
            ),
        ),
    ],
)
def test_errors_say_what_is_wrong_once(error: ApplianceError, said: str) -> None:
    """What may be written, nothing twice, and no name of our own code."""
    assert _told(error) == said


def test_piped_password_is_taken_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line for each that is asked for; an end before that is said in words."""
    monkeypatch.setattr(sys, "stdin", StringIO("una clave\r\notra clave\n"))

    assert [ask("login password"), ask("signing password")] == [
        "una clave",
        "otra clave",
    ]
    with pytest.raises(SettingsError, match="signing password: nothing came"):
        ask("signing password")


def test_folder_that_cannot_be_made_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence, where a file stands in its place."""
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "trial"

    assert main(["init", str(folder)]) == 78

    told = capsys.readouterr().err
    assert told == f"{folder}: cannot be written (Not a directory)\n"


def test_version_needs_no_settings(capsys: pytest.CaptureFixture[str]) -> None:
    """The version of what is installed, and nothing else."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out == f"rubrica {version('rubrica')}\n"


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_ready_asks_where_the_api_listens(
    place: Path, short_dir: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Not at the public address, which may be shut to this machine."""
    path = short_dir / "api"
    address = f"unix:{path}" if kind == "unix" else f"127.0.0.1:{free_port()}"
    text = place.read_text()
    place.write_text(
        f"{text}[web]\nbase_url = 'https://nowhere.invalid'\nlisten_api = '{address}'\n"
    )
    words = ["--settings", str(place), "ready"]

    assert main(words) == 1
    assert address in capsys.readouterr().out
    with bind(address, 5) as listener:
        answering = threading.Thread(target=_answer_once, args=(listener,))
        answering.start()
        assert main([*words, "--wait", "5"]) == 0
        answering.join()
    assert capsys.readouterr().out == "well\n"


def test_ready_says_what_is_missing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever that changes, and once more where it was waited for in vain."""
    answers = iter(
        [
            ConnectionRefusedError(111, "Connection refused"),
            {"store": "ok", "hsm": "HSM_UNAVAILABLE", "workers": "BUSY"},
            {"store": "ok", "hsm": "HSM_UNAVAILABLE", "workers": "BUSY"},
        ]
    )
    last = {"store": "ok", "hsm": "HSM_UNAVAILABLE"}

    def ask_api(settings: object, path: str) -> tuple[int, str]:
        del settings, path
        answer = next(answers, last)
        if isinstance(answer, OSError):
            raise answer
        return 503, json.dumps({"status": "unready", "checks": answer})

    monkeypatch.setattr("appliance.cli.installation.ready.ask_api", ask_api)
    monkeypatch.setattr("time.sleep", lambda _: None)
    said: list[str] = []
    is_ready, told = ask_until_ready(load_settings(place), 0.5, on_change=said.append)

    assert not is_ready
    assert told.endswith("still missing: hsm (HSM_UNAVAILABLE)")
    assert "Connection refused" in said[0]
    assert said[1:] == [
        "hsm (HSM_UNAVAILABLE), workers (BUSY)",
        "hsm (HSM_UNAVAILABLE)",
    ]


def test_stopped_trial_is_called_that(place: Path) -> None:
    """By `ready`, `status` and `doctor`, with the exit status of before."""
    listen = f"127.0.0.1:{free_port()}"
    place.write_text(
        f"trial = true\n{place.read_text()}[web]\nlisten_api = '{listen}'\n"
    )
    assert command(place, "migrate")[0] == 0
    stopped = "the trial is stopped: start it with ./quickstart"

    assert command(place, "ready")[:2] == (1, f"{listen}: {stopped}\n")
    status, _, err = command(place, "doctor")
    assert (status, stopped in err) == (78, True)
    status, out, _ = command(place, "status")
    assert status == 1
    assert out.splitlines()[0] == stopped
    assert "workers:" not in out
    assert command(place, "status", "--only", "mail")[:2] == (0, f"{stopped}\n")

    with bind(listen, 5) as listener:
        answering = threading.Thread(target=_answer_nothing, args=(listener,))
        answering.start()
        assert stopped not in command(place, "status")[1]
        answering.join()


def _answer_nothing(listener: socket.socket) -> None:
    """Close the first connection: something listens, whatever it is."""
    client, _ = listener.accept()
    client.close()


def _answer_once(listener: socket.socket) -> None:
    """Be ready once, over HTTP, as the installation that is asked."""
    client, _ = listener.accept()
    with client:
        asked = client.recv(65536).decode().split("\r\n")
        assert asked[0] == "GET /readyz HTTP/1.1"
        (own,) = (line for line in asked if line.startswith(INSTALLATION_HEADER))
        told = f"HTTP/1.1 200 OK\r\n{own}\r\nContent-Length: 4\r\n\r\nwell"
        client.sendall(told.encode())


@pytest.mark.parametrize("words", ["check-config", "backup", "doctor", "hsm pins"])
def test_machine_that_is_not_set_up_is_told_how(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
) -> None:
    """Where the settings of the package are not there at all."""
    path = tmp_path / "settings.toml"
    monkeypatch.setattr("appliance.settings.loading.PACKAGED", path)

    assert main(["--settings", str(path), *words.split()]) == 78

    told = f"{path}: is not there; run `rubrica setup`, which makes it\n"
    assert capsys.readouterr().err == told


def test_doctor_is_of_installed_machines(place: Path) -> None:
    """It looks by the settings it is given, and refuses those of a trial."""
    place.write_text(f"trial = true\n{place.read_text()}")
    absent = place.with_name("absent.toml")

    status, _, err = command(place, "doctor", "--only", "settings")
    assert status == 78
    assert f"{place}: is a trial's" in err
    assert "check-config" in err

    status, _, err = command(absent, "doctor", "--only", "settings")
    assert status == 78
    assert str(absent) in err


def test_doctor_looks_by_the_settings_it_is_given(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command that it runs has them, and it says so."""
    asked: list[list[str]] = []
    monkeypatch.setattr("appliance.operations.doctor.command.os.geteuid", lambda: 0)
    monkeypatch.setattr("appliance.operations.doctor.command.left_out", lambda: ())
    monkeypatch.setattr("appliance.operations.installation_checks.left_out", lambda: ())

    def faultless(line: list[str], _limit_s: float | None = None) -> list[str]:
        asked.append(line)
        return []

    monkeypatch.setattr("appliance.operations.installation_checks.faults_of", faultless)

    words = ("doctor", "--only", "settings", "--only", "database", "--only", "HSM")
    assert main(["--settings", str(place), *words]) == 0

    assert f"here it is {place}" in capsys.readouterr().out
    assert len(asked) > 3
    for line in asked:
        assert line[line.index("--settings") + 1] == str(place)
