"""A backup that is made while people sign, and what is made of it after a loss.

Source: docs/backup.md.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from stat import S_IMODE
from typing import Final
from urllib.parse import urlsplit

import httpx
import pytest

from appliance.domain.vocab import RequestState
from appliance.operations.backup.archive import writing
from appliance.operations.backup.names import RECORD, BackupName
from appliance.record.installation_store import RESTORED
from tests.support.appliance.backups import (
    RestorableAppliance,
    appliance_with_backups,
    copied,
)
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import execute, until
from tests.support.faults.retrying_callers import Crowd
from tests.support.faults.small_disk import small_disk
from tests.support.patience import CALL_S
from tests.support.services.postgres import PostgresServer

_LAST: Final = "rubrica_backup_last_success_timestamp_seconds"
WORK = Path("/var/tmp")  # noqa: S108 (where `rubrica backup` works)
SHUT = 0o077
"""Bits of who may not look into secrets."""


@pytest.fixture(scope="module")
def on_sqlite(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RestorableAppliance]:
    """One with a signed document, to be copied: it was stopped."""
    with appliance_with_backups(tmp_path_factory.mktemp("sqlite"), "sqlite") as made:
        made.sign()
        made.appliance.stop()
        yield made


@pytest.fixture(scope="module")
def on_postgresql(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestorableAppliance]:
    """The same on PostgreSQL."""
    name = postgres_server.create_database()
    places = tmp_path_factory.mktemp("postgresql")
    with appliance_with_backups(places, postgres_server.url(name)) as made:
        made.sign()
        made.appliance.stop()
        yield made
    postgres_server.drop_database(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def restorable_appliance(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[RestorableAppliance]:
    """The test's own, with a signed document, which is lost in it; not started."""
    origin: RestorableAppliance = request.getfixturevalue(f"on_{request.param}")
    if request.param == "sqlite":
        with copied(origin, tmp_path, "sqlite") as made:
            yield made
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    database = origin.appliance.settings.database.url
    name = server.create_database(urlsplit(database).path.strip("/"))
    with copied(origin, tmp_path, server.url(name)) as made:
        yield made
    server.drop_database(name)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestorableAppliance]:
    """One that no test loses."""
    with appliance_with_backups(tmp_path_factory.mktemp("backups"), "sqlite") as made:
        yield made


@pytest.fixture
def empty(steady: RestorableAppliance) -> RestorableAppliance:
    """The same, without a backup."""
    for path in (*steady.files("record"), *steady.files("secrets")):
        path.unlink()
    return steady


def test_what_is_lost_comes_back_and_signs_on(
    restorable_appliance: RestorableAppliance,
) -> None:
    """Made amid signatures: documents valid, keys usable, the audit whole."""
    appliance = restorable_appliance.appliance
    appliance.start()
    first, signed = restorable_appliance.sign()
    crowd = Crowd(
        appliance, [restorable_appliance.person], pdfs.one_page(), at_least=20
    )
    with crowd.calling():
        restorable_appliance.back_up_all()
    secrets = {p: p.read_bytes() for p in (appliance.folder / "secrets").iterdir()}
    restorable_appliance.lose()

    told = restorable_appliance.restore_all()

    assert told.returncode == 0, told.stdout + told.stderr
    for path, content in secrets.items():
        assert path.read_bytes() == content
        assert S_IMODE(path.stat().st_mode) & SHUT == 0
    restorable_appliance.go_on()
    assert restorable_appliance.signed(first) == signed
    # What was being signed at that moment is given back to its signer, or signed.
    until(lambda: not read_ledger(appliance).with_state(RequestState.IN_PROGRESS))
    _, later = restorable_appliance.sign()
    assert pdfsig(later)[0].valid
    assert pyhanko_valid(later, appliance.roots)
    assert appliance.rubrica("audit", "verify").returncode == 0
    ledger = read_ledger(appliance)
    assert len(ledger.with_state(RequestState.SIGNED)) > 1
    # Documents that were signed after the dump: their requests wait again.
    assert [f for f in ledger.faults() if "belong to nothing" not in f] == []


def test_restore_that_is_cut_off_is_begun_again(
    restorable_appliance: RestorableAppliance,
) -> None:
    """A damaged file brings no database; the whole one then keeps what is the same."""
    restorable_appliance.appliance.start()
    request, signed = restorable_appliance.sign()
    restorable_appliance.back_up_all()
    restorable_appliance.lose()
    (whole,) = restorable_appliance.files("record")
    kept = whole.read_bytes()

    whole.write_bytes(kept[:-1000])
    cut = restorable_appliance.restore_all()
    whole.write_bytes(kept)
    again = restorable_appliance.restore_all()

    assert cut.returncode == 78
    assert "Traceback" not in cut.stderr
    assert again.returncode == 0, again.stderr
    assert "0 kept" not in again.stdout.splitlines()[1]
    restorable_appliance.go_on()
    assert restorable_appliance.signed(request) == signed


def test_restore_overwrites_nothing(restorable_appliance: RestorableAppliance) -> None:
    """A database that holds something, and another key than the backup's, stay."""
    restorable_appliance.back_up_all()
    before = read_ledger(restorable_appliance.appliance).newest

    full = restorable_appliance.restore()

    assert full.returncode == 78
    assert read_ledger(restorable_appliance.appliance).newest == before
    restorable_appliance.lose()
    pepper = restorable_appliance.appliance.folder / "secrets/pepper"
    pepper.parent.mkdir(mode=0o700)
    other = os.urandom(32).hex()
    pepper.write_text(other)
    refused = restorable_appliance.restore_all()
    assert refused.returncode == 78
    assert str(pepper) in refused.stderr
    assert pepper.read_text() == other


@pytest.mark.parametrize("restorable_appliance", ["sqlite"], indirect=True)
def test_documents_that_are_missing_are_named(
    restorable_appliance: RestorableAppliance,
) -> None:
    """A document that was gone before the backup: status 1, and which it is."""
    ledger = read_ledger(restorable_appliance.appliance)
    (row,) = ledger.rows["signed_document"]
    gone = ledger.path(row.integrator, row.sha256)
    gone.unlink()
    restorable_appliance.back_up_all()
    restorable_appliance.lose()

    told = restorable_appliance.restore_all()

    assert told.returncode == 1
    assert f"MISSING  {row.integrator}/{row.sha256}.pdf" in told.stdout


def test_backups_beyond_those_to_keep_go(empty: RestorableAppliance) -> None:
    """The newest stay; what is no backup, or another installation's, is not touched."""
    note = empty.places / "record" / "rubrica-note.txt"
    note.write_text("mine")
    other = BackupName(RECORD, "0" * 12, datetime(2020, 1, 1, tzinfo=UTC)).file
    names = empty.name_of_year(2020), empty.name_of_year(2021)
    for name in (*names, other):
        (empty.places / "record" / name).write_bytes(b"x")

    done = empty.back_up("--keep", "2")

    assert done.returncode == 0, done.stderr
    left = [path.name for path in empty.files("record")]
    assert names[0] not in left
    assert names[1] in left
    assert note.name in left
    assert other in left
    assert len(left) == 4


def test_secrets_place_that_is_away_keeps_no_record_too_many(
    empty: RestorableAppliance,
) -> None:
    """One that is full, say: each day would leave a record more than are to stay."""
    name = empty.name_of_year(2020)
    (empty.places / "record" / name).write_bytes(b"x")
    secrets = empty.places / "secrets"

    with small_disk(secrets, 4_096) as mounted:
        if not mounted:
            pytest.skip("this user mounts no disk")
        done = empty.back_up("--keep", "1", "--secrets-to", str(secrets))

    assert done.returncode == 78, done.stderr
    assert "no space left" in done.stderr
    (left,) = empty.files("record")
    assert left.name != name


def wait_for_the_next_second() -> None:
    """A backup has the second of its making in its name."""
    made = int(time.time())
    until(lambda: int(time.time()) > made)


def test_file_says_what_a_timer_does(empty: RestorableAppliance) -> None:
    """The options are left out; the database and the figures then say when it was."""
    config = empty.places / "backup.toml"
    config.write_text(
        f'to = "{empty.places}/record"\nsecrets_to = "{empty.places}/secrets"\n'
        f'recipients = ["{empty.recipient}"]\nkeep = 1\n'
    )
    began = time.time()

    for _ in range(2):
        done = empty.appliance.rubrica("backup", "--config", str(config))
        assert done.returncode == 0, done.stderr
        wait_for_the_next_second()

    assert len(empty.files("record")) == len(empty.files("secrets")) == 1
    figure = re.compile(rf"^{_LAST}{{.*}} (\S+)$", re.MULTILINE)

    def told() -> list[str]:
        return figure.findall(
            httpx.get(empty.appliance.metrics_url, timeout=CALL_S).text
        )

    until(lambda: any(float(each) >= began - 1 for each in told()))


def test_newest_stays_whatever_the_clock_was(empty: RestorableAppliance) -> None:
    """One of a time when the clock was wrong is not the newest for good."""
    names = empty.name_of_year(2020), empty.name_of_year(2999)
    for name in names:
        (empty.places / "record" / name).write_bytes(b"x")

    done = empty.back_up("--keep", "1")

    assert done.returncode == 0, done.stderr
    (left,) = empty.files("record")
    assert left.name not in names


def test_folder_that_is_away_is_no_backup(empty: RestorableAppliance) -> None:
    """It would be one without documents, for which a whole one is removed."""
    whole = empty.places / "record" / empty.name_of_year(2020)
    whole.write_bytes(b"x")
    folder = empty.appliance.settings.documents_dir
    away = folder.rename(folder.with_name("away"))
    try:
        folder.mkdir()
        done = empty.back_up("--keep", "1")
    finally:
        folder.rmdir()
        away.rename(folder)

    assert done.returncode == 78
    assert str(folder) in done.stderr
    assert empty.files("record") == [whole]


def test_secret_that_is_not_there_is_no_backup(empty: RestorableAppliance) -> None:
    """As where the place that it is in is not mounted: nothing works without it."""
    key = empty.appliance.settings.secrets.pepper_file
    away = key.rename(key.with_name("away"))
    try:
        done = empty.back_up("--secrets-to", str(empty.places / "secrets"))
    finally:
        away.rename(key)

    assert done.returncode == 78
    assert f"secrets.pepper_file: {key}" in done.stderr
    assert empty.files("secrets") == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_backup_that_is_told_to_stop_leaves_nothing(
    empty: RestorableAppliance, how: signal.Signals
) -> None:
    """Neither half a file, nor the dump in clear; as where its terminal goes."""
    held = empty.places / "record"
    pipe = empty.places / "recipients"
    os.mkfifo(pipe)
    before = set(WORK.glob("rubrica-backup-*"))
    command = (*empty.appliance.command, "backup", "--to", str(held))
    # Of a run that hears no SIGHUP, as under nohup, it would hear none either.
    running = subprocess.Popen(
        ("env", "--default-signal=HUP", *command, "--recipients-file", str(pipe))
    )
    try:
        # age waits for who may read it, with the dump lying there.
        until(lambda: any(held.glob(".new-*")))
        until(lambda: set(WORK.glob("rubrica-backup-*")) > before)
        dumps = set(WORK.glob("rubrica-backup-*")) - before
        running.send_signal(how)
        assert running.wait(60) == 130
    finally:
        running.kill()
        running.wait()
        pipe.unlink()
    assert empty.files("record") == []
    # Another test's may be among them, which ends by itself.
    until(lambda: not any(dump.exists() for dump in dumps))


def test_what_a_killed_backup_left_goes_with_the_next(
    empty: RestorableAppliance,
) -> None:
    """A day later; what is a running one's stays, and what is no backup's."""
    folder = empty.places / "record"
    names = ".new-0123456789abcdef", ".new-fedcba9876543210", ".new-note"
    dead, running, note = (folder / name for name in names)
    dump = WORK / f"rubrica-backup-{os.urandom(4).hex()}"
    dump.mkdir()
    (dump / "database").write_bytes(b"x")
    for path in (dead, running, note):
        path.write_bytes(b"x")
    for path in (dead, note, dump):
        os.utime(path, (0, 0))
    try:
        done = empty.back_up()
        assert done.returncode == 0, done.stderr
        assert [dead.exists(), running.exists(), note.exists()] == [False, True, True]
        assert not dump.exists()
    finally:
        shutil.rmtree(dump, ignore_errors=True)


@pytest.mark.parametrize("restorable_appliance", ["sqlite"], indirect=True)
def test_restore_refuses_what_another_database_left(
    restorable_appliance: RestorableAppliance,
) -> None:
    """Its log, which SQLite would write over the pages of the one brought back."""
    restorable_appliance.back_up_all()
    log = restorable_appliance.appliance.settings.data_dir / "rubrica.db-wal"
    restorable_appliance.lose()
    log.write_bytes(b"pages of another database")

    refused = restorable_appliance.restore_all()

    assert refused.returncode == 78
    assert f"{log}: is there already" in refused.stderr
    assert not log.with_name("rubrica.db").exists()
    log.unlink()
    assert restorable_appliance.restore_all().returncode == 0


@pytest.mark.parametrize("restorable_appliance", ["sqlite"], indirect=True)
def test_secrets_of_another_installation_are_refused(
    restorable_appliance: RestorableAppliance,
) -> None:
    """Before anything is changed: given to it, and where they lie already."""
    restorable_appliance.back_up_all()
    settings = restorable_appliance.appliance.settings
    keys = settings.secrets.pepper_file, settings.document_key_file
    for key in keys:
        key.write_text(os.urandom(32).hex())
    wait_for_the_next_second()
    restorable_appliance.back_up_all()
    record, _ = restorable_appliance.files("record")
    own, others = restorable_appliance.files("secrets")
    lost = restorable_appliance.lose()
    folder = restorable_appliance.appliance.folder

    def restore(*secrets: str) -> "subprocess.CompletedProcess[str]":
        key = ("--identity", str(restorable_appliance.places / "key"))
        given = ("--backup", str(record), *key, *secrets)
        return restorable_appliance.appliance.rubrica("restore", *given)

    refused = restore("--secrets", str(others))

    assert refused.returncode == 78
    assert f"{others}, of " in refused.stderr
    assert "pepper_file, document_key_file differ" in refused.stderr
    assert not any(folder.iterdir())
    shutil.copy(
        lost / restorable_appliance.appliance.settings_file.name,
        restorable_appliance.appliance.settings_file,
    )
    for key in keys:
        key.parent.mkdir(exist_ok=True)
        shutil.copy(lost / key.relative_to(folder), key)
    before = sorted(folder.rglob("*"))
    refused = restore()
    assert refused.returncode == 78
    assert "what is there" in refused.stderr
    assert sorted(folder.rglob("*")) == before
    for key in keys:
        key.unlink()
    assert restore("--secrets", str(own)).returncode == 0


@pytest.mark.parametrize("restorable_appliance", ["postgresql"], indirect=True)
def test_restore_that_is_killed_at_its_end_is_ended(
    restorable_appliance: RestorableAppliance,
) -> None:
    """The tables are there, and the record does not say yet that it was restored."""
    restorable_appliance.back_up_all()
    restorable_appliance.lose()
    assert restorable_appliance.restore_all().returncode == 0
    assert restorable_appliance.generation() == RESTORED
    execute(
        restorable_appliance.appliance,
        "DELETE FROM installation WHERE name = 'generation'",
        "CREATE TABLE rubrica_restoring ()",
    )

    again = restorable_appliance.restore_all()

    assert again.returncode == 0, again.stderr
    assert restorable_appliance.generation() == RESTORED
    assert restorable_appliance.restore_all().returncode == 78


@pytest.mark.parametrize("restorable_appliance", ["sqlite"], indirect=True)
def test_restore_leaves_a_running_installation_alone(
    restorable_appliance: RestorableAppliance,
) -> None:
    """No token or key comes to lie beside those in use."""
    restorable_appliance.appliance.start()
    restorable_appliance.back_up_all()
    tokens = restorable_appliance.appliance.folder / "hsm"
    gone = next(tokens.rglob("*.object"))
    kept = gone.read_bytes()
    gone.unlink()

    refused = restorable_appliance.restore_all()

    assert refused.returncode == 78
    assert not gone.exists()
    gone.write_bytes(kept)


@pytest.mark.parametrize("restorable_appliance", ["sqlite"], indirect=True)
def test_restored_documents_are_for_whom_their_folder_is_for(
    restorable_appliance: RestorableAppliance,
) -> None:
    """Roles are users of a group, and documents are theirs to read."""
    restorable_appliance.back_up_all()
    folder = restorable_appliance.appliance.settings.documents_dir
    restorable_appliance.lose()
    folder.mkdir(parents=True)
    os.chown(folder, 0, 4321)
    folder.chmod(0o2770)

    told = restorable_appliance.restore_all()

    assert told.returncode == 0, told.stderr
    shelves = [each for each in folder.rglob("*") if each.is_dir()]
    assert shelves
    assert {S_IMODE(path.stat().st_mode) for path in shelves} == {0o2770}
    found = [*shelves, *folder.glob("*/*/*.pdf")]
    assert {path.stat().st_gid for path in found} == {4321}
    for path in (
        restorable_appliance.appliance.folder / "secrets",
        *folder.parent.glob("tokens"),
    ):
        assert S_IMODE(path.stat().st_mode) & SHUT == 0


@pytest.mark.parametrize("restorable_appliance", ["sqlite"], indirect=True)
def test_file_that_says_odd_things_of_itself_is_refused(
    restorable_appliance: RestorableAppliance,
) -> None:
    """One sentence: anybody who knows the public key can make such a file."""
    restorable_appliance.back_up_all()
    database = restorable_appliance.appliance.settings.data_dir / "rubrica.db"
    settings = restorable_appliance.appliance.settings_file.read_bytes()
    restorable_appliance.lose()
    (record,) = restorable_appliance.files("record")
    record.unlink()
    about = {"kind": "record", "tables": "newest", "made": "x"}
    with writing(record, [f"--recipient={restorable_appliance.recipient}"]) as archive:
        archive.add_bytes("about.json", json.dumps(about).encode())
        archive.add_bytes("settings.toml", settings)
        archive.add_bytes("contents.json", json.dumps(archive.tally.told()).encode())

    refused = restorable_appliance.restore_all()

    assert refused.returncode == 78, refused.stderr
    assert "Traceback" not in refused.stderr
    assert not database.exists()


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("nowhere", "--to"),
        ("nobody", "--recipient"),
        ("bad recipient", "age1nonsense"),
        ("no folder", "is no folder"),
        ("one place", "another place"),
        ("no room", "No space left"),
    ],
)
def test_backup_that_cannot_be_made_leaves_nothing(
    empty: RestorableAppliance, wrong: str, word: str
) -> None:
    """One sentence, and no file that could be taken for a backup; 2 tells of usage."""
    to = empty.places / "record"
    options = {
        "nowhere": ("--recipient", empty.recipient),
        "nobody": (),
        "bad recipient": ("--recipient", "age1nonsense"),
        "no folder": ("--recipient", empty.recipient, "--secrets-to", "/nowhere"),
        "one place": ("--recipient", empty.recipient, "--secrets-to", str(to)),
        "no room": ("--recipient", empty.recipient),
    }[wrong]
    if wrong == "no room":
        mounted = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(to)]
        subprocess.run(mounted, check=True)

    try:
        where = () if wrong == "nowhere" else ("--to", str(to))
        done = empty.appliance.rubrica("backup", *where, *options)
        left = empty.files("record")
    finally:
        if wrong == "no room":
            subprocess.run(["umount", str(to)], check=True)

    status = 2 if wrong in {"nowhere", "nobody"} else 78
    assert done.returncode == status, done.stderr
    assert word.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert left == []


@pytest.mark.parametrize("restorable_appliance", ["sqlite"], indirect=True)
def test_nothing_of_a_backup_can_be_read_without_the_key(
    restorable_appliance: RestorableAppliance,
) -> None:
    """Neither file shows a secret, and another's key opens none."""
    restorable_appliance.back_up_all()
    secret = (
        (restorable_appliance.appliance.folder / "secrets/pepper").read_bytes().strip()
    )

    for path in (
        *restorable_appliance.files("record"),
        *restorable_appliance.files("secrets"),
    ):
        assert S_IMODE(path.stat().st_mode) & SHUT == 0
        assert secret not in path.read_bytes()
        assert bytes.fromhex(secret.decode()) not in path.read_bytes()
    subprocess.run(
        ["age-keygen", "-o", str(restorable_appliance.places / "other")],
        check=True,
        capture_output=True,
    )
    (restorable_appliance.places / "key").unlink()
    (restorable_appliance.places / "other").rename(restorable_appliance.places / "key")
    restorable_appliance.lose()
    refused = restorable_appliance.restore_all()
    assert refused.returncode == 78
    assert "no identity matched" in refused.stderr
    assert list(restorable_appliance.appliance.folder.iterdir()) == []
