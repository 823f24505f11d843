"""An appliance that is backed up, lost and made anew.

with appliance_with_backups(folder, "sqlite") as restorable_appliance:
    restorable_appliance.back_up_all()
    lost = restorable_appliance.lose()
    restorable_appliance.restore_all()
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from appliance.bootstrap import open_core
from appliance.documents.local.folder_mark import mark_in
from appliance.domain.clock import SystemClock
from appliance.domain.keys.generation import Generation
from appliance.operations.backup.names import RECORD, BackupName, installation_id
from appliance.record.installation_store import InstallationStore
from tests.support.appliance.appliance import MADE, Appliance, TestPerson
from tests.support.appliance.http_calls import signed_pdf
from tests.support.documents import pdfs
from tests.support.faults.fault_injection import execute
from tests.support.processes.event_loops import run_apart
from tests.support.processes.scratch import short_folder
from tests.support.processes.setup_cache import copy_installation


@dataclass
class RestorableAppliance:
    """An appliance with somebody who signs, and two places for its backups."""

    appliance: Appliance
    person: TestPerson
    places: Path
    recipient: str

    def sign(self) -> tuple[int, bytes]:
        """A new request and its signed document."""
        request = self.appliance.new_request(self.person, pdfs.one_page())
        with self.appliance.client(self.person) as client:
            return request, signed_pdf(client, self.person, request)

    def name_of_year(self, year: int) -> str:
        """What a backup of the record of a year's first moment is called."""
        whose = installation_id(mark_in(self.appliance.settings.documents_dir))
        assert whose is not None
        return BackupName(RECORD, whose, datetime(year, 1, 1, tzinfo=UTC)).file

    def generation(self) -> Generation:
        """The take-over that the record is of."""

        async def read() -> Generation:
            settings = self.appliance.settings
            async with (
                open_core(settings, SystemClock(), "operator") as core,
                core.store.read() as transaction,
            ):
                return await InstallationStore(transaction).generation()

        return run_apart(read())

    def signed(self, request: int) -> bytes:
        """The signed document of a request, as its signer gets it."""
        with self.appliance.client(self.person) as client:
            return client.get(f"/solicitudes/{request}/documento").content

    def back_up(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Run `rubrica backup`."""
        to = ("--to", str(self.places / "record"))
        return self.appliance.rubrica(
            "backup", *to, "--recipient", self.recipient, *options
        )

    def back_up_all(self) -> None:
        """Record and secrets."""
        # A backup is named by its second: of another one in it this one is told to
        # run again.
        while (
            "run it again"
            in (
                done := self.back_up("--secrets-to", str(self.places / "secrets"))
            ).stderr
        ):
            pass
        assert done.returncode == 0, done.stderr

    def files(self, kind: str) -> list[Path]:
        """What lies in a place, oldest first."""
        return sorted((self.places / kind).iterdir())

    def restore(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Run `rubrica restore` of the newest backups."""
        files = ("--backup", str(self.files("record")[-1]))
        key = ("--identity", str(self.places / "key"))
        return self.appliance.rubrica("restore", *files, *key, *options)

    def restore_all(self) -> "subprocess.CompletedProcess[str]":
        """Record and secrets."""
        return self.restore("--secrets", str(self.files("secrets")[-1]))

    def go_on(self) -> None:
        """What the manual has one do after a restore, and start."""
        self.migrate()
        self.take_over()
        self.appliance.start()

    def migrate(self) -> None:
        """Run `rubrica migrate`."""
        done = self.appliance.rubrica("migrate")
        assert done.returncode == 0, done.stderr

    def take_over(self) -> None:
        """Run `rubrica hsm take-over`."""
        done = self.appliance.rubrica("hsm", "take-over")
        assert done.returncode == 0, done.stderr

    def lose(self) -> Path:
        """Have nothing of the installation be there; where it went."""
        if self.appliance.is_started:
            self.appliance.stop()
        folder = self.appliance.folder
        if self.appliance.settings.database.url != "sqlite":
            execute(
                self.appliance, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public"
            )
        shutil.rmtree(self.appliance.settings.activation_dir, ignore_errors=True)
        shutil.rmtree(_lost(folder), ignore_errors=True)
        lost = folder.rename(_lost(folder))
        folder.mkdir(mode=0o700)
        return lost


@contextmanager
def appliance_with_backups(
    places: Path, database: str
) -> Iterator[RestorableAppliance]:
    """A running one, with a key of age's for its backups.

    Args:
        places: an empty folder for them.
        database: URL of it, or `sqlite`.
    """
    with (
        short_folder() as folder,
        Appliance.made(folder, database=database) as appliance,
        backed_up(appliance, places) as site,
    ):
        yield site


@contextmanager
def backed_up(appliance: Appliance, places: Path) -> Iterator[RestorableAppliance]:
    """The same, of one that runs already.

    Args:
        appliance: that may be lost.
        places: an empty folder for its backups.
    """
    _make_places(places)
    made = subprocess.run(
        ["age-keygen", "-o", str(places / "key")],
        check=True,
        capture_output=True,
        text=True,
    )
    recipient = made.stderr.rpartition(" ")[2].strip()
    folder = appliance.folder
    try:
        yield RestorableAppliance(appliance, appliance.new_person(), places, recipient)
    finally:
        appliance.configure()
        shutil.rmtree(_lost(folder), ignore_errors=True)


@contextmanager
def copied(
    restorable_appliance: RestorableAppliance, places: Path, database: str
) -> Iterator[RestorableAppliance]:
    """A copy of one that was stopped, with the same people; it is not started.

    Args:
        restorable_appliance: it.
        places: an empty folder for the copy's backups.
        database: `sqlite`, or the URL of a copy of its database.
    """
    _make_places(places)
    shutil.copy2(restorable_appliance.places / "key", places / "key")
    source = restorable_appliance.appliance.folder
    with short_folder() as folder:
        appliance = Appliance(folder, database=database)
        try:
            record = [path.name for path in source.glob("rubrica.db*")]
            copy_installation(source, folder, (*MADE, "documents", *record))
            yield RestorableAppliance(
                appliance,
                restorable_appliance.person,
                places,
                restorable_appliance.recipient,
            )
        finally:
            # What was not brought back is to be closed as well.
            folder.mkdir(mode=0o700, exist_ok=True)
            appliance.configure()
            appliance.close()
            shutil.rmtree(_lost(folder), ignore_errors=True)


def _make_places(places: Path) -> None:
    for name in ("record", "secrets"):
        (places / name).mkdir()


def _lost(folder: Path) -> Path:
    """Where an installation goes that is lost."""
    return folder.with_name(f"{folder.name}-lost")
