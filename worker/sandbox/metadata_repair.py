"""Puts a document's metadata (XMP) right in a repaired copy; in a confined job only.

Validators read it after each later revision, and call a signature invalid where it is
no well-formed XML in UTF-8 (pyHanko's `MetadataUpdateRule`). What says something and
is merely written otherwise is written again; what cannot be read goes, and stays in
the original, which is kept.

Source: ISO 16684-1, 7.3 (packets, encodings; `x:xmpmeta` is optional there).
"""

import re
from typing import Final

import pikepdf
from lxml import etree

_META: Final = "{adobe:ns:meta/}xmpmeta"
_FORMER: Final = "{adobe:ns:meta/}xapmeta"
_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF"
_ARCHIVAL_PART: Final = "{http://www.aiim.org/pdfa/ns/id/}part"
_BYTES_MOST: Final = 4_194_304
_PREFIXES_MOST: Final = 100
_ENCODINGS: Final = (
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\xfe\xff", "utf-16"),
    (b"\xff\xfe", "utf-16"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
_DECLARATION: Final = re.compile(r"<\?(?:xml|xpacket)\b[^>]{0,1000}\?>")
_PREFIX: Final = re.compile(r"[<\s/]([A-Za-z_][\w.-]{0,100}):[A-Za-z_]")
_FIRST_TAG: Final = re.compile(r"<[A-Za-z_][\w.:-]{0,200}")
_KNOWN: Final = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "x": "adobe:ns:meta/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
    "xap": "http://ns.adobe.com/xap/1.0/",
    "xmpMM": "http://ns.adobe.com/xap/1.0/mm/",
    "xapMM": "http://ns.adobe.com/xap/1.0/mm/",
    "xmpRights": "http://ns.adobe.com/xap/1.0/rights/",
    "stEvt": "http://ns.adobe.com/xap/1.0/sType/ResourceEvent#",
    "stRef": "http://ns.adobe.com/xap/1.0/sType/ResourceRef#",
    "pdf": "http://ns.adobe.com/pdf/1.3/",
    "pdfx": "http://ns.adobe.com/pdfx/1.3/",
    "pdfaid": "http://www.aiim.org/pdfa/ns/id/",
    "pdfuaid": "http://www.aiim.org/pdfua/ns/id/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
}
_NOT_DECLARED: Final = {"xml", "xmlns"}


def mend_metadata(opened: pikepdf.Pdf) -> bool:
    """Make sure that a document's metadata is XMP, or that it has none.

    Args:
        opened: the copy that is made.

    Returns:
        Whether something was wrong with it.
    """
    raw = opened.Root.get("/Metadata")
    if raw is None:
        return False
    data = _data(raw)
    if data is not None and is_xmp(data):
        return False
    written = None if data is None else _written_again(data)
    if written is None:
        del opened.Root["/Metadata"]
    else:
        stream = opened.make_stream(written)
        stream.Type, stream.Subtype = pikepdf.Name.Metadata, pikepdf.Name.XML
        opened.Root.Metadata = stream
    return True


def archival_part(opened: pikepdf.Pdf) -> str | None:
    """The part of PDF/A that a document says it conforms to.

    Args:
        opened: whose metadata is XMP, or none.

    Returns:
        None where it says nothing of the kind.

    Source: ISO 19005-1, 6.7.11, as in the later parts.
    """
    data = _data(opened.Root.get("/Metadata"))
    root = None if data is None else _parsed(data)
    if root is None:
        return None
    # XMP has a simple property as an element, or as an attribute of its description.
    said = next(
        (
            each.text if each.tag == _ARCHIVAL_PART else each.get(_ARCHIVAL_PART)
            for each in root.iter(etree.Element)
            if each.tag == _ARCHIVAL_PART or _ARCHIVAL_PART in each.attrib
        ),
        None,
    )
    return None if said is None else said.strip()


def _data(raw: pikepdf.Object | None) -> bytes | None:
    """What a metadata stream holds; None for what is no stream, or cannot be read."""
    if not isinstance(raw, pikepdf.Stream):
        return None
    try:
        data = raw.read_bytes()
    except (pikepdf.PdfError, ValueError):
        return None
    return data if len(data) <= _BYTES_MOST else None


def is_xmp(data: bytes) -> bool:
    """Whether a validator takes it for metadata; as pyHanko asks.

    Args:
        data: of the stream, unfolded.
    """
    root = _parsed(data)
    return root is not None and root.tag == _META


def _parsed(data: bytes) -> "etree._Element | None":
    """The root element; None where it is no well-formed XML, or has entities."""
    # Neither entities nor anything from elsewhere is ever looked up.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, encoding="utf-8"
    )
    try:
        root = etree.fromstring(data, parser=parser)
    except (etree.XMLSyntaxError, ValueError, LookupError):
        return None
    return None if any(True for _ in root.iter(etree.Entity)) else root


def _written_again(data: bytes) -> bytes | None:
    """The same metadata as a validator reads it; None where it cannot be read."""
    text = _text(data)
    if text is None or "<!" in text.replace("<!--", ""):
        return None  # a document type: entities, which nothing here looks up
    text = _DECLARATION.sub("", text)
    start, end = text.find("<"), text.rfind(">")
    text = _with_namespaces(text[max(start, 0) : end + 1])
    root = _parsed(text.encode("utf-8", "replace"))
    if root is None:
        return None
    if root.tag == _RDF:
        outer = etree.Element(_META, nsmap={"x": "adobe:ns:meta/"})
        outer.append(root)
        root = outer
    elif root.tag == _FORMER:
        root.tag = _META
    body: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=False)
    packet = (
        b'<?xpacket begin="\xef\xbb\xbf" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
        + body
        + b'\n<?xpacket end="w"?>'
    )
    return packet if is_xmp(packet) else None


def _text(data: bytes) -> str | None:
    """Its characters, by its first bytes; None where they say something else."""
    encoding = next((name for mark, name in _ENCODINGS if data.startswith(mark)), None)
    try:
        return data.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError:
        # What old programs wrote in the encoding of their machine.
        return None if encoding else data.decode("latin-1")


def _with_namespaces(text: str) -> str:
    """Declare, in the first element, the prefixes that nothing declares."""
    used = dict.fromkeys(found[1] for found in _PREFIX.finditer(text))
    missing = [
        prefix
        for prefix in used
        if prefix not in _NOT_DECLARED and f"xmlns:{prefix}=" not in text
    ][:_PREFIXES_MOST]
    first = _FIRST_TAG.search(text)
    if not missing or first is None:
        return text
    declared = "".join(
        f' xmlns:{prefix}="{_KNOWN.get(prefix, f"urn:undeclared:{prefix}")}"'
        for prefix in missing
    )
    return text[: first.end()] + declared + text[first.end() :]
