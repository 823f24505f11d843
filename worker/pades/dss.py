"""Appends what a validation needs: the document security store, DSS.

Certificates, OCSP answers and CRLs stand in it once each, however many signatures
need them; a VRI entry for each signature and timestamp names its own. What the
file has of that already is kept and pointed to.

Source: ISO 32000-2, 12.8.4.3; EN 319 142-1, 5.4.2.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    IndirectObject,
    NameObject,
    StreamObject,
    pdf_name,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from appliance.domain.requests.levels import ValidationData
from worker.pades.pdf.document import entry
from worker.pades.pdf.revision import open_revision, refusing

_KINDS: Final = (
    # In the store, in a VRI entry.
    ("/Certs", "/Cert"),
    ("/OCSPs", "/OCSP"),
    ("/CRLs", "/CRL"),
)


@dataclass(frozen=True, slots=True)
class Validated:
    """A signature or document timestamp, and what its validation needs."""

    contents: bytes = field(repr=False)
    """Its Contents, the zeros that fill its place included."""
    data: ValidationData


def add_dss(pdf: bytes, validated: Sequence[Validated]) -> bytes:
    """Make the revision that adds validation data.

    Args:
        pdf: the whole file.
        validated: what it is of.

    Returns:
        What follows the file's bytes; nothing when all of it stands there.

    Raises:
        DocumentRefusedError: the file cannot be read or extended.
    """
    with open_revision(pdf) as revision, refusing():
        store = entry(revision.root, "/DSS", DictionaryObject)
        if store is None:
            store = DictionaryObject()
            revision.root[pdf_name("/DSS")] = revision.add_object(store)
            revision.update_root()
        changed = [_Shelf(revision, store, key) for key, _ in _KINDS]
        present = entry(store, "/VRI", DictionaryObject) or DictionaryObject()
        # A copy, its references kept.
        entries = DictionaryObject({key: present.raw_get(key) for key in present})
        is_new = False
        for each in validated:
            key, made = pdf_name(vri_key(each.contents)), _vri(changed, each.data)
            # An entry that is there stays as it is: validators take any change of
            # one for an attack. What is younger is found in the store.
            if key not in entries:
                entries[key] = revision.add_object(made)
                is_new = True
        if not is_new and not any(shelf.has_more for shelf in changed):
            return b""
        for shelf in changed:
            if shelf.references:
                store[pdf_name(shelf.key)] = ArrayObject(shelf.references)
        store[pdf_name("/VRI")] = entries
        revision.update_container(store)
        return revision.write_tail(pdf).getvalue()


def vri_key(contents: bytes) -> str:
    """The name of a signature's entry in VRI.

    The digest names, it protects nothing. It is of the bytes that the hexadecimal
    string stands for, padding included, as in what most producers write.

    Args:
        contents: as `Validated.contents`.

    Source: ISO 32000-2, 12.8.4.3, table 261; EN 319 142-1, 5.4.2.3.
    """
    return "/" + hashlib.sha1(contents).hexdigest().upper()  # noqa: S324 (a name)


class _Shelf:
    """One of the store's three arrays, each piece of which stands there once."""

    def __init__(
        self, revision: IncrementalPdfFileWriter, store: DictionaryObject, key: str
    ) -> None:
        self._revision = revision
        self.key = key
        self.has_more = False
        """Whether something was put there."""
        present = entry(store, key, ArrayObject) or ArrayObject()
        self.references = [present.raw_get(at) for at in range(len(present))]
        self._by_digest = {
            hashlib.sha256(ref.get_object().data).digest(): ref
            for ref in self.references
            if isinstance(ref, IndirectObject)
            and isinstance(ref.get_object(), StreamObject)
        }

    def reference(self, content: bytes) -> IndirectObject:
        """Where a piece stands, put there if it did not."""
        digest = hashlib.sha256(content).digest()
        found = self._by_digest.get(digest)
        if found is None:
            found = self._revision.add_object(StreamObject(stream_data=content))
            self._by_digest[digest] = found
            self.references.append(found)
            self.has_more = True
        return found


def _vri(shelves: Sequence[_Shelf], data: ValidationData) -> DictionaryObject:
    """A signature's own entry: it points to what stands in the store."""
    made = DictionaryObject({pdf_name("/Type"): NameObject("/VRI")})
    pieces = (data.certificates, data.ocsps, data.crls)
    for shelf, (_, key), contents in zip(shelves, _KINDS, pieces, strict=True):
        if contents:
            made[pdf_name(key)] = ArrayObject(map(shelf.reference, contents))
    return made
