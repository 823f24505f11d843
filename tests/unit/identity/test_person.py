"""CUIL: form, type of person, check digit.

Source: facts "Argentina".
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.errors import CheckDigitError, ErrorCode, FieldInvalidError
from appliance.domain.people.identity import (
    format_cuil,
    parse_cuil,
    typed_cuil,
    typed_cuils,
)

WEIGHTS = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("20-05536168-2", "20055361682"),
        ("20055361682", "20055361682"),
        ("20-26756539-3", "20267565393"),
        ("20-267565393", "20267565393"),
        (" 20267565393 ", "20267565393"),
        # A remainder of 0 has the digit 0.
        ("20-00000006-0", "20000000060"),
        ("27-00000003-0", "27000000030"),
    ],
)
def test_cuil_read_when_valid(text: str, digits: str) -> None:
    """With or without dashes, and blanks around, the eleven digits come out."""
    assert parse_cuil(text) == digits


@pytest.mark.parametrize(
    "text",
    [
        "20-26756539-2",  # wrong digit
        "33-69345023-9",  # a company
        "30-50000000-1",
        "34-00000000-0",
        "20267565393\n",
        "2026756539",
        "202675653933",
        "20.26756539.3",
        "\u0662\u0660267565393",  # digits, of another script
        "\uff12\uff10267565393",
        "20\u201326756539\u20133",
        "",
        "x",
    ],
)
def test_cuil_refused_when_invalid(text: str) -> None:
    """Anything else is refused by the field's name."""
    with pytest.raises(FieldInvalidError) as caught:
        parse_cuil(text, "usuario")

    assert caught.value.code is ErrorCode.FIELD_INVALID
    assert caught.value.extras["field"] == "usuario"
    is_digit = text == "20-26756539-2"
    assert isinstance(caught.value, CheckDigitError) is is_digit
    assert ("check digit of usuario" in str(caught.value)) is is_digit


@given(st.sampled_from(["20", "23", "24", "27"]), st.integers(0, 99_999_999), st.data())
def test_cuil_has_at_most_one_check_digit(
    kind: str, number: int, data: st.DataObject
) -> None:
    """Of the ten digits one is right, or none where the remainder is 1."""
    digits = f"{kind}{number:08d}"
    total = sum(w * int(d) for w, d in zip(WEIGHTS, digits, strict=True))
    expected = {0: [0], 1: []}.get(total % 11, [11 - total % 11])

    accepted = []
    for check in range(10):
        try:
            accepted.append(int(parse_cuil(f"{digits}{check}")[-1]))
        except FieldInvalidError:
            continue

    assert accepted == expected
    if accepted:
        whole = f"{digits}{accepted[0]}"
        assert parse_cuil(format_cuil(whole)) == whole
        # One digit typed wrongly, of those that the sum weighs, is noticed.
        at = data.draw(st.integers(2, 9))
        other = data.draw(st.integers(0, 9).filter(lambda d: str(d) != whole[at]))
        with pytest.raises(FieldInvalidError):
            parse_cuil(f"{whole[:at]}{other}{whole[at + 1 :]}")


@given(st.text(max_size=20))
def test_cuil_of_any_text_is_eleven_digits_or_refused(text: str) -> None:
    """No text whatsoever gives another error or another form."""
    try:
        found = parse_cuil(text)
    except FieldInvalidError:
        return
    assert len(found) == 11
    assert found.isascii()
    assert found.isdigit()


def test_cuil_written_as_people_do() -> None:
    """Dashes after the type and before the digit."""
    assert format_cuil("20055361682") == "20-05536168-2"


@pytest.mark.parametrize(
    "text",
    [
        "20055361682",
        " 20-05536168-2 ",
        "20 05536168 2",
        "20.05.536.168.2",
        "20\u201105536168\u20132",
        "20\u00a005 536 168\t2",
    ],
)
def test_typed_cuil_may_have_any_blanks_dots_and_hyphens(text: str) -> None:
    """Between any two digits; a list of them takes each too."""
    assert typed_cuil(text) == "20055361682"
    assert typed_cuils(f"{text}, {text}", "then") == ("20055361682",) * 2


@pytest.mark.parametrize("text", ["", "20/05536168/2", "20 05536168", "2005536168 3"])
def test_typed_cuil_is_held_to_its_digits(text: str) -> None:
    """What is left without blanks is a CUIL, or refused."""
    with pytest.raises(FieldInvalidError):
        typed_cuil(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("20055361682 20267565393", 2),
        ("20 05536168 2 20 26756539 3", 2),
        ("20-05536168-2;20267565393\n20055361682", 3),
        ("20055361682,", 1),
    ],
)
def test_several_cuils_are_told_apart_by_their_digits(text: str, count: int) -> None:
    """Blanks stand between them and within them."""
    assert len(typed_cuils(text, "then")) == count


def test_several_cuils_with_a_digit_to_spare_are_refused() -> None:
    """Whatever is over is no CUIL."""
    with pytest.raises(FieldInvalidError):
        typed_cuils("20055361682 2", "then")
