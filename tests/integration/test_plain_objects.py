"""Our short cuts through pyHanko's reader and writer, against pyHanko itself."""

import io
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
)
from pyhanko.pdf_utils.reader import PdfFileReader

from tests import pdfs
from worker.stamp.reading import Reader
from worker.stamp.writing import Tail, write_object

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
_MOST = 300
"""Objects of a file that are looked at; some have thousands that are alike."""
_TOKENS = [
    *("<<", ">>", "[", "]", "<< /A", "/A", "/B", "/A#42", "/", "/é", "/{", "1", "-7"),
    *("+3", "1 0 R", "2 0 R", "2  0 R", "0 0 R", "2 0 Rx", "12 99999 R", "1,5", "."),
    *("0.5", "-.5", "1.", "--1", "123456789012345678901", "true", "falsey", "null"),
    *("(a)", "(a(b))", "(a\\)b)", "(\r)", "(\xfe\xff\x00a)", "<41>", "<4>", "<4 1>"),
    *("<FEFF0041>", "<zz>", "% note\n", "stream\n", "endobj", "R", "\0", "\x0b"),
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
    theirs = PdfFileReader(io.BytesIO(pdf), strict=False)
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
    own: object = repr(value)
    if isinstance(value, DictionaryObject):
        own = [(key, _told(value.raw_get(key))) for key in value]
        own = (own, value.encoded_data) if isinstance(value, StreamObject) else own
    elif isinstance(value, ArrayObject):
        own = [_told(value.raw_get(at)) for at in range(len(value))]
    elif isinstance(value, NullObject):
        own = None
    elif isinstance(value, TextStringObject):
        own = (str(value), value.autodetected_encoding)
    elif isinstance(value, FloatObject):
        own = (repr(value), value)
    return type(value), value.container_ref, own


def _objects(pdf: bytes) -> Iterator[tuple[object, object]]:
    """Each of a file's objects, as pyHanko reads it and as we do."""
    theirs, ours = _readers(pdf)
    for number in range(min(int(theirs.trailer["/Size"]) + 1, _MOST)):
        yield _read(theirs, number), _read(ours, number)


@pytest.mark.parametrize("name", _files())
def test_objects_of_real_files_are_read_alike(name: str) -> None:
    """Values, kinds, and what each is to be updated by; failures too."""
    pdf = _files()[name]()
    try:
        pairs = list(_objects(pdf))
    except Exception:  # noqa: BLE001 (pyHanko opens it not at all)
        pytest.skip("pyHanko does not open it")

    assert [_told(ours) for _, ours in pairs] == [_told(theirs) for theirs, _ in pairs]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(_TOKENS), max_size=12), st.sampled_from(["", " "]))
def test_any_tokens_are_read_alike(tokens: list[str], between: str) -> None:
    """Right and wrong ones, in any order, with and without space between."""
    theirs, ours = _readers(_with_object(between.join(tokens).encode("latin-1")))

    assert _told(_read(ours, 3)) == _told(_read(theirs, 3))


@pytest.mark.parametrize("name", _files())
def test_objects_of_real_files_are_written_alike(name: str) -> None:
    """To the byte."""
    pdf = _files()[name]()
    try:
        reader, _ = _readers(pdf)
    except Exception:  # noqa: BLE001 (pyHanko opens it not at all)
        pytest.skip("pyHanko does not open it")
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
