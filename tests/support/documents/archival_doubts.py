"""Makes a sound file ambiguous, in one of 20 ways, without another content.

    doubtful = DOUBTS["row of 19 bytes"](pdf)

Each appends one revision, which has the page, its content or the catalog as they were,
or with entries that no reader draws.
"""

import functools
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pikepdf

from tests.support.documents.appended_revisions import Appended

Doubt = Callable[[bytes], bytes]
DOUBTS: Final[dict[str, Doubt]] = {}
_ROOT: Final = b"/Root 1 0 R"
_SIZE: Final = b"/Size 1000"
"""Both as `Appended` writes them."""
_LENGTH: Final = re.compile(rb"/Length \d+(?: 0 R)?")


@dataclass(frozen=True, slots=True)
class _File:
    """A file, and what a revision of it needs."""

    pdf: bytes
    free: int
    """A number that it has not; the next one is free, too."""
    trailer: bytes
    """Entries that a later trailer repeats."""
    catalog: tuple[int, bytes]
    """Number and body, as of page and content."""
    page: tuple[int, bytes]
    content: tuple[int, bytes]

    @classmethod
    def read(cls, pdf: bytes) -> "_File":
        """Read a file; of several streams of content the first counts."""
        # The page as it stands, without what it inherits.
        with pikepdf.open(io.BytesIO(pdf), inherit_page_attributes=False) as opened:
            page = opened.Root.Pages
            while "/Kids" in page:
                page = page.Kids[0]
            content = page.Contents
            if isinstance(content, pikepdf.Array):
                content = content[0]
            root, trailer = opened.Root, opened.trailer
            kept = [
                name.encode() + b" " + trailer[name].unparse()
                for name in ("/Root", "/Info", "/ID")
                if name in trailer
            ]
            entries = content.stream_dict.unparse(resolved=True)
            data = content.read_raw_bytes()
            return cls(
                pdf,
                int(trailer["/Size"]),
                b"".join(kept),
                (root.objgen[0], root.unparse(resolved=True)),
                (page.objgen[0], page.unparse(resolved=True)),
                (content.objgen[0], entries + b"stream\n" + data + b"\nendstream"),
            )

    def with_page(self, entries: bytes = b"") -> Appended:
        """A revision with the page, with more entries."""
        revision = Appended(self.pdf)
        revision.add(self.page[0], _more(self.page[1], entries))
        return revision

    def table(self, revision: Appended, **odd: Any) -> bytes:
        """The file with a revision, and a table for it, as of `Appended.table`."""
        return self.finished(revision.table(**odd))

    def stream(self, revision: Appended) -> bytes:
        """The file with a revision, and a cross-reference stream for it."""
        return self.finished(revision.stream(self.free + 1))

    def finished(self, made: bytes, at: int | None = None) -> bytes:
        """A file with the right entries in each trailer after this one's end.

        Args:
            made: the file with a revision.
            at: where that trailer begins, or what is before it.
        """
        at = len(self.pdf) if at is None else at
        size = b"/Size %d" % (self.free + 2)
        added = made[at:].replace(_ROOT, self.trailer).replace(_SIZE, size)
        return made[:at] + added


_Way = Callable[[_File], bytes]


def _more(body: bytes, entries: bytes) -> bytes:
    """A dictionary with more entries."""
    return body.removesuffix(b">>") + entries + b">>"


def _doubt(name: str) -> Callable[[_Way], _Way]:
    """Enter a way under its name."""

    def enter(made: _Way) -> _Way:
        DOUBTS[name] = lambda pdf: made(_File.read(pdf))
        return made

    return enter


def _written_page(form: bytes, file: _File) -> bytes:
    """The page, in a table with one row of this form."""
    revision = Appended(file.pdf)
    at = revision.write(*file.page)
    return file.table(revision, more=b"%d 1\n" % file.page[0] + form % at)


def _with_length(length: bytes, file: _File) -> bytes:
    """The content with another length than it has."""
    revision = Appended(file.pdf)
    number, body = file.content
    revision.add(number, _LENGTH.sub(length, body, count=1))
    return file.table(revision)


def _simple(name: str, make: _Way) -> None:
    _doubt(name)(make)


_simple("startxref early", lambda file: file.table(file.with_page(), shift=-1))
_simple("startxref late", lambda file: file.table(file.with_page(), shift=1))
_simple(
    "bytes after the end", lambda file: file.table(file.with_page(), end=b"</html>\n")
)
_simple("no end", lambda file: file.table(file.with_page()).removesuffix(b"%%EOF\n"))
_simple(
    "key twice on the page", lambda file: file.table(file.with_page(b"/Tabs/S/Tabs/R"))
)
_simple(
    "reference to nothing", lambda file: file.table(file.with_page(b"/B 900000 0 R"))
)
_simple("row of 19 bytes", functools.partial(_written_page, b"%010d 00000 n\n"))
_simple("row of another type", functools.partial(_written_page, b"%010d 00000 N \n"))
_simple("row with a sign", functools.partial(_written_page, b"+%09d 00000 n \n"))
_simple("content too short", functools.partial(_with_length, b"/Length 2"))
_simple("content too long", functools.partial(_with_length, b"/Length 9000"))


@_doubt("Prev beside")
def _prev_beside(file: _File) -> bytes:
    revision = file.with_page()
    return file.table(revision, prev=b"/Prev %d" % (revision.previous - 1))


@_doubt("Size too large")
def _size_too_large(file: _File) -> bytes:
    made = file.with_page().table()
    head, _, tail = made.rpartition(_SIZE)
    return file.finished(head + b"/Size 9000000" + tail)


@_doubt("entry beside its object")
def _entry_beside(file: _File) -> bytes:
    revision = Appended(file.pdf)
    revision.list(file.content[0], revision.write(*file.content) - 2)
    return file.table(revision)


@_doubt("listed twice")
def _listed_twice(file: _File) -> bytes:
    revision = file.with_page()
    other = revision.write(*file.page)
    return file.table(revision, more=b"%d 1\n%010d 00000 n \n" % (file.page[0], other))


@_doubt("unlisted object")
def _unlisted(file: _File) -> bytes:
    revision = Appended(file.pdf)
    revision.write(*file.page)
    revision.add(file.free, b"<<>>")
    return file.table(revision)


@_doubt("two roots")
def _two_roots(file: _File) -> bytes:
    """Of one look: the second has an entry that is of no account."""
    revision = Appended(file.pdf)
    other = _more(file.catalog[1], b"/PageLayout/SinglePage")
    revision.add(file.free, other)
    return file.table(revision, trailer=b"/Root %d 0 R" % file.free)


@_doubt("key twice in the catalog")
def _catalog(file: _File) -> bytes:
    revision = Appended(file.pdf)
    number, body = file.catalog
    layouts = b"/PageLayout/SinglePage/PageLayout/OneColumn"
    revision.add(number, _more(body, layouts))
    return file.table(revision)


@_doubt("table and stream")
def _table_and_stream(file: _File) -> bytes:
    """They list the page at two places."""
    revision = file.with_page(b"/Tabs/S")
    number, body = file.page
    table = revision.rows[number]
    revision.add(number, body)
    revision.rows[number] = table
    at = len(revision.out)
    revision.stream(file.free + 1, starts=False)
    revision.out = bytearray(file.finished(bytes(revision.out)))
    made = revision.table(trailer=b"/XRefStm %d" % at)
    return file.finished(made, len(revision.out))


@_doubt("twice in an object stream")
def _twice_in_object_stream(file: _File) -> bytes:
    """And so in an object stream, and listed by a stream."""
    revision = Appended(file.pdf)
    number, body = file.page
    spare = file.free + 2
    header = b"%d 0 %d %d" % (number, number, len(body) + 1)
    revision.hold(file.free, {number: body, spare: body}, header=header)
    del revision.entries[spare]
    return file.stream(revision)
