"""Opening a PDF to append a revision to it, and writing what the revision adds.

    with open_revision(pdf) as revision, refusing():
        …  # objects are added and changed
        increment = revision.write_tail(pdf).getvalue()

Whatever pyHanko makes of a broken file becomes a refusal by name. pyHanko writes names
and strings byte by byte; what it would write is written here in one go, and what it
does not know the bytes of beforehand (encrypted files, placeholders) it writes itself.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, cast

from pyhanko.pdf_utils.crypt import (
    AuthStatus,
    StandardSecurityHandler,
    StandardSecuritySettingsRevision,
)
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    ByteStringObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NameObject,
    NumberObject,
    PdfObject,
    Reference,
    StreamObject,
    TextStringObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.xref import write_xref_table
from pyhanko.sign.signers.pdf_byterange import PdfByteRangeDigest

from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from worker.pades.pdf.fast_reader import Reader
from worker.pades.pdf.kept_values import ByteName, is_new

_OWN_ENTRIES: Final = frozenset({"/Root", "/Encrypt", "/ID", "/Prev", "/Size"})
_IDENTIFIER_BYTES: Final = 16
_ENDS_OF_LINE: Final = (b"\n", b"\r")
_CACHED_NAME: Final = 40
"""Longest name that is remembered, in characters: files choose names, and each
signature has a VRI key of its own, which is longer."""
_ESCAPED: Final = [
    bytes([one]) if bytes([one]).isalnum() or one == ord(" ") else b"\\%03o" % one
    for one in range(128)
]
"""ASCII as pyHanko writes it into a text string."""


class Tail(io.BytesIO):
    """What is appended to a file, by its places in the whole.

    Args:
        start: length of the file that it is appended to, in bytes.
    """

    def __init__(self, start: int) -> None:
        super().__init__()
        self._start = start

    def tell(self) -> int:
        """The place in the whole file."""
        return self._start + super().tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place in the whole file, by its offset from the beginning.

        Raises:
            ValueError: counted from elsewhere, or before the appended part.
        """
        if whence != io.SEEK_SET:
            msg = "only places from the beginning"
            raise ValueError(msg)
        return self._start + super().seek(offset - self._start)


class Revision(IncrementalPdfFileWriter):
    """A revision that leaves the document's metadata alone.

    pyHanko would name itself as producer, take the time from the machine's clock
    and rewrite the XMP packet, which it first has to parse.
    """

    def _update_meta(self) -> None:
        """Change nothing."""

    def _populate_trailer(self, trailer: DictionaryObject) -> None:
        """Fill the trailer, without what the newest one leaves out.

        pyHanko takes an entry such as `/Info` from an earlier trailer, readers do not.
        """
        super()._populate_trailer(trailer)  # type: ignore[no-untyped-call]
        newest = self.prev.trailer._trailer_revisions[0]  # noqa: SLF001 (no public way to one trailer)
        for key in trailer.keys() - newest.keys() - _OWN_ENTRIES:
            del trailer[key]

    @property
    def last_number(self) -> int:
        """Number of the last object that the document says it has, and of any added."""
        return int(self._lastobj_id)

    def number_above(self, number: int) -> None:
        """Give what is added greater numbers than one.

        A number that the document refers to and does not have would be defined by the
        first object that gets it.
        """
        self._lastobj_id = max(self._lastobj_id, number)

    def identify(self, seed: bytes) -> None:
        """Give the revision an identifier that follows from what it is.

        pyHanko's is random, and the same revision made again would be another file.

        Args:
            seed: all that tells the revision from others of the document.

        Source: ISO 32000-2, 14.4.
        """
        identifier = hashlib.sha256(b"rubrica/file-identifier/1\0" + seed).digest()
        changing = ByteStringObject(identifier[:_IDENTIFIER_BYTES])
        # Without one, both halves are pyHanko's random bytes.
        has_one = "/ID" in self.prev.trailer
        first = self._document_id[0] if has_one else changing
        self._document_id = ArrayObject([first, changing])

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

    def write_reserving(
        self, original: bytes, signature: PdfByteRangeDigest
    ) -> tuple[bytes, int, int]:
        """Write what the revision adds, with a place for a CMS.

        Args:
            original: the file that it was opened from.
            signature: the dictionary in it whose ByteRange is set, and whose Contents
                stays empty.

        Returns:
            What stands after the original's bytes, with zeros in Contents; where in
            it Contents starts and where it ends, angle brackets included.

        Source: ISO 32000-2, 12.8.1.
        """
        tail = self.write_tail(original)
        start, end = signature.contents.offsets
        signature.byte_range.fill_offsets(tail, start, end, tail.tell())
        return tail.getvalue(), start - len(original), end - len(original)

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
        # One within the trailer, which table 15 allows, is no object to be left out.
        is_object = isinstance(self._encrypt, IndirectObject)
        if self.object_streams or (self.security_handler is not None and is_object):
            super()._write_objects(stream, object_position_dict)
            return
        for place in sorted(self.objects):
            generation, number = place
            object_position_dict[place] = stream.tell()
            stream.write(b"%d %d obj\n" % (number, generation))
            if self.security_handler is None:
                write_object(stream, self.objects[place])
            else:
                self.objects[place].write_to_stream(
                    stream, self.security_handler, Reference(number, generation, self)
                )
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


@contextmanager
def open_revision(pdf: bytes) -> Iterator[Revision]:
    """Open a PDF to append to it, tolerantly; with the empty password if need be.

    Args:
        pdf: the whole file.

    Yields:
        The revision, of use within the block alone.

    Raises:
        DocumentRefusedError: `PDF_MALFORMED`, `PDF_PASSWORD_NEEDED`, or
            `PDF_ENCRYPTED` for an encryption that cannot be extended.
    """
    with refusing():
        reader = Reader(io.BytesIO(pdf), pdf)
        revision = Revision(reader.stream, prev=reader)
        if revision.prev.encrypted:
            _decrypt(revision)
    try:
        yield revision
    finally:
        # Objects refer to their file and it to them. Otherwise only the search for
        # cycles would free them: later than a large file can wait, and for small
        # ones it took a tenth of the time of a signature.
        vars(revision.prev).clear()
        vars(revision).clear()


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


_NAME, _NUMBER, _REFERENCE, _ARRAY, _DICTIONARY, _TEXT, _REAL, _STREAM = (
    kind.write_to_stream
    for kind in (
        NameObject,
        NumberObject,
        IndirectObject,
        ArrayObject,
        DictionaryObject,
        TextStringObject,
        FloatObject,
        StreamObject,
    )
)


def write_object(out: io.BytesIO, value: Any) -> None:
    """Write one object of a file that is not encrypted.

    Args:
        out: where to.
        value: direct; what it contains is written with it.
    """
    # By the method and not by the class: a subclass that writes otherwise does.
    kind = type(value).write_to_stream
    if kind is _NAME and len(value) <= _CACHED_NAME:
        out.write(_name(value))
    elif kind is _NUMBER:
        out.write(b"%d" % value)
    elif kind is _REFERENCE:
        reference = value.reference
        out.write(b"%d %d R" % (reference.idnum, reference.generation))
    elif kind is _ARRAY:
        out.write(b"[")
        for item in value:
            out.write(b" ")
            write_object(out, item)
        out.write(b" ]")
    elif kind is _DICTIONARY:
        _write_entries(out, value)
    elif kind is _TEXT and _is_plain(value):
        out.write(b"(%s)" % b"".join([_ESCAPED[one] for one in value.encode("ascii")]))
    elif kind is _REAL:
        # By its digits: numbers that are equal may be written differently.
        out.write(_real(str(value)))
    elif kind is _STREAM:
        data = value.encoded_data
        _write_entries(out, {**value, NameObject("/Length"): NumberObject(len(data))})
        out.write(b"\nstream\n")
        out.write(data)
        out.write(b"\nendstream")
    else:
        value.write_to_stream(out)


def _write_entries(out: io.BytesIO, entries: Mapping[NameObject, PdfObject]) -> None:
    out.write(b"<<\n")
    for key, value in entries.items():
        if len(key) <= _CACHED_NAME and not isinstance(key, ByteName):
            out.write(_name(key))
        else:
            key.write_to_stream(out)
        out.write(b" ")
        write_object(out, value)
        out.write(b"\n")
    out.write(b">>")


@lru_cache(maxsize=4096)
def _name(value: NameObject) -> bytes:
    out = io.BytesIO()
    value.write_to_stream(out)
    return out.getvalue()


@lru_cache(maxsize=4096)
def _real(digits: str) -> bytes:
    return repr(FloatObject(digits)).encode("ascii")


def _is_plain(value: TextStringObject) -> bool:
    is_ours = value.isascii() and value.isprintable()
    return is_ours and value.force_output_encoding is None and is_new(value)
