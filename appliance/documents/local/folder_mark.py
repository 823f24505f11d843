"""The mark on the folder of documents, which says whose it is.

A folder that is not mounted is an empty one, and another installation's looks like
ours: without a mark, documents would be written where no other host finds them. The
mark is a random id in the file `.installation`, and stands in the record; `rubrica
migrate` sets it, once, where there can be no doubt. A bucket has it as an object
(`appliance.documents.s3.bucket_mark`).

Source: docs/storage.md "The folder's mark".
"""

import asyncio
import time
from pathlib import Path
from typing import Final, Protocol

import structlog

from appliance.documents.document_files import name_of
from appliance.domain.errors import DocumentsAwayError
from appliance.domain.ids import new_id
from appliance.record.installation_store import InstallationStore
from appliance.record.unit_of_work import Database
from appliance.settings import SettingsError
from appliance.system.durable_files import make_folder, write_durably

_log = structlog.get_logger(__name__)
FILE: Final = ".installation"
MOST_BYTES: Final = 64
"""Of a mark."""
_SAMPLE: Final = 50
"""Documents of the record that are looked for in a folder without a mark."""
_ASK_AGAIN_S: Final = 10.0
_Seen = tuple[int, int, int, int]


class WantedMark:
    """The mark that the record has.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store
        self._wanted: str | None = None
        self._ask_at = 0.0

    async def get(self) -> str | None:
        """What it is; None where none was set, as before the first `migrate`.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`.
        """
        if self._wanted is None and time.monotonic() >= self._ask_at:
            async with self._store.read() as transaction:
                self._wanted = await InstallationStore(transaction).documents_mark()
            self._ask_at = time.monotonic() + _ASK_AGAIN_S
        return self._wanted


class DocumentMark:
    """What a folder must be marked with, and whether it is.

    Args:
        store: the record.
        folder: of documents.
    """

    def __init__(self, store: Database, folder: Path) -> None:
        self._wanted = WantedMark(store)
        self._path = folder / FILE
        self._seen: _Seen | None = None
        """The file that was found right: it is read again only when it is another."""
        self._is_right = True
        self._look: asyncio.Future[None] | None = None

    def demand(self, wanted: str | None) -> None:
        """Refuse a folder that is not ours; one look at the file's inode.

        Args:
            wanted: as the record has it.

        Raises:
            DocumentsAwayError: it is not, or there is none.
        """
        if wanted is None:
            return
        try:
            file = self._path.stat()
            seen = file.st_dev, file.st_ino, file.st_mtime_ns, file.st_size
            is_right = seen == self._seen or mark_in(self._path.parent) == wanted
            self._seen = seen if is_right else None
        except OSError:
            is_right = False
        if is_right != self._is_right:
            log = _log.info if is_right else _log.error
            log("documents.folder", right=is_right, folder=str(self._path.parent))
        self._is_right = is_right
        if not is_right:
            raise DocumentsAwayError

    async def check(self) -> None:
        """Refuse a folder that is not ours.

        Raises:
            DocumentsAwayError: it is not, or there is none.
            ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`: the record is away.
        """
        wanted = await self._wanted.get()
        # One look at a time: the thread of a look at a network file system that hangs
        # stays with it, and each role has few threads.
        if self._look is None or self._look.done():
            looking = asyncio.ensure_future(asyncio.to_thread(self.demand, wanted))
            looking.add_done_callback(_collect)
            self._look = looking
        # A caller that leaves does not end it for the others.
        await asyncio.shield(self._look)


def _collect(look: asyncio.Future[None]) -> None:
    """Take the error of a look that nobody waits for any more."""
    if not look.cancelled():
        look.exception()


def mark_in(folder: Path) -> str | None:
    """What a folder is marked with; None: with nothing.

    Raises:
        OSError: it cannot be looked into.
    """
    try:
        with (folder / FILE).open("rb") as file:
            return read_mark(file.read(MOST_BYTES))
    except FileNotFoundError:
        return None


def read_mark(content: bytes) -> str:
    """The mark that a file or an object holds."""
    return content.decode("ascii", "replace").strip()


class MarkedPlace(Protocol):
    """A place of documents that may be marked; its calls block."""

    name: str
    """For what is told, with the key of the settings before it."""

    def mark(self) -> str | None:
        """What it is marked with; None: with nothing."""
        ...

    def is_ours(self, names: list[str]) -> bool:
        """Whether it holds one of the record's documents, or neither has any.

        Args:
            names: of some of them; none where the record has none.
        """
        ...

    def write(self, mark: str) -> None:
        """Mark it; where it bears the mark, it stays as it is.

        Raises:
            SettingsError: somebody else has marked it meanwhile.
            OSError: it cannot be written to.
        """
        ...


class MarkedFolder:
    """A folder that may be marked.

    Args:
        folder: made where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.name = f"documents.path: {folder}"
        self._folder = folder

    def mark(self) -> str | None:
        """What it is marked with; None: with nothing."""
        return mark_in(self._folder)

    def is_ours(self, names: list[str]) -> bool:
        """Whether it holds one of the record's documents, or neither has any."""
        if names:
            return any((self._folder / name).is_file() for name in names)
        return next(self._folder.glob("*/??/*.pdf"), None) is None

    def write(self, mark: str) -> None:
        """Mark it; where it bears the mark, it stays as it is."""
        make_folder(self._folder)
        if self.mark() != mark:
            write_durably(self._folder / FILE, [f"{mark}\n".encode()])


async def mark_folder(store: Database, folder: Path) -> bool:
    """Have the folder bear the installation's mark; see `mark_place`."""
    return await mark_place(store, MarkedFolder(folder))


async def mark_place(store: Database, place: MarkedPlace) -> bool:
    """Have a place of documents bear the installation's mark, if it is surely its own.

    That is one that bears it, one that holds a document of the record, and an empty
    one without a mark where the record has no document. A record without documents has
    a mark from then on, whatever the place is: no role of it uses one that is not
    marked so.

    Args:
        store: the record; only the user who owns the tables may set a mark.
        place: of documents.

    Returns:
        Whether anything was changed.

    Raises:
        SettingsError: it is another one's, not mounted, or cannot be written to.
        ApplianceError: `STORE_UNAVAILABLE`, `OVERLOADED`.
    """
    # Read first: who writes is in the list of the audit's writers from then on.
    async with store.read() as transaction:
        wanted = await InstallationStore(transaction).documents_mark()
        sample = await InstallationStore(transaction).newest_documents(_SAMPLE)
    names = [name_of(integrator, sha256) for integrator, sha256 in sample]
    try:
        found, is_ours = await asyncio.to_thread(_look, place, wanted, names)
        if found is not None and found == wanted:
            return False
        if wanted is None and (is_ours or not names):
            # The record first: who is killed in between marks the place next time.
            wanted = found if found is not None and is_ours else new_id()
            async with store.write() as transaction:
                is_first = await InstallationStore(transaction).mark_documents(wanted)
            if not is_first:
                # Another host's `migrate` came before: its mark is the one.
                return await mark_place(store, place)
        if wanted is None or not is_ours:
            msg = f"{place.name} {_amiss(found, names)}"
            raise SettingsError(msg)
        await asyncio.to_thread(place.write, wanted)
    except OSError as exc:
        msg = f"{place.name}: {exc.filename or ''}: {exc.strerror}"
        raise SettingsError(msg) from exc
    return True


def _look(
    place: MarkedPlace, wanted: str | None, names: list[str]
) -> tuple[str | None, bool]:
    """A place's mark, and whether it may bear the installation's.

    Args:
        place: of documents.
        wanted: the mark of the record; None: it has none yet.
        names: of some of the record's documents.

    Raises:
        OSError: it cannot be looked into.
    """
    found = place.mark()
    if found is not None and (wanted is not None or not names):
        # It was marked by whoever has that mark, who may have no document yet.
        return found, found == wanted
    return found, place.is_ours(names)


def _amiss(found: str | None, names: list[str]) -> str:
    """Why a place is not this installation's, and what to do."""
    if found is not None:
        return (
            "is another installation's: its mark is not this one's. Give each a place "
            "of its own; if nobody has that other one any more, remove its documents "
            f"and {FILE} there"
        )
    if not names:
        return (
            "holds documents, and the record has none: whose are they? Give it a place "
            "of its own, or move them away"
        )
    return (
        "holds none of the record's documents: is it mounted? Bring it, or what a "
        "backup has of it, to its place"
    )
