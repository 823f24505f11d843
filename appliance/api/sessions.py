"""The session endpoint: an integrator's backend gets a token for its page.

Never for a browser: it answers no CORS, and a call that shows marks of one is
refused and its key flagged. Nothing of the address or the body is logged.
"""

from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response, request

from appliance.api import rate_headers
from appliance.api.core import core
from appliance.api.declaring.endpoint import endpoint
from appliance.api.declaring.operation import Caller, Parameter, Told
from appliance.api.integration.caller import is_browser, refuse_key_in_url
from appliance.api.wire import answers, representations
from appliance.api.wire.query import QueryInvalidError
from appliance.domain.errors import (
    API_KEY_ELSEWHERE,
    ApplianceError,
    ErrorCode,
    FieldMissingError,
)
from appliance.domain.integrators.api_keys import LOOKS_LIKE_ONE, ApiKeyScope
from appliance.web import body
from appliance.web.auth import public
from appliance.web.responses import json_response
from appliance.web.server.client_address import full_address

blueprint = Blueprint("sessions", __name__)

BODY_BYTES: Final = 65_536
"""What is taken of a body, to be forgotten (decisions "body at session/new")."""


@endpoint(
    "newSession",
    "POST /api/integration/session/new",
    "A session token for the iframe",
    Told(HTTPStatus.OK, answers.SessionAnswer),
    {
        ErrorCode.FIELD_MISSING,
        ErrorCode.QUERY_INVALID,
        ErrorCode.BODY_TOO_LARGE,
        ErrorCode.BODY_TIMEOUT,
    },
    caller=Caller.SESSION_KEY,
    query=(Parameter("id", {"type": "string"}, is_required=True),),
    scope=ApiKeyScope.SESSIONS_WRITE,
)
@blueprint.post("/api/integration/session/new")
@public
async def new_session() -> Response:
    """`POST {web_url}/api/integration/session/new?id=`: a session token.

    Marked public because it has its own credential, the header X-Api-Key.

    Raises:
        ApplianceError: `API_KEY_MISSING`, `API_KEY_INVALID`,
            `API_KEY_ENVIRONMENT`, `API_KEY_IN_URL`, `API_KEY_IN_BROWSER`,
            `BODY_TOO_LARGE`, `RATE_LIMITED`.
        FieldMissingError: no `id`.
        QueryInvalidError: more than one.

    Source: spec "POST {web_url}/api/integration/session/new".
    """
    await refuse_key_in_url()
    ids = request.args.getlist("id")
    if not ids:
        raise FieldMissingError("id", kind="string")
    if len(ids) > 1:
        raise QueryInvalidError("id", "once")
    await body.discard(BODY_BYTES)
    api_key = request.headers.get("X-Api-Key", "")
    if not api_key and LOOKS_LIKE_ONE.search(request.headers.get("Authorization", "")):
        raise ApplianceError(ErrorCode.API_KEY_MISSING, sentence=API_KEY_ELSEWHERE)
    opened = await core().sessions.open(
        ids[0], api_key, full_address(), _count, from_browser=is_browser()
    )
    answer: answers.SessionAnswer = {
        "tokenSession": opened.token,
        "validUntil": representations.instant(opened.valid_until),
    }
    return json_response(answer)


async def _count(key: str) -> None:
    await rate_headers.count(core().quotas.session(key))
