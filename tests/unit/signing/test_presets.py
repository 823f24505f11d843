"""What a request's preset and its signer's call come to together.

Source: docs/api.md, "The look and place of a signature".
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.errors import PresetFixedError
from appliance.domain.requests.preset import SignaturePreset, effective
from appliance.domain.signing_command import (
    WIRE_NAMES,
    GivenParameters,
    SignParameters,
)
from appliance.domain.vocab import CuilDisplay, FontName, FontStyle, Restriction

DEFAULTS = SignParameters()
PLACE = {"page", "x", "y", "field"}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "font_color": st.sampled_from(["BLACK", "RED", "#00FF7F"]),
    "font_name": st.sampled_from(FontName),
    "font_size": st.integers(4, 72),
    "font_style": st.sampled_from(FontStyle),
    "page": st.integers(1, 9),
    "zoom_percent": st.integers(10, 400),
    "restriction": st.sampled_from(Restriction),
    "visible": st.booleans(),
    "field": st.sampled_from(["Firma", "Otra"]),
    "reason": st.sampled_from(["Conforme", "Revisado"]),
    "place": st.just("Lanús"),
    "cuil": st.sampled_from(CuilDisplay),
    "qr": st.booleans(),
    "logo": st.booleans(),
}
SOME = st.tuples(
    st.fixed_dictionaries({}, optional=VALUES),
    st.none() | st.tuples(st.integers(0, 900), st.integers(0, 900)),
).map(
    lambda made: GivenParameters.of(
        **made[0], **(dict(zip("xy", made[1], strict=True)) if made[1] else {})
    )
)


@given(SOME, SOME)
def test_what_the_call_gives_counts_more_than_the_preset_and_that_than_the_defaults(
    call: GivenParameters, asked: GivenParameters
) -> None:
    """Of the look, field by field; of the place, as a whole."""
    made = effective(call, SignaturePreset(asked))

    for name in WIRE_NAMES.keys() - PLACE:
        source = next(
            (each.params for each in (call, asked) if name in each.names), DEFAULTS
        )
        assert getattr(made, name) == getattr(source, name)
    for name in PLACE & call.names:
        assert getattr(made, name) == getattr(call.params, name)
    if "field" in call.names:
        assert (made.page, made.x, made.y) == (
            call.params.page,
            call.params.x,
            call.params.y,
        )
    elif "x" in call.names:
        assert made.field is None
        page = call if "page" in call.names else asked
        assert made.page == page.params.page
    else:
        own = asked.params
        assert (made.x, made.y, made.field) == (own.x, own.y, own.field)


@given(SOME)
def test_without_a_preset_a_command_is_what_it_was(call: GivenParameters) -> None:
    """So is its fingerprint."""
    assert effective(call, None) == call.params
    assert effective(call, SignaturePreset(GivenParameters())) == call.params


@given(SOME, SOME)
def test_parameters_that_leave_nothing_open_stay_as_they_are(
    call: GivenParameters, asked: GivenParameters
) -> None:
    """As those that the frame has laid out."""
    whole = GivenParameters.all_of(call.params)

    assert effective(whole, SignaturePreset(asked)) == call.params


@given(SOME, st.booleans())
def test_preset_is_read_back_as_it_was_written(
    asked: GivenParameters,
    fixed: bool,
) -> None:
    """By the names of the spec, and of those alone that were set."""
    preset = SignaturePreset(asked, fixed)
    stored = json.loads(json.dumps(preset.to_json()))

    assert SignaturePreset.from_json(stored) == preset
    names = {WIRE_NAMES[name] for name in asked.names} | ({"fijo"} if fixed else set())
    assert stored.keys() == names


@given(SOME, SOME)
def test_preset_that_is_not_fixed_refuses_nothing(
    call: GivenParameters, asked: GivenParameters
) -> None:
    """Nor does a fixed one refuse what it says itself."""
    SignaturePreset(asked).check(call)
    SignaturePreset(asked, fixed=True).check(asked)
    SignaturePreset(asked, fixed=True).check(GivenParameters())


FIXED = SignaturePreset(GivenParameters.of(page=2, x=40, y=60), fixed=True)


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        ({"x": 41, "y": 60}, ["x"]),
        ({"x": 1, "y": 2, "page": 1}, ["page", "x", "y"]),
        ({"page": 2, "x": 40, "y": 60}, []),
        ({"field": "Firma"}, ["campo"]),
        ({"font_color": "RED"}, ["fontColor"]),
        ({"font_color": "BLACK", "visible": True}, []),
        ({"visible": False}, ["visible"]),
        ({"qr": True}, ["qr"]),
        ({"reason": "Conforme", "place": "Lanús"}, []),
        ({"restriction": Restriction.FORM_FILLING}, []),
    ],
)
def test_fixed_preset_refuses_another_place_or_look_by_name(
    call: dict[str, Any], fields: list[str]
) -> None:
    """What is neither place nor look is the signer's own."""
    asked = GivenParameters.of(**call)
    if not fields:
        FIXED.check(asked)
        return
    with pytest.raises(PresetFixedError) as caught:
        FIXED.check(asked)

    assert caught.value.extras == {"field": fields[0], "fields": fields}
    assert caught.value.params == {"fields": ", ".join(fields)}


def test_fixed_preset_binds_all_that_it_says() -> None:
    """Also a reason, where it gives one."""
    preset = SignaturePreset(GivenParameters.of(reason="Conforme"), fixed=True)

    preset.check(GivenParameters.of(reason="Conforme"))
    with pytest.raises(PresetFixedError, match="motivo"):
        preset.check(GivenParameters.of(reason="Revisado"))
