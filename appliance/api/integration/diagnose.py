"""What is wrong with how an integrator is set up."""

from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response

from appliance.api.core import core
from appliance.api.declaring.endpoint import backend_endpoint
from appliance.api.declaring.operation import Told
from appliance.api.integration.caller import caller
from appliance.api.wire import backend_answers, diagnosis
from appliance.web import i18n
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("integration_diagnose", __name__)

PATH: Final = "/api/integration/diagnose"


@backend_endpoint(
    "diagnose",
    "GET /diagnose",
    "How the integrator is set up, and what is wrong with it",
    None,
    Told(HTTPStatus.OK, backend_answers.DiagnosisTold),
)
@blueprint.get(PATH)
@public
async def show() -> Response:
    """`GET /api/integration/diagnose`: for any key that may do something."""
    asking = await caller(None)
    found = await core().backend_diagnosis.look(asking)
    return json_response(
        diagnosis.told(found, core().settings.environment, i18n.requested())
    )
