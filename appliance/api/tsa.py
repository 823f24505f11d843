"""The internal TSA for programs outside of the installation.

Source: RFC 3161, 3.4 (over HTTP).
"""

from http import HTTPStatus
from typing import Final, cast

from quart import Blueprint, Response, current_app

from appliance.admission.address_rates import AddressRate
from appliance.api.core import core
from appliance.api.declaring.endpoint import endpoint, in_bytes
from appliance.api.declaring.operation import Caller, Told
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web.auth import public
from appliance.web.body import read_bytes
from appliance.web.responses import OCTETS
from appliance.web.server.client_address import client_address

blueprint = Blueprint("tsa", __name__)

RATE: Final = "rubrica.tsa_rate"
"""Where the application keeps the counts."""
QUERY: Final = "application/timestamp-query"
REPLY: Final = "application/timestamp-reply"
_QUERY_BYTES: Final = 4096


@endpoint(
    "timestamp",
    "POST /tsa",
    "A timestamp (RFC 3161), where it is switched on",
    Told(HTTPStatus.OK, media_type="application/timestamp-reply"),
    {ErrorCode.NOT_FOUND, ErrorCode.RATE_LIMITED, ErrorCode.TSA_UNAVAILABLE},
    caller=Caller.ANYBODY,
    body=in_bytes("application/timestamp-query"),
)
@blueprint.post("/tsa")
@public
async def stamp() -> Response:
    """`POST /tsa`: a timestamp over a digest, where the settings allow it.

    Raises:
        ApplianceError: `NOT_FOUND` where it is off, `RATE_LIMITED`,
            `CONTENT_TYPE`, `BODY_TOO_LARGE`, `OVERLOADED`, `TSA_UNAVAILABLE`.
    """
    if not core().settings.timestamps.public:
        raise ApplianceError(ErrorCode.NOT_FOUND)
    cast("AddressRate", current_app.extensions[RATE]).count(client_address())
    query = await read_bytes((QUERY, OCTETS), _QUERY_BYTES)
    answer = await core().timestamps.answer(query)
    return Response(answer, headers={"Content-Type": REPLY})
