"""Documents and pictures that reach what libraries load on first use.

for name, pdf in documents(): …
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from PIL import Image
from pyhanko.sign.fields import MDPPerm

from tests.support.documents import field_pdfs, hostile_pdfs, pdfs, shadow_pdfs
from tests.support.documents.altered_pdfs import ATTACKS
from tests.support.documents.odd_certificates import (
    with_general_names,
    with_keys,
    with_string_types,
)
from tests.support.documents.picture_pdfs import black_pictures
from tests.support.documents.software_signer import signed
from tests.tools import faulty

_FONTS: Final = (
    "Arial",
    "Calibri",
    "Courier",
    "DejaVuSans",
    "DejaVuSerif-Bold",
    "LiberationSans",
    "LiberationMono-Italic",
    "MS-Mincho",
    "NotoSansCJK-Regular",
    "SimSun",
    "Symbol",
    "Unknown",
    "ZapfDingbats",
)
"""Fonts that are not embedded; many hosts have some of them."""
_CMAPS: Final = (
    "90ms-RKSJ-H",
    "ETen-B5-H",
    "GBK-EUC-H",
    "Identity-H",
    "KSCms-UHC-H",
    "UniJIS-UTF16-H",
)
_ENCODINGS: Final = (
    "big5",
    "euc-jp",
    "gb18030",
    "ibm037",
    "iso-2022-jp",
    "iso-8859-15",
    "koi8-r",
    "nonsense",
    "shift_jis",
    "utf-7",
    "windows-1252",
)
"""Encodings that the metadata of a document declares."""


def documents() -> Iterator[tuple[str, bytes]]:
    """Give PDFs by name: good ones, faulty ones, hostile ones and signed ones."""
    for group in (pdfs.READABLE, faulty.FORMS, faulty.PLACES, faulty.ODD):
        for name, make in group.items():
            yield name, make()
    for name, make in faulty.XMP.items():
        yield f"XMP {name}", faulty.with_metadata(make())
    for encoding in _ENCODINGS:
        head = f'<?xml version="1.0" encoding="{encoding}"?>'.encode()
        packet = head + b'<!DOCTYPE x SYSTEM "file:///etc/hostname"><x/>'
        yield f"XMP in {encoding}", faulty.with_metadata(packet)
    yield "compressed", faulty.compressed(faulty.with_metadata(faulty.sound_xmp()))
    yield "encrypted", faulty.encrypted(faulty.with_metadata(faulty.sound_xmp()))
    yield from _drawn()
    yield from _hostile()
    yield from _signed()


def pictures() -> Iterator[tuple[str, bytes]]:
    """Give pictures by name: logos, and formats that are refused."""
    image = Image.new("RGB", (800, 400), "white")
    turned = Image.Exif()
    turned[0x0112] = 6  # Orientation: a quarter turn
    for kind in ("BMP", "GIF", "ICO", "JPEG", "JPEG2000", "PNG", "TIFF", "WEBP"):
        yield kind, _picture(image, kind)
    for kind in ("JPEG", "PNG"):
        yield f"{kind} with EXIF", _picture(image, kind, exif=turned)
    yield "JPEG of two", _picture(image, "MPO", save_all=True, append_images=[image])
    yield "JPEG in CMYK", _picture(image.convert("CMYK"), "JPEG")
    for mode in ("1", "I;16", "L", "LA", "P", "RGBA"):
        picture = Image.new("L", (8, 8)).convert(mode) if mode != "I;16" else None
        yield f"PNG {mode}", _picture(picture or Image.new("I;16", (8, 8)), "PNG")
    yield "truncated PNG", _picture(image, "PNG")[:60]
    yield "text", b"no picture"


def _picture(image: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def _drawn() -> Iterator[tuple[str, bytes]]:
    """Give pages whose drawing needs fonts, character maps and decoders."""
    text = b"BT /F 24 Tf 20 150 Td (Texto \x93\xfa\x96\x7b) Tj ET"
    content = b"<</Length %d>>stream\n%s\nendstream" % (len(text), text)
    resources = b"/Resources<</Font<</F 5 0 R>>>>"
    for name in _FONTS:
        font = b"<</Type/Font/Subtype/TrueType/BaseFont/%s>>" % name.encode()
        yield f"font {name}", hostile_pdfs.plain(page=resources, o4=content, o5=font)
    for cmap in _CMAPS:
        font = (
            b"<</Type/Font/Subtype/Type0/BaseFont/MS-Gothic/Encoding/%s"
            b"/DescendantFonts[<</Type/Font/Subtype/CIDFontType2/BaseFont/MS-Gothic"
            b"/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>>>]>>"
        ) % cmap.encode()
        yield f"CMap {cmap}", hostile_pdfs.plain(page=resources, o4=content, o5=font)
    yield "pictures", black_pictures()
    yield "letters", shadow_pdfs.lettered()
    yield "check box", field_pdfs.check_box_without_state()


def _hostile() -> Iterator[tuple[str, bytes]]:
    """Give files that end in an exception, of ours or of a library."""
    for name, pdf in pdfs.NOT_PDF.items():
        if pdf:
            yield name, pdf
    yield "truncated", pdfs.truncated()
    yield "wrong startxref", pdfs.wrong_startxref()
    yield "no pages", pdfs.no_pages()
    yield "tree loop", pdfs.page_tree_loop()
    yield "junk", pdfs.junk_after_end()
    yield "nested arrays", hostile_pdfs.nested_arrays()
    yield "loop of /Prev", hostile_pdfs.loop_of_previous()
    yield "own MAC", hostile_pdfs.encrypted_with_mac()
    yield "unknown encryption", hostile_pdfs.unknown_encryption()
    yield "deep fields", hostile_pdfs.deep_fields()
    yield "password", pdfs.encrypted(user="x")


def _signed() -> Iterator[tuple[str, bytes]]:
    """Give signed files, sound and forged."""
    once = signed(pdfs.one_page())
    yield "signed", once
    yield "signed twice", signed(once, field="Firma2")
    yield "certified", signed(pdfs.text_field(), certify=MDPPerm.FILL_FORMS)
    for name, attack in ATTACKS.items():
        yield name, attack(signed)
    for name, pdf in with_string_types():
        yield f"name {name}", pdf
    for name, pdf in with_keys():
        yield f"key {name}", pdf
    yield "general names", with_general_names()


def corpora(shared: Path) -> Iterator[tuple[str, bytes]]:
    """Give the PDFs of every corpus.

    Args:
        shared: the folder of the corpora.
    """
    for folder in ("corpus", "corpus-signed", "failing", "attack-inputs"):
        for path in sorted((shared / folder).rglob("*.pdf")):
            yield str(path.relative_to(shared)), path.read_bytes()
