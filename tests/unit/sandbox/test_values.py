"""Values of PDF objects, as qpdf reads them too. Source: ISO 32000-2, 7.3."""

import pikepdf
import pytest

from worker.sandbox.structure.values import NoValueError, ObjectNumber, Real, value_at

STRINGS = (
    b"(plain)",
    b"()",
    b"(a(b(c)d)e)",
    b"(a\\\n\nb)",
    b"(a\\\r\n\nb)",
    b"(a\\\r\rb)",
    b"(a\r\nb\rc\n\rd)",
    b"(\\n\\r\\t\\b\\f\\(\\)\\\\)",
    b"(\\101\\1012\\7\\78\\0531)",
    b"(\\q\\%)",
    b"(\xfe\xff\0A)",
    b"<>",
    b"<4142>",
    b"<41 4\n2 5>",
)


@pytest.mark.parametrize("written", STRINGS)
def test_strings_are_those_of_qpdf(written: bytes) -> None:
    """Escapes, line ends, nested parentheses and odd digits."""
    value, end = value_at(b" % no\n" + written + b" 7", 0)
    assert value == bytes(pikepdf.Object.parse(written))
    assert end == 6 + len(written)


def test_containers_hold_values_of_all_kinds() -> None:
    """Of equal keys the first counts, as it does to pyHanko."""
    written = b"<</A[1 -2 +3 4.50 .5 true false null]/B 7 0 R/#43/D#20e/A 9/E<</F()>>>>"
    value, _ = value_at(written, 0)
    assert value == {
        "/A": [1, -2, 3, Real("4.50"), Real(".5"), True, False, None],
        "/B": ObjectNumber((7, 0)),
        "/C": "/D e",
        "/E": {"/F": b""},
    }


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"%no end",
        b"(no end",
        b"<</A>>",
        b"<<1 2>>",
        b"[1>>",
        b"]",
        b"1-2",
        b"[" * 99,
    ],
)
def test_other_bytes_are_no_value(written: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(NoValueError):
        value_at(written, 0)
