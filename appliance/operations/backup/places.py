"""Where the files of an installation lie, and what they are called in a backup."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from appliance.database.password_files import password_file_of
from appliance.database.rights import Role
from appliance.documents.document_files import name_of, named_document
from appliance.documents.local.folder_mark import FILE
from appliance.documents.s3.bucket import Bucket
from appliance.domain.ids import IntegratorId
from appliance.operations.sample import person_file
from appliance.settings import Settings, TokenSettings

SETTINGS: Final = "settings.toml"
DUMP: Final = "database"
PKI: Final = "pki/"
DOCUMENTS: Final = "documents/"
DOCUMENT_LIST: Final = "documents.txt"
"""Names of the documents, a line each, where a bucket has them."""
SECRETS: Final = "secrets/"
TOKENS: Final = "tokens/"
SOFTHSM_CONF: Final = "softhsm2.conf"
_SHELF_DEPTH: Final = 2
"""Folders between that of documents and a document: `{integrator}/{two digits}`."""


def documents(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Name and path of each file of the document store; none that is being written.

    None of a bucket, which is backed up by itself.

    Raises:
        OSError: a folder in it cannot be read.
    """
    if settings.documents.url is not None:
        return
    folder = settings.documents_dir
    if (folder / FILE).is_file():
        yield DOCUMENTS + FILE, folder / FILE
    # Not glob: it passes over what it may not read, and follows links.
    for at, _, names in os.walk(folder, onerror=_refuse):
        shelf = Path(at).relative_to(folder)
        if len(shelf.parts) == _SHELF_DEPTH:
            for name in names:
                if name.endswith(".pdf"):
                    yield f"{DOCUMENTS}{shelf.as_posix()}/{name}", Path(at, name)


def _refuse(fault: OSError) -> None:
    """Pass over a folder that went away, and over no other.

    Raises:
        OSError: it is there.
    """
    if not isinstance(fault, FileNotFoundError):
        raise fault


def missing_documents(
    settings: Settings, named: set[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Documents that are not where documents are kept.

    Args:
        settings: of the installation.
        named: integrator and SHA-256 of those that are looked for.

    Raises:
        SettingsError: the key to the bucket cannot be read.
        ApplianceError: `STORE_UNAVAILABLE`: the bucket is away.
    """
    if settings.documents.url is None:
        folder = settings.documents_dir
        return sorted(
            (integrator, sha256)
            for integrator, sha256 in named
            if not (folder / name_of(IntegratorId(integrator), sha256)).is_file()
        )
    missing = set(named)
    for page in Bucket(settings.documents).pages():
        missing.difference_update(
            found for each in page if (found := named_document(each.name)) is not None
        )
    return sorted(missing)


def public_keys(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Certificates that `hsm init` wrote, and what else lies beside them."""
    folder = settings.root_file.parent
    for path in sorted(folder.glob("*")):
        if path.is_file() and not path.name.startswith("."):
            yield PKI + path.name, path


def secret_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Files that the settings name and that are there, by the key that names each."""
    for key, path in secret_places(settings):
        if path.is_file():
            yield SECRETS + key, path


def secret_places(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Key and path of each file that the settings name, or that stands beside one."""
    found = dict(_named(settings, ""))
    found["secrets.document_key_file"] = settings.document_key_file
    found["sample-person"] = person_file(settings)
    # Each role's own, which `rubrica setup` makes beside the owner's.
    if (owners := settings.database.password_file) is not None:
        for role in Role:
            place = password_file_of(owners, role)
            found[f"database.password_file.{place.name}"] = place
    yield from found.items()


def _named(section: BaseModel, before: str) -> Iterator[tuple[str, Path]]:
    """Those of a section and of the sections in it."""
    if isinstance(section, TokenSettings):
        yield f"{before}so_pin_file", section.so_pin_file
    for name in type(section).model_fields:
        found = getattr(section, name)
        several = found if isinstance(found, (list, tuple)) else [found]
        for at, value in enumerate(several):
            key = f"{before}{name}" + (f".{at}" if several is found else "")
            if isinstance(value, BaseModel):
                yield from _named(value, f"{key}.")
            elif isinstance(value, Path) and name.endswith("_file"):
                yield key, value


def token_folder(settings: Settings) -> Path | None:
    """Where SoftHSM keeps its tokens; None for every other HSM."""
    conf = settings.hsm.softhsm_conf
    if conf is None or not conf.is_file():
        return None
    for line in conf.read_text("utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "directories.tokendir":
            return Path(value.strip())
    return None


def tokens(settings: Settings) -> Iterator[tuple[str, Path]]:
    """Files of SoftHSM's tokens.

    A login may be writing `token.object` just then: the copy beside it, which a
    worker puts back where that is not whole, comes along.
    """
    folder, conf = token_folder(settings), settings.hsm.softhsm_conf
    if folder is None or conf is None:
        return
    yield SOFTHSM_CONF, conf
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path != conf:
            yield TOKENS + path.relative_to(folder).as_posix(), path
