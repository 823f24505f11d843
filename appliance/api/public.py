"""What anybody may ask: the public keys, and whether the appliance lives."""

from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, request

from appliance.api.core import core
from appliance.api.declaring.endpoint import endpoint
from appliance.api.declaring.operation import Caller, Told
from appliance.api.wire import answers
from appliance.settings.web import INSTALLATION_HEADER
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("public", __name__)

OK: Final = "ok"


@endpoint(
    "getPublicKeys",
    "GET /.well-known/jwks.json",
    "Keys that sign access tokens",
    Told(
        HTTPStatus.OK,
        answers.PublicKeys,
        media_type="application/jwk-set+json",
        headers=("Cache-Control",),
    ),
    caller=Caller.ANYBODY,
)
@blueprint.get("/.well-known/jwks.json")
@public
async def jwks() -> Response:
    """`GET /.well-known/jwks.json`: the keys that sign access tokens."""
    response = json_response(
        await core().tokens.jwks(), media_type="application/jwk-set+json"
    )
    # Far less than the day that a key is published before it signs.
    response.headers["Cache-Control"] = "public, max-age=300"
    return response


@endpoint(
    "isAlive",
    "GET /healthz",
    "This process answers",
    Told(HTTPStatus.OK, answers.Alive),
    caller=Caller.ANYBODY,
)
@blueprint.get("/healthz")
@public
async def healthz() -> Response:
    """`GET /healthz`: this process answers."""
    return json_response({"status": OK})


@endpoint(
    "isReady",
    "GET /readyz",
    "Everything that signing needs works",
    (
        Told(HTTPStatus.OK, answers.Ready),
        Told(HTTPStatus.SERVICE_UNAVAILABLE, answers.Unready, headers=("Retry-After",)),
    ),
    caller=Caller.ANYBODY,
)
@blueprint.get("/readyz")
@public
async def readyz() -> Response:
    """`GET /readyz`: everything that signing needs works, or what does not.

    `rubrica ready` names the installation that it asks. Only that one repeats the name.
    """
    checks = await core().health.ready()
    if all(state == OK for state in checks.values()):
        response = json_response({"status": OK, "checks": checks})
    else:
        response = json_response(
            {"status": "unready", "checks": checks}, HTTPStatus.SERVICE_UNAVAILABLE
        )
        response.headers["Retry-After"] = "5"
    asked = request.headers.get(INSTALLATION_HEADER)
    if asked and asked == core().settings.folder_id:
        response.headers[INSTALLATION_HEADER] = asked
    return response
