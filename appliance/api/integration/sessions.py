"""Sessions of the iframe that a backend opens for one request."""

from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response

from appliance.api.core import core
from appliance.api.integration import rates
from appliance.api.integration.caller import caller
from appliance.api.wire import processes, representations
from appliance.api.wire.backend_answers import SessionOpened
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.vocab import Environment
from appliance.web import body, request_log
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("integration_sessions", __name__)

PATH: Final = "/api/integration/sessions"


@blueprint.post(PATH)
@public
async def open_session() -> Response:
    """`POST /api/integration/sessions`: a token for one request, or for any."""
    asking = await caller(ApiKeyScope.SESSIONS_WRITE)
    await rates.count(core().quotas.session(asking.key))
    given = await body.read_object()
    fault = None
    if core().settings.environment is Environment.PREPROD:
        fault = processes.session_fault(given)
        given = {name: given[name] for name in given if name != "falla"}
    asked = processes.session_for(given)
    wanted = (
        None
        if asked is None
        else await core().backend_requests.to_sign(asking.integrator.id, asked)
    )
    opened = await core().sessions.open_for(asking, wanted, fault)
    request_log.note(session=opened.public_id)
    answer: SessionOpened = {
        "tokenSession": opened.token,
        "validUntil": representations.instant(opened.valid_until),
        "sesionId": opened.public_id,
        "solicitudId": wanted,
    }
    return json_response(answer, HTTPStatus.CREATED)
