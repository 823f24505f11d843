"""The words of the REST API, read strictly."""

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.api.wire import fields, requests
from appliance.api.wire.requests import Conditions
from appliance.domain.appearance.text import as_shown, undrawn
from appliance.domain.errors import SENTENCES, ApplianceError, ErrorCode
from appliance.domain.signing_command import SignParameters
from appliance.domain.text.unicode_nfc import is_line
from appliance.domain.vocab import FontName, FontStyle, Restriction

LEAST: dict[str, Any] = {"solicitudId": 7, "password": "clave de firma"}
NOTHING = Conditions()


def refused(body: dict[str, Any]) -> ApplianceError:
    """The error that a body gives."""
    with pytest.raises(ApplianceError) as caught:
        requests.sign_command(body, NOTHING)
    return caught.value


def test_command_filled_with_defaults() -> None:
    """Only solicitudId and password are required."""
    command = requests.sign_command(LEAST, Conditions("ab", "k1"))

    assert (command.request, command.given.params) == (7, SignParameters())
    assert command.password == b"clave de firma"
    assert (command.if_match, command.idempotency_key) == ("ab", "k1")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, set()),
        ({"page": 1, "visible": True}, {"page", "visible"}),
        ({"x": None, "y": None}, set()),
        ({"x": 0, "y": 0, "campo": "F"}, {"x", "y", "field"}),
        ({"restriccion": "NO_VALUE", "motivo": "a"}, {"restriction", "reason"}),
    ],
)
def test_what_was_given_is_known_from_what_was_left_out(
    body: dict[str, Any], names: set[str]
) -> None:
    """A default that was said is said; null is as if it were not there."""
    several = {"solicitudIds": [7], "password": "clave de firma"}

    for said in (
        requests.sign_command({**LEAST, **body}, NOTHING).given,
        requests.sign_batch({**several, **body}, NOTHING).given,
        requests.preview_parameters(body),
    ):
        assert said.names == names


def test_command_of_every_field() -> None:
    """Every field of the spec arrives as it was sent."""
    body = {
        **LEAST,
        "fontColor": "#a0b1c2",
        "fontName": "Monospaced",
        "fontSize": 72,
        "fontStyle": "BOLD_ITALIC",
        "page": 3,
        "x": -1,
        "y": 0,
        "zoomPercent": 400,
        "restriccion": "FORM_FILLING",
        "visible": False,
    }

    command = requests.sign_command(body, NOTHING)

    assert command.given.params == SignParameters(
        font_color="#A0B1C2",
        font_name=FontName.MONOSPACED,
        font_size=72,
        font_style=FontStyle.BOLD_ITALIC,
        page=3,
        x=-1,
        y=0,
        zoom_percent=400,
        restriction=Restriction.FORM_FILLING,
        visible=False,
    )


@pytest.mark.parametrize("color", fields.COLORS)
def test_color_accepted_by_name(color: str) -> None:
    """Every java.awt.Color name is a colour."""
    command = requests.sign_command({**LEAST, "fontColor": color}, NOTHING)

    assert command.given.params.font_color == color


BAD = [
    *[("solicitudId", v) for v in ("5", 5.0, True, None, -1, 0, 2**53, 2**63, [5])],
    *[("fontSize", v) for v in (3, 73, 12.0, "12", True, None, 10**30)],
    *[("zoomPercent", v) for v in (9, 401, 100.0, "100", False, None)],
    *[("page", v) for v in (0, -1, 1.0, "1", True, None, 2**53)],
    *[("fontName", v) for v in ("serif", "SERIF", "Arial", "", 1, None)],
    *[("fontStyle", v) for v in ("plain", "Bold", "UNDERLINE", 0, None)],
    *[("fontColor", v) for v in ("black", "#12345", "#1234567", "#GGGGGG", 0, None)],
    *[("fontColor", v) for v in ("#١٢٣٤٥٦", " BLACK", "rgb(0,0,0)")],
    *[("restriccion", v) for v in ("no_value", "NONE", "", 0, None)],
    *[("visible", v) for v in (1, 0, "true", None)],
    *[("password", v) for v in (None, 12345678, "", "short", "a" * 1025, "ab\0cdefgh")],
    *[("password", v) for v in (["a" * 9], "ñ" * 513)],
]


TYPES = {
    "solicitudId": "integer",
    "fontSize": "integer",
    "zoomPercent": "integer",
    "page": "integer",
    "visible": "boolean",
}


@pytest.mark.parametrize(("field", "value"), BAD)
def test_field_refused(field: str, value: object) -> None:
    """A value of another type or out of its range is refused by name."""
    error = refused({**LEAST, field: value})

    assert error.code is ErrorCode.FIELD_INVALID
    assert error.extras["field"] == field
    assert isinstance(error.extras["allowed"], list)
    assert all(isinstance(each, str) and each for each in error.extras["allowed"])
    assert error.extras["fieldType"] == TYPES.get(field, "string")


@pytest.mark.parametrize("field", ["x", "y"])
@pytest.mark.parametrize("value", [1.0, "1", True, 2**53, [1]])
def test_coordinate_refused(field: str, value: object) -> None:
    """Coordinates are whole numbers."""
    error = refused({**LEAST, "x": 1, "y": 1, field: value})

    assert (error.code, error.extras["field"]) == (ErrorCode.FIELD_INVALID, field)


@pytest.mark.parametrize(("given_one", "missing"), [("x", "y"), ("y", "x")])
def test_coordinate_refused_alone(given_one: str, missing: str) -> None:
    """Coordinates come together."""
    error = refused({**LEAST, given_one: 10})

    assert (error.code, error.extras["field"]) == (ErrorCode.FIELD_INVALID, missing)
    told = f"The field {missing} is missing: it comes together with {given_one}."
    assert error.told(error.sentence) == told


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("x", "5", "a whole number, without quotes or decimals"),
        ("solicitudId", "7", "a whole number, without quotes or decimals"),
        ("page", 1.5, "a whole number, without quotes or decimals"),
        ("page", True, "a whole number, without quotes or decimals"),
        ("zoomPercent", None, "a whole number, without quotes or decimals"),
        ("fontName", 5, "a string, in quotes"),
        ("motivo", ["a"], "a string, in quotes"),
        ("visible", "true", "true or false, without quotes"),
    ],
)
def test_wrong_type_is_what_is_told(field: str, value: object, told: str) -> None:
    """Of a value of another JSON type its type is told, not its range."""
    error = refused({**LEAST, "x": 1, "y": 1, field: value})

    assert error.told(error.sentence) == f"The field {field} must be {told}."


@pytest.mark.parametrize(("field", "value"), [("fontSize", 99), ("motivo", "")])
def test_wrong_value_is_what_is_told(field: str, value: object) -> None:
    """Of a value of the right type what is told is that it is not allowed."""
    error = refused({**LEAST, field: value})

    told = f"The field {field} has a value that is not allowed."
    assert error.told(error.sentence) == told


_TURN = "must have no control characters, changes of direction or line breaks"


@pytest.mark.parametrize("field", ["motivo", "lugar"])
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a\nb", _TURN),
        ("a\tb", _TURN),
        ("a\u2028b", _TURN),
        ("\uffff", None),
        ("\u0301\u0301", None),
        *((char, _TURN) for char in ("\u202e", "a\u202eb", "\u2066a", "a\u202a")),
        ("\u200b \u200b", None),
    ],
)
def test_text_that_no_stamp_can_show_is_told(
    field: str, value: str, told: str | None
) -> None:
    """A line break is named; what leaves no mark is as if nothing were there."""
    error = refused({**LEAST, field: value})

    assert (error.code, error.extras["field"]) == (ErrorCode.FIELD_INVALID, field)
    expected = f"The field {field} {told}."
    if told is None:
        expected = f"Nothing in the field {field} would be seen."
    assert error.told(error.sentence) == expected


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("ñandú", "ñandú"),
        ("«Sí» … 5 € \u2013 ½", "«Sí» … 5 € \u2013 ½"),
        ("n\u0303andu\u0301", "ñandú"),
        (" $\u00a0900.000,\u202f ya ", "$ 900.000, ya"),
    ],
)
def test_text_is_kept_as_the_stamp_shows_it(value: str, kept: str) -> None:
    """In NFC, with single spaces."""
    command = requests.sign_command({**LEAST, "motivo": value}, NOTHING)

    assert command.given.params.reason == kept == as_shown(value)


@pytest.mark.parametrize("field", ["motivo", "lugar"])
@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("我 pago", "我 (U+6211)"),
        ("No\u200b", "U+200B"),
        ("Recibí\U000e0061\U000e0063", "U+E0061, U+E0063"),
        ("N\u0338o acepto", "U+0338"),
        ("\u061c900\u200e.\u200f000", "U+061C, U+200E, U+200F"),
        ("g\u0303", "U+0303"),
        ("a\u00adb", "U+00AD"),
        ("\u1ebd \ufb01n", "ẽ (U+1EBD), \ufb01 (U+FB01)"),
        ("\u0301a", "U+0301"),
        ("\u3164a", "\u3164 (U+3164)"),
        (
            "一二三四五六",
            "一 (U+4E00), 二 (U+4E8C), 三 (U+4E09), 四 (U+56DB), 五 (U+4E94), …",
        ),
    ],
)
def test_text_that_the_stamp_would_show_otherwise_is_refused(
    field: str, value: str, named: str
) -> None:
    """With what it cannot show; of an invisible signature, too."""
    for visible in (True, False):
        error = refused({**LEAST, field: value, "visible": visible})

        assert (error.code, error.extras["field"]) == (ErrorCode.FIELD_INVALID, field)
        assert error.told(error.sentence) == (
            f"The stamp cannot show these characters of the field {field}: {named}. It "
            "has Latin letters, digits and the usual punctuation."
        )


def test_pattern_of_a_stamp_text_says_what_is_taken() -> None:
    """Every character of the fonts and every space, and no other one."""
    schema = requests.Parameters.model_json_schema()["properties"]["motivo"]
    allowed = schema["pattern"]
    for number in [*range(0xD800), *range(0xE000, 0x30000), 0xE0061]:
        text = f"a{chr(number)}a"
        matches = re.fullmatch(allowed, text) is not None
        assert matches is (is_line(text) and not undrawn(text)), hex(number)


@pytest.mark.parametrize("value", [5, "5", ["5"], [5, None], [True], {"0": 5}])
def test_wrong_list_is_told_as_one_of_numbers(value: object) -> None:
    """A list of whole numbers is asked for, whichever part of it is something else."""
    body = {"solicitudIds": value, "password": LEAST["password"]}

    with pytest.raises(ApplianceError) as caught:
        requests.sign_batch(body, NOTHING)

    told = caught.value.told(caught.value.sentence)
    assert told == "The field solicitudIds must be a list of whole numbers."


@pytest.mark.parametrize("value", [[], [0], [5] * 10_000])
def test_list_out_of_its_range_is_told_as_such(value: object) -> None:
    """Of a list of whole numbers how many there are and their range are told."""
    body = {"solicitudIds": value, "password": LEAST["password"]}

    with pytest.raises(ApplianceError) as caught:
        requests.sign_batch(body, NOTHING)

    assert caught.value.sentence == SENTENCES[ErrorCode.FIELD_INVALID]


def test_code_as_a_number_is_asked_for_as_six_digits() -> None:
    """A code is a string, for it may begin with 0; what is asked for are six digits."""
    with pytest.raises(ApplianceError) as caught:
        requests.OneTimeCode.read({"loginToken": "t", "codigo": 123456})

    assert caught.value.extras["allowed"] == ["6 digits"]
    told = caught.value.told(caught.value.sentence)
    assert told == "The field codigo must be a string, in quotes."


@pytest.mark.parametrize("field", ["solicitudId", "password"])
def test_required_field_missing(field: str) -> None:
    """A required field that is missing is refused by name."""
    body = {name: value for name, value in LEAST.items() if name != field}

    error = refused(body)

    assert (error.code, error.extras["field"]) == (ErrorCode.FIELD_MISSING, field)
    assert error.extras["fieldType"] == TYPES.get(field, "string")
    assert error.extras["allowed"]


def test_unknown_field_refused() -> None:
    """A field that is not known is refused, and named no longer than 64."""
    error = refused({**LEAST, "n" * 5000: 1})

    assert error.code is ErrorCode.FIELD_UNKNOWN
    assert error.extras["field"] == "n" * 64


def test_unknown_field_left_aside_in_options() -> None:
    """Options of a multipart body may have more than is known."""
    body = {**LEAST, "certificateOptions": {"a": 1}}

    command = requests.sign_command(body, NOTHING, lenient=True)

    assert command.request == 7


def test_password_normalised() -> None:
    """A password typed as NFD is the one typed as NFC."""
    decomposed = unicodedata.normalize("NFD", "contraseña")

    command = requests.sign_command({**LEAST, "password": decomposed}, NOTHING)

    assert command.password == "contraseña".encode()


@pytest.mark.parametrize("password", ["a" * 8, "a" * 1024, "ñandú ñ"])
def test_password_accepted_by_bytes(password: str) -> None:
    """8 to 1024 bytes, not characters."""
    command = requests.sign_command({**LEAST, "password": password}, NOTHING)

    assert command.password == password.encode()


def test_password_never_shown() -> None:
    """Neither a refusal nor a repr shows a password."""
    error = refused({**LEAST, "password": "secreto\0secreto"})
    credentials = requests.Login.read({"usuario": "ana", "password": "secreto"})
    command = requests.sign_command({**LEAST, "password": "secreto secreto"}, NOTHING)

    shown = f"{error} {error.extras} {credentials!r} {command!r}"

    assert "secreto" not in shown


@pytest.mark.parametrize("motivo", [None, 5, "", "   ", "a" * 501, "a\nb", "a\x00b"])
def test_reason_refused(motivo: object) -> None:
    """A reason is 1 to 500 characters without control characters."""
    with pytest.raises(ApplianceError) as caught:
        requests.Rejection.read({"motivo": motivo})

    assert caught.value.extras["field"] == "motivo"


@pytest.mark.parametrize("text", ["0", "01", "9007199254740992", "9" * 5000, "1 "])
def test_request_id_of_address_refused(text: str) -> None:
    """What can be no id is as absent as an id that is not there."""
    with pytest.raises(ApplianceError) as caught:
        requests.request_id(text)

    assert caught.value.code is ErrorCode.SOLICITUD_NOT_FOUND


# What the body reader lets through: no lone surrogates.
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(requests.SIGN_FIELDS), _JSON))
def test_command_never_fails_otherwise(body: dict[str, Any]) -> None:
    """Any object gives a command, or a field at fault."""
    code = None
    try:
        requests.sign_command(body, NOTHING)
    except ApplianceError as exc:
        code = exc.code

    assert code in {None, ErrorCode.FIELD_INVALID, ErrorCode.FIELD_MISSING}
