"""PDFs made by script, each for what it is to show; no file of anybody's.

All are small, and the same call gives the same bytes but for encrypted ones.
"""

import hashlib
import io
import math
import re
import warnings
from collections.abc import Callable
from typing import Final, Literal

import pikepdf
from pikepdf import Array, Dictionary, Name, Pdf, Stream, String

A4: Final = (595.0, 842.0)
"""Width and height in points."""

Box = tuple[float, float, float, float]
"""Left, bottom, right, top in points, as in the file."""


def one_page(text: str = "Convenio") -> bytes:
    """One A4 page with a word on it."""
    return _saved(_document(1, text))


def pages(count: int, text: str = "Page") -> bytes:
    """As many A4 pages, numbered."""
    return _saved(_document(count, text))


def heavy(count: int, size_bytes: int) -> bytes:
    """As many A4 pages, each with an image of its own that does not compress.

    Args:
        count: pages.
        size_bytes: of the whole file, about.
    """
    pdf = _document(count)
    side = math.isqrt(size_bytes // count)
    for number, page in enumerate(pdf.pages):
        grey = hashlib.shake_128(b"%d" % number).digest(side * side)
        image = Stream(pdf, grey)
        image.stream_dict = Dictionary(
            Type=Name.XObject,
            Subtype=Name.Image,
            Width=side,
            Height=side,
            ColorSpace=Name.DeviceGray,
            BitsPerComponent=8,
        )
        page.Resources.XObject = Dictionary(Im1=image)
        page.contents_add(b"q 300 0 0 300 100 100 cm /Im1 Do Q")
    return _saved(pdf, compress=False)


def rotated(degrees: int) -> bytes:
    """One A4 page that a reader sees turned clockwise."""
    pdf = _document(1)
    pdf.pages[0].Rotate = degrees
    return _saved(pdf)


def cropped(box: Box) -> bytes:
    """One A4 page of which a reader sees the CropBox only."""
    pdf = _document(1)
    pdf.pages[0].CropBox = Array(list(box))
    return _saved(pdf)


def sized(width: float, height: float) -> bytes:
    """One page of any size; a stamp does not fit a tiny one."""
    return _saved(_document(1, size=(width, height)))


def inherited_box() -> bytes:
    """One page whose MediaBox and Rotate stand in the page tree above it."""
    pdf = _document(1)
    page = pdf.pages[0].obj
    pdf.Root.Pages.MediaBox = page.MediaBox
    pdf.Root.Pages.Rotate = 90
    del page["/MediaBox"]
    return _saved(pdf)


def encrypted(
    user: str = "",
    owner: str = "owner",
    revision: Literal[2, 3, 4, 5, 6] = 6,
    *,
    signing: bool = True,
) -> bytes:
    """One A4 page, encrypted; it opens by itself when `user` is empty.

    Args:
        user: password to open it.
        owner: password to change it.
        revision: 2 or 3 (RC4), 4 (AES-128), 5 (a draft of 6) or 6 (AES-256).
        signing: whether its permissions let a reader sign it.
    """
    allow = pikepdf.Permissions(
        modify_annotation=signing, modify_form=signing, modify_other=signing
    )
    wanted = pikepdf.Encryption(
        user=user,
        owner=owner,
        R=revision,
        aes=revision > 3,
        metadata=revision > 3,
        allow=allow,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old revisions, which is the point
        return _saved(_document(1), encryption=wanted)


def encrypted_with_wrong_table(
    user: str = "", revision: Literal[2, 3, 4, 5, 6] = 4
) -> bytes:
    """One A4 page, encrypted, with each object three bytes before its stated place.

    Args:
        user: as of `encrypted`.
        revision: likewise.
    """

    def moved(entry: re.Match[bytes]) -> bytes:
        return b"%010d %s n" % (int(entry[1]) + 3, entry[2])

    return re.sub(rb"(\d{10}) (\d{5}) n", moved, encrypted(user, revision=revision))


def encrypted_objects(revision: Literal[4, 6] = 6) -> bytes:
    """Two A4 pages, encrypted, with their objects in an object stream.

    Args:
        revision: as of `encrypted`.
    """
    wanted = pikepdf.Encryption(user="", owner="owner", R=revision)
    pdf, out = _document(2), io.BytesIO()
    mode = pikepdf.ObjectStreamMode.generate
    pdf.save(out, encryption=wanted, object_stream_mode=mode)
    return out.getvalue()


def encrypted_in_trailer(revision: Literal[2, 3, 4, 5, 6]) -> bytes:
    """One A4 page, with its encryption dictionary within the trailer, as by MuPDF.

    Args:
        revision: as of `encrypted`.
    """
    pdf = encrypted(revision=revision)
    before, trailer = pdf.rsplit(b"trailer", 1)
    found = re.search(rb"/Encrypt (\d+) 0 R", trailer)
    assert found is not None
    body = before.split(b"\n%s 0 obj\n" % found[1], 1)[1].split(b"\nendobj", 1)[0]
    return before + b"trailer" + trailer.replace(found[0], b"/Encrypt " + body)


def javascript() -> bytes:
    """One A4 page that runs a script when it is opened."""
    pdf = _document(1)
    pdf.Root.OpenAction = Dictionary(S=Name.JavaScript, JS=String("app.alert(1)"))
    return _saved(pdf)


def launch() -> bytes:
    """One A4 page that starts a program when it is opened."""
    pdf = _document(1)
    pdf.Root.OpenAction = Dictionary(S=Name.Launch, F=String("calc.exe"))
    return _saved(pdf)


def embedded_file() -> bytes:
    """One A4 page with a file attached."""
    pdf = _document(1)
    pdf.attachments["note.txt"] = b"note"
    return _saved(pdf)


def xfa(*, dynamic: bool) -> bytes:
    """An XFA form; a dynamic one draws its pages by itself."""
    config = b'<xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/"><template/></xdp:xdp>'
    pdf = _document(1)
    pdf.Root.AcroForm = pdf.make_indirect(
        Dictionary(Fields=Array(), XFA=Stream(pdf, config))
    )
    if dynamic:
        pdf.Root.NeedsRendering = True
    return _saved(pdf)


def text_field(name: str = "Nombre") -> bytes:
    """One A4 page with a form field to fill in."""
    pdf = _document(1)
    field = pdf.make_indirect(
        Dictionary(
            Type=Name.Annot,
            Subtype=Name.Widget,
            FT=Name.Tx,
            T=String(name),
            Rect=Array([50, 700, 250, 720]),
            F=4,
            P=pdf.pages[0].obj,
        )
    )
    pdf.pages[0].Annots = Array([field])
    font = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica)
    pdf.Root.AcroForm = pdf.make_indirect(
        Dictionary(
            Fields=Array([field]),
            DA=String("/Helv 12 Tf 0 g"),
            DR=Dictionary(Font=Dictionary(Helv=pdf.make_indirect(font))),
        )
    )
    return _saved(pdf)


def no_pages() -> bytes:
    """A document without a single page."""
    return _saved(Pdf.new())


def lying_count(claimed: int = 2_000_000_000) -> bytes:
    """One A4 page whose page tree claims any number of them."""
    pdf = _document(1)
    content = _saved(pdf, compress=False)
    lie = b"/Count %d" % claimed
    # The lie is longer than the truth: readers find the objects by searching then,
    # so the table of their places is made anew.
    return _with_fresh_xref(content.replace(b"/Count 1", lie, 1))


def page_tree_loop() -> bytes:
    """A page tree that contains itself."""
    pdf = _document(1)
    kids = pdf.Root.Pages.Kids
    kids.append(pdf.Root.Pages)
    return _saved(pdf)


def wrong_startxref() -> bytes:
    """One A4 page whose cross-reference table is not where the file says."""
    head, _, _ = one_page().rpartition(b"startxref")
    return head + b"startxref\n7\n%%EOF\n"


def truncated() -> bytes:
    """The first half of a PDF."""
    content = pages(3)
    return content[: len(content) // 2]


def junk_after_end() -> bytes:
    """One A4 page with 2 KiB that belong to no revision after its end."""
    return one_page() + b"PK\x03\x04" * 512


NOT_PDF: Final[dict[str, bytes]] = {
    "empty": b"",
    "html": b"<!DOCTYPE html><title>Sign in</title>",
    "zip": b"PK\x05\x06" + bytes(18),
    "text": b"%PD",
    "header_only": b"%PDF-1.7\n",
}
"""Contents that are no PDF, by what they are."""


def _document(count: int, text: str = "Page", size: tuple[float, float] = A4) -> Pdf:
    """Pages of one size with a numbered text in the upper left."""
    pdf = Pdf.new()
    font = pdf.make_indirect(
        Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica)
    )
    for number in range(1, count + 1):
        page = pdf.add_blank_page(page_size=size)
        page.Resources = Dictionary(Font=Dictionary(F1=font))
        line = f"BT /F1 14 Tf 50 {size[1] - 60:g} Td ({text} {number}) Tj ET"
        page.Contents = Stream(pdf, line.encode("latin-1"))
    return pdf


def _saved(
    pdf: Pdf, *, encryption: pikepdf.Encryption | None = None, compress: bool = True
) -> bytes:
    """The file's bytes; an ID made from the content makes them repeatable."""
    out = io.BytesIO()
    modes = pikepdf.ObjectStreamMode
    pdf.save(
        out,
        deterministic_id=encryption is None,
        encryption=encryption if encryption is not None else False,
        compress_streams=compress,
        object_stream_mode=modes.preserve if compress else modes.disable,
    )
    return out.getvalue()


def _with_fresh_xref(content: bytes) -> bytes:
    """Write a classical cross-reference table that fits the objects again."""
    body = content[: content.rindex(b"xref\n", 0, content.rindex(b"startxref"))]
    trailer = content[content.rindex(b"trailer") : content.rindex(b"startxref")]
    places = {
        int(line.split()[0]): body.index(b"\n" + line) + 1
        for line in body.split(b"\n")
        if line.endswith(b" 0 obj")
    }
    rows = [b"%010d 00000 n \n" % places[number] for number in sorted(places)]
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(rows) + 1) + b"".join(rows)
    return body + table + trailer + b"startxref\n%d\n%%%%EOF\n" % len(body)


READABLE: Final[dict[str, Callable[[], bytes]]] = {
    "one_page": one_page,
    "three_pages": lambda: pages(3),
    "rotated_90": lambda: rotated(90),
    "rotated_180": lambda: rotated(180),
    "rotated_270": lambda: rotated(270),
    "cropped": lambda: cropped((100, 200, 500, 700)),
    "tiny": lambda: sized(40, 30),
    "inherited_box": inherited_box,
    "encrypted_aes_256": encrypted,
    "encrypted_aes_128": lambda: encrypted(revision=4),
    "encrypted_rc4": lambda: encrypted(revision=3),
    "javascript": javascript,
    "launch": launch,
    "embedded_file": embedded_file,
    "static_xfa": lambda: xfa(dynamic=False),
    "text_field": text_field,
    "lying_count": lying_count,
}
"""Documents that readers open without a password, by what they show."""
