"""The object `sello` of who asks for a signature: the look and place it is to have.

Its fields are those of firmar and what only the document can tell: the last page, and
a text that the stamp goes below.

Source: docs/api.md, "The look and place of a signature".
"""

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from appliance.api.wire import combinations
from appliance.api.wire.fields import (
    Body,
    an_object,
    boolean,
    text,
    whole,
    whole_or_word,
)
from appliance.api.wire.requests import PARAMETER_FIELDS, Parameters
from appliance.domain.errors import NOT_WITH, Faults, FieldInvalidError
from appliance.domain.ids import MAX_REQUEST_ID
from appliance.domain.requests.preset import Anchor, WishedPreset

ANCHOR_LENGTH: Final = 200
"""Most characters of the text of an anchor."""
OCCURRENCES_MOST: Final = 1000
FARTHEST_PT: Final = 20_000
"""Most points between an anchor and its stamp, along either edge."""
LAST: Final = "ultima"
STAMP_FIELDS: Final = (*PARAMETER_FIELDS, "ancla", "fijo")
_NOT_WITH_ANCHOR: Final = ("x", "y", "campo")

_Distance = Annotated[int, whole(-FARTHEST_PT, FARTHEST_PT)]

_Page = Annotated[int | str | None, whole_or_word(1, MAX_REQUEST_ID, LAST)]


class TextAnchor(Body):
    """A text that a stamp goes below."""

    texto: Annotated[str, text(ANCHOR_LENGTH)]
    aparicion: Annotated[int, whole(1, OCCURRENCES_MOST)] = 1
    dx: _Distance = 0
    dy: _Distance = 0


_AnchorFields = Annotated[dict[str, object] | None, an_object(TextAnchor)]


class StampWish(Parameters):
    """The look and place that a signature is to have."""

    KNOWN = STAMP_FIELDS
    KEYWORDS: ClassVar[Mapping[str, Any]] = {
        **Parameters.KEYWORDS,
        **combinations.not_beside("ancla", *_NOT_WITH_ANCHOR),
    }
    # Here alone it may be a word.
    page: _Page = None  # type: ignore[assignment]
    anchor: _AnchorFields = Field(None, alias="ancla")
    fixed: Annotated[bool | None, boolean()] = Field(None, alias="fijo")


def wished_preset(body: Mapping[str, object], under: str = "sello.") -> WishedPreset:
    """Read the look and place that a signature is to have.

    Args:
        body: the JSON object.
        under: what stands before its names in an answer.

    Raises:
        FieldInvalidError: a value of another type or out of its range; an anchor
            beside a place.
        ApplianceError: `FIELD_UNKNOWN`.
        SeveralFaultsError: of these.
    """
    faults, anchor = Faults(), None
    wish = StampWish.read_all(body, faults, under=under)
    if isinstance(given_anchor := body.get("ancla"), dict):
        with faults.collected():
            anchor = _anchor(given_anchor, f"{under}ancla.")
        with faults.collected():
            _demand_alone(body, under)
    read = faults.unless_any(wish)
    is_last = read.page == LAST
    given = read.given("page") if is_last else read.given()
    return WishedPreset(given, bool(read.fixed), is_last, anchor)


def _demand_alone(body: Mapping[str, object], under: str) -> None:
    """Refuse a place beside an anchor.

    Raises:
        FieldInvalidError: there is one.
    """
    for name in _NOT_WITH_ANCHOR:
        if body.get(name) is not None:
            other: dict[str, object] = {"other": f"{under}{name}"}
            raise FieldInvalidError(f"{under}ancla", sentence=NOT_WITH, params=other)


def _anchor(body: Mapping[str, object], under: str) -> Anchor:
    faults = Faults()
    read = faults.unless_any(TextAnchor.read_all(body, faults, under=under))
    wanted = " ".join(unicodedata.normalize("NFC", read.texto).split())
    return Anchor(wanted, read.aparicion, read.dx, read.dy)
