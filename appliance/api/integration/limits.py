"""How much a backend may call for, and what is left of it."""

from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response

from appliance.api.core import core
from appliance.api.declaring.endpoint import backend_endpoint
from appliance.api.declaring.operation import Told
from appliance.api.integration.caller import caller
from appliance.api.wire import backend_answers
from appliance.api.wire.backend_answers import RateLeft
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("integration_limits", __name__)

PATH: Final = "/api/integration/limits"


@backend_endpoint(
    "getLimits",
    "GET /limits",
    "How much may be called for, and what is left of it",
    ApiKeyScope.REQUESTS_READ,
    Told(HTTPStatus.OK, backend_answers.RateLeft, is_list=True),
)
@blueprint.get(PATH)
@public
async def show() -> Response:
    """`GET /api/integration/limits`: of the key that asks, and of its integrator."""
    asking = await caller(ApiKeyScope.REQUESTS_READ)
    states = await core().quotas.left(asking.key, asking.integrator.id)
    answer: list[RateLeft] = [
        {
            "nombre": state.policy.name,
            "maximo": state.policy.most,
            "ventana": state.policy.window_s,
            "quedan": state.remaining,
            "renuevaEn": state.reset_s,
        }
        for state in states
    ]
    return json_response(answer)
