"""The fingerprint of a signing command.

Source: decisions "repeating firmar", "required fields of firmar".
"""

import hashlib
import json
from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import CuilDisplay, FontName, FontStyle, Restriction

CHANGES: list[dict[str, object]] = [
    {"font_color": "RED"},
    {"font_name": FontName.MONOSPACED},
    {"font_size": 13},
    {"font_style": FontStyle.BOLD},
    {"page": 2},
    {"x": 0, "y": 0},
    {"zoom_percent": 101},
    {"restriction": Restriction.FORM_FILLING},
    {"visible": False},
    {"reason": "Conformidad"},
    {"place": "Conformidad"},
    {"cuil": CuilDisplay.WHOLE},
    {"cuil": CuilDisplay.MASKED},
    {"qr": True},
    {"qr": False},
    {"logo": True},
    {"logo": False},
    {"field": "contrato.comprador"},
]
PARAMETERS = st.builds(
    SignParameters,
    font_color=st.sampled_from(["BLACK", "#00FF7F"]),
    font_name=st.sampled_from(FontName),
    font_size=st.integers(4, 72),
    font_style=st.sampled_from(FontStyle),
    page=st.integers(1, 5000),
    x=st.none() | st.integers(0, 14_400),
    y=st.none() | st.integers(0, 14_400),
    zoom_percent=st.integers(10, 400),
    restriction=st.sampled_from(Restriction),
    visible=st.booleans(),
    reason=st.none() | st.text(min_size=1, max_size=120),
    place=st.none() | st.text(min_size=1, max_size=60),
    cuil=st.none() | st.sampled_from(CuilDisplay),
    qr=st.none() | st.booleans(),
    logo=st.none() | st.booleans(),
    field=st.none() | st.text(min_size=1),
)


def test_fingerprint_is_sha256_of_sorted_json_with_defaults() -> None:
    """Written out: RFC 8785 JSON, defaults filled in, x and y null."""
    written = (
        '{"fontColor":"BLACK","fontName":"Serif","fontSize":12,"fontStyle":"PLAIN",'
        '"page":1,"restriccion":"NO_VALUE","solicitudId":7,"visible":true,"x":null,'
        '"y":null,"zoomPercent":100}'
    )

    assert SignParameters().sha256(7) == hashlib.sha256(written.encode()).hexdigest()


def test_fingerprint_names_the_request() -> None:
    """The same parameters of another request are another command."""
    assert SignParameters().sha256(7) != SignParameters().sha256(8)


def test_fingerprint_knows_zero_from_absent() -> None:
    """Zeros for x and y are a place; absent ones are null."""
    placed = SignParameters(x=0, y=0)

    assert placed.sha256(7) != SignParameters().sha256(7)


def test_fingerprint_changes_with_every_field() -> None:
    """No field is left out, and no two changes look alike."""
    changed = {name for change in CHANGES for name in change}
    prints = [replace(SignParameters(), **change).sha256(7) for change in CHANGES]  # type: ignore[arg-type]  # each of its field's type

    assert changed == {field.name for field in fields(SignParameters)}
    assert len({*prints, SignParameters().sha256(7)}) == len(CHANGES) + 1


@given(st.permutations(list(SignParameters(x=3, y=4, page=2).to_wire().items())))
def test_fingerprint_same_in_any_order_of_fields(
    items: list[tuple[str, object]],
) -> None:
    """Parameters read back from another order of keys are the same command."""
    params = SignParameters(x=3, y=4, page=2)

    assert SignParameters.from_wire(dict(items)).sha256(7) == params.sha256(7)


@given(PARAMETERS)
def test_parameters_survive_storage(params: SignParameters) -> None:
    """What is stored as JSON reads back as the same parameters."""
    stored = json.loads(json.dumps(params.to_wire()))

    assert SignParameters.from_wire(stored) == params
