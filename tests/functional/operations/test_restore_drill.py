"""A backup that is tried out, and such as are broken in ways that restore badly.

Source: docs/backup.md "Try it".
"""

import io
import json
import os
import sqlite3
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import pytest

from appliance.operations.backup.archive import CONTENTS, Tally
from appliance.operations.backup.making import ABOUT
from appliance.operations.backup.work_folder import WORK
from tests.support.appliance.backups import RestorableAppliance, appliance_with_backups
from tests.support.appliance.ledger import read_ledger
from tests.support.processes.rubrica import start_rubrica
from tests.support.services.postgres import PostgresServer

MISSING: Final = "is not in it"
Members = dict[str, bytes]
"""Of an archive, by name."""


@pytest.fixture(scope="module")
def restorable_appliance(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RestorableAppliance]:
    """An appliance with two signed documents and a backup, which goes on."""
    with appliance_with_backups(tmp_path_factory.mktemp("drill"), "sqlite") as made:
        made.sign()
        made.sign()
        made.back_up_all()
        yield made


def drilled(restorable_appliance: RestorableAppliance, **files: Path) -> list[str]:
    """The command that tries the newest backups out, or others."""
    named = {
        "backup": restorable_appliance.files("record")[-1],
        "secrets": restorable_appliance.files("secrets")[-1],
        "identity": restorable_appliance.places / "key",
        **files,
    }
    told = [part for name, path in named.items() for part in (f"--{name}", str(path))]
    return ["restore", "--drill", *told]


def drill_folders(pid: int) -> set[Path]:
    """Folders that a drill works in just now: it holds them open."""
    found = set()
    with suppress(FileNotFoundError):  # it ended
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.add(handle.readlink())
    return {path for path in found if path.match(f"{WORK}/rubrica-drill-*")}


def drill(
    restorable_appliance: RestorableAppliance, *options: str, **files: Path
) -> tuple[int, str]:
    """Run it; status and words."""
    done = restorable_appliance.appliance.rubrica(
        *drilled(restorable_appliance, **files), *options
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def changed(
    restorable_appliance: RestorableAppliance,
    kind: str,
    change: Callable[[Members], object],
) -> Path:
    """A backup that is whole and well encrypted, of other members than the newest."""
    plain = subprocess.run(
        [
            "age",
            "--decrypt",
            "--identity",
            restorable_appliance.places / "key",
            restorable_appliance.files(kind)[-1],
        ],
        check=True,
        capture_output=True,
    ).stdout
    members: Members = {}
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        for one in tar:
            file = tar.extractfile(one)
            assert file is not None
            members[one.name] = file.read()
    del members[CONTENTS]
    change(members)
    tally, out = Tally(), io.BytesIO()
    for name, content in members.items():
        tally.count(name, len(content))
    members[CONTENTS] = json.dumps(tally.told()).encode()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    made = restorable_appliance.places / f"changed-{kind}.tar.age"
    made.unlink(missing_ok=True)
    subprocess.run(
        ["age", "--encrypt", "--recipient", restorable_appliance.recipient, "-o", made],
        input=out.getvalue(),
        check=True,
    )
    return made


def document_in(members: Members) -> str:
    """The name of one of its documents."""
    return next(name for name in members if name.endswith(".pdf"))


def last_document(members: Members) -> str:
    """The name of another one."""
    return [name for name in members if name.endswith(".pdf")][-1]


def flip(members: Members, name: str) -> None:
    """Have one bit of a member be another."""
    content = bytearray(members[name])
    content[len(content) // 2] ^= 1
    members[name] = bytes(content)


def other_key(key: str) -> Callable[[Members], None]:
    """Have a key be another one, of the same form."""
    return lambda members: members.update(
        {f"secrets/secrets.{key}": os.urandom(32).hex().encode()}
    )


def alter_audit(members: Members) -> None:
    """Have a row of the audit tell of somebody else."""
    path = WORK / f"drill-test-{os.getpid()}"
    path.write_bytes(members["database"])
    with closing(sqlite3.connect(path)) as connection, connection:
        done = connection.execute("UPDATE audit_event SET actor = 'x' WHERE n = 1")
        assert done.rowcount > 0
    members["database"] = path.read_bytes()
    path.unlink()


def other_root(members: Members) -> None:
    """Have another CA be the installation's own."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes"]
    made = subprocess.run(
        [*command, "-days", "2", "-subj", "/CN=other", "-keyout", os.devnull],
        check=True,
        capture_output=True,
    )
    members["pki/root.pem"] = made.stdout


def other_pepper(members: Members) -> None:
    """Have the secrets be of an installation that has another pepper alone."""
    about = json.loads(members[ABOUT])
    about["keys"]["pepper_file"] = ["0" * 32]
    members[ABOUT] = json.dumps(about).encode()


RECORDS: Final[dict[str, tuple[Callable[[Members], object], str, str]]] = {
    "document missing": (lambda m: m.pop(document_in(m)), "documents", MISSING),
    "document altered": (
        lambda m: flip(m, document_in(m)),
        "documents",
        "does not open, or is not what it is named by",
    ),
    "document of another name": (
        lambda m: m.update({document_in(m): m[last_document(m)]}),
        "documents",
        "does not open, or is not what it is named by",
    ),
    "database altered": (alter_audit, "audit", "is missing, altered or added"),
    "no database": (lambda m: m.pop("database"), "record", "before its database"),
    "settings of nobody": (
        lambda m: m.update({"settings.toml": b"colour = 'red'"}),
        "settings",
        "colour",
    ),
    "another root": (other_root, "signatures", "INDETERMINATE"),
}
SECRETS: Final[dict[str, tuple[Callable[[Members], object], str, str]]] = {
    "another document key": (
        other_key("document_key_file"),
        "database",
        "document_key",
    ),
    "another data key": (other_key("data_key_file"), "database", "data_key_file"),
    "another pepper": (other_pepper, "secrets", "pepper_file differ"),
    "another lookup key": (other_key("lookup_key_file"), "database", "finds nobody"),
    "no pepper": (
        lambda m: m.pop("secrets/secrets.pepper_file"),
        "secrets",
        f"pepper_file: {MISSING}",
    ),
    "no key at all": (
        lambda m: m.update({"secrets/secrets.pepper_file": b"abc"}),
        "secrets",
        "hex digits",
    ),
    "no PIN": (
        lambda m: m.pop("secrets/hsm.firma.pin_file"),
        "secrets",
        f"pin_file: {MISSING}",
    ),
    "no tokens": (
        lambda m: [m.pop(name) for name in list(m) if name.startswith("tokens/")],
        "secrets",
        "tokens",
    ),
}


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_whole_backup_passes_and_leaves_nothing(
    database: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    postgres_server: PostgresServer,
) -> None:
    """Beside its running installation, of which nothing changes."""
    if database == "sqlite":
        assert_passes(request.getfixturevalue("restorable_appliance"))
    else:
        url = postgres_server.url(postgres_server.create_database())
        with appliance_with_backups(tmp_path, url) as made:
            made.sign()
            made.sign()
            made.back_up_all()
            assert_passes(made)


def assert_passes(restorable_appliance: RestorableAppliance) -> None:
    """All parts are well, the installation is as it was, the drill's folder gone."""
    before = read_ledger(restorable_appliance.appliance).newest
    options = ("--settings", str(restorable_appliance.appliance.settings_file))
    worked_in: set[Path] = set()

    with (restorable_appliance.places / "told").open("w+", encoding="utf-8") as out:
        running = start_rubrica(
            *options, *drilled(restorable_appliance), stdout=out, stderr=out
        )
        while running.poll() is None:
            worked_in |= drill_folders(running.pid)
            time.sleep(0.01)
        out.seek(0)
        told = out.read()

    assert running.returncode == 0, told
    assert len(worked_in) == 1
    assert not any(folder.exists() for folder in worked_in)
    for part in (
        *("settings", "secrets", "record", "database", "documents"),
        *("signatures", "audit"),
    ):
        assert f"ok     {part}: " in told, told
    assert "documents: 3 of 3 opened" in told
    assert "signatures: 2 signed documents verified" in told
    assert told.count("\n") < 15
    assert read_ledger(restorable_appliance.appliance).newest == before


def test_sample_opens_some_and_misses_none(
    restorable_appliance: RestorableAppliance,
) -> None:
    """Fewer documents are opened; those that are missing are all named."""
    status, told = drill(restorable_appliance, "--sample", "1", "--signed", "0")
    assert status == 0, told
    assert "documents: 1 of 3 opened" in told
    assert "signatures: 0 signed" in told

    backup = changed(restorable_appliance, "record", lambda m: m.pop(document_in(m)))
    status, told = drill(
        restorable_appliance, "--sample", "0", "--signed", "0", backup=backup
    )
    assert status == 1
    assert MISSING in told


@pytest.mark.parametrize("broken", RECORDS)
def test_record_that_is_broken_is_refused(
    restorable_appliance: RestorableAppliance, broken: str
) -> None:
    """By the part that it is broken in, in a line that says how."""
    change, part, words = RECORDS[broken]

    status, told = drill(
        restorable_appliance, backup=changed(restorable_appliance, "record", change)
    )

    assert_fault(status, told, part, words)


@pytest.mark.parametrize("broken", SECRETS)
def test_secrets_that_are_broken_are_refused(
    restorable_appliance: RestorableAppliance, broken: str
) -> None:
    """The same; what a secret is, is never told."""
    change, part, words = SECRETS[broken]

    status, told = drill(
        restorable_appliance, secrets=changed(restorable_appliance, "secrets", change)
    )

    assert_fault(status, told, part, words)


def assert_fault(status: int, told: str, part: str, words: str) -> None:
    """It is refused, for that reason."""
    assert status == 1, told
    faults = [line for line in told.splitlines() if line.startswith("FAULT")]
    assert any(line.startswith(f"FAULT  {part}: ") for line in faults), told
    assert any(words in line for line in faults), told
    assert "can NOT be brought back" in told


@pytest.mark.parametrize("kind", ["record", "secrets"])
@pytest.mark.parametrize("how", ["bit flipped", "cut off"])
def test_file_that_is_damaged_is_refused(
    restorable_appliance: RestorableAppliance, kind: str, how: str
) -> None:
    """A bit in the midst of it, and an end that is not there."""
    whole = restorable_appliance.files(kind)[-1].read_bytes()
    at = len(whole) // 2
    flipped = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    path = restorable_appliance.places / "damaged.tar.age"
    path.write_bytes(flipped if how == "bit flipped" else whole[:-100])

    status, told = drill(
        restorable_appliance, **{"backup" if kind == "record" else kind: path}
    )

    assert status == 1, told
    assert "FAULT" in told


def test_key_of_somebody_else_opens_nothing(
    restorable_appliance: RestorableAppliance,
) -> None:
    """Of age's; and what is not there is the command's fault, not the backup's."""
    other = restorable_appliance.places / "other"
    subprocess.run(["age-keygen", "-o", other], check=True, capture_output=True)

    status, told = drill(restorable_appliance, identity=other)
    other.unlink()

    assert status == 1
    assert "no identity matched" in told
    status, told = drill(restorable_appliance, identity=other)
    assert status == 78
    assert str(other) in told
