"""The stamp on an integrator's documents: tried out, and its logo."""

import base64
import json
from typing import Any, Final

from quart import Blueprint, Response

from admin_ui import lists, session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, faults_of, go, page
from admin_ui.session import uploads
from appliance.domain.appearance.stamp import parse_color
from appliance.domain.appearance.text import undrawn
from appliance.domain.errors import NOT_DRAWN, ApplianceError, FieldInvalidError
from appliance.domain.signing_command import (
    LOOK,
    PLACE_LENGTH,
    REASON_LENGTH,
    GivenParameters,
    SignParameters,
)
from appliance.domain.text.unicode_nfc import nfc
from appliance.domain.vocab import CuilDisplay, FontName, FontStyle, StampDesign

blueprint = Blueprint("stamp", __name__, url_prefix="/admin/integrators/<code>/stamp")
_NAMES: Final = (
    "design",
    "fontColor",
    "fontName",
    "fontSize",
    "fontStyle",
    "motivo",
    "lugar",
    "cuil",
    "qr",
    "logo",
)
_USUAL: Final = SignParameters()
_SIZES: Final = range(4, 73)
_LOGO_FIELDS: Final = {"PICTURE_UNUSABLE": "file"}
_CHOICE: Final = {"": None, "yes": True, "no": False}
_NOT_DRAWN: Final = words.N_(
    "The stamp cannot show %(characters)s: use Latin letters, digits and the usual "
    "punctuation."
)


@blueprint.get("")
async def show(code: str) -> Response:
    """`GET …/stamp`; the fields of the signing command in the address."""
    asked = lists.asked("stamp.show", *_NAMES)
    if asked.wrong:
        context = await _context(code, asked)
        return await again("stamp.html", asked.faults, **context)
    if faults := _faults(asked):
        return await again("stamp.html", faults, **await _context(code, asked))
    given = _given(asked)
    return await page("stamp.html", faults=NONE, **await _context(code, asked, given))


async def _context(
    code: str, asked: lists.Asked, given: GivenParameters | None = None
) -> dict[str, Any]:
    """What the page shows; without parameters no sample."""
    context: dict[str, Any] = {
        "view": await core().integrators.get(code),
        "asked": asked,
        "usual": _USUAL,
        "stamps": core().settings.stamp,
        "has_card": core().settings.stamp.design is StampDesign.CARD,
        "in_use": await core().stamp_samples.logo(code),
        "sample": None,
        "png": "",
        "command": "",
    }
    if given is not None:
        sample = await core().stamp_samples.draw(code, given, words.lang())
        png = base64.b64encode(sample.png or b"").decode("ascii")
        context |= {"sample": sample, "png": png, "command": _command(given)}
    return context


def _given(asked: lists.Asked) -> GivenParameters:
    """The command's fields of the address; those of the font make a stamp classic.

    Raises:
        FieldInvalidError: what was typed is none.
        ApplianceError: `QUERY_INVALID` for a word that no list has.
    """
    params = _params(asked)
    is_named = any(getattr(params, name) != getattr(_USUAL, name) for name in LOOK)
    wanted = asked.word("design", StampDesign) or core().settings.stamp.design
    is_card = wanted is StampDesign.CARD and not is_named
    return GivenParameters(params, frozenset() if is_card else LOOK)


def _params(asked: lists.Asked) -> SignParameters:
    """The command's fields of the address.

    Raises:
        FieldInvalidError: what was typed is none.
        ApplianceError: `QUERY_INVALID` for a word that no list has.
    """
    return SignParameters(
        font_color=_color(asked),
        font_name=asked.word("fontName", FontName) or _USUAL.font_name,
        font_size=_size(asked),
        font_style=asked.word("fontStyle", FontStyle) or _USUAL.font_style,
        reason=_text(asked, "motivo", REASON_LENGTH),
        place=_text(asked, "lugar", PLACE_LENGTH),
        cuil=asked.word("cuil", CuilDisplay),
        qr=_CHOICE.get(asked.text("qr")),
        logo=_CHOICE.get(asked.text("logo")),
    )


def _faults(asked: lists.Asked) -> Faults:
    """All that is wrong with what was typed."""
    found: dict[str, str] = {}
    for read in (
        lambda: _color(asked),
        lambda: _size(asked),
        lambda: _text(asked, "motivo", REASON_LENGTH),
        lambda: _text(asked, "lugar", PLACE_LENGTH),
    ):
        try:
            read()
        except FieldInvalidError as exc:
            found |= _fault(exc).fields
    return Faults(found)


def _color(asked: lists.Asked) -> str:
    """The colour of the text.

    Raises:
        FieldInvalidError: `fontColor`.
    """
    color = asked.text("fontColor") or _USUAL.font_color
    if color.startswith("#"):
        color = color.upper()
    parse_color(color)
    return color


def _size(asked: lists.Asked) -> int:
    """The size of the text.

    Raises:
        FieldInvalidError: `fontSize`.
    """
    size = asked.text("fontSize") or str(_USUAL.font_size)
    if size not in {str(one) for one in _SIZES}:
        raise FieldInvalidError("fontSize", "4 to 72")
    return int(size)


def _text(asked: lists.Asked, name: str, most: int) -> str | None:
    """A text that may be absent.

    Raises:
        FieldInvalidError: it is too long, or no stamp can show it.
    """
    typed = asked.text(name)
    composed = nfc(typed, most)
    if composed is None or len(composed) > most:
        raise FieldInvalidError(name, f"up to {most} characters")
    if characters := undrawn(composed):
        params: dict[str, object] = {"characters": characters}
        raise FieldInvalidError(name, sentence=NOT_DRAWN, params=params)
    return " ".join(composed.split()) or None


def _fault(error: FieldInvalidError) -> Faults:
    if error.sentence == NOT_DRAWN:
        told = words.say(_NOT_DRAWN, characters=error.params["characters"])
        return Faults({error.field: told})
    return Faults({error.field: words.error(error)})


def _command(given: GivenParameters) -> str:
    """What of a signing command makes this stamp; empty for the usual one."""
    usual = _USUAL.to_wire()
    said = {
        name: value
        for name, value in given.params.to_wire().items()
        if usual.get(name) != value
    }
    if given.names and core().settings.stamp.design is StampDesign.CARD:
        # One field of the font makes a stamp classic there.
        said = {"fontName": given.params.font_name.value} | said
    return json.dumps(said, ensure_ascii=False, indent=2) if said else ""


@blueprint.post("/logo")
@uploads
async def show_logo(code: str) -> Response:
    """`POST …/stamp/logo`: a PNG or JPEG, from now on."""
    file = session.form().files.get("file")
    if file is None:
        return await _again(code, Faults({"file": words.say("Choose a picture.")}))
    try:
        await core().logos.show(file.content, session.actor(), code)
    except ApplianceError as exc:
        return await _again(code, faults_of(exc, _LOGO_FIELDS))
    return go("stamp.show", code=code, done="logo-set")


async def _again(code: str, faults: Faults) -> Response:
    asked = lists.Asked("stamp.show", {})
    context = await _context(code, asked, GivenParameters())
    return await again("stamp.html", faults, **context)


@blueprint.post("/logo/remove")
async def drop_logo(code: str) -> Response:
    """`POST …/stamp/logo/remove`: the installation's again, or none."""
    await core().logos.drop(session.actor(), code)
    return go("stamp.show", code=code, done="logo-removed")
