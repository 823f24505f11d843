"""Damages sound PDFs in the ways that files are damaged on their way.

    python -m tests.tools.damage FOLDER

writes one file of each kind into a folder. Each shows the same three pages.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.documents import hostile_pdfs, pdfs


def _edited(pattern: bytes, instead: bytes) -> Callable[[], bytes]:
    """Three pages with the last match of a pattern replaced."""

    def make() -> bytes:
        whole = _plain()
        found = list(re.finditer(pattern, whole))[-1]
        return whole[: found.start()] + found.expand(instead) + whole[found.end() :]

    return make


def _plain() -> bytes:
    """Three pages with a classical table of objects."""
    return hostile_pdfs.build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Count 3/Kids[3 0 R 4 0 R 5 0 R]>>",
            **{
                3 + n: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 %d]/Resources<<>>"
                b"/Contents %d 0 R>>" % (300 + n, 6 + n)
                for n in range(3)
            },
            **{
                6 + n: b"<</Length 19>>stream\n%d 0 99 100 re f 0 \nendstream" % (n + 1)
                for n in range(3)
            },
        }
    )


DAMAGED: Final[dict[str, Callable[[], bytes]]] = {
    "junk-before": lambda: b"\r\nContent-Type: application/pdf\r\n\r\n" + _plain(),
    "junk-after": lambda: _plain() + b"PK\x03\x04" * 512,
    "a-little-junk-after": lambda: _plain() + b"</html>\n",
    "startxref-wrong": _edited(rb"startxref\n\d+", b"startxref\n7"),
    "startxref-past-the-end": _edited(rb"startxref\n\d+", b"startxref\n99999999"),
    "table-of-objects-wrong": _edited(rb"0000000\d{3} 00000 n", b"00000000xx 00000 n"),
    "previous-table-a-loop": _edited(rb"/Root 1 0 R", rb"\g<0>/Prev 530"),
    "stream-length-wrong": _edited(rb"/Length 19", b"/Length 99"),
    "stream-length-missing": _edited(rb"/Length 19", b""),
    "page-that-is-nothing": _edited(rb"5 0 R\]", b"5 0 R null]"),
    "line-ends-changed": lambda: _plain().replace(b"\n", b"\r\n"),
}
"""Files that are repaired, by what was done to them."""

ENCRYPTED: Final[dict[str, Callable[[], bytes]]] = {
    "rc4-40": lambda: pdfs.encrypted(revision=2),
    "rc4-128": lambda: pdfs.encrypted(revision=3),
    "aes-128": lambda: pdfs.encrypted(revision=4),
    "aes-256": lambda: pdfs.encrypted(revision=6),
    "aes-256-restricted": lambda: pdfs.encrypted(revision=6, signing=False),
}
"""Files that open with the empty password, by their encryption."""


def damaged_and_encrypted() -> bytes:
    """One page, encrypted, whose table of objects is not where the file says."""
    head, _, _ = pdfs.encrypted(revision=4).rpartition(b"startxref")
    return head + b"startxref\n7\n%%EOF\n"


def main() -> int:
    """Write the files."""
    folder = Path(sys.argv[1])
    for name, make in {**DAMAGED, **ENCRYPTED}.items():
        (folder / f"{name}.pdf").write_bytes(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
