"""The contract that the bases of forgeries are made from, byte by byte.

It has two pages and all that a later revision may try to change: inherited
resources, a form, a layer that is off, a tagged paragraph, drawings in use and not.
"""

import io
from collections.abc import Mapping
from typing import Final, Literal

import pikepdf

from tests.support.documents.hostile_pdfs import build

HIGH: Final = 400
"""Height of the pages in points, and the value of the one number object."""
WIDE: Final = 300
"""Width of the pages in points."""

_BOX: Final = b"[0 0 %d %d]" % (WIDE, HIGH)
_FORM: Final = b"/Type/XObject/Subtype/Form"
_TO_UNICODE: Final = (
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
    b"/CMapName /Test def /CMapType 2 def\n"
    b"1 begincodespacerange <00> <FF> endcodespacerange\n"
    b"1 beginbfrange <20> <7E> <0020> endbfrange\n"
    b"endcmap end end"
)
_XMP: Final = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
    b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/></x:xmpmeta>'
)


def stream(data: bytes, entries: bytes = b"", length: bytes | None = None) -> bytes:
    """Write a stream object.

    Args:
        data: the stream's bytes, as they are stored.
        entries: further entries of its dictionary.
        length: the value of `/Length`; None: the true length.
    """
    length = b"%d" % len(data) if length is None else length
    return b"<<%s/Length %s>>stream\n%s\nendstream" % (entries, length, data)


def drawing(data: bytes, box: bytes = _BOX, entries: bytes = b"") -> bytes:
    """Write a form XObject (ISO 32000-2, 8.10)."""
    return stream(data, _FORM + b"/BBox" + box + entries)


def line(text: bytes, x: int = 20, y: int = 300, font: bytes = b"F1") -> bytes:
    """Content that shows one line of text in 18 points."""
    return b"BT /%s 18 Tf %d %d Td (%s) Tj ET" % (font, x, y, text)


def contract(extra: Mapping[int, bytes] | None = None) -> bytes:
    """The contract over 100, with a classic cross-reference table.

    Args:
        extra: objects that take the place of the usual ones, or come in addition.
    """
    shown = drawing((b"0 0.6 0 rg 20 200 60 20 re f").ljust(HIGH), entries=b"").replace(
        b"/Length %d" % HIGH, b"/Length 12 0 R"
    )
    unused = drawing(
        b"1 g 0 0 300 400 re f 0 g " + line(b"Precio: 900.000"),
        entries=b"/Resources<</Font<</F1 7 0 R>>>>",
    )
    layer = b"/OC /oc1 BDC 1 0 0 rg 20 120 200 40 re f EMC"
    widget = b"/Type/Annot/Subtype/Widget/F 4/P 3 0 R"
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R/AcroForm 20 0 R/StructTreeRoot 16 0 R"
        b"/MarkInfo<</Marked true>>/Metadata 25 0 R"
        b"/OCProperties<</OCGs[15 0 R]/D<</OFF[15 0 R]>>>>>>",
        2: b"<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2/MediaBox%s/Rotate 0"
        b"/Resources<</Font<</F1 7 0 R>>>>>>" % _BOX,
        3: b"<</Type/Page/Parent 2 0 R/MediaBox%s/Contents 5 0 R/StructParents 0"
        b"/Resources<</Font<</F1 7 0 R>>/XObject<</Fm1 9 0 R/Fm2 10 0 R>>"
        b"/Properties<</oc1 15 0 R>>>>/Annots[21 0 R 22 0 R 23 0 R 24 0 R]>>" % _BOX,
        4: b"<</Type/Page/Parent 2 0 R/Contents 6 0 R>>",
        5: stream(
            b"/P <</MCID 0>> BDC " + line(b"Precio: 100") + b" EMC\n/Fm1 Do\n" + layer
        ),
        6: stream(line(b"Firman las partes")),
        7: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 8 0 R>>",
        8: stream(_TO_UNICODE),
        9: shown,
        10: unused,
        12: b"%d" % HIGH,
        14: drawing(b"0 0 1 rg 0 0 60 20 re f", b"[0 0 60 20]"),
        15: b"<</Type/OCG/Name(Anexo)>>",
        16: b"<</Type/StructTreeRoot/K 17 0 R/ParentTree 18 0 R>>",
        17: b"<</Type/StructElem/S/P/P 16 0 R/Pg 3 0 R/K 0/ActualText(Precio: 100)>>",
        18: b"<</Nums[0[17 0 R]]>>",
        19: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        20: b"<</Fields[21 0 R 22 0 R 24 0 R]/DA(/Helv 12 Tf 0 g)"
        b"/DR<</Font<</Helv 19 0 R>>>>>>",
        21: b"<<%s/FT/Tx/T(Nombre)/V(Ana)/DA(/Helv 12 Tf 0 g)/Rect[20 60 140 80]"
        b"/AP<</N 26 0 R>>>>" % widget,
        22: b"<<%s/FT/Btn/T(Acepto)/V/Off/AS/Off/Rect[160 60 180 80]"
        b"/AP<</N<</Yes 27 0 R/Off 28 0 R>>>>>>" % widget,
        23: b"<</Type/Annot/Subtype/Stamp/F 4/P 3 0 R/Rect[20 160 80 180]"
        b"/AP<</N 14 0 R>>>>",
        24: b"<<%s/FT/Sig/T(Vendedor)/Rect[200 20 280 50]>>" % widget,
        25: stream(_XMP, b"/Type/Metadata/Subtype/XML"),
        26: drawing(
            b"/Tx BMC " + line(b"Ana", 2, 4, b"Helv") + b" EMC",
            b"[0 0 120 20]",
            b"/Resources<</Font<</Helv 19 0 R>>>>",
        ),
        27: drawing(b"0 g 2 2 16 16 re f", b"[0 0 20 20]"),
        28: drawing(b"0 G 2 2 16 16 re S", b"[0 0 20 20]"),
        **(extra or {}),
    }
    return build(objects, b"/ID[<%s><%s>]" % (b"0a" * 16, b"0a" * 16))


def locked_contract(lock: bytes = b"/Action/Include/Fields[(Nombre)]") -> bytes:
    """The contract whose empty signature field locks the field `Nombre`."""
    return contract(
        {
            24: b"<</Type/Annot/Subtype/Widget/F 4/P 3 0 R/FT/Sig/T(Vendedor)"
            b"/Rect[200 20 280 50]/Lock 30 0 R>>",
            30: b"<</Type/SigFieldLock%s>>" % lock,
        }
    )


def dangling_contract() -> bytes:
    """The contract, which refers to objects 5000 to 5003 that do not exist.

    Readers take them for null (ISO 32000-2, 7.3.10): page 1 shows nothing of the
    XObject, the font and an annotation, and page 2 has one content stream.
    """
    return contract(
        {
            3: b"<</Type/Page/Parent 2 0 R/MediaBox%s/Contents 5 0 R/StructParents 0"
            b"/Resources<</Font<</F1 7 0 R/F2 5002 0 R>>/XObject<</Fm1 9 0 R"
            b"/Fm2 10 0 R/Fm3 5000 0 R>>/Properties<</oc1 15 0 R>>>>"
            b"/Annots[21 0 R 22 0 R 23 0 R 24 0 R 31 0 R]>>" % _BOX,
            4: b"<</Type/Page/Parent 2 0 R/Contents[6 0 R 5001 0 R]>>",
            5: stream(
                b"/P <</MCID 0>> BDC "
                + line(b"Precio: 100")
                + b" EMC /Fm1 Do\n/Fm3 Do\n"
                + line(b"abc", 20, 260, b"F2")
            ),
            # Beside the fields: poppler draws a word where the drawing is missing.
            31: b"<</Type/Annot/Subtype/Stamp/F 4/P 3 0 R/Rect[0 100 300 400]"
            b"/AP<</N 5003 0 R>>>>",
        }
    )


def rewritten(
    pdf: bytes,
    *,
    streams: bool = False,
    encrypted: Literal[0, 4, 6] = 0,
) -> bytes:
    """Have qpdf write a file again.

    Args:
        pdf: the file, not signed.
        streams: write object streams and a cross-reference stream.
        encrypted: the revision of an encryption with an empty user password;
            0: no encryption.
    """
    modes = pikepdf.ObjectStreamMode
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        out = io.BytesIO()
        opened.save(
            out,
            object_stream_mode=modes.generate if streams else modes.disable,
            encryption=pikepdf.Encryption(
                user="", owner="owner", R=encrypted, aes=True, metadata=True
            )
            if encrypted
            else False,
            deterministic_id=not encrypted,
        )
    return out.getvalue()
