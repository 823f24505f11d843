"""Names for certificates: what verifiers cannot compare is refused.

asn1crypto, by which pyHanko compares names, has the last word.
"""

from collections.abc import Iterator

import pytest
from asn1crypto.x509 import Name
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.errors import FieldInvalidError
from appliance.domain.people.identity import COMPARABLE, certificate_name
from appliance.domain.text.certificate_names import is_comparable

_REMOVED = range(0xFE0F, 0xFF01)
"""Left out by asn1crypto before it compares; of RFC 4518, 2.2 but for what is not in
its list, as Arabic presentation forms, which are refused here beside Latin ones."""


def _is_taken(name: str) -> bool:
    """True if asn1crypto prepares the name."""
    try:
        return bool(Name.build({"common_name": name}).hashable)
    except ValueError:
        return False


def _characters() -> Iterator[str]:
    """Printable ones: all up to Arabic, and each seventeenth after."""
    for code in (*range(0x700), *range(0x700, 0x20000, 17)):
        if chr(code).isprintable() and code not in _REMOVED:
            yield chr(code)


def test_each_character_is_taken_as_by_verifiers() -> None:
    """Beside Latin letters, and beside Hebrew ones."""
    for char in _characters():
        for name in (f"Ana {char} Paz", f"משה{char}כהן"):
            assert is_comparable(name) is _is_taken(name), (name, hex(ord(char)))


@given(st.text("aÑ 1שع-.\u0301Ж🙂\ua78c", min_size=1, max_size=6).filter(str.strip))
def test_mixtures_are_taken_as_by_verifiers(name: str) -> None:
    """Names of letters, marks and signs that each change the answer."""
    assert is_comparable(name) is _is_taken(name)


@pytest.mark.parametrize(
    "typed",
    ["Ana 🙂", "Ana ₺", "\ua78ba Guaraní", "Ana משה", "محمد 1", "Ana \U00016a40"],
)
def test_name_of_no_chain_is_refused(typed: str) -> None:
    """By its field, with what it may be of."""
    with pytest.raises(FieldInvalidError) as caught:
        certificate_name(typed, "nombre", 64)

    assert caught.value.extras == {"field": "nombre", "allowed": [COMPARABLE]}


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("  María   José  ", "María José"),
        ("Jose\u0301", "José"),
        ("Иван Петров", "Иван Петров"),
        ("משה כהן", "משה כהן"),
        ("王小明", "王小明"),
        ("g̃uaraní", "g̃uaraní"),
    ],
)
def test_name_is_kept_as_certificates_have_it(typed: str, name: str) -> None:
    """In NFC, with single spaces; letters of any script."""
    assert certificate_name(typed, "name", 64) == name


def test_what_stands_before_a_name_counts() -> None:
    """A mark of Latin letters leaves no room for a name of Hebrew ones."""
    assert certificate_name("Ana", "nombre", 5, "PRUEBA · ") == "PRUEBA · Ana"
    with pytest.raises(FieldInvalidError):
        certificate_name("משה", "nombre", 10, "PRUEBA · ")
