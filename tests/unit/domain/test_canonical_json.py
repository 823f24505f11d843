"""JSON in its one form: the same bytes as the library's, however it is made."""

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.text.canonical_json import canonical_json

_ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
_VALUES = st.recursive(
    _ATOMS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(_VALUES)
def test_bytes_are_those_of_the_library(value: object) -> None:
    """Of any value, plain or not."""
    assert canonical_json(value) == rfc8785.dumps(value)  # type: ignore[arg-type]  # of JSON


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [True, None, 'ñ\u20ac\x7f\x1f"\\/\b\f\n\r\t']},
        {"\ufb33": 1, "\U0001f600": 2, "é": 3},
        {"n": 1.0, "m": 1e21, "l": 5e-324, "k": -0.0},
        ("a", ("b",), []),
        {},
    ],
)
def test_bytes_of_what_is_easily_made_otherwise(value: object) -> None:
    """Controls, names beyond the first plane, fractions, tuples, nothing."""
    assert canonical_json(value) == rfc8785.dumps(value)  # type: ignore[arg-type]  # of JSON


@pytest.mark.parametrize("value", ["\ud800", {"a": "\udfff"}, 2**53, float("nan"), {1}])
def test_what_json_cannot_tell_is_refused(value: object) -> None:
    """As by the library."""
    with pytest.raises(ValueError, match=r".+"):
        canonical_json(value)
