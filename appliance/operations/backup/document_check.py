"""Documents of a backup, opened one by one as they come out of it."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from appliance.documents.document_files import (
    DamagedError,
    contents,
    hashed,
    named_document,
)
from appliance.documents.local.folder_mark import FILE
from appliance.domain.ids import IntegratorId
from appliance.operations.backup.archive import copied

SHOWN: Final = 20
"""Faults of one kind that are told one by one."""
Document = tuple[str, str]
"""Integrator and SHA-256."""


@dataclass(frozen=True, slots=True)
class Named:
    """What the database says of documents."""

    documents: set[Document]
    """All that it names."""
    signed: set[Document]
    keys: dict[str, bytes]
    """By integrator."""
    shredded: set[str]
    """Integrators whose keys were destroyed on purpose."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A signed document whose signatures are to be looked at."""

    name: str
    path: Path


class DocumentCheck:
    """Opens documents, and keeps some.

    Args:
        folder: a scratch one.
        named: by the database.
        sample: how many are opened; None: all.
        signed: how many signed ones are kept.
    """

    def __init__(
        self, folder: Path, named: Named, sample: int | None, signed: int
    ) -> None:
        self._folder = folder
        self._named = named
        chance = secrets.SystemRandom()
        readable = {each for each in named.signed if each[0] not in named.shredded}
        self._keep = _some(chance, readable, signed)
        every = named.documents
        chosen = every if sample is None else _some(chance, every, sample)
        self._chosen = chosen | self._keep
        self._there: set[Document] = set()
        self._opened = 0
        self._beside = 0
        self._shredded = 0
        self._is_bucket = False
        self._damaged: list[str] = []
        self.kept: list[Kept] = []
        """Those to be looked at, in clear in the scratch folder."""

    def take(self, name: str, content: IO[bytes]) -> None:
        """Take a file of the documents' folder.

        Args:
            name: below that folder.
            content: read as far as it is wanted.
        """
        if name == FILE:
            return
        integrator, _, rest = name.partition("/")
        document = (integrator, rest.rpartition("/")[2].removesuffix(".pdf"))
        if document not in self._named.documents:
            # It came in after the dump, or nothing refers to it any more.
            self._beside += 1
            return
        self._there.add(document)
        if document in self._chosen:
            self._open(document, content)

    def take_list(self, content: IO[bytes]) -> None:
        """Take the names of what a bucket has, which is backed up by itself.

        Args:
            content: a name in each line.
        """
        self._is_bucket = True
        for line in content.read().decode("utf-8", "replace").splitlines():
            if (document := named_document(line)) in self._named.documents:
                self._there.add(document)

    def _open(self, document: Document, content: IO[bytes]) -> None:
        """Open one, and keep what is in it where it is wanted."""
        integrator, sha256 = document
        stored, clear = self._folder / "stored", self._folder / f"{sha256}.pdf"
        with stored.open("wb") as file:
            copied(content, file)
        key = self._named.keys.get(integrator)
        try:
            with stored.open("rb") as file, clear.open("wb") as into:
                size = stored.stat().st_size
                pieces = contents(file, size, IntegratorId(integrator), sha256, key)
                for piece in hashed(pieces, sha256):
                    into.write(piece)
        except DamagedError:
            clear.unlink(missing_ok=True)
            if integrator in self._named.shredded:
                self._shredded += 1
            else:
                self._damaged.append(_file_name(document))
            return
        self._opened += 1
        if document in self._keep:
            self.kept.append(Kept(_file_name(document), clear))
        else:
            clear.unlink()

    def result(self) -> tuple[str, tuple[str, ...]]:
        """What is told of all of them, and their faults."""
        missing = sorted(self._named.documents - self._there)
        faults = [
            *_listed((_file_name(each) for each in missing), "is not in it"),
            *_listed(self._damaged, "does not open, or is not what it is named by"),
        ]
        told = f"{self._opened} of {len(self._named.documents)} opened, each as named"
        if self._is_bucket:
            told = (
                f"{len(self._there)} listed; they are in a bucket, and are not opened"
            )
        if self._shredded:
            told += f"; {self._shredded} whose keys were destroyed on purpose"
        if self._beside:
            told += f"; {self._beside} more that the database does not name"
        return told, tuple(faults)


def _some(
    chance: secrets.SystemRandom, among: set[Document], many: int
) -> set[Document]:
    return set(chance.sample(sorted(among), min(many, len(among))))


def _file_name(document: Document) -> str:
    integrator, sha256 = document
    return f"{integrator}/{sha256}.pdf"


def _listed(names: Iterable[str], what: str) -> list[str]:
    """A line for each, and one for those that are too many."""
    every = list(names)
    lines = [f"{name}: {what}" for name in every[:SHOWN]]
    if more := len(every) - SHOWN:
        lines += [f"{more} more: {what}"] if more > 0 else []
    return lines
