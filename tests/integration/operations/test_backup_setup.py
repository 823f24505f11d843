"""Setup and doctor on backups: the unit's way, another's bucket or key, what is gone.

Source: docs/backup.md "Every day", "Into a bucket".
"""

import contextlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.domain.vocab import Environment
from appliance.operations import system
from appliance.operations.backup import look, record
from appliance.operations.backup.bucket_destination import places_of
from appliance.operations.backup.buckets import (
    BackupBucket,
    bucket_of,
    refuse_shared,
)
from appliance.operations.backup.config import BackupConfig
from appliance.operations.backup.names import RECORD, BackupName, installation_id
from appliance.operations.setup import backups
from appliance.operations.setup.addresses import addresses_of_host
from appliance.operations.setup.questions import look as look_at_answer
from appliance.operations.setup_answers import Answers
from appliance.settings import Settings, SettingsError
from appliance.settings.faults import read_tables
from tests.support.faults.small_disk import small_disk
from tests.support.installation.settings import toml
from tests.support.services.s3 import S3Server

MARK = "0190a6ad-0000-7000-8000-000000000001"
BUCKET = """\
to = "s3://docs"
[bucket]
access_key_file = "{}"
secret_key_file = "{}"
"""
_UNITS = Path(__file__).resolve().parents[3] / "systemd"
LAST = datetime(2026, 11, 24, 8, 32, 6, tzinfo=UTC)


@pytest.fixture(autouse=True)
def hidden(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """What the unit does not see, but for where tests have their files."""
    every = backups.HIDDEN
    monkeypatch.setattr(
        backups, "HIDDEN", [each for each in every if Path(each).name != "tmp"]
    )
    return every


@pytest.fixture
def config(s3_server: S3Server, tmp_path: Path) -> BackupConfig:
    """Two buckets, with a key each."""
    (tmp_path / "other-key").write_text("AKIAOTHER\n")
    table = s3_server.tables("any")
    del table["url"]
    return BackupConfig(
        f"s3://{s3_server.new_bucket()}",
        f"s3://{s3_server.new_bucket()}/a",
        ["age1…"],
        bucket=table,
        secrets_bucket=table | {"access_key_file": str(tmp_path / "other-key")},
    )


def settings_with(folder: Path, **documents: Any) -> Settings:
    """Those of an installation."""
    token = {"label": "none", "pin_file": str(folder / "none")}
    keys = ("pepper_file", "data_key_file", "document_key_file", "lookup_key_file")
    return read_tables(
        {
            "trial": True,
            "data_dir": str(folder),
            "run_dir": str(folder),
            "database": {"url": "sqlite"},
            "documents": documents,
            "hsm": {"firma": token, "pki": {**token, "label": "other"}},
            "secrets": {key: str(folder / key) for key in keys},
        }
    )


def bucket_at(s3_server: S3Server, endpoint: str | None) -> BackupBucket:
    """One of a store elsewhere."""
    table = s3_server.tables("any")
    del table["url"]
    del table["endpoint"]
    more = {} if endpoint is None else {"endpoint": endpoint}
    return bucket_of("s3://docs", table | more, "bucket")


def test_unit_gets_a_way_to_the_store(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address; a name with its name server; any, where a store is the Internet's."""
    resolvers = tmp_path / "resolv.conf"
    resolvers.write_text("search x\nnameserver 10.0.0.53\nnameserver 127.0.0.53\n")
    here = bucket_at(s3_server, f"http://127.0.0.1:{s3_server.port}")
    known = {"s3.inside": "10.0.0.7", "s3.us-east-1.amazonaws.com": "52.216.1.1"}
    asked = addresses_of_host
    monkeypatch.setattr(
        backups,
        "addresses_of_host",
        lambda host: {known[host]} if host in known else asked(host),
    )

    def way(endpoint: str | None) -> list[str]:
        return backups.way_to([here, bucket_at(s3_server, endpoint)], resolvers)

    assert backups.way_to([here], resolvers) == []
    assert way("https://10.0.0.9:9000") == ["IPAddressAllow=10.0.0.9"]
    assert way("https://52.216.1.1") == ["IPAddressAllow=52.216.1.1"]
    inside = ["IPAddressAllow=10.0.0.53", "IPAddressAllow=10.0.0.7"]
    assert way("https://s3.inside") == inside
    assert way(None) == ["IPAddressAllow=any"]
    with pytest.raises(SettingsError, match="has no address"):
        way("https://s3.invalid")


def test_bucket_or_key_of_another_purpose_is_refused(
    config: BackupConfig, tmp_path: Path
) -> None:
    """The documents' key is every role's; the two kinds are never in one place."""
    table, other = config.bucket, config.secrets_bucket
    docs = {**table, "url": f"{config.to}/documents"}
    elsewhere = {**table, "url": "s3://documents"}

    def refused(settings: Settings, given: BackupConfig) -> str:
        with pytest.raises(SettingsError) as told:
            places_of(settings, given)
        return str(told.value)

    plain = settings_with(tmp_path)
    assert all(places_of(plain, config))
    assert "(documents.url)" in refused(settings_with(tmp_path, **docs), config)
    told = refused(settings_with(tmp_path, **elsewhere), config)
    assert told.startswith("bucket.access_key_file: is the key to s3://documents")
    one_place = BackupConfig(config.to, f"{config.to}/b", bucket=table)
    told = refused(
        plain,
        BackupConfig(
            config.to, one_place.secrets_to, bucket=table, secrets_bucket=other
        ),
    )
    assert "give each a bucket of its own" in told
    told = refused(
        plain,
        BackupConfig(config.to, config.secrets_to, bucket=table, secrets_bucket=table),
    )
    assert told.startswith("secrets_bucket.access_key_file: is the key to ")


def test_doctor_tells_what_is_amiss(
    s3_server: S3Server,
    config: BackupConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing there; all there; an old one alone; a bucket that is away."""
    settings, file = settings_with(tmp_path), tmp_path / "backup.toml"
    assert list(look.look_at_backups(settings, file)) == []
    monkeypatch.setattr(look, "shown", lambda *_: "active")
    monkeypatch.setattr(record, "table_version", lambda _: "0002")
    monkeypatch.setattr(record, "documents_mark", lambda *_: MARK)
    monkeypatch.setattr(record, "last_backup", lambda *_: LAST)
    table = {**config.bucket, "retry_s": 0}
    file.write_text(
        toml({"to": str(config.to), "recipients": ["age1…"], "bucket": table})
    )
    seen = s3_server.open(str(config.to).removeprefix("s3://"))
    whose = installation_id(MARK)

    def told() -> list[str]:
        return [each.what for each in look.look_at_backups(settings, file)]

    assert told() == [f"{config.to}: has no backup of this installation"]
    seen.write(BackupName(RECORD, "0" * 12, LAST).file, b"x")
    seen.write(BackupName(RECORD, whose, LAST - timedelta(days=9)).file, b"x")
    (old,) = told()
    assert "who removed it?" in old
    seen.write(BackupName(RECORD, whose, LAST).file, b"x")
    assert told() == []
    file.write_text(file.read_text().replace(f'"{config.to}"', '"s3://no-such-one"'))
    (away,) = told()
    assert "NoSuchBucket" in away


@pytest.mark.parametrize(
    ("environment", "state", "found"),
    [
        ("PROD", "not-found", ["no backups"]),
        ("PROD", "masked", []),
        ("PREPROD", "not-found", []),
    ],
)
def test_production_without_backups_is_amiss(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: str,
    state: str,
    found: list[str],
) -> None:
    """Unless somebody said that they are made by other means."""
    monkeypatch.setattr(look, "is_masked", lambda _: state == "masked")
    settings = settings_with(tmp_path)
    settings = settings.model_copy(update={"environment": Environment(environment)})

    told = list(look.look_at_backups(settings, tmp_path / "backup.toml"))

    assert [each.what.partition(":")[0] for each in told] == found
    assert all("systemctl mask" in each.remedy for each in told)


@pytest.mark.parametrize(
    ("is_masked", "state", "is_told"),
    [(False, "inactive", True), (False, "active", False), (True, "inactive", False)],
)
def test_timer_that_stands_still_is_amiss(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_masked: bool,
    state: str,
    is_told: bool,
) -> None:
    """Where a file says that backups are to be made."""
    file = tmp_path / "backup.toml"
    file.write_text(f'to = "{tmp_path}/none"\nrecipients = ["age1…"]\n')
    monkeypatch.setattr(look, "is_masked", lambda _: is_masked)
    monkeypatch.setattr(look, "shown", lambda *_: state)

    told = look.look_at_backups(settings_with(tmp_path), file)

    is_first = next(told).what == "rubrica-backup.timer: does not run"
    assert is_first == is_told


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("https://s3.inside", "https://S3.inside.:443/", True),
        ("https://s3.inside", "http://s3.inside", True),
        ("https://s3.inside:9000", "https://s3.inside:9001", False),
        (None, "https://s3.sa-east-1.amazonaws.com", True),
    ],
)
def test_one_store_has_several_addresses(
    s3_server: S3Server,
    tmp_path: Path,
    one: str | None,
    other: str,
    *,
    is_same: bool,
) -> None:
    """A port that is usual, capitals, a name's last dot: the same lies there."""
    pair = bucket_at(s3_server, one), bucket_at(s3_server, other)
    told = pytest.raises(SettingsError, match="give each a bucket of its own")
    with told if is_same else contextlib.nullcontext():
        refuse_shared(settings_with(tmp_path), *pair)


def test_name_that_is_none_has_no_address() -> None:
    """DNS knows no such label; a sentence all the same."""
    for host in ("a" * 80, "a..b"):
        with pytest.raises(SettingsError, match="has no address"):
            addresses_of_host(host)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where setup writes, without systemd; what it had it do."""
    ran: list[str] = []
    timer = tmp_path / "timer"
    monkeypatch.setattr(backups, "FILE", tmp_path / "backup.toml")
    monkeypatch.setattr(system, "UNITS", tmp_path / "units")

    def run(*command: str) -> str:
        ran.append(" ".join(command))
        if "enable" in command:
            timer.touch()
        return ""

    monkeypatch.setattr(system, "run", run)
    monkeypatch.setattr(
        backups, "shown", lambda *_: "active" if timer.exists() else "inactive"
    )
    return ran


@pytest.mark.skipif(os.geteuid() != 0, reason="it is root who sets up")
def test_timer_runs_whatever_is_amiss_with_a_place(
    tmp_path: Path, machine: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The next run finds the file, and would leave the timer as it is."""
    place, file = tmp_path / "place", tmp_path / "backup.toml"
    away = f'to = "{place}"\nsecrets_to = "s3://a-b"\nrecipients = ["age1…"]\n'
    elsewhere = {
        "endpoint": f"https://{'a' * 80}",
        "access_key_file": "/none",
        "secret_key_file": "/none",
    }
    away += toml({"secrets_bucket": elsewhere})
    file.write_text(away)
    settings = settings_with(tmp_path)

    with pytest.raises(SettingsError, match="has no address"):
        backups.make_way(settings, starts=True)
    place.mkdir()
    file.write_text(f'to = "{place}"\nrecipients = ["age1…"]\n')
    backups.make_way(settings, starts=False)

    assert machine == ["systemctl enable --quiet --now rubrica-backup.timer"]
    assert f"backups go to {place}\n" == capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="it is root who sets up")
def test_timer_that_does_not_run_is_told(
    tmp_path: Path, machine: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody stopped it, or wrote the file by hand: it stays as it is."""
    file = tmp_path / "backup.toml"
    file.write_text(f'to = "{tmp_path}"\nrecipients = ["age1…"]\n')

    backups.make_way(settings_with(tmp_path), starts=False)

    assert machine == []
    assert "enable --now rubrica-backup.timer" in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="it is root who sets up")
def test_file_that_has_no_room_leaves_nothing(tmp_path: Path) -> None:
    """What was there before it stays as well."""
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, 65_536) as mounted:
        if not mounted:
            pytest.skip("this user mounts no disk")
        conf = disk / "backup.conf"
        conf.write_text("before")
        with pytest.raises(OSError, match="No space left"):
            system.write_as_it_is_now(conf, "x" * 100_000, mode=0o644, owner=0)
        assert [path.read_text() for path in disk.iterdir()] == ["before"]


@pytest.mark.parametrize(
    "line",
    [
        'to = "/root/backups"',
        'to = "/backup"\nsecrets_to = "/home/ana/secrets"',
        'to = "/backup"\nrecipients_files = ["/root/age.pub"]',
        BUCKET.format("/root/k", "/k"),
        BUCKET.format("/k", "/root/k"),
    ],
)
def test_file_that_the_unit_cannot_see_is_refused(tmp_path: Path, line: str) -> None:
    """Root reads it, so that only the timer would have failed, at night."""
    given = tmp_path / "given.toml"
    given.write_text(f'recipients = ["age1…"]\n{line}\n')
    answers = Answers.of({"backup_file": str(given)})

    (fault,) = look_at_answer(answers, "backup_file")

    assert "rubrica-backup.service sees nothing below /home, /root" in fault


def test_what_is_hidden_is_what_the_unit_says(hidden: tuple[str, ...]) -> None:
    """Source: systemd.exec(5), "ProtectHome=", "PrivateTmp="."""
    unit = (_UNITS / "rubrica-backup.service").read_text()

    assert {"ProtectHome=yes", "PrivateTmp=yes"} <= set(unit.splitlines())
    homes = {"/home", "/root", "/run/user"}
    assert set(hidden) == {*homes, "/tmp", "/var/tmp"}  # noqa: S108 (the names)


@pytest.mark.skipif(os.geteuid() != 0, reason="it is root who sets up")
def test_setup_takes_a_file_once(config: BackupConfig, tmp_path: Path) -> None:
    """One that says all that a timer needs; what is there already stays."""
    given, into = tmp_path / "given.toml", tmp_path / "backup.toml"
    answers = Answers.of({"backup_file": str(given)})
    (missing,) = look_at_answer(answers, "backup_file")
    given.write_text('to = "/backup"\n')
    (nobody,) = look_at_answer(answers, "backup_file")
    given.write_text(f'to = "{config.to}"\nrecipients = ["age1…"]\n')
    (keyless,) = look_at_answer(answers, "backup_file")
    assert "cannot be read" in missing
    assert "recipients: is missing" in nobody
    assert "bucket.access_key_file: is missing" in keyless
    given.write_text(given.read_text() + toml({"bucket": dict(config.bucket)}))
    assert look_at_answer(answers, "backup_file") == []

    assert backups.bring_file(answers, into)
    first = into.read_text()
    given.write_text('to = "/backup"\nrecipients = ["age1other"]\n')
    assert not backups.bring_file(answers, into)

    assert BackupConfig.read(into).to == config.to
    assert into.read_text() == first
