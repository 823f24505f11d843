"""Passwords that nobody may choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.errors import FieldInvalidError
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import Person
from appliance.domain.people.new_password import (
    Weakness,
    check_new,
    own_words,
    weakness,
)
from appliance.domain.vocab import PersonState

EMAIL = "ana.suarez@estudio.example"
CUIL = "27265397539"
NAME = "Ana María Suárez de la Peña"


@pytest.fixture
def own() -> tuple[str, ...]:
    """Data of Ana María Suárez de la Peña."""
    return own_words(Person(PersonId("p"), CUIL, NAME, PersonState.ACTIVE, "es"), EMAIL)


@pytest.mark.parametrize(
    "password",
    [
        "password",
        "Password",
        "p.a.s.s.w.o.r.d",
        "passwórd",
        "password1",
        "dragon2024",
        "12345678",
        "87654321",
        "1234567890",
        "abcdefgh",
        "qwertyuiop",
        "contraseña",
        "Contrasena1",
        "argentina2024",
        "bocajuniors",
        "aaaaaaaaaaaa",
        "abcabcabcabc",
        "11111111",
        "!!!!!!!!",
        "........ ",
    ],
)
def test_common_passwords_are_weak(password: str) -> None:
    """However they are written, and with a year behind them."""
    assert weakness(password) is Weakness.COMMON


@pytest.mark.parametrize(
    "password",
    [
        "suarez-maria",
        "AnaMariaSuarez",
        "Suárez.Peña.1985",
        "27-26539753-9",
        "26539753",
        "26539753ab",
        EMAIL,
        "ana.suarez",
        "estudio2024",
    ],
)
def test_own_data_is_no_password(own: tuple[str, ...], password: str) -> None:
    """Name, CUIL, DNI and e-mail address, alone or with a few signs."""
    assert weakness(password, own) is Weakness.OWN


@pytest.mark.parametrize(
    "password",
    [
        "caballo correcto batería",
        "una clave de firma",
        "suarez cabalga de noche",
        "zanahoria-7-lunas",
        "密碼是一匹馬",
        "x7Kp!2qLm",
    ],
)
def test_other_passwords_are_taken(own: tuple[str, ...], password: str) -> None:
    """Nothing is demanded of letters, digits or signs."""
    assert weakness(password, own) is None
    check_new(password, "nueva", own)


def test_refusal_says_why(own: tuple[str, ...]) -> None:
    """The field, what it has to be, and a sentence; the password in none of them."""
    with pytest.raises(FieldInvalidError) as common:
        check_new("password1", "nueva", own)
    with pytest.raises(FieldInvalidError) as named:
        check_new("AnaSuarez", "nueva", own)

    assert common.value.field == named.value.field == "nueva"
    assert common.value.sentence != named.value.sentence
    assert "password1" not in f"{common.value} {common.value.extras}"


@given(st.text(max_size=1024))
def test_any_text_has_an_answer(password: str) -> None:
    """Of any script, with any signs."""
    assert weakness(password, ("Ñandú", "20123456789")) in {None, *Weakness}
