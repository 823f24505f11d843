"""The trust store: roots of outside CAs, beside the installation's own."""

from dataclasses import dataclass
from typing import Final

from quart import Blueprint, Response

from admin_ui import session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, faults_of, faults_of_each, go, page
from admin_ui.session import uploads
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import is_id
from appliance.domain.pki.trust_store import AnchorPurpose, AnchorView
from appliance.pki.validation.trust_anchors import read_fingerprint

blueprint = Blueprint("trust", __name__, url_prefix="/admin/trust")
_FIELDS: Final = {
    "fingerprint": "fingerprint",
    "ANCHOR_FINGERPRINT": "fingerprint",
    "cadena": "file",
    "ALREADY_EXISTS": "file",
}
_PURPOSES: Final = {purpose.value: purpose for purpose in AnchorPurpose}


@dataclass(frozen=True, slots=True)
class _RootForm:
    """Text fields of the form *Add a root*."""

    fingerprint: str = ""
    purpose: str = AnchorPurpose.SIGNERS.value


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/trust`."""
    anchors = await core().trust.anchors()
    return await page("trust.html", anchors=anchors, now=core().clock.now())


@blueprint.get("/new")
async def new() -> Response:
    """`GET /admin/trust/new`."""
    return await page("trust_new.html", faults=NONE, typed=_RootForm())


@blueprint.post("")
@uploads
async def add() -> Response:
    """`POST /admin/trust`: a root and its fingerprint, as its CA publishes it."""
    typed = session.typed(_RootForm)
    file = session.form().files.get("file")
    missing: dict[str, str] = {}
    if file is None:
        missing["file"] = words.say("Choose a file with a certificate.")
    missing |= faults_of_each(
        lambda: read_fingerprint(typed.fingerprint), names=_FIELDS
    ).fields
    if typed.purpose not in _PURPOSES:
        missing["purpose"] = words.say("Choose an option from the list.")
    if missing or file is None:
        return await again("trust_new.html", Faults(missing), typed=typed)
    purpose = _PURPOSES[typed.purpose]
    try:
        await core().trust.add(
            session.actor(), file.content, purpose, typed.fingerprint
        )
    except ApplianceError as exc:
        return await again("trust_new.html", _faults(exc), typed=typed)
    return go("trust.show", done="root-added")


def _faults(error: ApplianceError) -> Faults:
    """Say at its field what is wrong; a code of its own goes before the field.

    Raises:
        ApplianceError: the error itself, when the form is not at fault.
    """
    if error.code is ErrorCode.ANCHOR_FINGERPRINT:
        return Faults({"fingerprint": words.error(error)})
    if error.code is ErrorCode.ALREADY_EXISTS:
        told = words.say("This root is in the trust store already, for that purpose.")
        return Faults({"file": told})
    return faults_of(error, _FIELDS)


async def _anchor(anchor_id: str) -> AnchorView | None:
    """A root that can be removed; None: it was.

    Raises:
        ApplianceError: `ANCHOR_NOT_FOUND`: no root has such an id.
    """
    if not is_id(anchor_id):
        raise ApplianceError(ErrorCode.ANCHOR_NOT_FOUND)
    for anchor in await core().trust.anchors():
        if anchor.id == anchor_id:
            return anchor
    return None


@blueprint.get("/<anchor_id>/remove")
async def ask_remove(anchor_id: str) -> Response:
    """`GET /admin/trust/{id}/remove`: what it means."""
    anchor = await _anchor(anchor_id)
    if anchor is None:
        return go("trust.show", done="root-gone")
    return await page("trust_remove.html", anchor=anchor)


@blueprint.post("/<anchor_id>/remove")
async def remove(anchor_id: str) -> Response:
    """`POST /admin/trust/{id}/remove`."""
    if await _anchor(anchor_id) is None:
        return go("trust.show", done="root-gone")
    await core().trust.remove(session.actor(), anchor_id)
    return go("trust.show", done="root-removed")
