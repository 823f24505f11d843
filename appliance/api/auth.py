"""Sign-in: a password, then a code, then an access token."""

from http import HTTPStatus

from quart import Blueprint, Response

from appliance.api.core import core
from appliance.api.declaring.endpoint import endpoint, in_json
from appliance.api.declaring.operation import Caller, Told
from appliance.api.wire import answers, requests
from appliance.domain.errors import ErrorCode
from appliance.web import body
from appliance.web.auth import public
from appliance.web.responses import json_response
from appliance.web.server.client_address import client_address

blueprint = Blueprint("auth", __name__)


@endpoint(
    "logIn",
    "POST /auth/login",
    "User and password give a login token",
    Told(HTTPStatus.OK, answers.LoginAnswer),
    {ErrorCode.LOGIN_FAILED, ErrorCode.RATE_LIMITED},
    caller=Caller.ANYBODY,
    body=in_json(requests.Login),
)
@blueprint.post("/auth/login")
@public
async def login() -> Response:
    """`POST /auth/login`: user and password give a login token."""
    given = requests.Login.read(await body.read_object())
    challenge = await core().login.login(
        given.usuario, given.password, client_address()
    )
    answer: answers.LoginAnswer = {
        "loginToken": challenge.login_token,
        "factores": ["totp"],
        "expiresIn": challenge.expires_in_s,
    }
    return json_response(answer)


@endpoint(
    "showCode",
    "POST /auth/otp",
    "Login token and code give an access token",
    Told(HTTPStatus.OK, answers.TokenAnswer),
    {ErrorCode.LOGIN_FAILED, ErrorCode.OTP_INVALID, ErrorCode.RATE_LIMITED},
    caller=Caller.ANYBODY,
    body=in_json(requests.OneTimeCode),
)
@blueprint.post("/auth/otp")
@public
async def otp() -> Response:
    """`POST /auth/otp`: login token and code give an access token."""
    given = requests.OneTimeCode.read(await body.read_object())
    issued = await core().login.otp(given.login_token, given.codigo, client_address())
    answer: answers.TokenAnswer = {
        "access_token": issued.token,
        "token_type": "Bearer",
        "expires_in": issued.expires_in_s,
    }
    return json_response(answer)
