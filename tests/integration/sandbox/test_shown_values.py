"""Text of filled fields as their pages show it, beside their values."""

import io

import pytest
from pyhanko.pdf_utils.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    StreamObject,
    TextStringObject,
)
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from appliance.domain.documents.verification import Answer
from tests.support.documents import pdfs
from tests.support.documents.software_signer import signed, software_signer
from worker.sandbox.verify.shown_values import differs, is_concealed
from worker.sandbox.verify.verify import verify


def filled(value: str, drawn: str) -> bytes:
    """A signed form whose text field gets a value, and an appearance of its own."""
    writer = IncrementalPdfFileWriter(io.BytesIO(signed(pdfs.text_field())))
    raw = writer.root["/AcroForm"]["/Fields"].raw_get(0)
    field = raw.get_object()
    x0, y0, x1, y1 = (float(each) for each in field["/Rect"])
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F"): font})
    look = StreamObject(
        {
            NameObject("/Type"): NameObject("/XObject"),
            NameObject("/Subtype"): NameObject("/Form"),
            NameObject("/BBox"): ArrayObject(
                [FloatObject(each) for each in (0, 0, x1 - x0, y1 - y0)]
            ),
            NameObject("/Resources"): DictionaryObject({NameObject("/Font"): fonts}),
        },
        stream_data=f"BT /F 12 Tf 2 4 Td ({drawn}) Tj ET".encode(),
    )
    field[NameObject("/V")] = TextStringObject(value)
    field[NameObject("/AP")] = DictionaryObject(
        {NameObject("/N"): writer.add_object(look)}
    )
    writer.mark_update(raw.reference)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        ("Juan Perez", "Juan  Perez"),
        ("Otro", "Juan Perez"),
        ("1", "9"),
        ("100", "9"),
        ("-100", "100"),
        ("1.000", "1000.00"),
        ("900.000", "0"),
        ("Eva", "Eva debe 900.000"),
        ("0.21", "21,00%"),
        ("Eva", ""),
    ],
)
def test_other_text_than_the_value_is_named(value: str, drawn: str) -> None:
    """Filling in is permitted; a field that lies about its value is undetermined."""
    is_same = value.split() == drawn.split()
    (report,) = verify(filled(value, drawn), [software_signer().root]).signatures

    assert report.changes.answer is (Answer.YES if is_same else Answer.UNCHECKED)
    (found,) = report.filled
    assert (found.after, found.shown) == (value, "" if is_same else drawn)
    if not is_same:
        reason = "shows another text" if drawn else "does not show the value"
        assert reason in report.reason


@pytest.mark.parametrize(
    ("value", "shown", "other"),
    [
        ("100", "1 0 0", False),
        ("line one\rline two", "line one\r\nline two", False),
        ("efecto final", "efecto \N{LATIN SMALL LIGATURE FI}nal", False),
        ("A\N{COMBINING ACUTE ACCENT}rbol", "\N{LATIN CAPITAL LETTER A WITH ACUTE}rbol",
         False),
        ("ex-socio", "ex\x02socio", False),
        ("", "", False),
        ("a long text that does not fit", "a long text", True),
        ("102", "10\N{SUPERSCRIPT TWO}", True),
        ("-1", "1", True),
        ("1.5", "15", True),
        ("Perez", "PEREZ", True),
        ("", "900", True),
        ("100", "", True),
    ],
)  # fmt: skip
def test_texts_are_compared_whole(value: str, shown: str, other: bool) -> None:
    """White space and forms of the same letters make no other text."""
    assert differs(value, shown) is other


@pytest.mark.parametrize(("shown", "hidden"), [("***", True), ("*1*", False)])
def test_password_shows_one_sign(shown: str, hidden: bool) -> None:
    """A password field may conceal its value, and show no other one."""
    assert is_concealed(shown) is hidden
