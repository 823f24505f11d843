"""Opening a PDF to append a revision to it, and finding its pages.

Trusts nothing that a file says of itself: pages are found by walking the tree,
and whatever pyHanko makes of a broken file becomes a refusal by name.
"""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self, TypeVar, cast

from pyhanko.pdf_utils.crypt import (
    AuthStatus,
    StandardSecurityHandler,
    StandardSecuritySettingsRevision,
)
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    NumberObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.xref import write_xref_table

from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from worker.pades.pdf.fast_reader import Reader
from worker.pades.pdf.fast_writer import Tail, write_object

_Kind = TypeVar("_Kind")
_ENDS_OF_LINE = (b"\n", b"\r")


class Revision(IncrementalPdfFileWriter):
    """A revision that leaves the document's metadata alone, to be used in a `with`.

    pyHanko would name itself as producer, take the time from the machine's clock
    and rewrite the XMP packet, which it first has to parse.
    """

    def __enter__(self) -> Self:
        """It was opened when it was made."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Let go of the file and of all that was read of it; it is of no use then.

        Objects refer to their file and it to them. Otherwise only the search for
        cycles would free them: later than a large file can wait, and for small
        ones it took a tenth of the time of a signature.
        """
        vars(self.prev).clear()
        vars(self).clear()

    def _update_meta(self) -> None:
        """Change nothing."""

    def write_tail(self, original: bytes) -> Tail:
        """Write what the revision adds, and the original not again.

        Many files end with `%%EOF` and no end of line; what follows would be part
        of that comment, so it starts on a line of its own.

        Args:
            original: the file that it was opened from.

        Returns:
            What stands after the original's bytes.
        """
        tail = Tail(len(original))
        if not original.endswith(_ENDS_OF_LINE):
            tail.write(b"\n")
        self._prep_dom_for_writing()
        self._write_updated_section(tail)
        return tail

    def _write(self, stream: io.BytesIO, skip_header: bool = False) -> None:  # noqa: FBT001, FBT002 (the parent's form)
        """Write objects, cross-references and trailer; as the parent does.

        Args:
            stream: where to.
            skip_header: whether the file has begun.
        """
        if self.stream_xrefs or self.security_handler is not None or not skip_header:
            super()._write(stream, skip_header)
            return
        places: dict[tuple[int, int], int | tuple[int, int]] = {}
        trailer = DictionaryObject()
        self._populate_trailer(trailer)
        self._write_objects(stream, places)
        # Without object streams every place is a number.
        table_at = write_xref_table(stream, cast(dict[tuple[int, int], int], places))
        trailer[pdf_name("/Size")] = NumberObject(self._lastobj_id + 1)
        stream.write(b"trailer\n")
        write_object(stream, trailer)
        stream.write(b"\nstartxref\n%d\n%%%%EOF\n" % table_at)

    def _write_objects(
        self,
        stream: io.BytesIO,
        object_position_dict: dict[tuple[int, int], int | tuple[int, int]],
    ) -> None:
        """Write the objects, and where each one starts.

        Args:
            stream: where to.
            object_position_dict: by generation and number; filled here.
        """
        if self.security_handler is not None or self.object_streams:
            super()._write_objects(stream, object_position_dict)
            return
        for place in sorted(self.objects):
            generation, number = place
            object_position_dict[place] = stream.tell()
            stream.write(b"%d %d obj\n" % (number, generation))
            write_object(stream, self.objects[place])
            stream.write(b"\nendobj\n")


@contextmanager
def refusing() -> Iterator[None]:
    """Turn whatever a broken file raises into a refusal.

    Raises:
        ApplianceError: one of ours passes as it is.
        DocumentRefusedError: `PDF_MALFORMED`, or `PDF_TOO_COMPLEX` when depth or
            memory ran out.
    """
    try:
        yield
    except ApplianceError:
        raise
    except (RecursionError, MemoryError) as exc:
        raise DocumentRefusedError(
            ErrorCode.PDF_TOO_COMPLEX, type(exc).__name__
        ) from exc
    except Exception as exc:  # crafted files raise errors of every kind
        reason = f"{type(exc).__name__}: {exc}"[:200]
        raise DocumentRefusedError(ErrorCode.PDF_MALFORMED, reason) from exc


def open_revision(pdf: bytes) -> Revision:
    """Open a PDF to append to it, tolerantly; with the empty password if need be.

    Args:
        pdf: the whole file.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`, `PDF_PASSWORD_NEEDED`, or
            `PDF_ENCRYPTED` for an encryption that cannot be extended.
    """
    with refusing():
        reader = Reader(io.BytesIO(pdf), pdf)
        revision = Revision(reader.stream, prev=reader)
        if revision.prev.encrypted:
            _decrypt(revision)
    return revision


def demand_extensible(handler: object) -> StandardSecurityHandler:
    """Make sure that an encryption is by password, and of a revision known here.

    Those are 2 to 4 (RC4, AES-128) and 6 (AES-256). Revision 5 was one vendor's
    draft of 6 and derives its keys in another way.

    Args:
        handler: an encrypted file's security handler.

    Raises:
        DocumentRefusedError: `PDF_ENCRYPTED`; `PDF_PASSWORD_NEEDED` for a file of
            revision 5 that the empty password does not open.

    Source: ISO 32000-2, 7.6.4 and table 21; Adobe Supplement to ISO 32000,
    ExtensionLevel 3, algorithm 3.11.
    """
    if not isinstance(handler, StandardSecurityHandler):
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, "another handler")
    if handler.revision is not StandardSecuritySettingsRevision.OTHER:
        return handler
    digest, salt = handler.udata[:32], handler.udata[32:40]
    if hashlib.sha256(salt).digest() != digest:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED)
    raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, "another revision")


def _decrypt(revision: IncrementalPdfFileWriter) -> None:
    """Open an encrypted file with the empty password.

    Raises:
        DocumentRefusedError: the password is another, or the encryption cannot
            be extended.
    """
    handler = demand_extensible(revision.security_handler)
    if revision.encrypt("").status == AuthStatus.FAILED:
        raise DocumentRefusedError(ErrorCode.PDF_PASSWORD_NEEDED)
    if handler.pdf_mac_enabled:
        # Its MAC would have to stand inside the signature (ISO/TS 32004).
        raise DocumentRefusedError(ErrorCode.PDF_ENCRYPTED, "integrity by MAC")


def entry(dictionary: object, key: str, kind: type[_Kind]) -> _Kind | None:
    """The object under a key, references followed; None unless it is of the kind.

    `dict.get` would give the reference itself.

    Args:
        dictionary: where to look; what is no dictionary has no entries.
        key: with its slash.
        kind: the class it must be of.
    """
    if not isinstance(dictionary, DictionaryObject):
        return None
    try:
        value = dictionary[key]
    except KeyError:  # absent, or null
        return None
    return value if isinstance(value, kind) else None


def find_page(revision: IncrementalPdfFileWriter, number: int) -> IndirectObject:
    """Find a page by walking the tree; `/Count` is not asked.

    Args:
        revision: the open file.
        number: 1-based.

    Returns:
        The reference to the page.

    Raises:
        DocumentRefusedError: `PDF_NO_PAGES` when there are fewer pages.
    """
    pages = _walk(revision.root.raw_get("/Pages"), set())
    for at, page in enumerate(pages, 1):
        if at == number:
            return page
    raise DocumentRefusedError(ErrorCode.PDF_NO_PAGES, f"page {number} is not there")


def _walk(root: object, seen: set[tuple[int, int]]) -> Iterator[IndirectObject]:
    """The pages under a node, in order, each node once."""
    stack = [root]
    while stack:
        ref = stack.pop()
        if not isinstance(ref, IndirectObject):
            continue
        key = (ref.idnum, ref.generation)
        node = ref.get_object()
        if key in seen or not isinstance(node, DictionaryObject):
            continue
        seen.add(key)
        kids = entry(node, "/Kids", ArrayObject)
        if kids is not None:
            stack += [kids.raw_get(i) for i in reversed(range(len(kids)))]
        elif entry(node, "/Type", NameObject) in (None, "/Page"):
            yield ref


def add_annotation(
    revision: IncrementalPdfFileWriter, page: IndirectObject, annotation: IndirectObject
) -> None:
    """Hang an annotation on a page, after those that it has.

    Args:
        revision: the open file.
        page: from `find_page`.
        annotation: the annotation's reference.
    """
    dictionary = page.get_object()
    annotations = entry(dictionary, "/Annots", ArrayObject)
    if annotations is not None:
        annotations.append(annotation)
        revision.update_container(annotations)
    else:  # absent, null or broken
        dictionary[pdf_name("/Annots")] = ArrayObject([annotation])
        revision.update_container(dictionary)


def write_increment(revision: Revision, original: bytes) -> bytes:
    """Write what the revision adds.

    Args:
        revision: of `original`, changed.
        original: the file it was opened from.

    Returns:
        The bytes to stand after the original's.
    """
    return revision.write_tail(original).getvalue()
