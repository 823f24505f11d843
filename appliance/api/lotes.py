"""Several requests signed by one call, and how that goes on.

Handlers parse, call one service and render; nothing is decided here.
"""

from functools import partial
from http import HTTPStatus
from typing import Final

from quart import Blueprint, Response

from appliance.api import pages, rate_headers
from appliance.api.core import core
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import endpoint, in_json
from appliance.api.declaring.operation import Told
from appliance.api.wire import answers, query, representations, requests
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.requests.signing_batch import BatchOutcome
from appliance.web import auth, body, i18n, request_log
from appliance.web.responses import json_response

blueprint = Blueprint("lotes", __name__)

_RETRY_S: Final = 2
"""`Retry-After` while it goes on."""


@endpoint(
    "signSeveral",
    "POST /solicitudes/firmar/lote",
    "One signing command for several requests, or a whole batch",
    (
        Told(HTTPStatus.OK, answers.BatchAnswer, may_have=parameters.RATES),
        Told(
            HTTPStatus.ACCEPTED,
            answers.BatchAnswer,
            headers=("Location", "Retry-After"),
            may_have=parameters.RATES,
        ),
    ),
    {*codes.SIGNING, *codes.FRESH, *codes.PLACED, ErrorCode.LOTE_NOT_FOUND},
    query=(parameters.IDEMPOTENCY_KEY,),
    body=in_json((requests.SignSeveralBody, requests.SignBatchBody)),
)
@blueprint.post("/solicitudes/firmar/lote")
async def sign_all() -> Response:
    """`POST /solicitudes/firmar/lote`: one command for several requests."""
    signer = await auth.signer()
    async with rate_headers.signing_command(signer.person):
        core().tokens.require_fresh(signer)
        conditions = query.conditions(one_document=False)
        batch = requests.sign_batch(await body.read_object(), conditions)
        signing = partial(core().batch_signing.sign, batch, signer)
        if len(set(batch.requests)) == 1:
            # A worker makes way for it as for any other single one.
            outcome = await core().signing_calls.run(batch.requests[0], signing)
        else:
            outcome = await signing()
    return await begun(outcome, signer.actor)


@endpoint(
    "getSigningProgress",
    "GET /solicitudes/lotes/{ordenId}",
    "How a signing command for several requests goes on",
    Told(HTTPStatus.OK, answers.BatchAnswer, may_have=("Retry-After",)),
    {ErrorCode.LOTE_NOT_FOUND},
)
@blueprint.get("/solicitudes/lotes/<lote>")
async def show_progress(lote: str) -> Response:
    """`GET /solicitudes/lotes/{id}`: how many ended, and each one's result."""
    signer = await auth.signer()
    wanted = requests.batch_id(lote)
    outcome = await core().batch_signing.progress(signer.person, wanted)
    return await _told(outcome, signer.actor)


async def begun(outcome: BatchOutcome, actor: str) -> Response:
    """How a batch stands at the end of the call that signs it.

    Args:
        outcome: so far.
        actor: for the audit of links.
    """
    status = HTTPStatus.OK if outcome.is_over else HTTPStatus.ACCEPTED
    response = await _told(outcome, actor, status)
    if not outcome.is_over:
        response.headers["Location"] = (
            f"{pages.base_path()}/solicitudes/lotes/{outcome.id}"
        )
    return response


async def _told(
    outcome: BatchOutcome, actor: str, status: HTTPStatus = HTTPStatus.OK
) -> Response:
    """How a batch stands; with `Retry-After` as long as it goes on."""
    urls = await _addresses(outcome, actor)
    answer = representations.batch(outcome, urls, i18n.requested())
    request_log.note(
        lote=outcome.id, firmadas=answer["firmadas"], fallidas=answer["fallidas"]
    )
    response = json_response(answer, status)
    if not outcome.is_over:
        response.headers["Retry-After"] = str(_RETRY_S)
    return response


async def _addresses(outcome: BatchOutcome, actor: str) -> dict[RequestId, str]:
    """Where each signed document is downloaded.

    Links are made once all ended; until then an address is for its signer's
    bearer, so that whoever looks every two seconds leaves no thousands of links.
    """
    base_url = core().settings.web.base_url
    signed = dict.fromkeys(item.request for item in outcome.items if item.document)
    claves: dict[RequestId, str] = {}
    if outcome.is_over:
        claves = await core().links.mint_all(signed, actor)
    return {
        request: representations.document_url(base_url, request, claves.get(request))
        for request in signed
    }
