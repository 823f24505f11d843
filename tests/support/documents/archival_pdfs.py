"""PDF/A files of many shapes, of the parts 1b, 2b, 3b and 4, made here.

    pdf = archival("2b", "object streams")

Every part has the same 20 shapes by name; where a part knows a feature not, its shape
of that name shows the nearest that it knows.

Source: ISO 19005-1 (PDF 1.4), -2 and -3 (PDF 1.7), -4 (PDF 2.0; 4f with attachments).
"""

import functools
import io
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pikepdf
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from appliance.domain.vocab import FontName, FontStyle
from tests.support.documents import hostile_pdfs
from worker.pades.appearance.fonts import load_fonts

PARTS: Final = ("1b", "2b", "3b", "4")
_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_VERSIONS: Final = {"1b": b"1.4", "2b": b"1.7", "3b": b"1.7", "4": b"2.0"}
_PDF_1_7: Final = b"%PDF-1.7"
_CATALOG, _TREE, _PAGE, _CONTENT, _INFO, _METADATA, _PROFILE, _FONT = range(1, 9)
_DESCRIPTOR, _PROGRAM = 9, 10
_TITLE: Final = "Contrato de locación"
_PRODUCER: Final = "Archivo"
_FIRST, _LAST = 32, 126
_MADE: Final = b"(D:20240102030405Z)"
_MADE_XMP: Final = "2024-01-02T03:04:05Z"
_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_PLACED: Final = b"/Type/Annot/Rect[20 100 120 120]/F 4"


@dataclass
class Draft:
    """A page in the making; shapes add to it."""

    part: str
    catalog: dict[bytes, bytes] = field(default_factory=dict)
    tree: dict[bytes, bytes] = field(default_factory=dict)
    page: dict[bytes, bytes] = field(default_factory=dict)
    resources: dict[bytes, bytes] = field(default_factory=dict)
    content: list[bytes] = field(default_factory=list)
    info: dict[bytes, bytes] = field(default_factory=dict)
    schema: str = ""
    """More descriptions of the metadata."""
    conformance: str = ""
    objects: dict[int, bytes] = field(default_factory=dict)
    saved: dict[str, bool | pikepdf.ObjectStreamMode] = field(default_factory=dict)
    """Options of a save by qpdf, for what only that writes."""

    @property
    def is_first(self) -> bool:
        """True for PDF/A-1, which permits neither object streams nor attachments."""
        return self.part == "1b"

    def add(self, body: bytes) -> bytes:
        """Add an object; its reference."""
        number = max(self.objects) + 1
        self.objects[number] = body
        return b"%d 0 R" % number

    def add_stream(self, data: bytes, entries: bytes = b"") -> bytes:
        """Add a stream; its reference."""
        return self.add(stream(data, entries))

    def annotate(self, entries: bytes) -> bytes:
        """Add an annotation to the page, with these entries; its reference."""
        reference = self.add(b"<<" + _PLACED + entries + b">>")
        self.page[b"Annots"] = b"[%s]" % reference
        return reference

    def drawn(self) -> bytes:
        """A form XObject with a line, as an appearance; its reference."""
        entries = b"/Type/XObject/Subtype/Form/BBox[0 0 100 20]/Resources<<>>"
        return self.add_stream(b"0 10 m 100 10 l S", entries)


Shape = Callable[[Draft], None]
SHAPES: Final[dict[str, Shape]] = {}


def archival(part: str, shape: str) -> bytes:
    """Make a PDF/A file of a part and a shape."""
    draft = _draft(part)
    SHAPES[shape](draft)
    return _written(draft)


def stream(data: bytes, entries: bytes = b"") -> bytes:
    """Write the body of a stream."""
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (entries, len(data), data)


def _dictionary(entries: Mapping[bytes, bytes]) -> bytes:
    return b"<<%s>>" % b"".join(b"/%s %s" % each for each in entries.items())


def _draft(part: str) -> Draft:
    """One page with a line of text, and all that PDF/A wants of it."""
    profile = zlib.compress(_srgb())
    draft = Draft(
        part,
        page={
            b"Type": b"/Page",
            b"Parent": b"%d 0 R" % _TREE,
            b"MediaBox": b"[0 0 200 300]",
            b"Contents": b"%d 0 R" % _CONTENT,
        },
        tree={b"Type": b"/Pages", b"Kids": b"[%d 0 R]" % _PAGE, b"Count": b"1"},
        resources={b"Font": b"<</F %d 0 R>>" % _FONT},
        content=[b"BT /F 12 Tf 20 250 Td (Contrato) Tj ET"],
        conformance="" if part == "4" else "B",
    )
    draft.catalog = {
        b"Type": b"/Catalog",
        b"Pages": b"%d 0 R" % _TREE,
        b"Metadata": b"%d 0 R" % _METADATA,
        b"OutputIntents": b"[<</Type/OutputIntent/S/GTS_PDFA1"
        b"/OutputConditionIdentifier(sRGB)/Info(sRGB)/DestOutputProfile %d 0 R>>]"
        % _PROFILE,
    }
    if part != "4":  # there the metadata alone says it
        draft.info = {
            b"Title": b"(Contrato de locaci\\363n)",
            b"Producer": b"(%s)" % _PRODUCER.encode(),
            b"CreationDate": _MADE,
            b"ModDate": _MADE,
        }
    draft.objects = dict.fromkeys(range(1, _PROGRAM + 1), b"")
    draft.objects[_PROFILE] = stream(profile, b"/N 3/Filter/FlateDecode")
    _add_font(draft)
    return draft


def _written(draft: Draft) -> bytes:
    """The file of a draft."""
    objects = draft.objects
    # A tree may give its pages their resources.
    if b"Resources" not in draft.tree:
        draft.page.setdefault(b"Resources", _dictionary(draft.resources))
    objects[_CATALOG] = _dictionary(draft.catalog)
    objects[_TREE] = _dictionary(draft.tree)
    objects[_PAGE] = _dictionary(draft.page)
    objects[_CONTENT] = objects[_CONTENT] or stream(b"\n".join(draft.content))
    objects[_METADATA] = stream(metadata(draft).encode(), b"/Type/Metadata/Subtype/XML")
    trailer = b"/ID[<%s><%s>]" % (b"0A" * 16, b"0B" * 16)
    if draft.info:
        objects[_INFO] = _dictionary(draft.info)
        trailer += b"/Info %d 0 R" % _INFO
    else:
        objects[_INFO] = b"null"
    pdf = hostile_pdfs.build(objects, trailer)
    pdf = pdf.replace(_PDF_1_7, b"%PDF-" + _VERSIONS[draft.part], 1)
    return _saved(pdf, draft) if draft.saved else pdf


def _saved(pdf: bytes, draft: Draft) -> bytes:
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        opened.save(
            out,
            deterministic_id=True,
            fix_metadata_version=False,
            compress_streams=False,
            stream_decode_level=pikepdf.StreamDecodeLevel.none,
            linearize=bool(draft.saved.get("linearize")),
            object_stream_mode=draft.saved.get(
                "object_stream_mode", pikepdf.ObjectStreamMode.disable
            ),
        )
    return out.getvalue()


def metadata(draft: Draft) -> str:
    """Write the XMP packet of a draft, with room to be changed in place."""
    number = draft.part[0]
    identity = f"<pdfaid:part>{number}</pdfaid:part>"
    if draft.part == "4":
        identity += "<pdfaid:rev>2020</pdfaid:rev>"
    if draft.conformance:
        identity += f"<pdfaid:conformance>{draft.conformance}</pdfaid:conformance>"
    mark, room = "\ufeff", "\n".join([" " * 80] * 8)
    return f"""<?xpacket begin="{mark}" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="{_RDF}">
  <rdf:Description rdf:about=""
    xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/">{identity}</rdf:Description>
  <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">
   <dc:title><rdf:Alt>
    <rdf:li xml:lang="x-default">{_TITLE}</rdf:li>
   </rdf:Alt></dc:title>
  </rdf:Description>
  <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmp:CreateDate="{_MADE_XMP}" xmp:ModifyDate="{_MADE_XMP}"/>
  <rdf:Description rdf:about="" xmlns:pdf="http://ns.adobe.com/pdf/1.3/"
    pdf:Producer="{_PRODUCER}"/>{draft.schema}
 </rdf:RDF>
</x:xmpmeta>
{room}
<?xpacket end="w"?>"""


def _srgb() -> bytes:
    """A profile of sRGB, by its primaries and a gamma: version 2.1, as PDF 1.4 knows.

    Source: ICC.1:1998-09, 6.
    """

    def xyz(*values: float) -> bytes:
        fixed = (round(value * 65536) for value in values)
        return b"XYZ \0\0\0\0" + struct.pack(">3i", *fixed)

    name = b"sRGB\0"
    described = b"desc\0\0\0\0" + struct.pack(">I", len(name)) + name
    curve = b"curv\0\0\0\0" + struct.pack(">IHxx", 1, 563)  # gamma 2.2
    tags = {
        b"desc": described + bytes(8 + 3 + 67 + 3),
        b"cprt": b"text\0\0\0\0nobody\0\0",
        b"wtpt": xyz(0.9505, 1, 1.0891),
        b"rXYZ": xyz(0.4361, 0.2225, 0.0139),
        b"gXYZ": xyz(0.3851, 0.7169, 0.0971),
        b"bXYZ": xyz(0.1431, 0.0606, 0.7141),
        b"rTRC": curve,
        b"gTRC": curve,
        b"bTRC": curve,
    }
    at = 128 + 4 + 12 * len(tags)
    table, data = struct.pack(">I", len(tags)), b""
    for tag, content in tags.items():
        table += tag + struct.pack(">2I", at + len(data), len(content))
        data += content + bytes(-len(content) % 4)
    head = struct.pack(
        ">I4sI4s4s4s6H4s", at + len(data), bytes(4), 0x02100000, b"mntr", b"RGB ",
        b"XYZ ", 2024, 1, 2, 3, 4, 5, b"acsp",
    ) + bytes(28)  # fmt: skip
    head += struct.pack(">3i", 63190, 65536, 54061)  # D50
    return head.ljust(128, b"\0") + table + data


@functools.cache
def _subset() -> tuple[bytes, tuple[int, ...], TTFont]:
    """The letters of ASCII: a program, their widths in 1/1000 em, and the font."""
    font = TTFont(_FONTS / "LiberationSans-Regular.ttf")
    del font["FFTM"]  # of the program that made it
    subsetter = Subsetter(Options(hinting=False, layout_features=[]))
    subsetter.populate(unicodes=range(_FIRST, _LAST + 1))
    subsetter.subset(font)
    out = io.BytesIO()
    font.save(out)
    names, scale = font.getBestCmap(), 1000 / font["head"].unitsPerEm
    widths = tuple(
        round(font["hmtx"][names[code]][0] * scale) for code in range(_FIRST, _LAST + 1)
    )
    return out.getvalue(), widths, font


def _add_font(draft: Draft) -> None:
    """The simple font that pages are set in."""
    program, widths, font = _subset()
    head, line = font["head"], font["hhea"]
    box = (head.xMin, head.yMin, head.xMax, head.yMax)
    per_em = 1000 / head.unitsPerEm
    name = b"AAAAAA+LiberationSans"
    draft.objects[_FONT] = (
        b"<</Type/Font/Subtype/TrueType/BaseFont/%s/Encoding/WinAnsiEncoding"
        b"/FirstChar %d/LastChar %d/Widths[%s]/FontDescriptor %d 0 R>>"
        % (
            name,
            _FIRST,
            _LAST,
            b" ".join(b"%d" % width for width in widths),
            _DESCRIPTOR,
        )
    )
    draft.objects[_DESCRIPTOR] = (
        b"<</Type/FontDescriptor/FontName/%s/Flags 32/FontBBox[%s]/ItalicAngle 0"
        b"/Ascent %d/Descent %d/CapHeight 729/StemV 80/FontFile2 %d 0 R>>"
        % (
            name,
            b" ".join(b"%d" % round(side * per_em) for side in box),
            round(line.ascent * per_em),
            round(line.descent * per_em),
            _PROGRAM,
        )
    )
    draft.objects[_PROGRAM] = stream(
        zlib.compress(program), b"/Length1 %d/Filter/FlateDecode" % len(program)
    )


def _shape(name: str) -> Callable[[Shape], Shape]:
    """Enter a shape under its name."""

    def enter(made: Shape) -> Shape:
        SHAPES[name] = made
        return made

    return enter


@_shape("simple font")
def _simple_font(draft: Draft) -> None:
    """Nothing but the line."""


@_shape("composite font")
def _composite_font(draft: Draft) -> None:
    font = load_fonts(_FONTS)[FontName.MONOSPACED, FontStyle.PLAIN]
    deflated = b"/Filter/FlateDecode"
    program = draft.add_stream(
        font.program, b"/Length1 %d" % font.program_length + deflated
    )
    # PDF/A-1 wants the glyphs of a subset named.
    named = b"/CIDSet " + draft.add_stream(font.cid_set) if draft.is_first else b""
    name = font.name.encode()
    descriptor = draft.add(
        b"<</Type/FontDescriptor/FontName/%s/Flags %d/FontBBox[%s]/ItalicAngle 0"
        b"/Ascent %d/Descent %d/CapHeight %d/StemV %d/FontFile2 %s%s>>"
        % (
            name, font.flags, b" ".join(b"%d" % side for side in font.bbox),
            font.ascent, font.descent, font.cap_height, font.stem_v, program, named,
        )
    )  # fmt: skip
    glyphs = [font.glyphs[letter] for letter in "firma"]
    descendant = draft.add(
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/%s/DW 600/CIDToGIDMap/Identity"
        b"/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>"
        b"/FontDescriptor %s>>" % (name, descriptor)
    )
    unicode = draft.add_stream(font.to_unicode, deflated)
    whole = draft.add(
        b"<</Type/Font/Subtype/Type0/BaseFont/%s/Encoding/Identity-H"
        b"/DescendantFonts[%s]/ToUnicode %s>>" % (name, descendant, unicode)
    )
    draft.resources[b"Font"] = b"<</F %d 0 R/G %s>>" % (_FONT, whole)
    shown = b"".join(b"%04X" % glyph for glyph in glyphs)
    draft.content.append(b"BT /G 12 Tf 20 220 Td <%s> Tj ET" % shown)


@_shape("indirect lengths")
def _indirect_lengths(draft: Draft) -> None:
    data = b"\n".join(draft.content)
    length = draft.add(b"%d" % len(data))
    draft.objects[_CONTENT] = b"<</Length %s>>stream\n%s\nendstream" % (length, data)


@_shape("inherited attributes")
def _inherited_attributes(draft: Draft) -> None:
    """Of two trees, one in the other."""
    node = draft.add(
        b"<</Type/Pages/Parent %d 0 R/Kids[%d 0 R]/Count 1/Rotate 90>>" % (_TREE, _PAGE)
    )
    draft.tree[b"Kids"] = b"[%s]" % node
    draft.tree[b"MediaBox"] = draft.page.pop(b"MediaBox")
    draft.tree[b"Resources"] = _dictionary(draft.resources)
    draft.page[b"Parent"] = node


@_shape("several pages")
def _several_pages(draft: Draft) -> None:
    resources = _dictionary(draft.resources)
    more = [
        draft.add(
            b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 300 200]/Resources %s"
            b"/Contents %s>>"
            % (
                _TREE,
                resources,
                draft.add_stream(b"BT /F 9 Tf 9 9 Td (Hoja) Tj ET"),
            )
        )
        for _ in range(3)
    ]
    draft.tree |= {
        b"Kids": b"[%d 0 R %s]" % (_PAGE, b" ".join(more)),
        b"Count": b"4",
    }


@_shape("extension schema")
def _extension_schema(draft: Draft) -> None:
    """Properties of one's own, described as PDF/A wants it, and the file's version."""
    version = _VERSIONS[draft.part].decode()
    described = "" if draft.part == "4" else _DESCRIBED
    draft.schema = f"""
  <rdf:Description rdf:about="" xmlns:pdf="http://ns.adobe.com/pdf/1.3/"
    pdf:PDFVersion="{version}"/>
  <rdf:Description rdf:about="" xmlns:exp="https://example.org/expediente/">
   <exp:numero>EX-2024-1</exp:numero>
  </rdf:Description>{described}"""


_DESCRIBED: Final = """
  <rdf:Description rdf:about=""
    xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/"
    xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#"
    xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#">
   <pdfaExtension:schemas><rdf:Bag><rdf:li rdf:parseType="Resource">
    <pdfaSchema:schema>Expediente</pdfaSchema:schema>
    <pdfaSchema:namespaceURI>https://example.org/expediente/</pdfaSchema:namespaceURI>
    <pdfaSchema:prefix>exp</pdfaSchema:prefix>
    <pdfaSchema:property><rdf:Seq><rdf:li rdf:parseType="Resource">
     <pdfaProperty:name>numero</pdfaProperty:name>
     <pdfaProperty:valueType>Text</pdfaProperty:valueType>
     <pdfaProperty:category>external</pdfaProperty:category>
     <pdfaProperty:description>Its number</pdfaProperty:description>
    </rdf:li></rdf:Seq></pdfaSchema:property>
   </rdf:li></rdf:Bag></pdfaExtension:schemas>
  </rdf:Description>"""


@_shape("information in UTF-16")
def _information_in_utf16(draft: Draft) -> None:
    if draft.info:
        draft.info[b"Title"] = b"<%s>" % _utf16(_TITLE).hex().upper().encode()
    draft.catalog[b"Lang"] = b"(es-AR)"


def _utf16(text: str) -> bytes:
    return b"\xfe\xff" + text.encode("utf-16-be")


@_shape("link")
def _link(draft: Draft) -> None:
    draft.annotate(b"/Subtype/Link/Border[0 0 0]/A<</S/URI/URI(https://example.org/)>>")


@_shape("text field")
def _text_field(draft: Draft) -> None:
    widget = draft.annotate(
        b"/Subtype/Widget/FT/Tx/T(Lugar)/V(Rosario)/DA(/F 9 Tf 0 g)/P %d 0 R"
        b"/AP<</N %s>>" % (_PAGE, draft.drawn())
    )
    draft.catalog[b"AcroForm"] = b"<</Fields[%s]/DA(/F 9 Tf 0 g)/DR<<%s>>>>" % (
        widget,
        b"/Font " + draft.resources[b"Font"],
    )


@_shape("check box")
def _check_box(draft: Draft) -> None:
    """Its appearance has states."""
    widget = draft.annotate(
        b"/Subtype/Widget/FT/Btn/T(Acepta)/V/Si/AS/Si/P %d 0 R"
        b"/AP<</N<</Si %s/Off %s>>>>" % (_PAGE, draft.drawn(), draft.drawn())
    )
    draft.catalog[b"AcroForm"] = b"<</Fields[%s]>>" % widget


@_shape("pictures")
def _pictures(draft: Draft) -> None:
    entries = b"/Type/XObject/Subtype/Image/Width 8/Height 8"
    hexadecimal = zlib.compress(bytes(range(192))).hex().encode() + b">"
    coloured = draft.add_stream(
        hexadecimal,
        entries + b"/ColorSpace/DeviceRGB/BitsPerComponent 8"
        b"/Filter[/ASCIIHexDecode/FlateDecode]",
    )
    # Runs of one byte each, and the end of data.
    runs = b"".join(b"\0%c" % (each * 31) for each in range(8)) + b"\x80"
    masked = draft.add_stream(
        runs, entries + b"/ImageMask true/BitsPerComponent 1/Filter/RunLengthDecode"
    )
    draft.resources[b"XObject"] = b"<</A %s/B %s>>" % (coloured, masked)
    draft.content += [b"q 40 0 0 40 20 20 cm /A Do Q", b"q 9 0 0 9 70 20 cm /B Do Q"]


@_shape("tagged")
def _tagged(draft: Draft) -> None:
    root = max(draft.objects) + 1
    draft.objects[root] = b""
    element = draft.add(b"<</S/P/P %d 0 R/K 0/Pg %d 0 R>>" % (root, _PAGE))
    draft.objects[root] = (
        b"<</Type/StructTreeRoot/K %s/ParentTree<</Nums[0[%s]]>>/ParentTreeNextKey 1>>"
        % (element, element)
    )
    draft.catalog |= {
        b"StructTreeRoot": b"%d 0 R" % root,
        b"MarkInfo": b"<</Marked true>>",
        b"Lang": b"(es-AR)",
    }
    draft.page[b"StructParents"] = b"0"
    draft.content = [b"/P<</MCID 0>>BDC", *draft.content, b"EMC"]


@_shape("outline")
def _outline(draft: Draft) -> None:
    root = max(draft.objects) + 1
    draft.objects[root] = b""
    item = draft.add(b"<</Title(Uno)/Parent %d 0 R/Dest(uno)>>" % root)
    draft.objects[root] = b"<</Type/Outlines/First %s/Last %s/Count 1>>" % (item, item)
    draft.catalog |= {
        b"Outlines": b"%d 0 R" % root,
        b"Names": b"<</Dests<</Names[(uno)[%d 0 R/Fit]]>>>>" % _PAGE,
        b"PageLabels": b"<</Nums[0<</S/D/St 3>>]>>",
        b"ViewerPreferences": b"<</DisplayDocTitle true>>",
    }


@_shape("transparency")
def _transparency(draft: Draft) -> None:
    """A form XObject, in PDF/A-1 without it."""
    group = b"" if draft.is_first else b"/Group<</S/Transparency/CS/DeviceRGB/I true>>"
    form = draft.add_stream(
        b"1 0 0 rg 0 0 50 50 re f",
        b"/Type/XObject/Subtype/Form/BBox[0 0 50 50]/Resources<<>>" + group,
    )
    draft.resources |= {
        b"XObject": b"<</X %s>>" % form,
        b"ExtGState": b"<</G<</Type/ExtGState/CA 1.0/ca %s>>>>"
        % (b"1.0" if draft.is_first else b"0.5"),
    }
    draft.content.append(b"q /G gs 1 0 0 1 20 20 cm /X Do Q")


@_shape("colour spaces")
def _colour_spaces(draft: Draft) -> None:
    """Colours of a table, whose bytes look like text, and one of a name of its own."""
    tint = b"<</FunctionType 2/Domain[0 1]/C0[1 1 1]/C1[0 .2 .5]/N 1>>"
    draft.resources[b"ColorSpace"] = (
        b"<</Tabla[/Indexed/DeviceRGB 1<FEFF00410042>]"
        b"/Tinta[/Separation/Azul#20propio/DeviceRGB %s]/Perfil[/ICCBased %d 0 R]>>"
        % (tint, _PROFILE)
    )
    draft.content += [
        b"/Tabla cs 1 sc 20 20 30 30 re f",
        b"/Tinta cs .5 scn 60 20 30 30 re f",
        b"/Perfil cs .1 .2 .3 sc 100 20 30 30 re f",
    ]


@_shape("object streams")
def _object_streams(draft: Draft) -> None:
    """In PDF/A-1, which knows none, several streams of content."""
    if draft.is_first:
        more = draft.add_stream(b"0 0 20 20 re f")
        draft.page[b"Contents"] = b"[%d 0 R %s]" % (_CONTENT, more)
    else:
        draft.saved["object_stream_mode"] = pikepdf.ObjectStreamMode.generate


@_shape("linearized")
def _linearized(draft: Draft) -> None:
    draft.saved["linearize"] = True


@_shape("attachment")
def _attachment(draft: Draft) -> None:
    """In PDF/A-1 and -2, which take no such files, the page has metadata of its own."""
    if draft.part in {"1b", "2b"}:
        draft.page[b"Metadata"] = draft.add_stream(
            metadata(draft).encode(), b"/Type/Metadata/Subtype/XML"
        )
        return
    if draft.part == "4":
        draft.conformance = "F"
    data = b"cuota;monto\r\n1;100\r\n"
    file = draft.add_stream(
        data,
        b"/Type/EmbeddedFile/Subtype/text#2Fcsv/Params<</Size %d/ModDate%s>>"
        % (len(data), _MADE),
    )
    named = draft.add(
        b"<</Type/Filespec/F(cuotas.csv)/UF(cuotas.csv)/Desc(Cuotas)"
        b"/AFRelationship/Data/EF<</F %s/UF %s>>>>" % (file, file)
    )
    draft.catalog |= {
        b"AF": b"[%s]" % named,
        b"Names": b"<</EmbeddedFiles<</Names[(cuotas.csv)%s]>>>>" % named,
    }


@_shape("Type 3 font")
def _type_3_font(draft: Draft) -> None:
    glyph = draft.add_stream(b"500 0 0 0 500 500 d1 0 0 500 500 re f")
    font = draft.add(
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 500 500]"
        b"/FontMatrix[.001 0 0 .001 0 0]/FirstChar 97/LastChar 97/Widths[500]"
        b"/CharProcs<</cuadro %s>>/Resources<<>>"
        b"/Encoding<</Type/Encoding/Differences[97/cuadro]>>>>" % glyph
    )
    draft.resources[b"Font"] = b"<</F %d 0 R/T %s>>" % (_FONT, font)
    draft.content.append(b"BT /T 20 Tf 20 200 Td (a) Tj ET")


@_shape("layers")
def _layers(draft: Draft) -> None:
    """In PDF/A-1, which knows none, a note."""
    if draft.is_first:
        draft.annotate(
            b"/Subtype/Square/C[0 0 1]/Contents(Nota)/AP<</N %s>>" % draft.drawn()
        )
        return
    layer = draft.add(b"<</Type/OCG/Name(Plano)>>")
    draft.catalog[b"OCProperties"] = b"<</OCGs[%s]/D<</Name(Vista)/Order[%s]>>>>" % (
        layer,
        layer,
    )
    draft.resources[b"Properties"] = b"<</L %s>>" % layer
    draft.content.append(b"/OC/L BDC 150 20 20 20 re f EMC")
