"""Our short cuts through pyHanko's reader and writer, against pyHanko itself."""

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NullObject,
    PdfObject,
    Reference,
    StreamObject,
    TextStringObject,
    TrailerReference,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.pdf_utils.xref import XRefSection

from tests.support.documents import pdfs
from worker.pades.pdf.fast_reader import Reader
from worker.pades.pdf.revision import Tail, open_revision, write_object

CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus"
_MOST = 300
"""Objects of a file that are looked at; some have thousands that are alike."""
_TOKENS = [
    *("<<", ">>", "[", "]", "<< /A", "/A", "/B", "/A#42", "/", "/é", "/{", "1", "-7"),
    *("+3", "1 0 R", "2 0 R", "2  0 R", "0 0 R", "2 0 Rx", "12 99999 R", "1,5", "."),
    *("0.5", "-.5", "1.", "--1", "123456789012345678901", "true", "falsey", "null"),
    *("(a)", "(a(b))", "(a\\)b)", "(\r)", "(\xfe\xff\x00a)", "<41>", "<4>", "<4 1>"),
    *("<FEFF0041>", "<zz>", "% note\n", "stream\n", "endobj", "R", "\0", "\x0b"),
    *("(\\055)", "(a\\376\\377\\0001)", "(\\55)", "(\\777)", "(\\\\101)", "(\\0551)"),
]


def _files() -> dict[str, Callable[[], bytes]]:
    found: dict[str, Callable[[], bytes]] = dict(pdfs.READABLE)
    for path in sorted(CORPUS.glob("*.pdf")):
        found[path.name] = path.read_bytes
    return found


def _with_object(body: bytes) -> bytes:
    """A file whose third object is what is given, right or not."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, each in enumerate(
        (b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Kids [] /Count 0 >>", body), 1
    ):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(out)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"xref\n0 4\n0000000000 65535 f \n" + rows
    out += b"trailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


def _readers(pdf: bytes) -> tuple[PdfFileReader, PdfFileReader]:
    """PyHanko's reader and ours; where pyHanko's fails, ours has to fail alike."""
    try:
        theirs = PdfFileReader(io.BytesIO(pdf), strict=False)
    except Exception as exc:  # noqa: BLE001 (whatever it is, both shall raise it)
        with pytest.raises(type(exc), match=f"^{re.escape(str(exc))}$"):
            Reader(io.BytesIO(pdf), pdf)
        pytest.skip(f"pyHanko does not open it: {type(exc).__name__}")
    return theirs, Reader(io.BytesIO(pdf), pdf)


def _read(reader: PdfFileReader, number: int) -> object:
    """An object, or how reading it fails."""
    try:
        found: object = reader.get_object(Reference(number, 0, reader))
    except Exception as exc:  # noqa: BLE001 (whatever it is, both shall raise it)
        return f"{type(exc).__name__}: {exc}"
    return found


def _told(value: object) -> object:
    """All that matters of an object, to be compared."""
    if not isinstance(value, PdfObject):
        return value
    # Decimals of many digits have no repr.
    own: object = str(value) if isinstance(value, FloatObject) else repr(value)
    if isinstance(value, DictionaryObject):
        own = [(key, _told(value.raw_get(key))) for key in value]
        own = (own, value.encoded_data) if isinstance(value, StreamObject) else own
    elif isinstance(value, ArrayObject):
        own = [_told(value.raw_get(at)) for at in range(len(value))]
    elif isinstance(value, NullObject):
        own = None
    elif isinstance(value, TextStringObject):
        own = (str(value), value.autodetected_encoding)
    container: object = value.container_ref
    if isinstance(container, TrailerReference):  # which knows no equals
        container = TrailerReference
    return type(value), container, own


def _sections(opened: Callable[[], PdfFileReader]) -> object:
    """What a reader has of a file's cross-references, or how opening it fails."""
    try:
        reader = opened()
    except Exception as exc:  # noqa: BLE001 (whatever it is, both shall raise it)
        return f"{type(exc).__name__}: {exc}"
    trailers = [_told(each) for each in reader.trailer._trailer_revisions]
    sections = [_section(each) for each in reader.xrefs._xref_sections]
    return reader.last_startxref, reader.has_xref_stream, trailers, sections


def _section(section: XRefSection) -> object:
    hybrid = section.xref_data.hybrid
    told = {**vars(section.xref_data), "hybrid": hybrid and _section(hybrid)}
    return section.meta_info, told


def _objects(pdf: bytes) -> Iterator[tuple[object, object]]:
    """Each of a file's objects, as pyHanko reads it and as we do."""
    theirs, ours = _readers(pdf)
    for number in range(min(int(theirs.trailer["/Size"]) + 1, _MOST)):
        yield _read(theirs, number), _read(ours, number)


@pytest.mark.parametrize("name", _files())
def test_objects_of_real_files_are_read_alike(name: str) -> None:
    """Values, kinds, and what each is to be updated by; failures too."""
    pairs = list(_objects(_files()[name]()))

    assert [_told(ours) for _, ours in pairs] == [_told(theirs) for theirs, _ in pairs]


@pytest.mark.parametrize("name", _files())
def test_cross_references_of_real_files_are_read_alike(name: str) -> None:
    """Every section, and the trailer; or the same failure."""
    pdf = _files()[name]()

    assert _sections(lambda: Reader(io.BytesIO(pdf), pdf)) == _sections(
        lambda: PdfFileReader(io.BytesIO(pdf), strict=False)
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b" n \n", b" n\r\n"),
        (b" n \n", b" n \r"),
        (b" n \n", b" n\n"),
        (b" n \n", b" x \n"),
        (b" 00000 n", b" 00007 n"),
        (b" 00000 n", b" 99999 n"),
        (b"0 4\n", b"0 3\n"),
        (b"0 4\n", b"0 5\n"),
        (b"0 4\n", b"1 4\n"),
        (b"0 4\n", b"0  4 \r\n"),
        (b"0 4\n", b"0 999999999\n"),
        (b"trailer\n", b"trailer % note\n"),
        (b"trailer\n", b"trailer"),
        (b"/Size 4", b"/Size 4 /Prev 9"),
        (b"/Size 4", b"/Size 4 /Prev 1 0 R"),
        (b"/Size 4", b"/Size 1 0 R"),
        (b"/Size 4", b"/Size 4 /XRefStm 9"),
        (b"/Size 4", b""),
        (b"startxref\n", b"startxref "),
        (b"startxref\n", b"startxref\r\n"),
        (b"startxref\n", b"startxref\r"),
        (b"startxref\n", b"startxref\n\n"),
        (b"startxref\n", b"startxref\n1"),
        (b"startxref\n", b"startxref\nx"),
        (b"\nstartxref", b" startxref"),
        (b"%%EOF\n", b"%%EOF"),
        (b"%%EOF\n", b"%%EOF\r"),
        (b"%%EOF\n", b"%%EOF\n\n"),
        (b"%%EOF\n", b"%%EOF \n"),
        (b"%%EOF\n", b"%%EOF\njunk\n"),
        (b"%%EOF\n", b"%%EO"),
        (b"\n%%EOF", b"\r%%EOF"),
        (b"\n%%EOF", b" %%EOF"),
        (b"%PDF-1.7", b"%PDF"),
        (b"xref\n0", b"xref\n0 0\n0"),
        (b"xref\n0", b"xr\n0"),
    ],
)
def test_odd_cross_references_are_read_alike(old: bytes, new: bytes) -> None:
    """What is taken, and what fails how, is pyHanko's to decide."""
    pdf = _with_object(b"<< /A 1 >>").replace(old, new)

    assert _sections(lambda: Reader(io.BytesIO(pdf), pdf)) == _sections(
        lambda: PdfFileReader(io.BytesIO(pdf), strict=False)
    )


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(_TOKENS), max_size=12), st.sampled_from(["", " "]))
def test_any_tokens_are_read_alike(tokens: list[str], between: str) -> None:
    """Right and wrong ones, in any order, with and without space between."""
    theirs, ours = _readers(_with_object(between.join(tokens).encode("latin-1")))

    assert _told(_read(ours, 3)) == _told(_read(theirs, 3))


@pytest.mark.parametrize(
    "length", ["2", "3", "4", "9", "-1", "2.0", "2 0 R", "true", ""]
)
@pytest.mark.parametrize(
    "opened", ["stream\n", "stream\r\n", "stream\r", "stream ", "stream"]
)
@pytest.mark.parametrize(
    "closed",
    [
        *("endstream", "\nendstream", "\r\nendstream", " endstream", "%\nendstream"),
        *("endstream % note", "endstreams", "endstream endobj", ""),
    ],
)
def test_streams_are_read_alike(length: str, opened: str, closed: str) -> None:
    """Right and wrong lengths, ends of lines, and keywords."""
    body = f"<< /Length {length} >> {opened}abc{closed}".encode()
    theirs, ours = _readers(_with_object(body))

    assert _told(_read(ours, 3)) == _told(_read(theirs, 3))


@pytest.mark.parametrize("name", _files())
def test_objects_of_real_files_are_written_alike(name: str) -> None:
    """To the byte."""
    reader, _ = _readers(_files()[name]())
    if reader.encrypted:
        pytest.skip("pyHanko writes these itself")

    for number in range(min(int(reader.trailer["/Size"]), _MOST)):
        value = _read(reader, number)
        if isinstance(value, PdfObject):
            theirs, ours = io.BytesIO(), io.BytesIO()
            # pyHanko takes a stream's length out of it when it has written it.
            write_object(ours, value)
            value.write_to_stream(theirs)
            assert ours.getvalue() == theirs.getvalue()


@pytest.mark.parametrize("name", sorted(pdfs.READABLE))
def test_end_of_a_revision_is_written_alike(name: str) -> None:
    """Cross-references, trailer and last lines, to the byte."""
    pdf = pdfs.READABLE[name]()
    with open_revision(pdf) as revision:
        revision.add_object(DictionaryObject())
        revision.update_root()
        ours, theirs = Tail(len(pdf)), Tail(len(pdf))
        revision._write_updated_section(ours)
        IncrementalPdfFileWriter._write(revision, theirs, skip_header=True)
        assert ours.getvalue() == theirs.getvalue()


def test_tail_counts_from_the_start_of_the_file() -> None:
    """Places are those of the whole; what stands there can be written over."""
    tail = Tail(100)
    tail.write(b"abc")

    assert tail.tell() == 103
    assert tail.seek(101) == 101
    tail.write(b"X")
    assert tail.getvalue() == b"aXc"
    with pytest.raises(ValueError, match="beginning"):
        tail.seek(0, io.SEEK_END)
    with pytest.raises(ValueError, match="negative"):
        tail.seek(99)
