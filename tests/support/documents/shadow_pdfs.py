"""PDFs that hold more than they show, made here byte by byte.

Source: C. Mainka, V. Mladenov, S. Rohlmann: Shadow Attacks (NDSS 2021).
"""

from tests.support.documents.hostile_pdfs import CONTENT, plain


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
