"""Webhooks of an integrator's backend: set up, tried out, and what was sent.

Handlers parse, call one use case and render; nothing is decided here.
"""

from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from appliance.api.core import core
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import GONE, backend_endpoint, in_json, page_of
from appliance.api.declaring.operation import Parameter, Told
from appliance.api.integration import edits
from appliance.api.integration.caller import caller
from appliance.api.wire import backend_answers, webhooks
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ErrorCode, FieldInvalidError
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.vocab import WebhookEvent
from appliance.web import body, request_log
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("integration_webhooks", __name__)

PATH: Final = "/api/integration/webhooks"
_ONE: Final = f"{PATH}/<webhook>"
_SENT: Final = f"{_ONE}/deliveries"
_ID_CHARS: Final = 36
_READ: Final = ApiKeyScope.WEBHOOKS_READ
_WRITE: Final = ApiKeyScope.WEBHOOKS_WRITE


@backend_endpoint(
    "createWebhook",
    "POST /webhooks",
    "Be told of what happens",
    ApiKeyScope.WEBHOOKS_WRITE,
    Told(HTTPStatus.CREATED, backend_answers.WebhookWithSecret, headers=("Location",)),
    {ErrorCode.WEBHOOKS_TOO_MANY},
    body=in_json(webhooks.NewEndpoint),
)
@blueprint.post(PATH)
@public
async def create() -> Response:
    """`POST …/webhooks`: make one; its secret is shown this once."""
    asking = await caller(_WRITE)
    given = webhooks.NewEndpoint.read(await body.read_object())
    try:
        made = await core().webhooks.create(
            asking.actor,
            asking.integrator.id,
            given.url,
            given.label or "",
            given.events,
        )
    except FieldInvalidError as exc:
        webhooks.renamed(exc)
    request_log.note(webhook=made.endpoint.id)
    response = json_response(webhooks.with_secret(made), HTTPStatus.CREATED)
    response.headers["Location"] = _address(f"/{made.endpoint.id}")
    return response


@backend_endpoint(
    "listWebhooks",
    "GET /webhooks",
    "The integrator's webhooks",
    ApiKeyScope.WEBHOOKS_READ,
    Told(HTTPStatus.OK, backend_answers.Webhook, is_list=True),
)
@blueprint.get(PATH)
@public
async def list_webhooks() -> Response:
    """`GET …/webhooks`: a bare JSON array, oldest first."""
    asking = await caller(_READ)
    found = await core().webhooks.list(asking.integrator.id)
    return json_response([webhooks.endpoint(each) for each in found])


@backend_endpoint(
    "getWebhook",
    "GET /webhooks/{webhookId}",
    "One webhook",
    ApiKeyScope.WEBHOOKS_READ,
    Told(HTTPStatus.OK, backend_answers.Webhook, headers=("ETag",)),
    {ErrorCode.WEBHOOK_NOT_FOUND},
)
@blueprint.get(_ONE)
@public
async def show(webhook: str) -> Response:
    """`GET …/webhooks/{webhookId}`."""
    asking = await caller(_READ)
    tag = await edits.tag(asking, Subject.WEBHOOK, _noted(webhook))
    found = await core().webhooks.get(asking.integrator.id, webhook)
    return edits.tagged(json_response(webhooks.endpoint(found)), tag)


@backend_endpoint(
    "changeWebhook",
    "PATCH /webhooks/{webhookId}",
    "Change a webhook, or turn it off or on",
    ApiKeyScope.WEBHOOKS_WRITE,
    Told(HTTPStatus.OK, backend_answers.Webhook),
    {ErrorCode.WEBHOOK_NOT_FOUND, *codes.CHANGED},
    query=(parameters.IF_MATCH,),
    body=in_json(webhooks.WebhookChange),
)
@blueprint.patch(_ONE)
@public
async def change(webhook: str) -> Response:
    """`PATCH …/webhooks/{webhookId}`: what may change, and whether it is on."""
    asking = await caller(_WRITE)
    sent = await body.read_object()
    wanted = webhooks.change(sent)
    try:
        async with edits.unchanged(asking, Subject.WEBHOOK, _noted(webhook), sent):
            changed = await core().webhooks.change(
                asking.actor, asking.integrator.id, webhook, wanted
            )
    except FieldInvalidError as exc:
        webhooks.renamed(exc)
    return json_response(webhooks.endpoint(changed))


@backend_endpoint(
    "deleteWebhook",
    "DELETE /webhooks/{webhookId}",
    "Have a webhook told nothing ever again",
    ApiKeyScope.WEBHOOKS_WRITE,
    GONE,
    {ErrorCode.WEBHOOK_NOT_FOUND, *codes.CHANGED},
    query=(parameters.IF_MATCH,),
)
@blueprint.delete(_ONE)
@public
async def remove(webhook: str) -> Response:
    """`DELETE …/webhooks/{webhookId}`: nothing is sent to it ever again."""
    asking = await caller(_WRITE)
    async with edits.unchanged(asking, Subject.WEBHOOK, _noted(webhook)):
        await core().webhooks.remove(asking.actor, asking.integrator.id, webhook)
    return Response(b"", status=HTTPStatus.NO_CONTENT)


@backend_endpoint(
    "rotateWebhookSecret",
    "POST /webhooks/{webhookId}/rotate",
    "Give a webhook another secret",
    ApiKeyScope.WEBHOOKS_WRITE,
    Told(HTTPStatus.OK, backend_answers.WebhookWithSecret),
    {ErrorCode.WEBHOOK_NOT_FOUND},
    body=in_json(webhooks.Rotation, is_required=False),
)
@blueprint.post(f"{_ONE}/rotate")
@public
async def rotate(webhook: str) -> Response:
    """`POST …/webhooks/{webhookId}/rotate`: another secret, shown this once."""
    asking = await caller(_WRITE)
    given = webhooks.Rotation.read(await _body_if_any())
    made = await core().webhooks.rotate(
        asking.actor, asking.integrator.id, _noted(webhook), at_once=given.at_once
    )
    return json_response(webhooks.with_secret(made))


@backend_endpoint(
    "testWebhook",
    "POST /webhooks/{webhookId}/test",
    "Have a test sent to a webhook",
    ApiKeyScope.WEBHOOKS_WRITE,
    Told(HTTPStatus.ACCEPTED, backend_answers.DeliveryDetail),
    {ErrorCode.WEBHOOK_NOT_FOUND, ErrorCode.WEBHOOK_DISABLED},
    body=in_json(webhooks.Nothing, is_required=False),
)
@blueprint.post(f"{_ONE}/test")
@public
async def test(webhook: str) -> Response:
    """`POST …/webhooks/{webhookId}/test`: have a trial sent."""
    asking = await caller(_WRITE)
    webhooks.Nothing.read(await _body_if_any())
    sent = await core().webhooks.test(
        asking.actor, asking.integrator.id, _noted(webhook)
    )
    logged = await core().deliveries.get(asking.integrator.id, webhook, sent.id)
    return json_response(webhooks.delivery_detail(logged), HTTPStatus.ACCEPTED)


@backend_endpoint(
    "listDeliveries",
    "GET /webhooks/{webhookId}/deliveries",
    "What was sent to a webhook",
    ApiKeyScope.WEBHOOKS_READ,
    page_of(backend_answers.Delivery),
    {ErrorCode.WEBHOOK_NOT_FOUND},
    query=(
        parameters.one_of("estado", webhooks.STATES.values()),
        parameters.one_of("tipo", WebhookEvent),
        Parameter("procesoId", parameters.UUID),
        parameters.SINCE,
        parameters.UNTIL,
        *parameters.PAGE,
    ),
    is_strict=True,
)
@blueprint.get(_SENT)
@public
async def list_deliveries(webhook: str) -> Response:
    """`GET …/webhooks/{webhookId}/deliveries`: a bare JSON array, newest first."""
    asking = await caller(_READ)
    asked = webhooks.asked()
    # One more than a page shows whether there is a next one.
    found = await core().deliveries.matching(
        asking.integrator.id, _noted(webhook), replace(asked, limit=asked.limit + 1)
    )
    page = found[: asked.limit]
    response = json_response([webhooks.delivery(each) for each in page])
    if len(page) < len(found):
        following = {
            **dict(request.args.items()),
            "limite": str(asked.limit),
            "cursor": webhooks.cursor_after(page[-1]),
        }
        url = _address(f"/{webhook}/deliveries?{urlencode(following)}")
        response.headers["Link"] = f'<{url}>; rel="next"'
    return response


@backend_endpoint(
    "getDelivery",
    "GET /webhooks/{webhookId}/deliveries/{entregaId}",
    "One delivery, with each attempt",
    ApiKeyScope.WEBHOOKS_READ,
    Told(HTTPStatus.OK, backend_answers.DeliveryDetail),
    {ErrorCode.DELIVERY_NOT_FOUND, ErrorCode.WEBHOOK_NOT_FOUND},
)
@blueprint.get(f"{_SENT}/<delivery>")
@public
async def show_delivery(webhook: str, delivery: str) -> Response:
    """`GET …/webhooks/{webhookId}/deliveries/{entregaId}`: with each try."""
    asking = await caller(_READ)
    found = await core().deliveries.get(asking.integrator.id, _noted(webhook), delivery)
    return json_response(webhooks.delivery_detail(found))


@backend_endpoint(
    "replayDelivery",
    "POST /webhooks/{webhookId}/deliveries/{entregaId}/replay",
    "Send a delivery again",
    ApiKeyScope.WEBHOOKS_WRITE,
    Told(HTTPStatus.ACCEPTED, backend_answers.DeliveryDetail),
    {
        ErrorCode.DELIVERY_NOT_FOUND,
        ErrorCode.WEBHOOK_NOT_FOUND,
        ErrorCode.WEBHOOK_DISABLED,
    },
    body=in_json(webhooks.Nothing, is_required=False),
)
@blueprint.post(f"{_SENT}/<delivery>/replay")
@public
async def replay(webhook: str, delivery: str) -> Response:
    """`POST …/deliveries/{entregaId}/replay`: send it again, or now."""
    asking = await caller(_WRITE)
    webhooks.Nothing.read(await _body_if_any())
    again = await core().deliveries.replay(
        asking.actor, asking.integrator.id, _noted(webhook), _noted_delivery(delivery)
    )
    return json_response(webhooks.delivery_detail(again), HTTPStatus.ACCEPTED)


@backend_endpoint(
    "replayDeliveries",
    "POST /webhooks/{webhookId}/replay",
    "Send again what was given up, or all of a time",
    ApiKeyScope.WEBHOOKS_WRITE,
    Told(HTTPStatus.ACCEPTED, backend_answers.ReplayStarted),
    {ErrorCode.WEBHOOK_NOT_FOUND, ErrorCode.WEBHOOK_DISABLED},
    body=in_json(webhooks.ReplayWanted),
)
@blueprint.post(f"{_ONE}/replay")
@public
async def replay_all(webhook: str) -> Response:
    """`POST …/webhooks/{webhookId}/replay`: of a time, or all given up."""
    asking = await caller(_WRITE)
    wanted = webhooks.replayed_ones(await body.read_object())
    done = await core().deliveries.replay_all(
        asking.actor, asking.integrator.id, _noted(webhook), wanted
    )
    return json_response(webhooks.replayed(done), HTTPStatus.ACCEPTED)


def _noted(webhook: str) -> str:
    """An id of the address, which is none if it is longer."""
    request_log.note(webhook=webhook[:_ID_CHARS])
    return webhook


def _noted_delivery(delivery: str) -> str:
    request_log.note(entrega=delivery[:_ID_CHARS])
    return delivery


async def _body_if_any() -> dict[str, object]:
    """The object of the body; an empty one where none came."""
    has_body = request.content_length or "Content-Type" in request.headers
    return await body.read_object() if has_body else {}


def _address(rest: str) -> str:
    """Where webhooks are in public, and what follows that."""
    return f"{core().settings.web.web_url}{PATH}{rest}"
