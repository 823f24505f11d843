"""API keys of an integrator: made, rotated, revoked; shown once."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any, Final

from quart import Blueprint, Response, request

from admin_ui import session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, faults_of, faults_of_each, go, page
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import FIRST_SCOPES, ApiKeyScope
from appliance.domain.integrators.integrators import KeyView, NewKey
from appliance.domain.integrators.key_networks import (
    NETWORKS_AT_MOST,
    read_networks,
)
from appliance.integrators.api_keys import check_scopes, checked_label

blueprint = Blueprint("keys", __name__, url_prefix="/admin/integrators/<code>/keys")
LIVES: Final = {
    "365": words.N_("1 year"),
    "90": words.N_("90 days"),
    "30": words.N_("30 days"),
    "never": words.N_("It does not expire"),
}
OVERLAPS: Final = {
    "86400": words.N_("24 hours"),
    "3600": words.N_("1 hour"),
    "604800": words.N_("7 days"),
    "0": words.N_("None: the old one stops working now"),
}
_ORDER: Final = ("active", "ending", "ended", "expired", "revoked")
"""Keys that work come first."""
_FIELDS: Final = {
    "label": "label",
    "expires": "life",
    "scopes": "scopes",
    "networks": "networks",
    "overlap_s": "overlap",
}
SUBJECTS: Final = [
    (subject, [*scopes])
    for subject, scopes in groupby(ApiKeyScope, lambda scope: words.SCOPES[scope][0])
]
"""Scopes by their subject, as the form has them."""


@dataclass(frozen=True, slots=True)
class _NewKeyForm:
    """What stands in the form of a new key."""

    label: str = ""
    life: str = "365"
    scopes: Collection[ApiKeyScope] = FIRST_SCOPES
    networks: str = ""
    """One in each line; spaces and commas part them too."""


def state_of(key: KeyView, now: datetime) -> str:
    """How a key stands, as `words.KEY_STATES` has it.

    Args:
        key: the key.
        now: the present time.
    """
    if key.revoked is not None:
        return "revoked"
    if key.expires is not None and now >= key.expires:
        return "expired"
    if key.ends is None:
        return "active"
    return "ending" if now < key.ends else "ended"


async def _listed(code: str) -> dict[str, Any]:
    """What the list of keys shows."""
    now = core().clock.now()
    keys = await core().integrators.keys(code)
    return {
        "view": await core().integrators.get(code),
        "keys": sorted(
            ((key, state_of(key, now)) for key in keys),
            key=lambda row: _ORDER.index(row[1]),
        ),
        "lives": LIVES,
        "subjects": SUBJECTS,
    }


@blueprint.get("")
async def show(code: str) -> Response:
    """`GET …/keys`."""
    return await page(
        "keys.html", faults=NONE, typed=_NewKeyForm(), **await _listed(code)
    )


@blueprint.post("")
async def create(code: str) -> Response:
    """`POST …/keys`: make one and show it, this once."""
    sent = session.form()
    typed = _NewKeyForm(
        sent.text("label"),
        sent.text("life"),
        [scope for scope in ApiKeyScope if sent.text(f"scope-{scope}")],
        sent.text("networks"),
    )
    try:
        made = await _create(code, typed)
    except ApplianceError as exc:
        made = faults_of(exc, _FIELDS)
    if isinstance(made, Faults):
        return await again("keys.html", made, typed=typed, **await _listed(code))
    return await _show_once(code, made, None)


async def _create(code: str, typed: _NewKeyForm) -> NewKey | Faults:
    """Make a key; refuse a second one of the same label.

    A page that is sent again by the browser would otherwise make another key.
    """
    wrong = dict(
        faults_of_each(
            lambda: checked_label(typed.label),
            lambda: check_scopes(typed.scopes),
            *_checks(_networks(typed)),
            names=_FIELDS,
        ).fields
    )
    if typed.life not in LIVES:
        wrong["life"] = words.say("Choose an option from the list.")
    if wrong:
        return Faults(wrong)
    now = core().clock.now()
    for key in await core().integrators.keys(code):
        if key.label.casefold() == typed.label.casefold() and key.usable(now):
            return Faults({"label": words.say("A key in use already has this label.")})
    never = typed.life == "never"
    return await core().integrators.create_key(
        session.actor(),
        code,
        typed.label,
        None if never else now + timedelta(days=int(typed.life)),
        scopes=typed.scopes,
        networks=_networks(typed),
    )


def _checks(networks: list[str]) -> list[Callable[[], object]]:
    """Of each network by itself, so that all that are wrong are named at once."""
    if len(networks) > NETWORKS_AT_MOST:
        return [partial(read_networks, networks)]
    return [partial(read_networks, [each]) for each in networks]


def _networks(typed: _NewKeyForm) -> list[str]:
    return typed.networks.replace(",", " ").split()


async def _show_once(code: str, made: NewKey, old: KeyView | None) -> Response:
    return await page(
        "key_created.html",
        view=await core().integrators.get(code),
        made=made,
        old=old,
        web=core().settings.web,
    )


async def _key(code: str, key_id: str) -> KeyView:
    """A key of an integrator.

    Raises:
        ApplianceError: `API_KEY_NOT_FOUND`, also for another's.
    """
    for key in await core().integrators.keys(code):
        if key.id == key_id:
            return key
    raise ApplianceError(ErrorCode.API_KEY_NOT_FOUND)


@blueprint.get("/<key_id>/rotate")
async def ask_rotate(code: str, key_id: str) -> Response:
    """`GET …/keys/{id}/rotate`: how long the old one goes on."""
    key = await _key(code, key_id)
    # To a form that was sent twice this page says how to find the secret.
    if key.ends is not None and request.method == "GET":
        return go("keys.show", code=code, done="key-rotated-before")
    return await _rotate_form(code, key, NONE)


async def _rotate_form(code: str, key: KeyView, faults: Faults) -> Response:
    view = await core().integrators.get(code)
    context: dict[str, Any] = {"view": view, "key": key, "overlaps": OVERLAPS}
    if faults:
        return await again("key_rotate.html", faults, **context)
    return await page("key_rotate.html", faults=NONE, **context)


@blueprint.post("/<key_id>/rotate")
async def rotate(code: str, key_id: str) -> Response:
    """`POST …/keys/{id}/rotate`: make the successor and show it, this once."""
    key = await _key(code, key_id)
    overlap = session.form().text("overlap")
    if overlap not in OVERLAPS:
        told = words.say("Choose an option from the list.")
        return await _rotate_form(code, key, Faults({"overlap": told}))
    if key.ends is not None:
        told = words.say("This key has a successor already.")
        return await _rotate_form(code, key, Faults(general=told))
    try:
        made = await core().integrators.rotate_key(
            session.actor(), key_id, int(overlap)
        )
    except ApplianceError as exc:
        return await _rotate_form(code, key, faults_of(exc, _FIELDS))
    return await _show_once(code, made, await _key(code, key_id))


@blueprint.get("/<key_id>/revoke")
async def ask_revoke(code: str, key_id: str) -> Response:
    """`GET …/keys/{id}/revoke`: what ends with it."""
    return await page(
        "key_revoke.html",
        view=await core().integrators.get(code),
        key=await _key(code, key_id),
        sessions=await core().views.key_sessions(key_id),
    )


@blueprint.post("/<key_id>/revoke")
async def revoke(code: str, key_id: str) -> Response:
    """`POST …/keys/{id}/revoke`."""
    key = await _key(code, key_id)
    if key.revoked is None:
        await core().integrators.revoke_key(session.actor(), key_id)
    return go("keys.show", code=code, done="key-revoked")
