"""Filled fields that show another thing than their value are told, and no others.

Source: docs/documents.md "What each program draws in its own way".
"""

from typing import Final

import pytest

from appliance.domain.documents.inspected import FindingKind
from tests.support.documents.hostile_pdfs import plain
from tests.support.documents.outside_content_pdfs import stream
from worker.sandbox import shown_fields
from worker.sandbox.inspection import inspect

TOLD: Final = FindingKind.FIELD_SHOWS_OTHER
_FORM: Final = b"/Type/XObject/Subtype/Form/BBox[0 0 90 20]"
_FONTS: Final = b"/Resources<</Font<</F 7 0 R>>>>"
_TEXT: Final = b"/FT/Tx/T(a)/AP<</N 6 0 R>>"
_CHOICE: Final = b"/FT/Ch/T(a)/Ff 131072/AP<</N 6 0 R>>/Opt[[(x)(Diez mil)](y)]"
_BOX: Final = b"/FT/Btn/T(a)/AP<</N<</Si 6 0 R/Off 8 0 R>>>>"


def with_field(entries: bytes, shown: bytes = b"10.000", fields: bytes = b"") -> bytes:
    """One page with a filled field, and the text that it shows."""
    return plain(
        b"/AcroForm<</Fields[5 0 R]/DA(/F 9 Tf 0 g)%s>>" % fields,
        b"/Annots[5 0 R]",
        o4=stream(b"", b""),
        o5=b"<</Type/Annot/Subtype/Widget/F 4/Rect[9 9 99 29]%s>>" % entries,
        o6=stream(_FORM + _FONTS, b"BT /F 9 Tf 2 6 Td (%s) Tj ET" % shown),
        o7=b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        o8=stream(_FORM, b""),
    )


@pytest.mark.parametrize(
    "pdf",
    [
        with_field(_TEXT + b"/V(900.000)"),
        with_field(_TEXT + b"/V(900.000)", b""),
        with_field(_TEXT + b"/V 9 0 R").replace(b"/V 9 0 R", b"/V 8 0 R"),
        with_field(_CHOICE + b"/V(x)", b"Cien"),
        with_field(_BOX + b"/V/Si/AS/Off"),
        with_field(_BOX + b"/AS/Si"),
        with_field(_BOX + b"/V/Off/AS/Si"),
    ],
)
def test_field_that_shows_another_value_is_told(pdf: bytes) -> None:
    """Texts, choices and buttons."""
    assert TOLD in inspect(pdf, 1).findings


@pytest.mark.parametrize(
    "pdf",
    [
        with_field(_TEXT + b"/V(10.000)"),
        with_field(_TEXT + b"/V(10.\n000)"),
        with_field(_TEXT, b"Importe"),
        with_field(_CHOICE + b"/V(x)", b"Diez mil"),
        with_field(_CHOICE + b"/V(y)", b"y"),
        with_field(_BOX + b"/V/Si/AS/Si"),
        with_field(_BOX + b"/V/Off/AS/Off"),
        with_field(_BOX + b"/AS/Off"),
        # A password, a list, a hidden one, one that a script formats, an open form.
        with_field(_TEXT + b"/V(secret)/Ff 8192", b"****"),
        with_field(_CHOICE.replace(b"131072", b"0") + b"/V(x)", b"Diez mil y"),
        with_field(_TEXT + b"/V(1)").replace(b"/F 4", b"/F 2"),
        with_field(_TEXT + b"/V(10000)/AA<</F<</S/JavaScript/JS(x)>>>>"),
        with_field(_TEXT + b"/V(1)", fields=b"/NeedAppearances true"),
    ],
)
def test_field_that_shows_its_value_is_not_told(pdf: bytes) -> None:
    """And what cannot be compared is told otherwise."""
    assert TOLD not in inspect(pdf, 1).findings


def test_more_fields_than_are_compared_are_unexamined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not called alike."""
    monkeypatch.setattr(shown_fields, "_FIELDS_MOST", 0)

    found = inspect(with_field(_TEXT + b"/V(10.000)"), 1).findings

    assert FindingKind.UNEXAMINED_PARTS in found
