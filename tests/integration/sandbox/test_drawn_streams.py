"""Streams that programs decode or draw differently: decoded in a copy, or refused.

Source: docs/documents.md "One reading"; ISO 32000-2, 7.3.8, 7.4 and 8.10; ISO 32000-1,
annex C.2.
"""

import base64
import zlib
from typing import Final

import pypdfium2
import pytest

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from tests.support.documents.hostile_pdfs import build
from tests.support.documents.outside_content_pdfs import locked_up, stream
from tests.support.documents.software_signer import signed
from worker.sandbox.inspection import inspect
from worker.sandbox.repair import repair
from worker.sandbox.structure.ambiguity import NoStepsError, Steps
from worker.sandbox.structure.long_strings import STRING_BYTES, has_long_string
from worker.sandbox.verify.verify import weigh

PAGES: Final = 20
FONT: Final = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
TEXT: Final = b"BT /F 24 Tf 20 200 Td (CIEN) Tj ET\n"
FLATE: Final = b"/Filter/FlateDecode"
COLUMNS: Final = len(TEXT)
ROWS: Final = zlib.compress(b"\0" + TEXT)
DEFLATED: Final = zlib.compress(TEXT + b"%" + bytes(range(33, 127)) * 9)
LONG: Final = b" " * (STRING_BYTES + 1)


def shown(entries: bytes, data: bytes, **more: bytes) -> bytes:
    """A document whose page has this content."""
    return drawn(stream(entries, data), b"/Font<</F 5 0 R>>", **more)


def drawn(content: bytes, resources: bytes, **more: bytes) -> bytes:
    """A document whose page has this content and these resources."""
    page = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R"
        b"/Resources<<%s>>>>" % resources
    )
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        3: page,
        4: content,
        5: FONT,
    }
    return build(objects | {int(name[1:]): body for name, body in more.items()})


def form(content: bytes, resources: bytes = b"/Font<</F 5 0 R>>") -> bytes:
    """A form with this content and these resources."""
    entries = b"/Type/XObject/Subtype/Form/BBox[0 0 300 300]/Resources<<%s>>"
    return stream(entries % resources, content)


def forms(deep: int) -> bytes:
    """So many forms within one another, of which the last one shows a text."""
    more = {
        f"o{number}": form(b"/X Do", b"/XObject<</X %d 0 R>>" % (number + 1))
        for number in range(10, 9 + deep)
    }
    last = {f"o{9 + deep}": form(TEXT)}
    return drawn(stream(b"", b"/X Do"), b"/XObject<</X 10 0 R>>", **more, **last)


def named(length: int) -> bytes:
    """A form with a name of so many bytes."""
    name = b"/" + b"A" * length
    return drawn(
        stream(b"", name + b" Do"), b"/XObject<<%s 6 0 R>>" % name, o6=form(TEXT)
    )


PREDICTED: Final = b"<</Predictor 15/Columns %d>>"
DECODED: Final = {
    "key F for a filter": shown(b"/F/AHx", TEXT.hex().encode()),
    "key F for filters": shown(b"/F[/AHx]", TEXT.hex().encode()),
    "key F beside a filter": shown(
        b"/Filter/ASCIIHexDecode/F/A85", TEXT.hex().encode()
    ),
    "key DP": shown(FLATE + b"/DP<</Predictor 15>>", zlib.compress(TEXT)),
    "abbreviated": shown(b"/Filter/AHx", TEXT.hex().encode()),
    "parameters for a list of filters": shown(
        b"/Filter[/FlateDecode]/DecodeParms" + PREDICTED % COLUMNS, ROWS
    ),
    "list of parameters for a filter": shown(
        FLATE + b"/DecodeParms[%s]" % (PREDICTED % COLUMNS), ROWS
    ),
    "data that end too early": shown(FLATE, DEFLATED[:-20]),
    "filter of no encryption": shown(b"/Filter/Crypt", TEXT),
    "form of an odd filter": drawn(
        stream(b"", b"/X Do"),
        b"/XObject<</X 6 0 R>>",
        o6=stream(b"/Subtype/Form/BBox[0 0 300 300]/F/AHx", b"3020302030203020"),
    ),
    "encrypted": locked_up(shown(FLATE + b"/DP<<>>", zlib.compress(TEXT))),
}
REFUSED: Final = {
    "unknown filter": shown(b"/Filter/Foo", TEXT),
    "filter that is text": shown(b"/Filter(FlateDecode)", TEXT),
    "filter that is null": shown(b"/Filter[null/ASCIIHexDecode]", TEXT.hex().encode()),
    "predictor that there is not": shown(
        FLATE + b"/DecodeParms<</Predictor 3/Columns 4>>", zlib.compress(TEXT)
    ),
    "columns that are a real": shown(
        FLATE + b"/DecodeParms<</Predictor 15/Columns %d.0>>" % COLUMNS, ROWS
    ),
    "filter of pictures": shown(b"/Filter/DCTDecode", TEXT),
    "filter of pictures on what says it is one": shown(
        b"/Subtype/Image/Width 1/Height 1/Filter/DCTDecode", TEXT
    ),
    "letters between digits": shown(
        b"/Filter/ASCIIHexDecode", TEXT.hex().encode()[:20] + b"xyz"
    ),
    "deflated without a head": shown(FLATE, DEFLATED[2:]),
    "data with a fault": shown(FLATE, DEFLATED[:2] + b"\x07" + DEFLATED[3:]),
}
PLAIN: Final = {
    "deflated": shown(FLATE, DEFLATED),
    "deflated, without a checksum": shown(FLATE, DEFLATED[:-4]),
    "deflated, and a line": shown(FLATE, DEFLATED + b"\r\n"),
    "nothing deflated": shown(FLATE, b""),
    "deflated twice": shown(
        b"/Filter[/FlateDecode/FlateDecode]", zlib.compress(DEFLATED)
    ),
    "predicted": shown(FLATE + b"/DecodeParms" + PREDICTED % COLUMNS, ROWS),
    "predicted, by reference": shown(
        b"/Filter 8 0 R/DecodeParms 6 0 R",
        ROWS,
        o6=b"<</Predictor 15/Columns 7 0 R>>",
        o7=b"%d" % COLUMNS,
        o8=b"/FlateDecode",
    ),
    "of base 85": shown(
        b"/Filter[/ASCII85Decode/FlateDecode]/DecodeParms[null null]",
        base64.a85encode(DEFLATED, wrapcol=60) + b"~>\n",
    ),
    "of digits": shown(b"/Filter[/ASCIIHexDecode]", TEXT.hex(" ").encode() + b" >"),
    "of runs": shown(b"/Filter/RunLengthDecode", bytes([COLUMNS - 1]) + TEXT + b"\x80"),
    "empty list of filters": shown(b"/Filter[]", TEXT),
    "encrypted": locked_up(shown(FLATE, DEFLATED)),
    "picture": drawn(
        stream(b"", b"/X Do"),
        b"/XObject<</X 6 0 R>>",
        o6=stream(
            b"/Subtype/Image/Width 8/Height 1/ColorSpace/DeviceGray/BitsPerComponent 1"
            b"/Filter/CCITTFaxDecode/DecodeParms<</K -1/Columns 8/BlackIs1 true>>",
            b"\x00\x10\x01\x00\x10\x01",
        ),
    ),
    "thirty forms": forms(30),
    "name of 126 bytes": named(126),
    "odd filter of what nothing leads to": shown(
        FLATE, DEFLATED, o6=stream(b"/Filter/Foo", TEXT)
    ),
    "keys that are null": shown(b"/F null/DP null", TEXT),
    "address of 200 bytes": shown(b"/Note(https://a/%s)" % (b"b" * 200), TEXT),
    "string of 32,000 bytes": shown(b"", TEXT + b"[(%s)] TJ" % LONG[:32_000]),
}
BEYOND: Final = {
    "string": shown(b"", b"BT /F 24 Tf (%s) Tj ET" % LONG),
    "string in hexadecimal": shown(
        b"", b"BT /F 24 Tf <%s> Tj ET" % LONG.hex().encode()
    ),
    "deflated string": shown(FLATE, zlib.compress(b"BT /F 9 Tf (%s) Tj ET" % LONG)),
    "string of a form": drawn(
        stream(b"", b"/X Do"),
        b"/XObject<</X 6 0 R>>",
        o6=form(b"BT /F 24 Tf (a(b)%s) Tj ET" % LONG),
    ),
    "forty-five forms": forms(45),
    "form in itself": drawn(
        stream(b"", b"/X Do"),
        b"/XObject<</X 6 0 R>>",
        o6=form(b"/X Do", b"/XObject<</X 6 0 R>>"),
    ),
    "name of 127 bytes": named(127),
    "name of 300 bytes": named(300),
}


def refusal(pdf: bytes) -> ErrorCode | None:
    """The code by which a document is not taken as it is."""
    try:
        inspect(pdf, PAGES)
    except DocumentRefusedError as exc:
        return exc.code
    return None


def words(pdf: bytes) -> str:
    """What PDFium reads on the first page."""
    document = pypdfium2.PdfDocument(pdf)
    found = document[0].get_textpage().get_text_range()
    document.close()
    return str(found).strip()


@pytest.mark.parametrize("name", DECODED)
def test_odd_stream_is_decoded_in_a_copy(name: str) -> None:
    """As far as PDFium reads it, or qpdf."""
    pdf = DECODED[name]

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    copy = repair(pdf).pdf

    assert refusal(copy) is None
    if b"/F/AHx" not in pdf and b"/F[" not in pdf and "parameters" not in name:
        assert words(copy) == words(pdf)


@pytest.mark.parametrize("name", REFUSED)
def test_stream_that_nobody_can_decode_is_refused(name: str) -> None:
    """Some programs show it, and others nothing."""
    pdf = REFUSED[name]

    assert refusal(pdf) is ErrorCode.PDF_AMBIGUOUS
    assert refusal(repair(pdf).pdf) is ErrorCode.PDF_AMBIGUOUS


@pytest.mark.parametrize("name", PLAIN)
def test_plain_stream_is_taken_as_it_is(name: str) -> None:
    """Whatever filters it has, in the form that all programs know."""
    assert refusal(PLAIN[name]) is None


@pytest.mark.parametrize("name", BEYOND)
def test_what_goes_beyond_programs_is_refused(name: str) -> None:
    """PDFium shows nothing of it, others all."""
    pdf = BEYOND[name]

    assert refusal(pdf) is ErrorCode.PDF_UNVERIFIABLE
    assert refusal(repair(pdf).pdf) is ErrorCode.PDF_UNVERIFIABLE


@pytest.mark.parametrize(
    ("pdf", "code"),
    [
        (DECODED["key F for a filter"], ErrorCode.PDF_AMBIGUOUS),
        (REFUSED["unknown filter"], ErrorCode.PDF_AMBIGUOUS),
        (BEYOND["string"], ErrorCode.PDF_UNVERIFIABLE),
    ],
)
def test_signed_document_is_refused(pdf: bytes, code: ErrorCode) -> None:
    """It cannot be written anew; its signature is whole all the same."""
    document = signed(pdf)

    assert refusal(document) is code
    with pytest.raises(DocumentRefusedError):
        repair(document)
    assert {each.answer.value for each in weigh(document).values()} == {"yes"}


PICTURE: Final = b"BI /W 9/H 9/CS[/I/G 1<00ff>]/BPC 8 ID " + b"(" * 40_000 + b" EI "


@pytest.mark.parametrize(
    ("content", "is_long"),
    [
        (b"(" + LONG + b")", True),
        (b"(" + LONG[3:] + b")", False),
        (b"((((" + LONG + b"))))", True),
        (b"(" + b"\\)" * 20_000 + b")", True),
        (b"<" + b"20 " * 40_000 + b">", True),
        (b"%(\n" + b"(a)%)\n" * 9_000, False),
        (b"<<" * 3 + b"/BI " * 20_000, False),
        (PICTURE, False),
        (PICTURE + b"(" + LONG + b")", True),
        (PICTURE[:-3], True),
        (b"BI BI BI /A(" + LONG + b") ID EI", True),
        (b"(" * 50_000, True),
    ],
)
def test_long_strings_are_found(content: bytes, is_long: bool) -> None:
    """In content alone: not in comments or pictures."""
    assert has_long_string(content, Steps(1_000_000)) is is_long


def test_search_for_long_strings_ends() -> None:
    """It costs steps, however many small strings there are."""
    with pytest.raises(NoStepsError):
        has_long_string(b"(((())))" * 100_000, Steps(10_000))


def test_decoded_copy_is_the_same_each_time() -> None:
    """Each file has one of its own; with AES that is another one each time."""
    pdf = DECODED["abbreviated"]
    other = pdf.replace(b"300 300", b"300 301")

    assert repair(pdf) == repair(pdf)
    assert repair(pdf).pdf != repair(other).pdf
    name = repair(DECODED["encrypted"]).pdf.rpartition(b"/ID [")[2][:80]
    assert name == repair(DECODED["encrypted"]).pdf.rpartition(b"/ID [")[2][:80]
