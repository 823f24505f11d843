"""Backups that go into buckets, by the command line, and what comes back from there.

Source: docs/backup.md "Into a bucket".
"""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.documents.test_bucket_uploads import uploads_of
from tests.support.appliance.backups import (
    RestorableAppliance,
    appliance_with_backups,
    copied,
)
from tests.support.documents.validators import pdfsig
from tests.support.factories.document_storage import BucketStorage
from tests.support.faults.fault_injection import until
from tests.support.installation.settings import toml
from tests.support.processes.scratch import short_folder
from tests.support.services.s3 import SECRET_KEY, S3Server
from tests.support.services.tcp_links import Link

LIMIT, SHORT_LIMIT = "request_timeout_s = 60", "request_timeout_s = 2"
"""No machine takes as long as the first; tests of a silent link wait for the second."""


@dataclass
class Buckets:
    """Two of them, each with a key of its own, and the file that says so."""

    site: RestorableAppliance
    server: S3Server
    link: Link
    config: Path
    urls: tuple[str, str]

    def places(self) -> tuple[BucketStorage, BucketStorage]:
        """The buckets, asked without the link."""
        one, other = (
            BucketStorage(self.server.settings(url.removeprefix("s3://")))
            for url in self.urls
        )
        return one, other

    def newest(self) -> tuple[str, str]:
        """URLs of the newest record and secrets."""
        one, other = (
            f"{url}/{[name for name in place.names() if name.endswith('.age')][-1]}"
            for url, place in zip(self.urls, self.places(), strict=True)
        )
        return one, other

    def restore(self, *options: str) -> Any:
        """Run `rubrica restore` of the newest."""
        record, secrets = self.newest()
        return self.site.appliance.rubrica(
            *("restore", "--backup", record, "--secrets", secrets),
            *("--identity", str(self.site.places / "key")),
            *("--config", str(self.config), *options),
        )

    def back_up(self, *options: str) -> Any:
        """Run `rubrica backup` as the file says."""
        return self.site.appliance.rubrica(
            "backup", "--config", str(self.config), *options
        )


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestorableAppliance]:
    """An installation to be copied: it was stopped."""
    with appliance_with_backups(tmp_path_factory.mktemp("origin"), "sqlite") as made:
        made.appliance.stop()
        yield made


@pytest.fixture(scope="module")
def store() -> Iterator[tuple[Path, S3Server]]:
    """A store, and the folder of the keys to it."""
    with short_folder() as keys, S3Server.running(keys) as server:
        yield keys, server


@pytest.fixture
def buckets(
    origin: RestorableAppliance, store: tuple[Path, S3Server], tmp_path: Path
) -> Iterator[Buckets]:
    """Empty ones, of an installation of the test's own, which is not started."""
    keys, server = store
    with Link(server.port) as link, copied(origin, tmp_path, "sqlite") as site:
        names = server.new_bucket(), server.new_bucket()
        urls = f"s3://{names[0]}/a", f"s3://{names[1]}"
        (keys / "other-key").write_text("AKIAOTHER\n")
        tables = server.tables("any", link.port) | {"retry_s": 1}
        tables |= {"request_timeout_s": 60}
        del tables["url"]
        other = tables | {"access_key_file": str(keys / "other-key")}
        config = tmp_path / "backup.toml"
        config.write_text(
            toml(
                {
                    "to": urls[0],
                    "secrets_to": urls[1],
                    "keep": 1,
                    "recipients": [site.recipient],
                    "bucket": tables,
                    "secrets_bucket": other,
                }
            )
        )
        yield Buckets(site, server, link, config, urls)


def wait_for_another_second() -> None:
    """A backup's name tells its second, and of one second there is one."""
    second = int(time.time())
    until(lambda: int(time.time()) > second)


def test_what_is_lost_comes_back_from_buckets(buckets: Buckets) -> None:
    """Twice made, so that the older goes; listed, drilled, restored, signed on."""
    site = buckets.site
    site.appliance.start()
    request, signed = site.sign()
    for _ in range(2):
        wait_for_another_second()
        done = buckets.back_up()
        assert done.returncode == 0, done.stdout + done.stderr
    record, secrets = buckets.places()
    kept = [name for place in (record, secrets) for name in place.names()]
    assert len(kept) == 4
    assert SECRET_KEY not in done.stdout + done.stderr
    listed = site.appliance.rubrica(
        "restore", "--list", "--config", str(buckets.config)
    )
    drilled = buckets.restore("--drill")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [
        *buckets.newest()
    ]
    assert drilled.returncode == 0, drilled.stdout + drilled.stderr
    site.lose()

    told = buckets.restore()

    assert told.returncode == 0, told.stdout + told.stderr
    site.go_on()
    assert site.signed(request) == signed
    _, later = site.sign()
    assert pdfsig(later)[0].valid


def test_what_cannot_be_is_one_sentence(buckets: Buckets) -> None:
    """Nothing is left, and nothing is brought back."""
    site = buckets.site
    text = buckets.config.read_text()
    buckets.config.write_text(text.replace(LIMIT, SHORT_LIMIT))
    with buckets.link.cut():
        away = buckets.back_up()
    buckets.config.write_text(text)
    assert buckets.back_up().returncode == 0
    record, _ = buckets.places()
    name = next(name for name in record.names() if name.endswith(".age"))
    record.write(name, record.read(name)[:-100])
    same = buckets.back_up("--secrets-to", f"{buckets.urls[0]}/deeper")
    keyless = site.appliance.rubrica(
        *("backup", "--to", buckets.urls[0], "--recipient", site.recipient)
    )
    no_name = site.appliance.rubrica(
        *("restore", "--backup", f"{buckets.urls[0]}/x", "--identity", "/dev/null")
    )
    site.lose()
    damaged = buckets.restore()

    for done, word in (
        (away, "does not answer"),
        (same, "a bucket of its own"),
        (keyless, "bucket.access_key_file: is missing"),
        (no_name, "is no backup's name"),
        (damaged, "is cut off or damaged"),
    ):
        assert done.returncode == 78, done.stdout + done.stderr
        assert word in done.stderr
        assert "Traceback" not in done.stderr
    assert list(site.appliance.folder.iterdir()) == []


def test_backup_that_is_told_to_stop_does_so(buckets: Buckets) -> None:
    """Though the link is silent, and what fails is tried again for long."""
    site = buckets.site
    pipe = site.places / "recipients"
    os.mkfifo(pipe)
    text = buckets.config.read_text().replace("retry_s = 1", "retry_s = 3600")
    buckets.config.write_text(text.replace(LIMIT, SHORT_LIMIT))
    bucket = buckets.urls[0].removeprefix("s3://").partition("/")[0]
    command = (*site.appliance.command, "backup", "--config", str(buckets.config))
    running = subprocess.Popen((*command, "--recipients-file", str(pipe)))
    try:
        # age waits for who may read it, with the upload begun.
        until(lambda: uploads_of(buckets.server, bucket) != [])
        with buckets.link.cut():
            running.terminate()
            assert running.wait(60) != 0
    finally:
        running.kill()
        running.wait()
    assert [place.names() for place in buckets.places()] == [[], []]
