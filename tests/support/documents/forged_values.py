"""Forgeries whose bytes decode to other values in other readers.

Source: ISO 32000-2, 7.4.4.4; RFC 2083, 6.
"""

import zlib
from typing import Final

from tests.support.documents.forgery import PRICE, Collection
from tests.support.documents.pdf_revisions import Row, SignedFile

VALUES: Final = Collection()
"""By name."""


def _difference(row: bytes, above: bytes) -> bytes:
    return bytes((a - b) & 0xFF for a, b in zip(row, above, strict=True))


def _rows(signed: bytes, forged: bytes) -> tuple[int, bytes]:
    """Write an object's rows for a reader to which an unfiltered row is zeros.

    Returns:
        The length of a row, and a row of each of the types None and Up: the signed
        object to that reader, and the forged one to others.

    Raises:
        LookupError: the first row would end its comment.
    """
    for blanks in range(400):
        text = forged.replace(b" ", b" " * (blanks + 1), 1)
        length = max(len(signed), len(text)) + 4
        mine = (b"\n" + signed).ljust(length)
        first = _difference((b"\n" + text).ljust(length), mine)
        if not {10, 13} & {*first}:
            return length, b"\0" + first + b"\2" + mine
    raise LookupError


def _catalogs(f: SignedFile) -> tuple[bytes, bytes]:
    """Write the catalog as it is signed, and with another page tree."""
    return (
        f.changed(f.catalog),
        f.changed(f.catalog, {b"/Pages": b"%d 0 R" % f.free}),
    )


@VALUES("object stream: rows of PNG type None", "page 1 shows another price")
def png_none(f: SignedFile) -> bytes:
    """Have pyHanko's own decoder read the signed catalog."""
    length, rows = _rows(*_catalogs(f))
    head = b"%d %d " % (f.catalog, length + 1)
    filtered = b"\2" + head.ljust(length - 1) + b"%" + rows
    tree, page, content, holder = range(f.free, f.free + 4)
    packed = f.cipher(holder, zlib.compress(filtered))
    objects = {
        tree: b"<</Type/Pages/Kids[%d 0 R]/Count 1>>" % page,
        page: f.changed(
            f.page,
            {
                b"/Parent": b"%d 0 R" % tree,
                b"/Contents": b"%d 0 R" % content,
                b"/Annots": None,
            },
        ),
        content: f.stream(content, PRICE),
        holder: b"<</Type/ObjStm/N 1/First %d/Filter/FlateDecode/DecodeParms"
        b"<</Predictor 15/Columns %d>>/Length %d>>stream\n%s\nendstream"
        % (length - 1, length, len(packed), packed),
    }
    return f.append_rows(
        objects,
        lambda at: [
            *(Row(each, 1, at[each]) for each in objects),
            Row(f.catalog, 2, holder, 0),
        ],
    )
