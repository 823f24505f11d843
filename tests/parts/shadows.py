"""PDFs that hold more than they show, made here byte by byte.

Source: C. Mainka, V. Mladenov, S. Rohlmann: Shadow Attacks (NDSS 2021).
"""

from tests.parts.attacks import update
from tests.parts.hostile import CONTENT, plain


def lettered(catalog: bytes = b"", page: bytes = b"", **more: bytes) -> bytes:
    """One page of 200 by 300 whose text stands at 20, 150; 5 is its font."""
    text = b"BT /F 24 Tf 20 150 Td (Debo 100) Tj ET"
    content = b"<</Length %d>>stream\n%s\nendstream" % (len(text), text)
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    entries = b"/Resources<</Font<</F 5 0 R>>>>" + page
    return plain(catalog, entries, o4=content, o5=font, **more)


def cover(entries: bytes) -> bytes:
    """An annotation over the text of `lettered`, drawn by object 7."""
    return b"<</Type/Annot/F 4/Rect[0 100 200 200]/AP<</N 7 0 R>>%s>>" % entries


WHITE = (
    b"<</Type/XObject/Subtype/Form/BBox[0 0 200 100]/Length 24>>stream\n"
    b"1 g 0 0 200 100 re f   \nendstream"
)


def layered(first: bytes, group: bytes = b"") -> bytes:
    """One page and one layer, 5.

    Args:
        first: entries of how the layers are at first.
        group: entries of the layer.
    """
    return plain(
        b"/OCProperties<</OCGs[5 0 R]/D<<%s>>>>" % first,
        o5=b"<</Type/OCG/Name(a)%s>>" % group,
    )


def second_document() -> bytes:
    """A catalog and a page of its own, 5 to 8, that nothing refers to."""
    return plain(
        o5=b"<</Type/Catalog/Pages 6 0 R>>",
        o6=b"<</Type/Pages/Kids[7 0 R]/Count 1>>",
        o7=b"<</Type/Page/Parent 6 0 R/MediaBox[0 0 200 300]/Contents 8 0 R>>",
        o8=CONTENT,
    )


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
