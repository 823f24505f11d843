"""Names of documents that come in."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.requests.intake import check_file_name


@pytest.mark.parametrize(
    "name",
    [
        "contrato.pdf",
        "Contrato de señas (2) «final».PDF",
        "契約書.pdf",
        "a.b.pdf",
        "x" * 251 + ".pdf",
        "ñ" * 125 + ".pdf",
    ],
)
def test_name_taken_as_it_is(name: str) -> None:
    """What people call their files is fine, up to 255 bytes."""
    assert check_file_name(name) == name


def test_name_kept_in_nfc() -> None:
    """Two ways to write the same letters are one name."""
    assert check_file_name(unicodedata.normalize("NFD", "señal.pdf")) == "señal.pdf"


def test_blanks_around_a_name_do_not_count() -> None:
    """As at every other text that people type."""
    assert check_file_name(" contrato.pdf ") == "contrato.pdf"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "pdf",
        ".pdf",
        ".oculto.pdf",
        "contrato",
        "contrato.pdf.exe",
        "a/b.pdf",
        "..\\b.pdf",
        "c:d.pdf",
        'a"b.pdf',
        "a<b>.pdf",
        "a|b?.pdf",
        "a*.pdf",
        "a\0.pdf",
        "a\r\nb.pdf",
        "a\tb.pdf",
        "a\u202efdp.pdf",  # reads backwards from here
        "a\u200b.pdf",
        "a\u2028.pdf",
        "a\ud800.pdf",
        "a\ue000.pdf",
        "a\ufeff.pdf",
        "x" * 252 + ".pdf",
        "ñ" * 126 + ".pdf",
    ],
)
def test_name_refused(name: str) -> None:
    """Paths, hidden files, other kinds, and what reads other than it is."""
    with pytest.raises(ApplianceError) as caught:
        check_file_name(name)

    assert caught.value.code is ErrorCode.FILENAME


@given(st.text(max_size=80).map(lambda text: text + ".pdf") | st.text(max_size=300))
def test_name_of_any_text_is_safe_or_refused(text: str) -> None:
    """No text whatsoever gives another error, or a name that is a path."""
    try:
        name = check_file_name(text)
    except ApplianceError:
        return
    assert len(name.encode()) <= 255
    assert not set(name) & set("/\\\0\r\n")
    assert check_file_name(name) == name
