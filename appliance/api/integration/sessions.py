"""Sessions of the iframe that a backend opens for one request, or for a batch."""

from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response

from appliance.api import rate_headers
from appliance.api.core import core
from appliance.api.declaring.endpoint import backend_endpoint, in_json
from appliance.api.declaring.operation import Told
from appliance.api.integration.caller import caller
from appliance.api.wire import backend_answers, processes, representations
from appliance.api.wire.backend_answers import SessionOpened
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import IntegratorId, ProcessId, RequestBatchId, RequestId
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.vocab import Environment
from appliance.web import body, request_log
from appliance.web.auth import public
from appliance.web.responses import json_response

blueprint = Blueprint("integration_sessions", __name__)

PATH: Final = "/api/integration/sessions"


@backend_endpoint(
    "openSession",
    "POST /sessions",
    "Open a session of the iframe for a signature request, or for a batch",
    ApiKeyScope.SESSIONS_WRITE,
    Told(HTTPStatus.CREATED, backend_answers.SessionOpened),
    {ErrorCode.SOLICITUD_NOT_FOUND, ErrorCode.LOTE_NOT_FOUND, ErrorCode.STATE},
    body=in_json(processes.SessionWanted),
    body_in_test_mode=in_json(processes.FaultySession),
)
@blueprint.post(PATH)
@public
async def open_session() -> Response:
    """`POST /api/integration/sessions`: a token for a request, a batch, or any."""
    asking = await caller(ApiKeyScope.SESSIONS_WRITE)
    await rate_headers.count(core().quotas.session(asking.key))
    given = await body.read_object()
    fault = None
    if core().settings.environment is Environment.PREPROD:
        fault = processes.session_fault(given)
        given = {name: given[name] for name in given if name != "falla"}
    wanted = await _wanted(asking.integrator.id, processes.session_for(given))
    opened = await core().sessions.open_for(asking, wanted, fault)
    request_log.note(session=opened.public_id)
    answer: SessionOpened = {
        "tokenSession": opened.token,
        "validUntil": representations.instant(opened.valid_until),
        "sesionId": opened.public_id,
        "solicitudId": None if isinstance(wanted, str) else wanted,
        "loteId": wanted if isinstance(wanted, str) else None,
    }
    return json_response(answer, HTTPStatus.CREATED)


async def _wanted(
    whose: IntegratorId, asked: ProcessId | RequestId | processes.WholeBatch | None
) -> RequestId | RequestBatchId | None:
    """What a session is opened for, if there is that and it can be.

    Raises:
        ApplianceError: `SOLICITUD_NOT_FOUND`, `LOTE_NOT_FOUND`, `STATE`.
    """
    if asked is None:
        return None
    if isinstance(asked, processes.WholeBatch):
        return await core().backend_batches.to_sign(whose, asked.id)
    return await core().backend_requests.to_sign(whose, asked)
