"""The strict JSON reader: one meaning or none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain import strict_json
from appliance.domain.errors import ApplianceError, ErrorCode
from tests.support.documents.growth import MOST, growth

REFUSED = {
    "malformed": b'{"a":',
    "trailing": b'{"a":1} x',
    "bad_utf8": b'{"a":"\xff"}',
    "overlong_utf8": b'{"a":"\xc0\xaf"}',
    "bom": b'\xef\xbb\xbf{"a":1}',
    "utf16": '{"a":1}'.encode("utf-16"),
    "raw_surrogate": b'{"a":"\xed\xa0\x80"}',
    "escaped_surrogate": b'{"a":"\\ud800"}',
    "surrogate_in_name": b'{"\\udfff":1}',
    "escaped_nul": b'{"a":["\\u0000"]}',
    "raw_nul": b'{"a":"\0"}',
    "nul_outside": b'{"a":1}\0',
    "raw_newline": b'{"a":"\n"}',
    "nan": b'{"a":NaN}',
    "infinity": b'{"a":Infinity}',
    "minus_infinity": b'{"a":-Infinity}',
    "overflow": b'{"a":1e999}',
    "duplicate": b'{"a":1,"a":1}',
    "duplicate_escaped": b'{"a":1,"\\u0061":1}',
    "nested_duplicate": b'{"b":[{"a":1,"a":2}]}',
    "long_integer": b'{"a":' + b"1" * 4301 + b"}",
    "long_fraction": b'{"a":0.' + b"1" * 4301 + b"}",
    "deep_arrays": b"[" * 33 + b"]" * 33,
    "deep_objects": b'{"a":' * 33 + b"1" + b"}" * 33,
    "very_deep": b"[" * 200_000,
    "endless_string": b'{"a":"' + b'\\"' * 20_000 + b"[" * 33,
    "endless_escape": b'{"a":' + b"[" * 33 + b'"\\',
    "single_quotes": b"{'a':1}",
    "comment": b'{"a":1}//',
    "empty": b"",
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED.keys())
def test_json_refused(raw: bytes) -> None:
    """What two readers could understand differently is refused."""
    with pytest.raises(ApplianceError) as caught:
        strict_json.parse(raw)

    assert caught.value.code is ErrorCode.JSON_INVALID


ACCEPTED = {
    "depth_32": (b"[" * 32 + b"]" * 32),
    "brackets_in_text": json.dumps(["[" * 100, '"' + "{" * 100]).encode(),
    "pair": b'"\\ud83d\\ude00"',
    "integer_4300": b"1" * 4300,
    "escape": b'"\\u00e1\\n"',
}


@pytest.mark.parametrize("raw", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_json_accepted(raw: bytes) -> None:
    """What is unusual but unambiguous is read as Python reads it."""
    assert strict_json.parse(raw) == json.loads(raw)


ENDLESS = {
    "escaped_quotes": (b'{"usuario":"', b'\\"'),
    "quotes": (b'{"usuario":', b'"'),
    "escapes": (b'{"usuario":"', b"\\\\"),
    "words": (b'{"usuario":"', b"ab"),
    "brackets": (b'{"usuario":', b"[]"),
    "digits": (b'{"usuario":', b"1,"),
}


@pytest.mark.parametrize(("head", "again"), ENDLESS.values(), ids=ENDLESS.keys())
def test_json_is_refused_in_linear_time(head: bytes, again: bytes) -> None:
    """Twice as much of what never ends takes twice as long, not four times."""
    texts = {n: head + again * n + b"[" * 33 for n in (4000, 8000)}

    def refuse(n: int) -> None:
        with pytest.raises(ApplianceError):
            strict_json.parse(texts[n])

    assert growth(refuse, 4000) < MOST


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | _TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner),
    max_leaves=20,
)


@given(_VALUES)
def test_json_reads_back_what_was_written(value: object) -> None:
    """Every plain value survives writing and reading."""
    assert strict_json.parse(json.dumps(value).encode()) == value


@given(st.binary(max_size=200))
def test_json_never_fails_otherwise(raw: bytes) -> None:
    """Any bytes give a value or `JSON_INVALID`."""
    code = None
    try:
        strict_json.parse(raw)
    except ApplianceError as exc:
        code = exc.code

    assert code in {None, ErrorCode.JSON_INVALID}


@pytest.mark.parametrize("raw", [b"", b" \r\n\t", b"[]", b"1", b"null", b'"a"'])
def test_object_is_told_from_other_values(raw: bytes) -> None:
    """Nothing at all, or another value, has a code of its own."""
    with pytest.raises(ApplianceError) as caught:
        strict_json.parse_object(raw)

    assert caught.value.code is ErrorCode.BODY_NOT_OBJECT


def test_object_is_as_strict_as_any_value() -> None:
    """It is the object, or refused as any value is."""
    assert strict_json.parse_object(b' {"a":1}') == {"a": 1}
    with pytest.raises(ApplianceError) as caught:
        strict_json.parse_object(b'{"a":1,"a":1}')

    assert caught.value.code is ErrorCode.JSON_INVALID
