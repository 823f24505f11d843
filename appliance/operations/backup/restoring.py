"""Bring a backup back: settings and secrets, public keys, documents, the database last.

Nothing that is there is overwritten. What was brought back by a run that ended
half-way and is the same is kept, so that it can be begun again. The database comes
last, and whole: before it, no role has anything to work on.
"""

import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_IMODE, S_ISVTX
from typing import IO, Any, Final

from appliance.database.table_version import newest
from appliance.operations.backup import places, record
from appliance.operations.backup.archive import CONTENTS, Tally, copied, reading
from appliance.operations.backup.fingerprints import (
    Fingerprints,
    differing,
    fingerprints_in,
    fingerprints_of,
)
from appliance.operations.backup.making import ABOUT
from appliance.operations.backup.work_folder import WORK
from appliance.settings import Settings, SettingsError, load_settings
from appliance.system.durable_files import NEW, sync_folder, write_durably

_JSON_BYTES: Final = 65_536
_SETTINGS_BYTES: Final = 1 << 20
_PIECE: Final = 1 << 20
_OTHERS: Final = 0o077
"""Bits of who is not the owner."""
_DAMAGES: Final = (tarfile.TarError, ValueError, TypeError, RecursionError)
"""What is raised where a backup says what none says."""
Taker = Callable[[str, IO[bytes]], None]


@dataclass
class Restored:
    """What was brought back."""

    about: dict[str, Any]
    files: int = 0
    kept: int = 0
    """Files that were there already, the same."""
    missing: list[tuple[str, str]] = field(default_factory=list)
    """Integrator and SHA-256 of documents that the database names and are not there."""


def refuse_apart(backup: Path, secrets: Path, identity: Path) -> None:
    """Refuse a record and secrets that do not belong together; nothing is changed.

    Args:
        backup: of the record.
        secrets: of the secrets.
        identity: file with age's private key.

    Raises:
        SettingsError: they do not, or one is of the other kind; see `reading`.
    """
    about = _about(secrets, identity, "secrets")
    _refuse_keys(
        backup,
        _about(backup, identity, "record"),
        f"{secrets}, of {about.get('made')}",
        fingerprints_in(about),
    )


def _refuse_keys(
    backup: Path, about: dict[str, Any], name: str, keys: Fingerprints
) -> None:
    """Refuse keys that are not those of a record.

    Args:
        backup: of it.
        about: what that says of itself.
        name: of where the keys are.
        keys: they.

    Raises:
        SettingsError: some are others.
    """
    if others := differing(fingerprints_in(about), keys):
        msg = (
            f"{backup}, of {about.get('made')}, and {name}: are not of one "
            f"installation, or not of one time ({', '.join(others)} differ): "
            "the record would not open; give the secrets that belong to it"
        )
        raise SettingsError(msg)


def _about(backup: Path, identity: Path, kind: str) -> dict[str, Any]:
    """What a backup says of itself, which is the first in it.

    Raises:
        SettingsError: it is of another kind, or damaged; see `reading`.
    """
    try:
        for name, _, content in reading(backup, identity):
            if name == ABOUT:
                about = dict(json.loads(content.read(_JSON_BYTES)))
                _refuse_other(backup, about, kind)
                return about
            break
    except _DAMAGES as exc:
        raise SettingsError(_damaged(backup, exc)) from exc
    msg = f"{backup}: is not whole"
    raise SettingsError(msg)


def restore_settings(backup: Path, identity: Path, settings_file: Path) -> bool:
    """Put the settings in their place, unless there are some.

    Returns:
        Whether they were brought back.

    Raises:
        SettingsError: see `reading`.
    """
    if settings_file.exists():
        return False
    own = _as_in(settings_file.parent, 0o644)
    write_durably(settings_file, [settings_in(backup, identity)], own)
    return True


def settings_in(backup: Path, identity: Path) -> bytes:
    """The settings file of a backup.

    Raises:
        SettingsError: it has none, or is damaged; see `reading`.
    """
    try:
        for name, _, content in reading(backup, identity):
            if name == places.SETTINGS:
                return content.read(_SETTINGS_BYTES)
    except tarfile.TarError as exc:
        raise SettingsError(_damaged(backup, exc)) from exc
    msg = f"{backup}: has no settings: is it the one with the secrets?"
    raise SettingsError(msg)


def restore_secrets(
    backup: Path,
    identity: Path,
    settings: Settings,
    place_of: Callable[[Path], Path | None] | None = None,
) -> Restored:
    """Put keys, PINs and tokens where the settings name them.

    Args:
        backup: of the secrets.
        identity: file with age's private key.
        settings: of the installation.
        place_of: where else a file is put than where the settings name it, None for
            one that is left out; given, tokens are, and no database is asked.

    Raises:
        SettingsError: another file is there already, or the database holds
            something; see `reading`.
    """
    if place_of is None and can_ask(settings):
        # Before anything comes to lie beside what is in use.
        record.refuse_full(settings)
    named = {places.SECRETS + key: path for key, path in places.secret_places(settings)}
    folder = places.token_folder(settings)
    restored = Restored({})

    def put(path: Path, content: IO[bytes], mode: int) -> None:
        place = place_of(path) if place_of is not None else path
        if place is None:
            copied(content, io.BytesIO())
        else:
            _put(restored, place, content, mode)

    def take(name: str, content: IO[bytes]) -> None:
        nonlocal folder
        conf = settings.hsm.softhsm_conf
        if name == places.SOFTHSM_CONF and conf is not None:
            put(conf, content, 0o600)
            folder = places.token_folder(settings)
        elif name.startswith(places.TOKENS) and place_of is not None:
            copied(content, io.BytesIO())
        elif name.startswith(places.TOKENS) and folder is not None:
            put(folder / name.removeprefix(places.TOKENS), content, 0o600)
        elif name in named:
            is_public = name.endswith(("certificate_file", ".ca_file"))
            put(named[name], content, 0o644 if is_public else 0o600)
        else:
            msg = f"{name}: the settings name no place for it"
            raise SettingsError(msg)

    take_all(backup, identity, "secrets", restored, take)
    return restored


def can_ask(settings: Settings) -> bool:
    """Whether what the database asks for is there: a password, an authority."""
    database = settings.database
    needed = database.password_file, database.root_certificate_file
    return all(path is None or path.exists() for path in needed)


def restore_record(backup: Path, identity: Path, settings_file: Path) -> Restored:
    """Bring back public keys, documents and then the database, and look at it.

    Args:
        backup: of the record.
        identity: file with age's private key.
        settings_file: of the installation; its secrets are there.

    Raises:
        SettingsError: the database holds something; the backup is damaged, of other
            keys than those that are there, or of tables that this version does not
            know; another file is there.
    """
    settings = load_settings(settings_file)
    record.refuse_full(settings)
    about = _about(backup, identity, "record")
    _refuse_keys(backup, about, "what is there", fingerprints_of(settings))
    restored = Restored({})
    work_in = settings.data_dir if settings.database.url == "sqlite" else WORK
    with tempfile.TemporaryDirectory(dir=work_in, prefix=".restore-") as work:
        dumped = Path(work) / places.DUMP

        def take(name: str, content: IO[bytes]) -> None:
            if name == places.DUMP:
                with dumped.open("wb") as file:
                    copied(content, file)
                    os.fsync(file.fileno())
            elif name.startswith(places.PKI):
                path = settings.root_file.parent / name.removeprefix(places.PKI)
                _put(restored, path, content, 0o640)
            elif name == places.DOCUMENT_LIST:
                copied(content, io.BytesIO())  # the database names the same
            elif name.startswith(places.DOCUMENTS):
                _refuse_bucket(settings)
                path = settings.documents_dir / name.removeprefix(places.DOCUMENTS)
                _put(restored, path, content, 0o660)
            elif name != places.SETTINGS:
                msg = f"{name}: is nothing that a backup has"
                raise SettingsError(msg)

        take_all(backup, identity, "record", restored, take)
        with dumped.open("rb") as file:
            _as_in(settings.data_dir, 0o660)(file.fileno())
        record.bring_back(settings, dumped, int(restored.about["tables"]))
    named = record.named_documents(settings)
    restored.missing += places.missing_documents(settings, named)
    return restored


def _refuse_bucket(settings: Settings) -> None:
    """Refuse to put the files of a backup anywhere but in a folder.

    Raises:
        SettingsError: documents are in a bucket by now.
    """
    if settings.documents.url is not None:
        msg = (
            "documents.url: the backup holds documents as files: restore with the "
            "settings of then, and copy them into the bucket after it"
        )
        raise SettingsError(msg)


def take_all(
    backup: Path, identity: Path, kind: str, restored: Restored, take: Taker
) -> None:
    """Give each member of a whole backup of a kind to who puts it in its place.

    Args:
        backup: of the record or of the secrets.
        identity: file with age's private key.
        kind: `record` or `secrets`.
        restored: gets what the backup says of itself.
        take: gets name and content of each.

    Raises:
        SettingsError: it is of another kind, or not whole; see `reading`.
    """
    try:
        whole = _is_whole(backup, identity, kind, restored, take)
    except _DAMAGES as exc:
        raise SettingsError(_damaged(backup, exc)) from exc
    if not whole:
        msg = f"{backup}: is not whole"
        raise SettingsError(msg)


def _damaged(backup: Path, exc: Exception) -> str:
    return f"{backup}: is cut off or damaged ({exc})"


def _is_whole(
    backup: Path, identity: Path, kind: str, restored: Restored, take: Taker
) -> bool:
    """Give each member away; whether the last one tells of all of them.

    Raises:
        SettingsError: see `take_all`.
        tarfile.TarError: it ends in the midst of a member.
        ValueError, TypeError: what it says of itself is nothing that a backup says.
    """
    tally, whole = Tally(), False
    for name, size, content in reading(backup, identity):
        if whole:
            return False
        if name == CONTENTS:
            whole = json.loads(content.read(_JSON_BYTES)) == tally.told()
            continue
        if name == ABOUT:
            restored.about = dict(json.loads(content.read(_JSON_BYTES)))
            _refuse_other(backup, restored.about, kind)
        elif not restored.about:
            return False
        else:
            take(name, content)
        tally.count(name, size)
    return whole


def _refuse_other(backup: Path, about: dict[str, Any], kind: str) -> None:
    """Refuse a backup of another kind, and one of a newer version's tables.

    Raises:
        SettingsError: it is one.
        ValueError: a record does not say of which version they are.
    """
    if about.get("kind") != kind:
        msg = f"{backup}: holds the {about.get('kind')}, not the {kind}"
        raise SettingsError(msg)
    tables = about.get("tables")
    if kind == "record" and tables is None:
        msg = "of which version are its tables?"
        raise ValueError(msg)
    if tables is not None and int(tables) > int(newest()):
        msg = (
            f"{backup}: its tables are of version {tables}, and this one knows "
            f"{newest()}: install Rúbrica {about.get('rubrica')} or a newer one"
        )
        raise SettingsError(msg)


def _put(restored: Restored, path: Path, content: IO[bytes], mode: int) -> None:
    """Write a file that is not there; one that is there must be the same.

    Raises:
        SettingsError: it is another one.
    """
    if path.exists():
        if _sha256(content) != _sha256(path):
            msg = f"{path}: is there already, and another one: move it away"
            raise SettingsError(msg)
        restored.kept += 1
        return
    _make_folder(path.parent, private=mode & _OTHERS == 0)
    pieces = iter(lambda: content.read(_PIECE), b"")
    write_durably(path, pieces, _as_in(path.parent, mode))
    restored.files += 1


def _make_folder(folder: Path, *, private: bool) -> None:
    """Make a folder, and those above it, that are as the one that is there.

    Args:
        folder: its name.
        private: it is its owner's alone.
    """
    if folder.exists():
        return
    _make_folder(folder.parent, private=private)
    # Not sticky: one role takes away what another one put there.
    mode = S_IMODE(folder.parent.stat().st_mode) & ~S_ISVTX
    if private:
        mode &= ~_OTHERS
    # Killed before it has its name, it is made anew.
    new = Path(tempfile.mkdtemp(prefix=NEW, dir=folder.parent))
    handle = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _as_in(folder.parent, mode)(handle)
    finally:
        os.close(handle)
    new.rename(folder)
    sync_folder(folder.parent)


def _sha256(of: IO[bytes] | Path) -> bytes:
    digest = hashlib.sha256()
    if isinstance(of, Path):
        with of.open("rb") as file:
            return _sha256(file)
    while piece := of.read(_PIECE):
        digest.update(piece)
    return digest.digest()


def _as_in(folder: Path, mode: int) -> Callable[[int], None]:
    """What has an open file that root made belong to whom a folder belongs to."""

    def own(handle: int) -> None:
        # By the handle: a name in another one's folder may lead elsewhere by now.
        os.fchmod(handle, mode)
        if os.geteuid() == 0:
            of = folder.stat()
            os.fchown(handle, of.st_uid, of.st_gid)

    return own
