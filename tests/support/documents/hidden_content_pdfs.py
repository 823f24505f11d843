"""PDFs that hold something back in a way that keeps it from being read.

Source: C. Mainka, V. Mladenov, S. Rohlmann: Shadow Attacks (NDSS 2021).
"""

from tests.support.documents.altered_pdfs import update
from tests.support.documents.hostile_pdfs import CONTENT, plain

_PAGE = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"


def _replaced(pattern: bytes, instead: bytes) -> bytes:
    """Content that was replaced, of which the former revision is then broken."""
    return update(
        plain().replace(pattern, instead),
        {4: CONTENT.replace(b"100 100", b" 99  99")},
    )


UNREADABLE = {
    "page that is not where it should be": plain(o5=_PAGE).replace(
        b"5 0 obj", b"5 0 abj"
    ),
    "page without an end": plain(o5=_PAGE[:-2]),
    "page below too many others": plain(
        o5=_PAGE[:-2] + b"/A" + b"[" * 600 + b"]" * 600 + b">>"
    ),
    "page by one reading alone": plain(o5=_PAGE[:-2] + b"/Type/Font>>"),
    "former content that is not where it was": _replaced(b"4 0 obj", b"7 0 obj"),
    "former content of no length": _replaced(b"/Length 18", b"/Length -9"),
}
"""What holds something back in a way that keeps it from being read."""
