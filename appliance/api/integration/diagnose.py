"""What is wrong with how an integrator is set up."""

from typing import Final

from quart import Blueprint, Response

from appliance.api.core import core
from appliance.api.integration.caller import caller
from appliance.api.wire import diagnosis
from appliance.web import i18n
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("integration_diagnose", __name__)

PATH: Final = "/api/integration/diagnose"


@blueprint.get(PATH)
@public
async def show() -> Response:
    """`GET /api/integration/diagnose`: for any key that may do something."""
    asking = await caller(None)
    found = await core().backend_diagnosis.look(asking)
    return json_response(
        diagnosis.told(found, core().settings.environment, i18n.requested())
    )
