"""Batches of an integrator's backend: many documents for one signer.

Handlers parse, call one use case and render; nothing is decided here.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from appliance.api import rate_headers
from appliance.api.core import core
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import (
    DOCUMENTS_IN_JSON,
    PDF_FILE,
    backend_endpoint,
    in_json,
    page_of,
    parts,
)
from appliance.api.declaring.operation import BodyIn, Sent, Told
from appliance.api.integration.caller import caller
from appliance.api.integration.requests import cancellation
from appliance.api.wire import backend_answers, batches, processes, query, requests
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestBatchId
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.requests.backend_batch import (
    MOST_OF_BATCH,
    BatchDetails,
    BatchMember,
)
from appliance.domain.vocab import BatchState
from appliance.integration.requests.order import BatchOrder
from appliance.web import body, i18n, request_log
from appliance.web.auth import public
from appliance.web.body import MULTIPART
from appliance.web.responses import JSON, json_response

blueprint = Blueprint("integration_batches", __name__)

PATH: Final = "/api/integration/batches"
_RETRY_S: Final = 2
"""`Retry-After` while a batch is prepared."""


@backend_endpoint(
    "createBatch",
    "POST /batches",
    "Ask one person to sign many documents",
    ApiKeyScope.REQUESTS_WRITE,
    Told(
        HTTPStatus.ACCEPTED,
        backend_answers.BatchDetailed,
        headers=("Location",),
        may_have=("Idempotent-Replayed", "Retry-After"),
    ),
    codes.BATCH_ORDERED,
    query=(parameters.IDEMPOTENCY_KEY,),
    body=BodyIn(
        {
            MULTIPART: parts(besides=PDF_FILE, options=batches.NewBatch),
            JSON: Sent(batches.NewBatch, DOCUMENTS_IN_JSON),
        }
    ),
)
@blueprint.post(PATH)
@public
@body.brings_documents
async def create() -> Response:
    """`POST /api/integration/batches`: ask one person to sign many documents."""
    asking = await caller(ApiKeyScope.REQUESTS_WRITE)
    key = query.conditions(one_document=False).idempotency_key
    whose = asking.integrator.id
    is_repeated = await core().backend_batch_orders.is_repeated(whose, key)
    if not is_repeated:
        await rate_headers.demand_bytes(whose)
    order = await _order(asking.key, key)
    await rate_headers.count_bytes(whose, is_repeated=is_repeated)
    count = len(order.documents)
    if not is_repeated:
        await rate_headers.count(core().quotas.demand_requests(whose, count))
    made = await core().backend_batch_orders.create(asking, order)
    if not made.is_repeated:
        await rate_headers.count(core().quotas.made_requests(whose, count))
    request_log.note(lote=made.batch)
    details = await core().backend_batches.get(asking.integrator.id, made.batch)
    members = await core().backend_batches.members(made.batch)
    response = _told(details, members, HTTPStatus.ACCEPTED)
    response.headers["Location"] = f"{core().settings.web.web_url}{PATH}/{made.batch}"
    if made.is_repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return response


async def _order(api_key: str, key: str | None) -> BatchOrder:
    """What the present body asks for, in whichever form it came.

    Raises:
        ApplianceError: `CONTENT_TYPE`; those of the body's readers.
    """
    if body.is_multipart():
        form = await body.read_documents(MOST_OF_BATCH)
        return batches.order(form.options, api_key, key, form.files)
    if request.mimetype != JSON:
        raise ApplianceError(
            ErrorCode.CONTENT_TYPE, extras={"allowed": [body.MULTIPART, JSON]}
        )
    return batches.order(await body.read_document_object(), api_key, key)


@backend_endpoint(
    "listBatches",
    "GET /batches",
    "The integrator's batches",
    ApiKeyScope.REQUESTS_READ,
    page_of(backend_answers.BatchListed),
    query=(parameters.REFERENCE, *parameters.PAGE),
    is_strict=True,
)
@blueprint.get(PATH)
@public
async def list_batches() -> Response:
    """`GET /api/integration/batches`: the integrator's, newest first."""
    asking = await caller(ApiKeyScope.REQUESTS_READ)
    asked = batches.batches_query()
    # One more than a page shows whether there is a next one.
    found = await core().backend_batches.page(
        asking.integrator.id, asked.before, asked.limit + 1, asked.reference
    )
    page = found[: asked.limit]
    response = json_response([batches.element(each) for each in page])
    if len(page) < len(found):
        _link(response, PATH, asked.limit, batches.cursor_after(page[-1]))
    return response


@backend_endpoint(
    "getBatch",
    "GET /batches/{loteId}",
    "One batch: its state, its progress, and its documents",
    ApiKeyScope.REQUESTS_READ,
    Told(
        HTTPStatus.OK, backend_answers.BatchDetailed, may_have=("Link", "Retry-After")
    ),
    {ErrorCode.LOTE_NOT_FOUND},
    query=parameters.PAGE,
    is_strict=True,
)
@blueprint.get(f"{PATH}/<lote>")
@public
async def show(lote: str) -> Response:
    """`GET /api/integration/batches/{loteId}`: how it stands, and its documents."""
    asking = await caller(ApiKeyScope.REQUESTS_READ)
    wanted = _batch_id(lote)
    limit, after = batches.members_query()
    details = await core().backend_batches.get(asking.integrator.id, wanted)
    found = await core().backend_batches.members(wanted, after, limit + 1)
    page = found[:limit]
    response = _told(details, page)
    if len(page) < len(found):
        cursor = query.cursor_after(page[-1].request)
        _link(response, f"{PATH}/{wanted}", limit, cursor)
    return response


@backend_endpoint(
    "cancelBatch",
    "POST /batches/{loteId}/cancel",
    "Take a batch back, or what of it is not signed yet",
    ApiKeyScope.REQUESTS_WRITE,
    Told(HTTPStatus.OK, backend_answers.BatchListed),
    {ErrorCode.LOTE_NOT_FOUND, ErrorCode.STATE, ErrorCode.IN_PROGRESS},
    body=in_json(processes.Cancellation, is_required=False),
)
@blueprint.post(f"{PATH}/<lote>/cancel")
@public
async def cancel(lote: str) -> Response:
    """`POST /api/integration/batches/{loteId}/cancel`: take it back, for good."""
    asking = await caller(ApiKeyScope.REQUESTS_WRITE)
    wanted = _batch_id(lote)
    reason = await cancellation()
    details = await core().backend_batches.cancel(asking, wanted, reason)
    return json_response(batches.element(details))


def _told(
    details: BatchDetails,
    members: Sequence[BatchMember],
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    """One batch; with `Retry-After` as long as it is prepared."""
    answer = batches.detail(details, members, i18n.requested())
    response = json_response(answer, status)
    if details.batch.state is BatchState.PREPARING:
        response.headers["Retry-After"] = str(_RETRY_S)
    return response


def _link(response: Response, path: str, limit: int, cursor: str) -> None:
    """Say where the next page is."""
    following = {**dict(request.args.items()), "limite": str(limit), "cursor": cursor}
    url = f"{core().settings.web.web_url}{path}?{urlencode(following)}"
    response.headers["Link"] = f'<{url}>; rel="next"'


def _batch_id(written: str) -> RequestBatchId:
    wanted = requests.request_batch_id(written)
    request_log.note(lote=wanted)
    return wanted
