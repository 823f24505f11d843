"""The session endpoint: an integrator's backend gets a token for its page.

Never for a browser: it answers no CORS, and a call that shows marks of one is
refused and its key flagged. Nothing of the address or the body is logged.
"""

from typing import Final

from quart import Blueprint, Response, request

from appliance.api.core import core
from appliance.api.wire import representations
from appliance.api.wire.query import QueryInvalidError
from appliance.domain.errors import (
    API_KEY_ELSEWHERE,
    ApplianceError,
    ErrorCode,
    FieldMissingError,
)
from appliance.domain.integrators.api_keys import LOOKS_LIKE_ONE
from appliance.web import body
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("sessions", __name__)

BODY_BYTES: Final = 65_536
"""What is taken of a body, to be forgotten (decisions "body at session/new")."""
_KEY_NAMES: Final = frozenset({"apikey", "xapikey", "key"})


@blueprint.post("/api/integration/session/new")
@public
async def new_session() -> Response:
    """`POST {web_url}/api/integration/session/new?id=`: a session token.

    Marked public because it has its own credential, the header X-Api-Key.

    Raises:
        ApplianceError: `API_KEY_MISSING`, `API_KEY_INVALID`,
            `API_KEY_ENVIRONMENT`, `API_KEY_IN_URL`, `API_KEY_IN_BROWSER`,
            `BODY_TOO_LARGE`.
        FieldMissingError: no `id`.
        QueryInvalidError: more than one.

    Source: spec "POST {web_url}/api/integration/session/new".
    """
    await _refuse_key_in_url()
    ids = request.args.getlist("id")
    if not ids:
        raise FieldMissingError("id", kind="string")
    if len(ids) > 1:
        raise QueryInvalidError("id", "once")
    await body.discard(BODY_BYTES)
    api_key = request.headers.get("X-Api-Key", "")
    if not api_key and LOOKS_LIKE_ONE.search(request.headers.get("Authorization", "")):
        raise ApplianceError(ErrorCode.API_KEY_MISSING, sentence=API_KEY_ELSEWHERE)
    opened = await core().sessions.open(ids[0], api_key, from_browser=_is_browser())
    return json_response(
        {
            "tokenSession": opened.token,
            "validUntil": representations.instant(opened.valid_until),
        }
    )


async def _refuse_key_in_url() -> None:
    """Refuse a key that came where proxies and logs keep it.

    Raises:
        ApplianceError: `API_KEY_IN_URL`.
    """
    items = [(name, value) for name, value in request.args.items(multi=True)]
    if any(_named_so(name) or LOOKS_LIKE_ONE.search(value) for name, value in items):
        await core().sessions.flag_in_url([value for _, value in items])
        raise ApplianceError(ErrorCode.API_KEY_IN_URL)


def _named_so(name: str) -> bool:
    return name.lower().replace("-", "").replace("_", "") in _KEY_NAMES


def _is_browser() -> bool:
    """Both marks: servers send one or the other, pages always both."""
    return "Origin" in request.headers and "Sec-Fetch-Site" in request.headers
