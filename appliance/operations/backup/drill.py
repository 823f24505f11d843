"""A drill: a backup brought back into a scratch folder, looked at, and removed.

    for part in drill(Drill(backup, secrets, identity, sample=None, signed=20)):
        print(part.name, part.told, part.faults)

Neither an installation of this machine nor an HSM is touched, and nothing but the
scratch folder is written to. Documents are opened one by one as they come out of the
archive, so that the folder has room for the database and some documents alone.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from appliance.cli.own_sandbox import sandbox_at_hand
from appliance.database.table_version import newest
from appliance.operations.backup import places, scratch
from appliance.operations.backup.archive import copied
from appliance.operations.backup.document_check import DocumentCheck
from appliance.operations.backup.record_check import look_at_record, open_record
from appliance.operations.backup.restoring import (
    Restored,
    refuse_apart,
    settings_in,
    take_all,
)
from appliance.operations.backup.work_folder import work_folder
from appliance.secrets.key_files import read_key_ring
from appliance.settings import (
    Settings,
    SettingsError,
    TokenSettings,
    load_settings,
)
from appliance.system.durable_files import write_durably

_PASS_THROUGH: Final = 0o711
"""PostgreSQL's user has a folder in it; nobody may list it."""


@dataclass(frozen=True, slots=True)
class Drill:
    """What is asked for."""

    backup: Path
    secrets: Path
    identity: Path
    sample: int | None
    """How many documents are opened, chosen at random; None: all."""
    signed: int
    """How many signed ones are verified, chosen at random."""


@dataclass(frozen=True, slots=True)
class Part:
    """What was looked at, and found."""

    name: str
    told: str
    faults: tuple[str, ...] = ()


def drill(wanted: Drill) -> Iterator[Part]:
    """Look at a backup, part by part; the first part that ends it is the last.

    Args:
        wanted: what is asked for.

    Raises:
        OSError: the scratch folder cannot be written.
    """
    with work_folder("rubrica-drill-") as folder:
        folder.chmod(_PASS_THROUGH)
        run = _Run(wanted, folder)
        try:
            yield from run.parts()
        except SettingsError as exc:
            yield Part(run.at, "", tuple(str(exc).splitlines()))


class _Run:
    """One drill in its folder."""

    def __init__(self, wanted: Drill, folder: Path) -> None:
        self._wanted = wanted
        self._folder = folder
        self._dump = folder / places.DUMP
        self._documents: DocumentCheck | None = None
        self.at = "settings"
        """The part that is being looked at."""

    def parts(self) -> Iterator[Part]:
        """All parts, in order.

        Raises:
            SettingsError: the one that is looked at ends it.
        """
        given = self._settings()
        yield Part("settings", "this Rúbrica can use them")
        self.at = "secrets"
        wanted = self._wanted
        refuse_apart(wanted.backup, wanted.secrets, wanted.identity)
        yield self._secrets(given)
        self.at = "database"
        with scratch.database_for(given, self._folder) as url:
            settings = scratch.scratch_settings(given, self._folder, url)
            # Before anything has threads: it forks.
            with sandbox_at_hand(settings) as with_sandbox:
                yield from self._record(with_sandbox)

    def _settings(self) -> Settings:
        """The backup's settings, as this version reads them."""
        path = self._folder / places.SETTINGS
        write_durably(path, [settings_in(self._wanted.backup, self._wanted.identity)])
        return load_settings(path)

    def _secrets(self, given: Settings) -> Part:
        """Keys are put in the folder; PINs, passwords and tokens are read past.

        Raises:
            SettingsError: something is not in it, or is no key.
        """
        keys = {f"{places.SECRETS}secrets.{key}": key for key in scratch.KEYS}
        came: set[str] = set()

        def take(name: str, content: IO[bytes]) -> None:
            came.add(places.TOKENS if name.startswith(places.TOKENS) else name)
            if name in keys:
                path = scratch.key_place(self._folder, keys[name])
                path.parent.mkdir(mode=0o700, exist_ok=True)
                write_durably(path, [content.read()])
                path.chmod(0o600)

        found = Restored({})
        wanted = self._wanted
        take_all(wanted.secrets, wanted.identity, "secrets", found, take)
        needed = {**keys, **_pins(given)}
        lost = [label for name, label in needed.items() if name not in came]
        if given.hsm.softhsm_conf is not None and places.TOKENS not in came:
            lost.append("SoftHSM's tokens")
        if lost:
            raise SettingsError("\n".join(f"{label}: is not in it" for label in lost))
        for key in scratch.KEYS:
            read_key_ring(scratch.key_place(self._folder, key))
        tokens = " and tokens" if places.TOKENS in came else ""
        # In no backup: who copies one has not the host.
        host = "no host key: hsm take-over makes one, for fronts elsewhere to admit"
        return Part("secrets", f"whole; keys, PINs{tokens} are there ({host})")

    def _record(self, settings: Settings) -> Iterator[Part]:
        """The other archive, read once from end to end."""
        wanted, found = self._wanted, Restored({})

        def take(name: str, content: IO[bytes]) -> None:
            self._take(settings, found, name, content)

        self.at = "record"
        take_all(wanted.backup, wanted.identity, "record", found, take)
        documents = self._opened(settings, found)
        yield Part("record", f"whole; made {found.about.get('made')}")
        version = f"of version {found.about['tables']}; this Rúbrica has {newest()}"
        yield Part("database", f"brought back, tables {version}")
        told, faults = documents.result()
        yield Part("documents", told, faults)
        self.at = "signatures"
        for name, told, faults in asyncio.run(look_at_record(settings, documents.kept)):
            yield Part(name, told, faults)

    def _take(
        self, settings: Settings, found: Restored, name: str, content: IO[bytes]
    ) -> None:
        """Take a member of the record.

        Raises:
            SettingsError: it is none, or the database before it is no use.
        """
        if name == places.DUMP:
            with self._dump.open("wb") as file:
                copied(content, file)
        elif name.startswith(places.PKI):
            path = self._folder / name
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_durably(path, [content.read()])
        elif name == places.DOCUMENT_LIST:
            self._opened(settings, found).take_list(content)
        elif name.startswith(places.DOCUMENTS):
            documents = self._opened(settings, found)
            documents.take(name.removeprefix(places.DOCUMENTS), content)
        elif name != places.SETTINGS:
            msg = f"{name}: is nothing that a backup has"
            raise SettingsError(msg)

    def _opened(self, settings: Settings, found: Restored) -> DocumentCheck:
        """What looks at documents, for which the database is brought back first.

        Raises:
            SettingsError: it did not come before them, or is no use.
        """
        if self._documents is None:
            if not self._dump.exists():
                msg = f"{self._wanted.backup}: its documents come before its database"
                raise SettingsError(msg)
            self.at = "database"
            tables = int(found.about["tables"])
            named = open_record(settings, self._dump, tables)
            self.at = "record"
            sample, signed = self._wanted.sample, self._wanted.signed
            self._documents = DocumentCheck(self._folder, named, sample, signed)
        return self._documents


def _pins(given: Settings) -> dict[str, str]:
    """What else has to be in the secrets: name there, and key of the settings."""
    tokens: dict[str, TokenSettings] = {
        "firma": given.hsm.firma,
        "pki": given.hsm.pki,
    }
    tokens |= {f"replicas.{at}": one for at, one in enumerate(given.hsm.replicas)}
    keys = [
        f"hsm.{at}.pin_file" for at, one in tokens.items() if one.pin_source == "file"
    ]
    return {f"{places.SECRETS}{key}": key for key in keys}
