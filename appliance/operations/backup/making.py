"""Make a backup: the database first, so that all documents it names come after it."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version as version_of
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final

from appliance.domain.ids import IntegratorId
from appliance.operations.backup import places, record
from appliance.operations.backup.archive import CONTENTS, Writer, writing
from appliance.operations.backup.fingerprints import KEYS, fingerprints_of
from appliance.settings import Settings, SettingsError
from appliance.storage.document_files import name_of
from appliance.storage.document_mark import mark_in
from appliance.storage.durable import NEW

ABOUT: Final = "about.json"
SUFFIX: Final = ".tar.age"
_WORK: Final = "/var/tmp"  # noqa: S108 (a folder of its own is made in it)
_WORK_PREFIX: Final = "rubrica-backup-"
_DEAD: Final = timedelta(days=1)
"""After which what was begun and has no name yet is a killed backup's."""


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that is whole."""

    path: Path
    files: int
    size: int
    """Bytes before encryption."""


def make_record(
    settings: Settings,
    settings_file: Path,
    folder: Path,
    recipients: list[str],
    now: datetime,
    version: str,
) -> Made:
    """Back up database, documents, public keys and settings.

    Where documents are in a bucket, their names.

    Args:
        settings: of the installation.
        settings_file: where they stand.
        folder: that is there; the file's name says when it was made.
        recipients: options of age(1).
        now: the time.
        version: of the tables.

    Raises:
        SettingsError: what stands in the way; nothing is left of it.
        OSError: the same.
    """
    path = _new(folder, "rubrica-", now)
    _remove_dead(Path(_WORK), f"{_WORK_PREFIX}*", now)
    with (
        tempfile.TemporaryDirectory(dir=_WORK, prefix=_WORK_PREFIX) as work,
        writing(path, recipients) as archive,
    ):
        dumped = Path(work) / places.DUMP
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
        return _end(archive, path)


def make_secrets(
    settings: Settings, folder: Path, recipients: list[str], now: datetime
) -> Made:
    """Back up what opens the other: keys, PINs, passwords, tokens of a software HSM.

    Args:
        settings: of the installation.
        folder: in another place than the record's backups.
        recipients: options of age(1).
        now: the time.

    Raises:
        SettingsError: what stands in the way; nothing is left of it.
        OSError: the same.
    """
    for key, secret in places.secret_places(settings):
        if key.startswith("secrets.") and not secret.is_file():
            msg = f"{key}: {secret} is not there, and nothing works without it"
            raise SettingsError(msg)
    path = _new(folder, "rubrica-secrets-", now)
    with writing(path, recipients) as archive:
        _begin(archive, settings, now, kind="secrets", tables=None)
        _add_all(archive, places.secret_files(settings))
        _add_all(archive, places.tokens(settings))
        return _end(archive, path)


def forget_older(made: Path, prefix: str, keep: int) -> list[Path]:
    """Remove all but the newest backups of one kind.

    Args:
        made: the newest, which stays whatever the clock was when others were made.
        prefix: of their names, before the time.
        keep: how many stay, 1 or more.

    Returns:
        Those that are gone.
    """
    found = sorted(made.parent.glob(f"{prefix}[0-9]*{SUFFIX}"), reverse=True)
    older = [path for path in found if path != made][keep - 1 :]
    for path in older:
        path.unlink()
    return older


def _document_list(settings: Settings) -> bytes:
    """Names of the documents that the record names, a line each.

    Raises:
        SettingsError: the database is away.
    """
    named = sorted(record.named_documents(settings))
    lines = [f"{name_of(IntegratorId(each), sha256)}\n" for each, sha256 in named]
    return "".join(lines).encode()


def _new(folder: Path, prefix: str, now: datetime) -> Path:
    """Where a backup is to be, in a folder without what killed ones left in it.

    Raises:
        SettingsError: one of this second is there already.
    """
    path = folder / f"{prefix}{_stamp(now)}{SUFFIX}"
    if path.exists():
        msg = f"{path}: is there already: run it again"
        raise SettingsError(msg)
    _remove_dead(folder, f"{NEW}{'[0-9a-f]' * 16}", now)
    return path


def _remove_dead(folder: Path, pattern: str, now: datetime) -> None:
    """Remove what backups that were killed left, as root's alone."""
    for path in folder.glob(pattern):
        seen = path.lstat()
        age = now - datetime.fromtimestamp(seen.st_mtime, now.tzinfo)
        if age < _DEAD or seen.st_uid != os.geteuid():
            continue
        if S_ISDIR(seen.st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()


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


def _stamp(now: datetime) -> str:
    return now.strftime("%Y%m%dT%H%M%SZ")


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


def _end(archive: Writer, path: Path) -> Made:
    told = archive.tally.told()
    made = Made(path, archive.tally.files, archive.tally.size)
    archive.add_bytes(CONTENTS, json.dumps(told).encode())
    return made


def check_folders(record_folder: Path, secrets_folder: Path | None) -> None:
    """Refuse places that are not there, or are one.

    Raises:
        SettingsError: what is wrong with them.
    """
    for folder in (record_folder, secrets_folder):
        if folder is not None and not folder.is_dir():
            msg = f"{folder}: is no folder"
            raise SettingsError(msg)
    if secrets_folder is not None and record_folder.samefile(secrets_folder):
        msg = (
            f"{secrets_folder}: who finds both files there has everything; "
            "give the secrets another place"
        )
        raise SettingsError(msg)
