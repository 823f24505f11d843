"""Webhooks of an integrator: made, changed, tried out, turned off; what was sent.

A secret is shown once.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from quart import Blueprint, Response

from admin_ui import lists, session, webhook_words, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, faults_of, faults_of_each, go, page
from admin_ui.session import is_partial
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import is_id
from appliance.domain.integrators.integrators import IntegratorView
from appliance.domain.integrators.webhook_log import DeliveryFilter
from appliance.domain.integrators.webhooks import WebhookEndpoint
from appliance.domain.vocab import MessageState, WebhookEvent
from appliance.record import pagination
from appliance.webhooks.endpoints import (
    ENDPOINTS_AT_MOST,
    EndpointChange,
    NewWebhookSecret,
    checked_label,
)

blueprint = Blueprint(
    "webhooks", __name__, url_prefix="/admin/integrators/<code>/webhooks"
)
_PAGE: Final = 50
"""Deliveries of a page."""
_FIELDS: Final = {"url": "url", "label": "label"}
_HOW: Final = {
    "overlap": words.N_("In 24 hours: until then both sign"),
    "now": words.N_("Now: only the new one signs"),
}


@dataclass(frozen=True, slots=True)
class _EndpointForm:
    """What stands in the form of an endpoint."""

    url: str = ""
    label: str = ""
    events: Collection[str] = ()


def _typed() -> _EndpointForm:
    sent = session.form()
    chosen = [event for event in WebhookEvent if sent.text(f"event-{event}")]
    return _EndpointForm(sent.text("url"), sent.text("label"), chosen)


async def _found(code: str, webhook: str) -> tuple[IntegratorView, WebhookEndpoint]:
    """An integrator and one of its webhooks.

    Raises:
        ApplianceError: `INTEGRATOR_NOT_FOUND`, `WEBHOOK_NOT_FOUND`.
    """
    view = await core().integrators.get(code)
    return view, await core().webhooks.get(view.id, webhook)


async def _listed(view: IntegratorView) -> dict[str, Any]:
    return {
        "view": view,
        "endpoints": await core().webhooks.list(view.id),
        "pending": await core().webhooks.pending(view.id),
        "most": ENDPOINTS_AT_MOST,
        "said": webhook_words,
    }


@blueprint.get("")
async def show(code: str) -> Response:
    """`GET …/webhooks`."""
    listed = await _listed(await core().integrators.get(code))
    return await page("webhooks.html", faults=NONE, typed=_EndpointForm(), **listed)


@blueprint.post("")
async def create(code: str) -> Response:
    """`POST …/webhooks`: make one and show its secret, this once."""
    view = await core().integrators.get(code)
    typed = _typed()
    try:
        # Without a label it has its host's name.
        made = _faults(typed) or await _create(view, typed)
    except ApplianceError as exc:
        made = faults_of(exc, _FIELDS)
    if isinstance(made, Faults):
        listed = await _listed(view)
        return await again("webhooks.html", made, typed=typed, **listed)
    return await _show_once(view, made, is_new=True)


def _faults(typed: _EndpointForm, *, is_labelled: bool = False) -> Faults:
    """All that is wrong at once."""
    needs_label = bool(typed.label) or is_labelled
    label = [lambda: checked_label(typed.label)] if needs_label else []
    return faults_of_each(
        lambda: core().webhooks.checked_url(typed.url), *label, names=_FIELDS
    )


async def _create(
    view: IntegratorView, typed: _EndpointForm
) -> NewWebhookSecret | Faults:
    """Make one; refuse a second one of the same address and label.

    A page that is sent again by the browser would otherwise make another one.
    """
    for other in await core().webhooks.list(view.id):
        label = typed.label or other.label
        if (other.url, other.label.casefold()) == (typed.url, label.casefold()):
            told = words.say("A webhook with this address and label is there already.")
            return Faults({"label": told})
    return await core().webhooks.create(
        session.actor(), view.id, typed.url, typed.label, tuple(typed.events)
    )


async def _show_once(
    view: IntegratorView, made: NewWebhookSecret, *, is_new: bool
) -> Response:
    return await page("webhook_secret.html", view=view, made=made, is_new=is_new)


@blueprint.get("/<webhook>/change")
async def ask_change(code: str, webhook: str) -> Response:
    """`GET …/webhooks/{id}/change`."""
    view, endpoint = await _found(code, webhook)
    typed = _EndpointForm(endpoint.url, endpoint.label, endpoint.events)
    return await _change_form(view, endpoint, typed, NONE)


async def _change_form(
    view: IntegratorView, endpoint: WebhookEndpoint, typed: _EndpointForm, told: Faults
) -> Response:
    context: dict[str, Any] = {
        "view": view,
        "endpoint": endpoint,
        "typed": typed,
        "said": webhook_words,
    }
    if told:
        return await again("webhook_change.html", told, **context)
    return await page("webhook_change.html", faults=NONE, **context)


@blueprint.post("/<webhook>/change")
async def change(code: str, webhook: str) -> Response:
    """`POST …/webhooks/{id}/change`: its address, label and events."""
    view, endpoint = await _found(code, webhook)
    typed = _typed()
    if faults := _faults(typed, is_labelled=True):
        return await _change_form(view, endpoint, typed, faults)
    wanted = EndpointChange(typed.url, typed.label, tuple(typed.events))
    try:
        await core().webhooks.change(session.actor(), view.id, webhook, wanted)
    except ApplianceError as exc:
        return await _change_form(view, endpoint, typed, faults_of(exc, _FIELDS))
    return go("webhooks.one", code=code, webhook=webhook, done="saved")


@blueprint.get("/<webhook>/rotate")
async def ask_rotate(code: str, webhook: str) -> Response:
    """`GET …/webhooks/{id}/rotate`: until when the present secret signs."""
    return await _rotate_form(*await _found(code, webhook), NONE)


async def _rotate_form(
    view: IntegratorView, endpoint: WebhookEndpoint, faults: Faults
) -> Response:
    context: dict[str, Any] = {"view": view, "endpoint": endpoint, "choices": _HOW}
    if faults:
        return await again("webhook_rotate.html", faults, **context)
    return await page("webhook_rotate.html", faults=NONE, **context)


@blueprint.post("/<webhook>/rotate")
async def rotate(code: str, webhook: str) -> Response:
    """`POST …/webhooks/{id}/rotate`: another secret, shown this once."""
    view, endpoint = await _found(code, webhook)
    how = session.form().text("how")
    if how not in _HOW:
        told = words.say("Choose an option from the list.")
        return await _rotate_form(view, endpoint, Faults({"how": told}))
    made = await core().webhooks.rotate(
        session.actor(), view.id, webhook, at_once=how == "now"
    )
    return await _show_once(view, made, is_new=False)


@blueprint.post("/<webhook>/test")
async def test(code: str, webhook: str) -> Response:
    """`POST …/webhooks/{id}/test`: have a trial sent, and look at it."""
    view, _ = await _found(code, webhook)
    sent = await core().webhooks.test(session.actor(), view.id, webhook)
    return go(
        "webhooks.delivery",
        code=code,
        webhook=webhook,
        message=sent.id,
        done="webhook-tested",
    )


@blueprint.get("/<webhook>/disable")
async def ask_disable(code: str, webhook: str) -> Response:
    """`GET …/webhooks/{id}/disable`: what it means."""
    return await _ask("webhook_disable.html", code, webhook)


async def _is_there(view: IntegratorView, webhook: str) -> bool:
    """Whether an integrator has a webhook still."""
    return any(each.id == webhook for each in await core().webhooks.list(view.id))


async def _ask(template: str, code: str, webhook: str) -> Response:
    """A page that says what a step ends, and how much waits to be sent."""
    view, endpoint = await _found(code, webhook)
    waiting = (await core().webhooks.pending(view.id)).get(webhook, 0)
    return await page(template, view=view, endpoint=endpoint, waiting=waiting)


@blueprint.post("/<webhook>/disable")
async def disable(code: str, webhook: str) -> Response:
    """`POST …/webhooks/{id}/disable`."""
    await _turn(code, webhook, is_on=False)
    return go("webhooks.one", code=code, webhook=webhook, done="webhook-disabled")


@blueprint.post("/<webhook>/enable")
async def enable(code: str, webhook: str) -> Response:
    """`POST …/webhooks/{id}/enable`."""
    await _turn(code, webhook, is_on=True)
    return go("webhooks.one", code=code, webhook=webhook, done="webhook-enabled")


async def _turn(code: str, webhook: str, *, is_on: bool) -> None:
    view, _ = await _found(code, webhook)
    await core().webhooks.change(
        session.actor(), view.id, webhook, EndpointChange(is_on=is_on)
    )


@blueprint.get("/<webhook>/remove")
async def ask_remove(code: str, webhook: str) -> Response:
    """`GET …/webhooks/{id}/remove`: what ends with it."""
    view = await core().integrators.get(code)
    if is_id(webhook) and not await _is_there(view, webhook):
        return go("webhooks.show", code=code, done="webhook-gone")
    return await _ask("webhook_remove.html", code, webhook)


@blueprint.post("/<webhook>/remove")
async def remove(code: str, webhook: str) -> Response:
    """`POST …/webhooks/{id}/remove`."""
    view = await core().integrators.get(code)
    # Sent twice by the browser it is gone already, as was wanted.
    if not await _is_there(view, webhook):
        return go("webhooks.show", code=code, done="webhook-gone")
    await core().webhooks.remove(session.actor(), view.id, webhook)
    return go("webhooks.show", code=code, done="webhook-removed")


@blueprint.get("/<webhook>")
async def one(code: str, webhook: str) -> Response:
    """`GET …/webhooks/{id}`: how it stands, and what was sent; `?state=`."""
    view, endpoint = await _found(code, webhook)
    asked = lists.asked("webhooks.one", "state")
    wanted = DeliveryFilter(
        state=asked.word("state", MessageState),
        before=pagination.read_instant(lists.cursor()),
        limit=_PAGE,
    )
    rows = await core().deliveries.matching(
        view.id, webhook, replace(wanted, limit=_PAGE + 1)
    )
    last = rows[_PAGE - 1].message if len(rows) > _PAGE else None
    named = [("state", words.say("State"), _say_state)]
    return await lists.show(
        "webhook.html",
        asked,
        named,
        pagination.instant(last.created, last.id) if last else None,
        view=view,
        endpoint=endpoint,
        rows=rows[:_PAGE],
        said=webhook_words,
        states=MessageState,
    )


def _say_state(value: str) -> str:
    return words.say(webhook_words.MESSAGE_STATES[MessageState(value)][0])


@blueprint.get("/<webhook>/deliveries/<message>")
async def delivery(code: str, webhook: str, message: str) -> Response:
    """`GET …/deliveries/{id}`: what was sent, and each attempt."""
    view, endpoint = await _found(code, webhook)
    return await page(
        "parts/delivery.html" if is_partial() else "delivery.html",
        view=view,
        endpoint=endpoint,
        logged=await core().deliveries.get(view.id, webhook, message),
        said=webhook_words,
        now=core().clock.now(),
    )


@blueprint.post("/<webhook>/deliveries/<message>/replay")
async def replay(code: str, webhook: str, message: str) -> Response:
    """`POST …/deliveries/{id}/replay`: send it again, or now."""
    view, _ = await _found(code, webhook)
    await core().deliveries.replay(session.actor(), view.id, webhook, message)
    return go(
        "webhooks.delivery",
        code=code,
        webhook=webhook,
        message=message,
        done="delivery-again",
    )


@blueprint.post("/<webhook>/replay")
async def replay_given_up(code: str, webhook: str) -> Response:
    """`POST …/webhooks/{id}/replay`: all that were given up, up to a limit."""
    view, _ = await _found(code, webhook)
    await core().deliveries.replay_all(
        session.actor(),
        view.id,
        webhook,
        DeliveryFilter(state=MessageState.GIVEN_UP),
    )
    return go("webhooks.one", code=code, webhook=webhook, done="deliveries-again")
