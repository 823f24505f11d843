"""Refusal of an encrypted file that programs may decrypt in different ways.

A stream can name a crypt filter of its own, or none: PDFium and pdf.js decrypt it as
all others, and show nothing of what Poppler and MuPDF show. A file can have its strings
and its streams encrypted in two ways, which PDFium does not open at all. qpdf writes
either anew with one way for everything.

Source: ISO 32000-2, 7.4.10 and 7.6.2 to 7.6.6.
"""

import io
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

import pikepdf

from appliance.domain.errors import DocumentRefusedError, ErrorCode

_CRYPT: Final = "/Crypt"
_STRINGS: Final = ("/O", "/U", "/OE", "/UE", "/Perms")
_NUMBERS: Final = ("/V", "/R", "/Length")
_FILTERS: Final = ("/CF", "/StmF", "/StrF", "/EFF")
_OF_FILTERS: Final = 4
"""The first version whose encryption dictionary has crypt filters."""
_REVISIONS: Final = {1: {2, 3}, 2: {3}, 4: {4}, 5: {6}}
"""By version. Source: ISO 32000-2, tables 20 and 21."""
_BITS: Final[Mapping[int, Collection[int | None]]] = {
    1: {None, 40},
    2: set(range(40, 129, 8)),
    4: {None, 128},
    5: {None, 256},
}
"""Lengths of a key by version; without one, programs take what they take for usual."""
_OF_ONE_FILTER: Final = {
    4: ({"/V2", "/AESV2"}, {None, 16, 128}),
    5: ({"/AESV3"}, {None, 32, 256}),
}
"""Methods of a crypt filter by version, and lengths, in bytes or, as many write it, in
bits. Source: ISO 32000-2, table 25."""


def demand_one_decryption(pdf: bytes) -> None:
    """Demand that all programs decrypt a file to the same content.

    Args:
        pdf: the whole file, encrypted with the empty password; it has one structure.

    Raises:
        DocumentRefusedError: `PDF_AMBIGUOUS`.
    """
    try:
        with pikepdf.open(io.BytesIO(pdf), suppress_warnings=True) as opened:
            is_usual = _is_usual(opened.trailer.get("/Encrypt"))
            has_own_way = is_usual and _has_stream_of_its_own(opened)
    except (pikepdf.PdfError, ValueError, TypeError) as exc:
        raise _ambiguous("qpdf cannot decrypt it") from exc
    if not is_usual:
        raise _ambiguous("encrypted in a way that not all programs know")
    if has_own_way:
        raise _ambiguous("a stream that is encrypted in another way than all others")


def _is_usual(encryption: Any) -> bool:
    """Whether an encryption dictionary says one thing to all programs."""
    if not isinstance(encryption, pikepdf.Dictionary):
        return False
    numbers: list[Any] = [encryption.get(key) for key in _NUMBERS]
    version, revision, length = numbers
    strings = [encryption.get(key) for key in _STRINGS]
    if any(isinstance(each, pikepdf.Object) and each.is_indirect for each in strings):
        return False  # an object of its own is a string that would be encrypted
    if not isinstance(encryption.get("/EncryptMetadata", True), bool):
        return False
    if not all(isinstance(each, int) for each in (version, revision, length or 0)):
        return False
    return (
        version in _REVISIONS
        and revision in _REVISIONS[version]
        and length in _BITS[version]
        and _are_filters_usual(encryption, version)
    )


def _are_filters_usual(encryption: Any, version: int) -> bool:
    """Whether one crypt filter is that of strings, streams and attachments."""
    if version < _OF_FILTERS:
        return not any(key in encryption for key in _FILTERS)
    name, filters = encryption.get("/StmF"), encryption.get("/CF")
    names = (encryption.get("/StrF"), encryption.get("/EFF", name))
    if not isinstance(name, pikepdf.Name) or any(each != name for each in names):
        return False
    used = filters.get(str(name)) if isinstance(filters, pikepdf.Dictionary) else None
    if str(name) == "/Identity" or not isinstance(used, pikepdf.Dictionary):
        return False
    methods, lengths = _OF_ONE_FILTER[version]
    method = used.get("/CFM")
    is_known = isinstance(method, pikepdf.Name) and str(method) in methods
    return is_known and used.get("/Length") in lengths


def _has_stream_of_its_own(opened: pikepdf.Pdf) -> bool:
    """Whether a stream names its crypt filter, other than metadata in the clear."""
    metadata = opened.Root.get("/Metadata")
    key = metadata.objgen if isinstance(metadata, pikepdf.Stream) else None
    is_clear = False
    for each in opened.objects:
        if isinstance(each, pikepdf.Stream) and _names_crypt(each):
            if each.objgen != key:
                return True
            is_clear = True
    # What is content as well is decrypted as content is.
    return is_clear and key is not None and _uses(opened, key) != 1


def _names_crypt(stream: pikepdf.Object) -> bool:
    filters = stream.get("/Filter")
    listed = filters.as_list() if isinstance(filters, pikepdf.Array) else [filters]
    return any(isinstance(each, pikepdf.Name) and each == _CRYPT for each in listed)


def _uses(opened: pikepdf.Pdf, key: tuple[int, int]) -> int:
    """How often objects refer to one."""
    reference = re.compile(rb"(?<![0-9])%d %d R(?![A-Za-z])" % key)
    used = 0
    for each in opened.objects:
        top = each.stream_dict if isinstance(each, pikepdf.Stream) else each
        if isinstance(top, pikepdf.Object):
            used += len(reference.findall(top.unparse(resolved=True)))
    return used


def _ambiguous(reason: str) -> DocumentRefusedError:
    return DocumentRefusedError(ErrorCode.PDF_AMBIGUOUS, reason)
