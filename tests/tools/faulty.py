"""PDFs that readers open, and whose signature other programs would call invalid.

    python -m tests.tools.faulty FOLDER [COUNT]

writes one file of each kind into a folder, or so many, in turn. Each shows a page of
200 by 300.
"""

import io
import itertools
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pikepdf

from tests.support.documents import hostile_pdfs

_FOLDER_ONLY: Final = 2
_PACKET: Final = (
    '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<dc:format>application/pdf</dc:format><dc:title>Año</dc:title>"
    "</rdf:Description></rdf:RDF></x:xmpmeta>"
    '<?xpacket end="w"?>'
)
_LAUGHS: Final = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "ha"}">' for n in range(10)
)


def sound_xmp() -> bytes:
    """Metadata as it should be."""
    return _PACKET.encode()


def _inner() -> str:
    """The RDF alone."""
    found = re.search(r"<rdf:RDF.*</rdf:RDF>", _PACKET)
    assert found is not None
    return found[0]


XMP: Final[dict[str, Callable[[], bytes]]] = {
    "prefix-not-declared": lambda: _PACKET.replace(
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"', ""
    ).encode(),
    "unknown-prefix-not-declared": lambda: _PACKET.replace(
        "<dc:format>", "<acme:n>7</acme:n><dc:format>"
    ).encode(),
    "truncated": lambda: sound_xmp()[:220],
    "empty": lambda: b"",
    "blank": lambda: b" \n" * 1000,
    "latin-1": lambda: _PACKET.replace("\ufeff", "").encode("latin-1"),
    "utf-16": lambda: _PACKET.replace("\ufeff", "").encode("utf-16"),
    "utf-16-without-mark": lambda: _PACKET.encode("utf-16-le"),
    "declared-otherwise": lambda: (
        b'<?xml version="1.0" encoding="UTF-16"?>' + _inner().encode()
    ),
    "rdf-alone": lambda: _inner().encode(),
    "former-root": lambda: _PACKET.replace("x:xmpmeta", "x:xapmeta").encode(),
    "text": lambda: b"Producer: a program of 1999",
    "html": lambda: b"<!DOCTYPE html><title>Sign in</title>",
    "json": lambda: b'{"title": "x"}',
    "zeros": lambda: bytes(500),
    "noise": lambda: bytes(range(256)) * 4,
    "zeros-after": lambda: sound_xmp() + bytes(64),
    "ampersand": lambda: _PACKET.replace("Año", "Juan & Hijos").encode(),
    "control-character": lambda: _PACKET.replace("Año", "A\x01o").encode(),
    "two-roots": lambda: sound_xmp() + b"<a/>",
    "end-tag-missing": lambda: _PACKET.replace("</dc:title>", "").encode(),
    "billion-laughs": (
        f"<!DOCTYPE x [{_LAUGHS}]>" + _PACKET.split("?>", 1)[1].replace("Año", "&l9;")
    ).encode,
    "outside-entity": (
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
        + _PACKET.split("?>", 1)[1].replace("Año", "&f;")
    ).encode,
    "deep": lambda: b"<a>" * 20_000 + b"</a>" * 20_000,
}
"""Metadata that is no XMP for validators, by what is wrong with it."""


def with_metadata(packet: bytes, *, subtype: bool = True) -> bytes:
    """A page, and metadata as it is given."""
    kind = b"/Type/Metadata/Subtype/XML" if subtype else b""
    return hostile_pdfs.plain(
        catalog=b"/Metadata 5 0 R",
        o5=b"<<%s/Length %d>>stream\n%s\nendstream" % (kind, len(packet), packet),
    )


def compressed(pdf: bytes) -> bytes:
    """The same with its streams deflated, and its objects in object streams."""
    return _saved(pdf)


def encrypted(pdf: bytes) -> bytes:
    """The same, encrypted, to be opened with the empty password."""
    return _saved(pdf, encryption=pikepdf.Encryption(owner="owner", user="", R=6))


def _saved(pdf: bytes, *, encryption: pikepdf.Encryption | bool = False) -> bytes:
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        opened.save(
            out,
            object_stream_mode=pikepdf.ObjectStreamMode.generate,
            fix_metadata_version=False,
            compress_streams=True,
            recompress_flate=True,
            encryption=encryption,
        )
    return out.getvalue()


_WIDGET: Final = b"/Type/Annot/Subtype/Widget/F 4/P 3 0 R"
_TEXT: Final = b"<<%s/FT/Tx/T(%s)/V(%d)/Rect[10 %d 90 %d]>>"


def _field(name: bytes, at: int) -> bytes:
    return _TEXT % (_WIDGET, name, at, 20 * at, 20 * at + 15)


def _form(fields: bytes, notes: bytes, more: bytes = b"", **objects: bytes) -> bytes:
    return hostile_pdfs.plain(
        catalog=b"/AcroForm<</Fields[%s]%s>>" % (fields, more),
        page=b"/Annots[%s]" % notes,
        **objects,
    )


def _kid(parent: int, at: int, entries: bytes = b"") -> bytes:
    return b"<<%s/Parent %d 0 R/Rect[10 %d 90 %d]%s>>" % (
        _WIDGET, parent, 20 * at, 20 * at + 15, entries,
    )  # fmt: skip


FORMS: Final[dict[str, Callable[[], bytes]]] = {
    "two-of-one-name": lambda: _form(
        b"5 0 R 6 0 R", b"5 0 R 6 0 R", o5=_field(b"Nombre", 1), o6=_field(b"Nombre", 2)
    ),
    "fifty-of-one-name": lambda: _form(
        b" ".join(b"%d 0 R" % n for n in range(5, 55)),
        b" ".join(b"%d 0 R" % n for n in range(5, 55)),
        **{f"o{n}": _field(b"x", n - 4) for n in range(5, 55)},
    ),
    "one-field-listed-twice": lambda: _form(
        b"5 0 R 5 0 R", b"5 0 R", o5=_field(b"Nombre", 1)
    ),
    "nested-of-one-name": lambda: _form(
        b"5 0 R",
        b"6 0 R 7 0 R",
        o5=b"<</T(Datos)/FT/Tx/Kids[6 0 R 7 0 R]>>",
        o6=_kid(5, 1, b"/T(calle)/V(a)"),
        o7=_kid(5, 2, b"/T(calle)/V(b)"),
    ),
    "parents-of-one-name": lambda: _form(
        b"5 0 R 7 0 R",
        b"6 0 R 8 0 R",
        o5=b"<</T(Datos)/FT/Tx/Kids[6 0 R]>>",
        o6=_kid(5, 1),
        o7=b"<</T(Datos)/FT/Tx/Kids[8 0 R]>>",
        o8=_kid(7, 2),
    ),
    "kid-of-two-parents": lambda: _form(
        b"5 0 R 7 0 R",
        b"6 0 R",
        o5=b"<</T(a)/FT/Tx/Kids[6 0 R]>>",
        o6=_kid(5, 1, b"/T(x)"),
        o7=b"<</T(a)/FT/Tx/Kids[6 0 R]>>",
    ),
    "signature-fields-of-one-name": lambda: _form(
        b"5 0 R 6 0 R",
        b"5 0 R 6 0 R",
        o5=b"<<%s/FT/Sig/T(Firma)/Rect[10 20 90 60]>>" % _WIDGET,
        o6=b"<<%s/FT/Sig/T(Firma)/Rect[10 90 90 130]>>" % _WIDGET,
    ),
    "name-with-a-dot": lambda: _form(b"5 0 R", b"5 0 R", o5=_field(b"a.b", 1)),
    "name-that-is-a-number": lambda: _form(
        b"5 0 R", b"5 0 R", o5=_field(b"a", 1).replace(b"/T(a)", b"/T 7")
    ),
    "field-without-a-type": lambda: _form(
        b"5 0 R", b"5 0 R", o5=_field(b"a", 1).replace(b"/FT/Tx", b"")
    ),
    "field-without-a-number": lambda: _form(_field(b"a", 1), b""),
    "nothing-among-fields": lambda: _form(
        b"null 5 0 R 99 0 R", b"5 0 R", o5=_field(b"a", 1)
    ),
    "fields-that-are-no-array": lambda: hostile_pdfs.plain(
        catalog=b"/AcroForm<</Fields 5 0 R>>", o5=b"<</A 1>>"
    ),
    "kids-that-are-no-array": lambda: _form(
        b"5 0 R", b"", o5=b"<</T(a)/FT/Tx/Kids 6 0 R>>", o6=b"(x)"
    ),
    "form-that-is-no-dictionary": lambda: hostile_pdfs.plain(catalog=b"/AcroForm 7"),
    "looks-without-a-state": lambda: _form(
        b"5 0 R",
        b"5 0 R",
        o5=b"<<%s/FT/Btn/T(c)/Rect[10 20 30 40]/AP<</N<</Si 6 0 R>>>>>>" % _WIDGET,
        o6=b"<</Subtype/Form/BBox[0 0 9 9]/Length 0>>stream\n\nendstream",
    ),
    "notes-without-a-number": lambda: hostile_pdfs.plain(
        page=b"/Annots[<</Type/Annot/Subtype/Text/Rect[1 1 9 9]/Contents(x)>>]"
    ),
    "nothing-among-notes": lambda: hostile_pdfs.plain(page=b"/Annots[null 4 0 R]"),
}
"""Forms and notes that validators raise errors for, by what is wrong with them."""


def _rows(pdf: bytes, edit: Callable[[dict[int, bytes]], None]) -> bytes:
    """A file whose table of objects has other places in it."""
    start = pdf.rindex(b"xref\n0 ", 0, pdf.rindex(b"startxref"))
    rows = {
        at: found[0]
        for at, found in enumerate(re.finditer(rb"\d{10} \d{5} [nf] \n", pdf[start:]))
    }
    first = pdf.index(rows[0], start)
    edit(rows)
    table = b"".join(rows[at] for at in sorted(rows))
    return pdf[:first] + table + pdf[first + len(table) :]


def _base() -> bytes:
    """A page, and objects that nothing needs to draw it."""
    return hostile_pdfs.plain(
        catalog=b"/Names<</Dests 5 0 R>>/PageLabels 6 0 R",
        o5=b"<</Names[(a)7 0 R]>>",
        o6=b"<</Nums[0<</S/D>>]>>",
        o7=b"[3 0 R/Fit]",
        o8=b"<</Producer(x)>>",
    )


def _swap(one: int, other: int) -> Callable[[dict[int, bytes]], None]:
    def edit(rows: dict[int, bytes]) -> None:
        rows[one], rows[other] = rows[other], rows[one]

    return edit


def _same(one: int, other: int) -> Callable[[dict[int, bytes]], None]:
    def edit(rows: dict[int, bytes]) -> None:
        rows[one] = rows[other]

    return edit


def _moved(one: int, by: int) -> Callable[[dict[int, bytes]], None]:
    def edit(rows: dict[int, bytes]) -> None:
        rows[one] = b"%010d" % (int(rows[one][:10]) + by) + rows[one][10:]

    return edit


def _xref_stream(wrong: dict[int, int]) -> bytes:
    """The base with its places in a stream; some objects at the place of others."""
    pdf = _base()
    body = pdf[: pdf.rindex(b"xref\n0 ", 0, pdf.rindex(b"startxref"))]
    places = {int(m[1]): m.start(1) for m in re.finditer(rb"\n(\d+) 0 obj", body)}
    number, start = max(places) + 1, len(body)
    places[number] = start
    rows = (
        b"\x00"
        + bytes(4)
        + b"\xff"
        + b"".join(
            b"\x01" + places[wrong.get(at, at)].to_bytes(4, "big") + b"\x00"
            for at in range(1, number + 1)
        )
    )
    data = zlib.compress(rows)
    return (
        body + b"%d 0 obj\n<</Type/XRef/W[1 4 1]/Size %d/Root 1 0 R/Filter/FlateDecode"
        b"/Length %d>>stream\n"
        % (number, number + 1, len(data))
        + data
        + b"\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n" % start
    )


def _hybrid() -> bytes:
    """A hybrid file whose table puts an object at another's place."""
    return _rows(hostile_pdfs.hybrid(), _same(4, 2))


def _sized(size: int) -> bytes:
    """The base with another number of objects than it has."""
    return re.sub(rb"/Size \d+", b"/Size %d" % size, _base())


PLACES: Final[dict[str, Callable[[], bytes]]] = {
    "unneeded-object-elsewhere": lambda: _rows(_base(), _same(7, 6)),
    "two-objects-exchanged": lambda: _rows(_base(), _swap(5, 6)),
    "off-by-one-object": lambda: _rows(_base(), _same(6, 7)),
    "content-at-a-dictionary": lambda: _rows(_base(), _same(4, 5)),
    "into-another-body": lambda: _rows(_base(), _moved(7, 3)),
    "one-byte-early": lambda: _rows(_base(), _moved(6, -1)),
    "one-byte-late": lambda: _rows(_base(), _moved(6, 1)),
    "past-the-end": lambda: _rows(_base(), _moved(7, 90_000)),
    "in-a-stream": lambda: _xref_stream({7: 6}),
    "in-a-stream-exchanged": lambda: _xref_stream({5: 6, 6: 5}),
    "hybrid": _hybrid,
    "more-than-readers-take": lambda: _sized(2**31 - 1),
    "more-than-readers-add-up": lambda: _sized(100_000_000),
}
"""Tables that put objects where others are, by how."""

ODD: Final[dict[str, Callable[[], bytes]]] = {
    "metadata-without-subtype": lambda: with_metadata(sound_xmp(), subtype=False),
    "metadata-that-is-a-dictionary": lambda: hostile_pdfs.plain(
        catalog=b"/Metadata<</A 1>>"
    ),
    "metadata-that-is-a-number": lambda: hostile_pdfs.plain(
        catalog=b"/Metadata 5 0 R", o5=b"7"
    ),
    "metadata-that-is-nowhere": lambda: hostile_pdfs.plain(catalog=b"/Metadata 99 0 R"),
    "metadata-that-does-not-unfold": lambda: hostile_pdfs.plain(
        catalog=b"/Metadata 5 0 R",
        o5=b"<</Filter/FlateDecode/Length 4>>stream\nabcd\nendstream",
    ),
    "metadata-bomb": lambda: hostile_pdfs.plain(
        catalog=b"/Metadata 5 0 R", o5=_deflated(bytes(20_000_000))
    ),
    "info-direct": lambda: _base().replace(
        b"/Root 1 0 R", b"/Root 1 0 R/Info<</A(b)>>"
    ),
    "info-that-is-a-number": lambda: _base().replace(
        b"/Root 1 0 R", b"/Root 1 0 R/Info 5"
    ),
    "info-that-is-nowhere": lambda: _base().replace(
        b"/Root 1 0 R", b"/Root 1 0 R/Info 99 0 R"
    ),
    "info-that-is-a-stream": lambda: _base().replace(
        b"/Root 1 0 R", b"/Root 1 0 R/Info 4 0 R"
    ),
    "extensions-indirect": lambda: hostile_pdfs.plain(
        catalog=b"/Extensions 5 0 R",
        o5=b"<</ACME<</BaseVersion/1.7/ExtensionLevel 1>>>>",
    ),
    "extensions-of-another-kind": lambda: hostile_pdfs.plain(catalog=b"/Extensions[1]"),
    "extension-of-another-kind": lambda: hostile_pdfs.plain(
        catalog=b"/Extensions<</ESIC 5>>"
    ),
    "length-indirect": lambda: hostile_pdfs.plain(
        catalog=b"/Metadata 5 0 R",
        o5=b"<</Type/Metadata/Subtype/XML/Length 6 0 R>>stream\n%s\nendstream"
        % sound_xmp(),
        o6=b"%d" % len(sound_xmp()),
    ),
    "store-of-another-kind": lambda: hostile_pdfs.plain(
        catalog=b"/DSS 5 0 R", o5=b"[1]"
    ),
    "store-with-more": lambda: hostile_pdfs.plain(catalog=b"/DSS<</X 1>>"),
    "store-of-no-streams": lambda: hostile_pdfs.plain(
        catalog=b"/DSS<</Certs[1 2]/VRI 7>>"
    ),
    "names-that-go-round": lambda: hostile_pdfs.plain(
        catalog=b"/Names<</Dests 5 0 R>>", o5=b"<</Kids[5 0 R]>>"
    ),
    "names-of-another-kind": lambda: hostile_pdfs.plain(
        catalog=b"/Names 5 0 R", o5=b"[5 0 R]"
    ),
    "outlines-that-go-round": lambda: hostile_pdfs.plain(
        catalog=b"/Outlines 5 0 R", o5=b"<</First 6 0 R>>", o6=b"<</Next 6 0 R>>"
    ),
    "page-without-a-type": lambda: hostile_pdfs.plain().replace(
        b"/Type/Page/", b"/Typo/Page/"
    ),
    "tree-without-a-type": lambda: hostile_pdfs.plain().replace(
        b"/Type/Pages/Kids", b"/Typo/Pages/Kids"
    ),
    "catalog-without-a-type": lambda: hostile_pdfs.plain().replace(
        b"/Type/Catalog", b"/Typo/Catalog"
    ),
    "structure-of-another-kind": lambda: hostile_pdfs.plain(
        catalog=b"/MarkInfo<</Marked true>>/StructTreeRoot 5 0 R", o5=b"[1]"
    ),
    "structure-without-parents": lambda: hostile_pdfs.plain(
        catalog=b"/MarkInfo<</Marked true>>/StructTreeRoot 5 0 R",
        o5=b"<</Type/StructTreeRoot/K null>>",
    ),
    "permissions-of-another-kind": lambda: hostile_pdfs.plain(catalog=b"/Perms 7"),
    "permissions-of-nothing": lambda: hostile_pdfs.plain(
        catalog=b"/Perms<</DocMDP 99 0 R>>"
    ),
    "version-of-another-kind": lambda: hostile_pdfs.plain(catalog=b"/Version 7"),
    "pieces-of-others": lambda: hostile_pdfs.plain(
        catalog=b"/PieceInfo 5 0 R/Collection 5 0 R", o5=b"<</A 5 0 R>>"
    ),
    "empty-box": lambda: hostile_pdfs.boxed(b"/MediaBox[0 0 0 0]"),
    "box-of-less-than-a-pixel": lambda: hostile_pdfs.boxed(b"/MediaBox[0 0 .1 .1]"),
    "empty-page": lambda: hostile_pdfs.boxed(b"/MediaBox[0 0 200 300]"),
}
"""Oddities of which a validator might make something, by what they are."""


def _deflated(data: bytes) -> bytes:
    folded = zlib.compress(data, 9)
    return b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (
        len(folded),
        folded,
    )


def made() -> dict[str, bytes]:
    """One file of each kind, by name."""
    files = {}
    for name, packet in XMP.items():
        pdf = with_metadata(packet())
        files[f"xmp-{name}"] = pdf
        files[f"xmp-{name}-compressed"] = compressed(pdf)
        files[f"xmp-{name}-encrypted"] = encrypted(pdf)
    for name, make in FORMS.items():
        files[f"form-{name}"] = make()
        files[f"form-{name}-compressed"] = compressed(make())
    files |= {f"place-{name}": make() for name, make in PLACES.items()}
    files |= {f"odd-{name}": make() for name, make in ODD.items()}
    return files


def main() -> int:
    """Write the files."""
    folder, files = Path(sys.argv[1]), made()
    folder.mkdir(parents=True, exist_ok=True)
    count = int(sys.argv[2]) if len(sys.argv) > _FOLDER_ONLY else len(files)
    for at, (name, pdf) in zip(range(count), itertools.cycle(files.items())):
        turn = at // len(files)
        # Of the same length, and each one another file.
        other = pdf.replace(b"0 0 100 100 re", b"0 0 100 %03d re" % (100 - turn))
        (folder / f"{name}-{turn}.pdf").write_bytes(other)
    return 0


if __name__ == "__main__":
    sys.exit(main())
