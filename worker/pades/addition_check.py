"""Makes sure that what follows a signed file adds nothing to it but proofs.

Document timestamps, with the invisible fields that they stand in, and validation data:
nothing that is shown or said changes. It is looked up in the finished file, revision by
revision, and not taken from what was meant to be written.

Source: ISO 32000-2, 12.8.4.3 and 12.8.5; EN 319 142-1, 5.4 and 5.5.
"""

import io
from collections.abc import Callable, Mapping
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    NumberObject,
    PdfObject,
    Reference,
    StreamObject,
)
from pyhanko.pdf_utils.reader import PdfFileReader

from worker.pades.pdf.fast_reader import Reader
from worker.pades.pdf.revision import refusing
from worker.pades.self_check import SignatureCheckError

_OF_STREAM: Final = frozenset({"/Length", "/Filter", "/DecodeParms"})
_OF_STORE: Final = frozenset({"/Type", "/Certs", "/OCSPs", "/CRLs", "/VRI"})
_OF_VRI: Final = frozenset({"/Type", "/Cert", "/OCSP", "/CRL"})
_OF_TIMESTAMP: Final = frozenset(
    {"/Type", "/Filter", "/SubFilter", "/Contents", "/ByteRange"}
)
_OF_FIELD: Final = frozenset(
    {"/Type", "/Subtype", "/FT", "/T", "/TU", "/V", "/F", "/P", "/Rect"}
)
_OF_FORM: Final = frozenset({"/Fields", "/SigFlags"})
_GROWING: Final = frozenset({"/Annots", "/Fields", "/Certs", "/OCSPs", "/CRLs"})
"""Arrays that references to what is new may be appended to."""
_MADE: Final = frozenset({"/DSS", "/AcroForm", "/VRI"})
"""Dictionaries that may be made, or be added to by these rules."""
_FREE: Final = {"/SigFlags": NumberObject, "/Extensions": DictionaryObject}
"""Entries that change nothing which is shown or said."""


def check_additions(pdf: bytes, length: int) -> None:
    """Make sure that all behind some bytes is timestamps and validation data.

    Args:
        pdf: the whole file.
        length: of what was signed, or published before, in bytes.

    Raises:
        SignatureCheckError: it is more than that.
        DocumentRefusedError: the file cannot be read.
    """
    if len(pdf) == length:
        return
    with refusing():
        reader = Reader(io.BytesIO(pdf), pdf)
        if reader.encrypted:
            reader.decrypt("")
        _Additions(reader, length).check()


class _Additions:
    """The later revisions of a file, against the ones before."""

    def __init__(self, reader: PdfFileReader, length: int) -> None:
        self._reader = reader
        xrefs = reader.xrefs
        count = xrefs.total_revisions
        later = [
            at for at in range(count) if xrefs.get_startxref_for_revision(at) >= length
        ]
        if not later or later != [*range(later[0], count)] or later[0] == 0:
            raise SignatureCheckError("what was added is not in revisions of its own")
        self._first = later[0]
        self._before = reader.get_historical_resolver(later[0] - 1)
        self._changed = {
            (ref.idnum, ref.generation)
            for at in later
            for ref in xrefs.explicit_refs_in_revision(at)
        }
        if any(xrefs.refs_freed_in_revision(at) for at in later):
            raise SignatureCheckError("an object was removed")

    def check(self) -> None:
        """Look at each object that was added or changed.

        Raises:
            SignatureCheckError: one is none of a timestamp or of validation data.
        """
        for number, generation in sorted(self._changed):
            new = self._reader.get_object(Reference(number, generation, self._reader))
            if self._is_new(number, generation):
                good = _is_proof(new)
            else:
                old = self._before.get_object(
                    Reference(number, generation, self._before)
                )
                good = self._has_grown(old, new)
            if not good:
                raise SignatureCheckError(f"object {number} is no proof")

    def _is_new(self, number: int, generation: int) -> bool:
        ref = Reference(number, generation, self._reader)
        try:
            came_in = int(self._reader.xrefs.get_introducing_revision(ref))
        except KeyError:
            return False
        return came_in >= self._first

    def _has_grown(self, old: PdfObject, new: PdfObject) -> bool:
        """Whether an object differs from itself by what proofs need alone."""
        if isinstance(new, StreamObject) or isinstance(old, StreamObject):
            return False
        if isinstance(old, ArrayObject) and isinstance(new, ArrayObject):
            return self._is_longer(old, new)
        if isinstance(old, DictionaryObject) and isinstance(new, DictionaryObject):
            return self._has_more(old, new)
        return False

    def _is_longer(self, old: PdfObject, new: PdfObject) -> bool:
        if not isinstance(old, ArrayObject) or not isinstance(new, ArrayObject):
            return False
        before = [_bytes(old.raw_get(at)) for at in range(len(old))]
        after = [new.raw_get(at) for at in range(len(new))]
        return [_bytes(one) for one in after[: len(before)]] == before and all(
            self._is_to_new(one) for one in after[len(before) :]
        )

    def _has_more(self, old: DictionaryObject, new: DictionaryObject) -> bool:
        if not set(old) <= set(new):
            return False
        return all(
            self._may_be(
                key, old.raw_get(key) if key in old else None, new.raw_get(key)
            )
            for key in new
        )

    def _may_be(self, key: str, old: PdfObject | None, new: PdfObject) -> bool:
        """Whether an entry may be what it is now."""
        if old is not None and _bytes(old) == _bytes(new):
            return True
        if key in _FREE:
            return isinstance(new, _FREE[key])
        if key in _GROWING | _MADE and isinstance(new, IndirectObject):
            # One that is an object of its own is looked at as that.
            return old is None and self._is_to_new(new)
        if key in _GROWING:
            return self._is_longer(ArrayObject() if old is None else old, new)
        if key not in _MADE or not isinstance(new, DictionaryObject):
            return False
        return _is_proof(new) if old is None else self._grown_entry(key, old, new)

    def _grown_entry(self, key: str, old: PdfObject, new: DictionaryObject) -> bool:
        if not isinstance(old, DictionaryObject):
            return False
        if key == "/VRI":
            return all(
                key in new and _bytes(old.raw_get(key)) == _bytes(new.raw_get(key))
                for key in old
            ) and all(self._is_to_new(new.raw_get(key)) for key in new.keys() - old)
        return self._has_more(old, new)

    def _is_to_new(self, value: PdfObject) -> bool:
        return isinstance(value, IndirectObject) and self._is_new(
            value.idnum, value.generation
        )


def _is_proof(value: PdfObject) -> bool:
    """Whether a new object belongs to a timestamp, or to validation data."""
    if isinstance(value, StreamObject):
        return value.get("/Type") == "/XRef" or set(value) <= _OF_STREAM
    if isinstance(value, ArrayObject):
        return all(
            isinstance(value.raw_get(at), IndirectObject) for at in range(len(value))
        )
    if isinstance(value, DictionaryObject):
        return any(is_one(value) for is_one in _KINDS)
    return False


def _is_store(value: Mapping[str, object]) -> bool:
    return set(value) <= _OF_STORE and value.get("/Type") in {None, "/DSS"}


def _is_vri(value: Mapping[str, object]) -> bool:
    return set(value) <= _OF_VRI


def _is_timestamp(value: Mapping[str, object]) -> bool:
    return value.get("/Type") == "/DocTimeStamp" and set(value) <= _OF_TIMESTAMP


def _is_field(value: Mapping[str, object]) -> bool:
    box = value.get("/Rect")
    return (
        value.get("/FT") == "/Sig"
        and set(value) <= _OF_FIELD
        and isinstance(box, ArrayObject)
        # Of no size: nothing is shown.
        and len(box) == 4  # noqa: PLR2004
        and box[0] == box[2]
        and box[1] == box[3]
    )


def _is_form(value: Mapping[str, object]) -> bool:
    return bool(value) and set(value) <= _OF_FORM


def _is_named(value: Mapping[str, object]) -> bool:
    """Whether it is VRI itself: digests that name references."""
    return isinstance(value, DictionaryObject) and all(
        isinstance(key, NameObject)
        and len(key) == 41  # noqa: PLR2004 (a slash and SHA-1)
        and isinstance(value.raw_get(key), IndirectObject)
        for key in value
    )


_KINDS: Final[tuple[Callable[[Mapping[str, object]], bool], ...]] = (
    _is_store,
    _is_vri,
    _is_timestamp,
    _is_field,
    _is_form,
    _is_named,
)


def _bytes(value: PdfObject) -> bytes:
    """An object as it is written, references not followed."""
    out = io.BytesIO()
    value.write_to_stream(out, None, None)
    return out.getvalue()
