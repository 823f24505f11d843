"""PDF/A by its structure: what a file breaks of it, and what it says of itself.

No whole validator: neither programs of fonts nor operators of pages are looked at. What
is are the rules that a writer of files can break without touching those.

Source: ISO 19005-1, 6; ISO 19005-2 and -3, 6; ISO 19005-4, 6.
"""

import hashlib
import io
import re
from collections.abc import Iterator
from typing import Any, Final

import pikepdf
from lxml import etree
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.xref import ObjStreamRef

_HEAD: Final = re.compile(rb"%PDF-(\d)\.\d\r?\n%[\x80-\xff]{4}")
_END: Final = re.compile(rb"startxref\r?\n\d+\r?\n%%EOF(?:\r\n|\r|\n)?\Z")
_SECTION: Final = re.compile(rb"startxref\s+(\d+)")
_OBJECT: Final = re.compile(rb"\d+ \d+ obj[\r\n]")
_STREAM: Final = re.compile(rb">>\s*stream(?:\r\n|\n)")
_CLOSED_STREAM: Final = re.compile(rb"(?:\r\n|\r|\n)endstream\s+endobj[\r\n]")
_CLOSED: Final = re.compile(rb"[\r\n]endobj[\r\n]")
_PACKET: Final = re.compile(rb"<\?xpacket begin=([^?]*)\?>")
_META: Final = "{adobe:ns:meta/}xmpmeta"
_DESCRIPTION: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}Description"
_IDENTITY: Final = "{http://www.aiim.org/pdfa/ns/id/}"
_ACTIONS: Final = {
    "/Launch", "/Sound", "/Movie", "/ResetForm", "/ImportData", "/JavaScript",
}  # fmt: skip
_EXTERNAL: Final = ("/F", "/FFilter", "/FDecodeParms")
_PROGRAMS: Final = ("/FontFile", "/FontFile2", "/FontFile3")
_WITHOUT_LOOK: Final = {"/Popup", "/Link"}
_PRINTED: Final = 4
_NOT_SEEN: Final = 1 | 2 | 32


def broken_rules(pdf: bytes) -> list[str]:
    """What a file breaks of the part of PDF/A that it says it conforms to.

    Args:
        pdf: the whole file.
    """
    part = identity(pdf).get("part", "none")
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        found = {
            *_ends(pdf, part),
            *_sections(pdf, part),
            *_layout(pdf, opened),
            *_trailer(opened, part),
            *_catalog(opened, part),
        }
        for each in _dictionaries(opened):
            found.update(_dictionary(each, part))
    return sorted(found)


def identity(pdf: bytes) -> dict[str, str]:
    """What a file's metadata says of its conformance: `part`, `conformance`, `rev`."""
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        root = etree.fromstring(opened.Root.Metadata.read_bytes())
    said = {}
    for described in root.iter(_DESCRIPTION):
        values = {**described.attrib, **{each.tag: each.text for each in described}}
        for name, value in values.items():
            if str(name).startswith(_IDENTITY):
                said[str(name).removeprefix(_IDENTITY)] = str(value)
    return said


def kept_parts(pdf: bytes) -> dict[str, Any]:
    """What a copy of a file has to have as the file has it.

    Args:
        pdf: the whole file.
    """
    with pikepdf.open(io.BytesIO(pdf), suppress_warnings=True) as opened:
        root, held = opened.Root, [*_dictionaries(opened)]
        files = {
            str(spec.get("/UF")): (str(spec.get("/AFRelationship")), _digest(spec.EF.F))
            for spec in held
            if "/EF" in spec
        }
        return {
            "metadata": _digest(root.Metadata),
            "profiles": [_digest(one.DestOutputProfile) for one in root.OutputIntents],
            "information": {
                str(key): bytes(value)
                for key, value in opened.trailer.get("/Info", {}).items()
            },
            "fonts": sorted(
                _digest(each[key])
                for each in held
                for key in (*_PROGRAMS, "/CIDSet", "/ToUnicode")
                if isinstance(each.get(key), pikepdf.Stream)
            ),
            "content": [[*_contents(page.obj)] for page in opened.pages],
            "files": files,
            "associated": len(root.get("/AF", [])),
            "language": str(root.get("/Lang")),
            "tags": (str(root.get("/MarkInfo")), "/StructTreeRoot" in root),
            "annotations": [len(page.obj.get("/Annots", [])) for page in opened.pages],
        }


def _contents(page: pikepdf.Object) -> Iterator[bytes]:
    """What draws a page.

    The line's end after it may be of the stream: of a wrong length nobody can tell.
    """
    streams = page.get("/Contents", pikepdf.Array())
    listed = [streams] if isinstance(streams, pikepdf.Stream) else streams.as_list()
    for each in listed:
        yield each.read_bytes().rstrip(b"\r\n")


def _digest(stream: pikepdf.Object) -> str:
    return hashlib.sha256(stream.read_raw_bytes()).hexdigest()[:12]


def _ends(pdf: bytes, part: str) -> Iterator[str]:
    """What the file begins and ends with.

    Source: ISO 19005-1, 6.1.2, 6.1.3.
    """
    head = _HEAD.match(pdf)
    if head is None or head[1] != (b"2" if part == "4" else b"1"):
        yield "header"
    if not _END.search(pdf):
        yield "end of file"


def _sections(pdf: bytes, part: str) -> Iterator[str]:
    """Cross-reference sections.

    Source: ISO 19005-1, 6.1.4: PDF 1.4 knows tables alone.
    """
    for at in (int(found) for found in _SECTION.findall(pdf)):
        # A linearized file's first one says 0.
        if part == "1" and at and not pdf.startswith(b"xref", at):
            yield "cross-reference stream"


def _layout(pdf: bytes, opened: pikepdf.Pdf) -> Iterator[str]:
    """Lines of objects, and of streams in them.

    Source: ISO 19005-1, 6.1.7, 6.1.8.
    """
    places = PdfFileReader(io.BytesIO(pdf), strict=False).xrefs
    for revision in range(places.total_revisions):
        for held in places.explicit_refs_in_revision(revision):
            at = places.get_historical_ref(held, revision)
            if at is None or isinstance(at, ObjStreamRef):
                continue
            if not _OBJECT.match(pdf, at):
                yield "line of an object"
            body = opened.get_object(held.idnum, held.generation)
            if places.get_last_change(held) != revision:
                continue
            if not isinstance(body, pikepdf.Stream):
                if not _CLOSED.search(pdf, at):
                    yield "end of an object"
                continue
            begun = _STREAM.search(pdf, at)
            end = begun and begun.end() + len(body.read_raw_bytes())
            if end is None or not _CLOSED_STREAM.match(pdf, end):
                yield "length or end of a stream"


def _trailer(opened: pikepdf.Pdf, part: str) -> Iterator[str]:
    named = opened.trailer.get("/ID")
    if not isinstance(named, pikepdf.Array) or len(named) != 2:
        yield "no file identifier"
    if "/Encrypt" in opened.trailer:
        yield "encrypted"
    if part == "4" and "/Info" in opened.trailer and "/PieceInfo" not in opened.Root:
        yield "information in the trailer"


def _catalog(opened: pikepdf.Pdf, part: str) -> Iterator[str]:
    """Metadata, output intent, form and attachments."""
    root = opened.Root
    data = root.Metadata.read_bytes()
    packet = _PACKET.search(data)
    if packet is None or b"bytes" in packet[1] or b"encoding" in packet[1]:
        yield "packet of the metadata"
    if etree.fromstring(data).tag != _META:
        yield "metadata"
    if part == "1" and "/Filter" in root.Metadata:
        yield "filtered metadata"
    intents = root.get("/OutputIntents", pikepdf.Array())
    if not any(
        each.S == "/GTS_PDFA1" and isinstance(each.DestOutputProfile, pikepdf.Stream)
        for each in intents.as_list()
    ):
        yield "no output intent"
    form = root.get("/AcroForm", pikepdf.Dictionary())
    if form.get("/NeedAppearances", False) or "/XFA" in form:
        yield "form"
    if part == "1" and "/OCProperties" in root:
        yield "layers"
    version = root.get("/Version")
    if version is not None and str(version)[1:2] != ("2" if part == "4" else "1"):
        yield "version of the catalog"


def _dictionaries(opened: pikepdf.Pdf) -> Iterator[pikepdf.Object]:
    """Every dictionary that the catalog leads to, those of streams among them."""
    todo: list[Any] = [opened.Root, opened.trailer.get("/Info")]
    seen = set()
    while todo:
        each = todo.pop()
        if isinstance(each, pikepdf.Object) and each.objgen[0]:
            if each.objgen in seen:
                continue
            seen.add(each.objgen)
        if isinstance(each, pikepdf.Array):
            todo += each.as_list()
        elif isinstance(each, (pikepdf.Dictionary, pikepdf.Stream)):
            yield each
            todo += [each.get(key) for key in each.keys()]  # noqa: SIM118


def _dictionary(each: pikepdf.Object, part: str) -> Iterator[str]:
    """What one dictionary breaks."""
    if isinstance(each, pikepdf.Stream):
        yield from _stream(each, part)
    if each.get("/Type") == "/Font":
        yield from _font(each)
    if "/Rect" in each and "/Subtype" in each:
        yield from _annotation(each, part)
    if each.get("/S") in _ACTIONS or "/JS" in each or "/AA" in each:
        yield "action"
    if each.get("/Type") == "/ExtGState" and ("/TR" in each or "/HTP" in each):
        yield "graphics state"
    if "/EF" in each:
        yield from _attachment(each, part)
    if part == "1":
        yield from _transparent(each)


def _stream(each: pikepdf.Object, part: str) -> Iterator[str]:
    if any(key in each for key in _EXTERNAL):
        yield "stream in another file"
    filters = each.get("/Filter", pikepdf.Array())
    named = [filters] if isinstance(filters, pikepdf.Name) else filters.as_list()
    if any(name in {"/LZWDecode", "/Crypt"} for name in named):
        yield "filter"
    if each.get("/Type") in {"/ObjStm", "/XRef"} and part == "1":
        yield "object stream"
    if each.get("/Subtype") == "/PS" or "/OPI" in each or "/Alternates" in each:
        yield "XObject"


def _font(font: pikepdf.Object) -> Iterator[str]:
    """Every font has its program in the file."""
    if font.Subtype in {"/Type0", "/Type3"}:
        return
    described = font.get("/FontDescriptor", pikepdf.Dictionary())
    if not any(isinstance(described.get(key), pikepdf.Stream) for key in _PROGRAMS):
        yield "font that is not embedded"
    if font.Subtype == "/CIDFontType2" and "/CIDToGIDMap" not in font:
        yield "font without a map"


def _annotation(note: pikepdf.Object, part: str) -> Iterator[str]:
    """Flags and appearance.

    Source: ISO 19005-1, 6.5.3, 6.9; ISO 19005-2, 6.3.2, 6.3.3.
    """
    if note.Subtype == "/Popup":
        return
    flags = int(note.get("/F", 0))
    if not flags & _PRINTED or flags & _NOT_SEEN:
        yield "flags of an annotation"
    x0, y0, x1, y1 = (float(side) for side in note.Rect.as_list())
    is_empty = x0 == x1 and y0 == y1
    needs_look = note.Subtype == "/Widget" if part == "1" else not is_empty
    if needs_look and note.Subtype not in _WITHOUT_LOOK and "/AP" not in note:
        yield "annotation without appearance"
    if any(key != "/N" for key in note.get("/AP", {})):
        yield "appearance for other states"


def _attachment(named: pikepdf.Object, part: str) -> Iterator[str]:
    if part == "1":
        yield "attachment"
    elif part != "2" and not all(
        key in named for key in ("/F", "/UF", "/AFRelationship")
    ):
        yield "attachment without relationship"


def _transparent(each: pikepdf.Object) -> Iterator[str]:
    """Transparency, which PDF/A-1 knows not.

    Source: ISO 19005-1, 6.4.
    """
    group = each.get("/Group")
    if isinstance(group, pikepdf.Dictionary) and group.get("/S") == "/Transparency":
        yield "transparency"
    if each.get("/SMask", pikepdf.Name("/None")) != "/None":
        yield "transparency"
    if each.get("/Type") == "/ExtGState" and any(
        float(each.get(key, 1)) != 1 for key in ("/CA", "/ca")
    ):
        yield "transparency"
