"""The object `sello` of who asks for a signature, as it is read.

Source: docs/api.md, "The look and place of a signature".
"""

from typing import Any

import pytest

from appliance.api.wire.presets import STAMP_FIELDS, wished_preset
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.requests.preset import Anchor, WishedPreset
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import FontStyle

C = ErrorCode
OF = GivenParameters.of


@pytest.mark.parametrize(
    ("body", "wished"),
    [
        ({}, WishedPreset(OF())),
        (
            {"page": 3, "x": 40, "y": 60, "fontStyle": "BOLD", "fijo": True},
            WishedPreset(OF(page=3, x=40, y=60, font_style=FontStyle.BOLD), fixed=True),
        ),
        ({"x": None, "y": None}, WishedPreset(OF())),
        ({"page": "ultima", "qr": False}, WishedPreset(OF(qr=False), last_page=True)),
        ({"campo": "Firma"}, WishedPreset(OF(field="Firma"))),
        (
            {"ancla": {"texto": "  Firma  del\u00a0empleador"}},
            WishedPreset(OF(), anchor=Anchor("Firma del empleador")),
        ),
        (
            {
                "ancla": {"texto": "n\u0303", "aparicion": 2, "dx": -3, "dy": 4},
                "page": 2,
            },
            WishedPreset(OF(page=2), anchor=Anchor("ñ", 2, -3, 4)),
        ),
    ],
)
def test_look_and_place_are_read(body: dict[str, Any], wished: WishedPreset) -> None:
    """What was given, and what only the document can tell."""
    assert wished_preset(body) == wished


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"pagina": 1}, C.FIELD_UNKNOWN, "pagina"),
        ({"page": "primera"}, C.FIELD_INVALID, "page"),
        ({"page": 0}, C.FIELD_INVALID, "page"),
        ({"page": True}, C.FIELD_INVALID, "page"),
        ({"x": 1}, C.FIELD_INVALID, "y"),
        ({"fijo": "true"}, C.FIELD_INVALID, "fijo"),
        ({"fontSize": 3}, C.FIELD_INVALID, "fontSize"),
        ({"motivo": "N\u0338o"}, C.FIELD_INVALID, "motivo"),
        ({"lugar": "我", "visible": False}, C.FIELD_INVALID, "lugar"),
        ({"ancla": "Firma"}, C.FIELD_INVALID, "ancla"),
        ({"ancla": None}, C.FIELD_INVALID, "ancla"),
        ({"ancla": {}}, C.FIELD_MISSING, "ancla.texto"),
        ({"ancla": {"texto": " "}}, C.FIELD_INVALID, "ancla.texto"),
        ({"ancla": {"texto": "a" * 201}}, C.FIELD_INVALID, "ancla.texto"),
        ({"ancla": {"texto": "a\nb"}}, C.FIELD_INVALID, "ancla.texto"),
        ({"ancla": {"texto": "a", "n": 1}}, C.FIELD_UNKNOWN, "ancla.n"),
        ({"ancla": {"texto": "a", "aparicion": 0}}, C.FIELD_INVALID, "ancla.aparicion"),
        ({"ancla": {"texto": "a", "dx": 1.5}}, C.FIELD_INVALID, "ancla.dx"),
        ({"ancla": {"texto": "a"}, "x": 1, "y": 1}, C.FIELD_INVALID, "ancla"),
        ({"ancla": {"texto": "a"}, "campo": "F"}, C.FIELD_INVALID, "ancla"),
    ],
)
def test_what_is_wrong_is_told_by_its_whole_path(
    body: dict[str, Any], code: ErrorCode, field: str
) -> None:
    """From the body that the object stands in."""
    with pytest.raises(ApplianceError) as caught:
        wished_preset(body, "firmantes[1].sello.")

    assert caught.value.code is code
    assert caught.value.extras["field"] == f"firmantes[1].sello.{field}"


def test_unknown_name_is_told_with_those_that_there_are() -> None:
    """Those of firmar, and two more."""
    with pytest.raises(ApplianceError) as caught:
        wished_preset({"color": "RED"})

    assert caught.value.extras["allowed"] == [*STAMP_FIELDS]
    assert {"ancla", "fijo", "page", "campo"} < set(STAMP_FIELDS)
