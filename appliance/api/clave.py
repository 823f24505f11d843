"""Changing the signing password: `POST /credenciales/clave`.

Handlers parse, call one service and render; nothing is decided here.
"""

from http import HTTPStatus

from quart import Blueprint, Response

from appliance.api.core import core
from appliance.api.declaring import codes
from appliance.api.declaring.endpoint import endpoint, in_json
from appliance.api.declaring.operation import Told
from appliance.api.wire import requests
from appliance.web import auth, body

blueprint = Blueprint("clave", __name__)


@endpoint(
    "changePassword",
    "POST /credenciales/clave",
    "Another signing password",
    Told(HTTPStatus.NO_CONTENT),
    {*codes.PASSWORD, *codes.FRESH},
    body=in_json(requests.PasswordChange),
)
@blueprint.post("/credenciales/clave")
async def change_password() -> Response:
    """`POST /credenciales/clave`: 204 once the new one holds for every key."""
    signer = await auth.signer()
    core().tokens.require_fresh(signer)
    given = requests.PasswordChange.read(await body.read_object())
    await core().password_change.change(signer, given.password, given.nueva)
    return Response(status=HTTPStatus.NO_CONTENT)
