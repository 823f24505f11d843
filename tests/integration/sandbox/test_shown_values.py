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

from appliance.domain.verification import Answer
from tests.support.documents import pdfs
from tests.support.documents.software_signer import signed, software_signer
from worker.sandbox.verify.shown_values import differs
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
        stream_data=f"BT /F 8 Tf 2 4 Td ({drawn}) Tj ET".encode(),
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
    ("value", "drawn", "shown"),
    [("Juan Perez", "Juan  PEREZ", ""), ("Otro", "Juan Perez", "Juan Perez")],
)
def test_other_text_than_the_value_is_named(value: str, drawn: str, shown: str) -> None:
    """Filling in is permitted; a field that lies about its value is undetermined."""
    (report,) = verify(filled(value, drawn), [software_signer().root]).signatures

    assert report.changes.answer is (Answer.UNCHECKED if shown else Answer.YES)
    assert ("another text" in report.reason) is bool(shown)
    (found,) = report.filled
    assert (found.after, found.shown) == (value, shown)


@pytest.mark.parametrize(
    ("value", "shown", "other"),
    [
        ("100", "1 0 0", False),
        ("a long text that does not fit", "a long text", False),
        ("Yes", "4", False),
        ("", "900", True),
        ("100", "", False),
        ("100", "900", True),
    ],
)
def test_texts_are_compared_by_letters(value: str, shown: str, other: bool) -> None:
    """Blanks, a cut end and the tick of a box make no other text."""
    assert differs(value, shown) is other
