"""PDFs whose content is not all in the file, and honest ones that look like them.

Source: ISO 32000-2, 7.3.8.2 (table 5) and 8.10.4.
"""

import io
from collections.abc import Mapping
from typing import Final

import pikepdf

from tests.support.documents.altered_pdfs import update
from tests.support.documents.hostile_pdfs import CONTENT, build, plain

OUTSIDE: Final = b"/F(elsewhere.bin)"
"""Entry of a stream whose data are in a file beside the document."""
_IMAGE: Final = b"/Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8"
_GREY: Final = _IMAGE + b"/ColorSpace/DeviceGray"
_FORM: Final = b"/Type/XObject/Subtype/Form/BBox[0 0 99 99]"
_REFERENCE: Final = b"/Ref<</F(elsewhere.pdf)/Page 0>>"


def stream(entries: bytes = b"", data: bytes = b"") -> bytes:
    """A stream with these entries."""
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (entries, len(data), data)


def drawing(resources: bytes, content: bytes = b"/X Do", **more: bytes) -> bytes:
    """One page with these resources, whose content uses them."""
    return plain(page=b"/Resources<<%s>>" % resources, o4=stream(b"", content), **more)


def nested_forms(innermost: bytes, content: bytes = b"") -> bytes:
    """A form in thirty forms, with these entries and this content."""
    first, depth = 5, 30
    forms = {
        f"o{first + n}": stream(
            _FORM + b"/Resources<</XObject<</X %d 0 R>>>>" % (first + n + 1), b"/X Do"
        )
        for n in range(depth)
    }
    last = {f"o{first + depth}": stream(_FORM + innermost, content)}
    return drawing(b"/XObject<</X 5 0 R>>", **forms, **last)


def compressed(pdf: bytes) -> bytes:
    """The document with its objects in object streams."""
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        mode = pikepdf.ObjectStreamMode.generate
        opened.save(out, compress_streams=False, object_stream_mode=mode)
    return out.getvalue()


def locked_up(pdf: bytes) -> bytes:
    """The document encrypted, with the empty password."""
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        how = pikepdf.Encryption(owner="owner", user="", R=6)
        opened.save(out, compress_streams=False, encryption=how)
    return out.getvalue()


def _inherited() -> bytes:
    """A page whose resources stand above it in the tree."""
    return build(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1/MediaBox[0 0 200 300]"
            b"/Resources<</XObject<</X 5 0 R>>>>>>",
            3: b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>",
            4: stream(b"", b"/X Do"),
            5: stream(_GREY + OUTSIDE),
        }
    )


EXTERNAL: Final[Mapping[str, bytes]] = {
    "content of a page": plain(o4=stream(OUTSIDE)),
    "one content of several": plain(
        o4=b"[5 0 R 6 0 R]", o5=CONTENT, o6=stream(OUTSIDE)
    ),
    "file by its specification": plain(
        o4=stream(b"/F<</Type/Filespec/F(a.bin)/UF(a.bin)>>")
    ),
    "specification that is an object": plain(o4=stream(b"/F 5 0 R"), o5=b"(a.bin)"),
    "web address": plain(o4=stream(b"/F<</FS/URL/F(https://example.org/a)>>")),
    "file inside of the document": plain(
        o4=stream(b"/F<</Type/Filespec/EF<</F 5 0 R>>>>"), o5=CONTENT
    ),
    "key spelt in another way": plain(o4=stream(b"/#46(a.bin)")),
    "data besides": plain(o4=stream(OUTSIDE, b"0 0 100 100 re f")),
    "image": drawing(b"/XObject<</X 5 0 R>>", o5=stream(_GREY + OUTSIDE)),
    "image of a name that is no text": drawing(
        b"/XObject<</#FF 5 0 R>>", b"/#FF Do", o5=stream(_GREY + OUTSIDE)
    ),
    "mask of an image": drawing(
        b"/XObject<</X 5 0 R>>",
        o5=stream(_GREY + b"/SMask 6 0 R", b"0"),
        o6=stream(_GREY + OUTSIDE),
    ),
    "form in thirty forms": nested_forms(OUTSIDE),
    "tiling pattern": drawing(
        b"/Pattern<</P 5 0 R>>",
        b"/Pattern cs/P scn 0 0 9 9 re f",
        o5=stream(
            b"/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 9 9]/XStep 9/YStep 9"
            b"/Resources<<>>" + OUTSIDE
        ),
    ),
    "glyph of a Type 3 font": drawing(
        b"/Font<</T 5 0 R>>",
        b"BT/T 9 Tf(a)Tj ET",
        o5=b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]"
        b"/CharProcs<</a 6 0 R>>/Encoding<</Differences[97/a]>>/FirstChar 97"
        b"/LastChar 97/Widths[9]/Resources<<>>>>",
        o6=stream(OUTSIDE),
    ),
    "appearance": plain(
        page=b"/Annots[5 0 R]",
        o5=b"<</Type/Annot/Subtype/Stamp/Rect[9 9 90 90]/AP<</N 6 0 R>>>>",
        o6=stream(_FORM + OUTSIDE),
    ),
    "soft mask": drawing(
        b"/ExtGState<</G<</SMask<</S/Alpha/G 5 0 R>>>>>>",
        b"/G gs 0 0 9 9 re f",
        o5=stream(_FORM + b"/Group<</S/Transparency>>" + OUTSIDE),
    ),
    "inherited resources": _inherited(),
    "program of a font": drawing(
        b"/Font<</T 5 0 R>>",
        b"BT/T 9 Tf(a)Tj ET",
        o5=b"<</Type/Font/Subtype/TrueType/BaseFont/AAAAAA+Some/FontDescriptor 6 0 R>>",
        o6=b"<</Type/FontDescriptor/FontName/AAAAAA+Some/Flags 32/FontFile2 7 0 R>>",
        o7=stream(OUTSIDE),
    ),
    "embedded file": plain(
        b"/Names<</EmbeddedFiles<</Names[(a) 5 0 R]>>>>",
        o5=b"<</Type/Filespec/F(a)/UF(a)/EF<</F 6 0 R>>>>",
        o6=stream(b"/Type/EmbeddedFile" + OUTSIDE),
    ),
    "later revision": update(plain(), {4: stream(OUTSIDE)}),
    "reference XObject": drawing(
        b"/XObject<</X 5 0 R>>", o5=stream(_FORM + _REFERENCE, b"0 0 9 9 re f")
    ),
    "reference in thirty forms": nested_forms(_REFERENCE),
    "reference of a form without a subtype": plain(
        page=b"/Annots[5 0 R]",
        o5=b"<</Type/Annot/Subtype/Stamp/Rect[9 9 90 90]/AP<</N 6 0 R>>>>",
        o6=stream(b"/BBox[0 0 99 99]" + _REFERENCE),
    ),
    "in object streams": compressed(
        drawing(b"/XObject<</X 5 0 R>>", o5=stream(_GREY + OUTSIDE))
    ),
    "encrypted": locked_up(plain(o4=stream(OUTSIDE))),
    "encrypted, by reference": locked_up(
        drawing(b"/XObject<</X 5 0 R>>", o5=stream(_FORM + _REFERENCE))
    ),
}
"""Documents that show something which is not in the file."""

INSIDE: Final[Mapping[str, bytes]] = {
    "file that is null": plain(o4=stream(b"/F null", b"0 0 9 9 re f")),
    "file without a name": plain(o4=stream(b"/F()", b"0 0 9 9 re f")),
    "specification of nothing": plain(o4=stream(b"/F<<>>", b"0 0 9 9 re f")),
    "file that is none": plain(o4=stream(b"/F 4", b"0 0 9 9 re f")),
    "reference to nothing": drawing(
        b"/XObject<</X 5 0 R>>", o5=stream(_FORM + b"/Ref<<>>")
    ),
    "file of a name that is no text": plain(
        b"/#FF 4", o5=stream(b"/#FF 4/F 4", b"0 0 9 9 re f")
    ),
    "inline image": plain(
        o4=stream(b"", b"q 9 0 0 9 9 9 cm BI/W 1/H 1/BPC 8/CS/G/F/AHx ID 7F> EI Q")
    ),
    "flags of an annotation": plain(
        page=b"/Annots[5 0 R]",
        o5=b"<</Type/Annot/Subtype/Stamp/F 4/Rect[9 9 90 90]/AP<</N 6 0 R>>>>",
        o6=stream(_FORM),
    ),
    "action that names a file": plain(
        page=b"/Annots[5 0 R]",
        o5=b"<</Type/Annot/Subtype/Link/Rect[9 9 90 90]/A<</S/URI/URI(https://a)>>>>",
    ),
    "stream that nothing leads to": plain(o5=stream(OUTSIDE)),
    "earlier revision": update(plain(o5=stream(OUTSIDE)), {5: CONTENT}),
    "tagged part that refers to others": plain(
        b"/StructTreeRoot 5 0 R/MarkInfo<</Marked true>>",
        o5=b"<</Type/StructTreeRoot/K 6 0 R>>",
        o6=b"<</Type/StructElem/S/Note/P 5 0 R/Ref[6 0 R]>>",
    ),
}
"""Documents that are whole: nothing is to be told of them."""
AMBIGUOUS_KEYS: Final = frozenset(
    {"file without a name", "specification of nothing", "file that is none"}
)
"""Those of `INSIDE` whose /F is none of a file, but a filter to some programs."""
