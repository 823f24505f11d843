"""What is wrong with a backend's body is named, with what may stand there."""

from typing import Any

import pytest

from appliance.api.wire import presets
from appliance.api.wire.fields import MOMENTS
from appliance.api.wire.orders import Note, Referred
from appliance.domain.errors import ApplianceError, ErrorCode


def _refused(reading: Any, *given: Any) -> ApplianceError:
    with pytest.raises(ApplianceError) as caught:
        reading(*given)
    return caught.value


def test_unknown_name_is_answered_with_the_one_that_was_meant() -> None:
    """Before all others, which stay as they are."""
    error = _refused(presets.wished_preset, {"anchor": {"texto": "Firma"}})

    assert (error.code, error.extras["field"]) == (
        ErrorCode.FIELD_UNKNOWN,
        "sello.anchor",
    )
    allowed = error.extras["allowed"]
    assert isinstance(allowed, list)
    assert allowed[0] == "ancla"
    assert sorted(allowed) == sorted(presets.STAMP_FIELDS)


@pytest.mark.parametrize(
    ("anchor", "field", "allowed"),
    [
        ("Firma", "sello.ancla", ["an object", "{texto, aparicion, dx, dy}"]),
        ({}, "sello.ancla.texto", ["1..200 characters"]),
        ({"texto": ""}, "sello.ancla.texto", ["1..200 characters"]),
        ({"texto": "a", "dx": "3"}, "sello.ancla.dx", ["-20000..20000"]),
        (
            {"text": "a"},
            "sello.ancla.text",
            ["texto", "aparicion", "dx", "dy"],
        ),
    ],
)
def test_fault_of_an_anchor_is_told_of_the_anchor(
    anchor: object, field: str, allowed: list[str]
) -> None:
    """Not of the stamp around it."""
    error = _refused(presets.wished_preset, {"ancla": anchor})

    assert (error.extras["field"], error.extras["allowed"]) == (field, allowed)


@pytest.mark.parametrize(
    "written", ["2026-12-31", "31/12/2026", "2026-12-31T23:59:59", "1798761599"]
)
def test_wrong_time_is_answered_with_how_times_are_written(written: str) -> None:
    """Both forms of a zone, and an example, which is one."""
    error = _refused(Note.read, {"vence": written})

    assert (error.extras["field"], error.extras["allowed"]) == ("vence", [*MOMENTS])
    assert Note.read({"vence": MOMENTS[0]}).expires is not None


@pytest.mark.parametrize("char", "\u202a\u202d\u202e\u2066\u2067\u2069\x00\x9f\u2028")
@pytest.mark.parametrize("field", ["referencia", "metadatos", "mensaje"])
def test_what_turns_a_text_around_is_refused(field: str, char: str) -> None:
    """Whoever reads it would read another text; letters of any script are taken."""
    text = f"recibo{char}4711"
    error = _refused(Note.read, {field: {"k": text} if field == "metadatos" else text})

    assert (error.code, error.extras["field"]) == (ErrorCode.FIELD_INVALID, field)
    assert Referred.read({"referencia": "אבג-4711 👩‍🔧"}).reference
