"""Make a backup: the database first, so that all documents it names come after it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Final

from appliance.documents.document_files import name_of
from appliance.documents.local.folder_mark import mark_in
from appliance.domain.ids import IntegratorId
from appliance.operations.backup import places, record
from appliance.operations.backup.archive import CONTENTS, Writer
from appliance.operations.backup.destinations import Destination, FolderDestination
from appliance.operations.backup.fingerprints import KEYS, fingerprints_of
from appliance.operations.backup.names import (
    RECORD,
    SECRETS,
    BackupName,
    installation_id,
    to_forget,
)
from appliance.operations.backup.work_folder import WORK, remove_dead, work_folder
from appliance.settings import Settings, SettingsError

ABOUT: Final = "about.json"
_WORK_PREFIX: Final = "rubrica-backup-"


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that is whole."""

    place: Destination
    name: BackupName
    files: int
    size: int
    """Bytes before encryption."""

    @property
    def told(self) -> str:
        """Its name, for people."""
        return f"{self.place.told}/{self.name.file}"


def make_record(
    settings: Settings,
    settings_file: Path,
    place: Destination,
    recipients: list[str],
    now: datetime,
    version: str,
) -> Made:
    """Back up database, documents, public keys and settings.

    Where documents are in a bucket, their names.

    Args:
        settings: of the installation.
        settings_file: where they stand.
        place: that is there; the file's name says whose it is and when it was made.
        recipients: options of age(1).
        now: the time.
        version: of the tables.

    Raises:
        SettingsError: what stands in the way; nothing is left of it.
        OSError: the same.
    """
    mark = record.documents_mark(settings, int(version))
    name = BackupName(RECORD, installation_id(mark), now)
    remove_dead(WORK, f"{_WORK_PREFIX}*", now)
    with (
        work_folder(_WORK_PREFIX) as work,
        place.writing(name, recipients, now) as archive,
    ):
        dumped = work / places.DUMP
        record.dump(settings, dumped)
        mark = record.documents_mark(settings, int(version))
        _refuse_away(settings, mark)
        _begin(archive, settings, now, kind="record", tables=version)
        archive.add_file(places.SETTINGS, settings_file)
        archive.add_file(places.DUMP, dumped)
        dumped.unlink()
        _add_all(archive, places.public_keys(settings))
        _add_all(archive, places.documents(settings))
        if settings.documents.url is not None:
            archive.add_bytes(places.DOCUMENT_LIST, _document_list(settings))
        # It may have gone away meanwhile.
        _refuse_away(settings, mark)
        return _end(archive, place, name)


def make_secrets(
    settings: Settings,
    place: Destination,
    recipients: list[str],
    now: datetime,
    installation: str | None,
) -> Made:
    """Back up what opens the other: keys, PINs, passwords, tokens of a software HSM.

    Args:
        settings: of the installation.
        place: another one than that of the record's backups.
        recipients: options of age(1).
        now: the time.
        installation: see `installation_id`.

    Raises:
        SettingsError: what stands in the way; nothing is left of it.
        OSError: the same.
    """
    for key, secret in places.secret_places(settings):
        if key.startswith("secrets.") and not secret.is_file():
            msg = f"{key}: {secret} is not there, and nothing works without it"
            raise SettingsError(msg)
    name = BackupName(SECRETS, installation, now)
    with place.writing(name, recipients, now) as archive:
        _begin(archive, settings, now, kind="secrets", tables=None)
        _add_all(archive, places.secret_files(settings))
        _add_all(archive, places.tokens(settings))
        return _end(archive, place, name)


def forget_older(made: Made, keep: int, earlier: list[str]) -> list[str]:
    """Remove all but the newest backups of one kind and installation.

    Args:
        made: the newest, which stays whatever the clock was when others were made.
        keep: how many stay, 1 or more.
        earlier: what lay in the place before it was made. What another run made
            meanwhile stays: that run removes none of this one's either.

    Returns:
        Those that are gone, with the place's name.

    Raises:
        SettingsError: one cannot be removed.
        OSError: the same.
    """
    older = to_forget(earlier, made.name, keep)
    for file in older:
        made.place.remove(file)
    return [f"{made.place.told}/{file}" for file in older]


def _document_list(settings: Settings) -> bytes:
    """Names of the documents that the record names, a line each.

    Raises:
        SettingsError: the database is away.
    """
    named = sorted(record.named_documents(settings))
    lines = [f"{name_of(IntegratorId(each), sha256)}\n" for each, sha256 in named]
    return "".join(lines).encode()


def _refuse_away(settings: Settings, mark: str | None) -> None:
    """Refuse a folder of documents that is not there, or not this record's.

    Raises:
        SettingsError: it is not.
    """
    folder = settings.documents_dir
    if settings.documents.url is not None:
        return  # a bucket is backed up by itself
    if mark is not None and mark_in(folder) != mark:
        msg = (
            f"documents.path: {folder} is away, or another installation's: "
            "a backup of it would have none of the record's documents"
        )
        raise SettingsError(msg)


def _begin(
    archive: Writer, settings: Settings, now: datetime, *, kind: str, tables: str | None
) -> None:
    about: dict[str, Any] = {
        "kind": kind,
        "rubrica": version_of("rubrica"),
        "tables": tables,
        "installation": settings.installation,
        "database": settings.database.url.partition(":")[0],
        "made": now.isoformat(),
        KEYS: fingerprints_of(settings),
    }
    archive.add_bytes(ABOUT, json.dumps(about, ensure_ascii=False).encode())


def _add_all(archive: Writer, found: Iterable[tuple[str, Path]]) -> None:
    for name, path in found:
        archive.add_file(name, path)


def _end(archive: Writer, place: Destination, name: BackupName) -> Made:
    told = archive.tally.told()
    made = Made(place, name, archive.tally.files, archive.tally.size)
    archive.add_bytes(CONTENTS, json.dumps(told).encode())
    return made


def check_places(record_place: Destination, secrets_place: Destination | None) -> None:
    """Refuse places that are not there, or are one folder.

    Raises:
        SettingsError: what is wrong with them.
    """
    record_place.check()
    if secrets_place is None:
        return
    secrets_place.check()
    if (
        isinstance(record_place, FolderDestination)
        and isinstance(secrets_place, FolderDestination)
        and record_place.folder.samefile(secrets_place.folder)
    ):
        msg = (
            f"{secrets_place.told}: who finds both files there has everything; "
            "give the secrets another place"
        )
        raise SettingsError(msg)
