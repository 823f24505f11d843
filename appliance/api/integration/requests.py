"""Signature requests of an integrator's backend.

Handlers parse, call one use case and render; nothing is decided here.
"""

from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from appliance.api import rate_headers
from appliance.api.core import core
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import (
    LISTED_STATES,
    ONE_DOCUMENT_IN_JSON,
    PDF_FILE,
    backend_endpoint,
    in_json,
    made,
    page_of,
    parts,
)
from appliance.api.declaring.operation import BodyIn, Parameter, Sent, Told
from appliance.api.integration import edits
from appliance.api.integration.caller import caller
from appliance.api.wire import backend_answers, processes, query
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.documents.inspected import signed_name
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ProcessId
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.requests.process import ProcessDetails
from appliance.web import body, i18n, request_log
from appliance.web.auth import public
from appliance.web.body import MULTIPART
from appliance.web.document_response import document_response
from appliance.web.responses import JSON, json_response

blueprint = Blueprint("integration_requests", __name__)

PATH: Final = "/api/integration/requests"
_READ: Final = ApiKeyScope.REQUESTS_READ
_WRITE: Final = ApiKeyScope.REQUESTS_WRITE


@backend_endpoint(
    "createRequest",
    "POST /requests",
    "Ask people to sign a document",
    ApiKeyScope.REQUESTS_WRITE,
    made(backend_answers.RequestDetail),
    codes.ORDERED,
    query=(parameters.IDEMPOTENCY_KEY,),
    body=BodyIn(
        {
            MULTIPART: parts(file=PDF_FILE, options=processes.NewRequest),
            JSON: Sent(processes.NewRequest, ONE_DOCUMENT_IN_JSON),
        }
    ),
)
@blueprint.post(PATH)
@public
@body.brings_document
async def create() -> Response:
    """`POST /api/integration/requests`: ask people to sign a document.

    Raises:
        ApplianceError: `CONTENT_TYPE`; those of the body's readers and the use case.
    """
    asking = await caller(_WRITE)
    key = query.conditions(one_document=False).idempotency_key
    whose = asking.integrator.id
    is_repeated = await core().backend_orders.is_repeated(whose, key)
    if not is_repeated:
        await rate_headers.demand_bytes(whose)
    if body.is_multipart():
        form = await body.read_form()
        order = processes.order(
            form.options, asking.key, key, form.file, form.file_name
        )
    elif request.mimetype != JSON:
        raise ApplianceError(
            ErrorCode.CONTENT_TYPE, extras={"allowed": [body.MULTIPART, JSON]}
        )
    else:
        given = await body.read_document_object()
        order = processes.order(given, asking.key, key)
    await rate_headers.count_bytes(whose, is_repeated=is_repeated)
    if not is_repeated:
        await rate_headers.count(core().quotas.demand_requests(whose))
    made = await core().backend_orders.create(asking, order)
    if not made.is_repeated:
        await rate_headers.count(core().quotas.made_requests(whose))
    request_log.note(proceso=made.process)
    details = await core().backend_requests.get(asking.integrator.id, made.process)
    response = await _told(asking, details, HTTPStatus.CREATED)
    response.headers["Location"] = f"{core().settings.web.web_url}{PATH}/{made.process}"
    if made.is_repeated:
        response.headers["Idempotent-Replayed"] = "true"
    return response


@backend_endpoint(
    "listRequests",
    "GET /requests",
    "The integrator's signature requests",
    ApiKeyScope.REQUESTS_READ,
    page_of(backend_answers.RequestListed),
    query=(
        parameters.one_of("estado", LISTED_STATES),
        parameters.REFERENCE,
        Parameter("cuil", parameters.CUIL),
        parameters.SINCE,
        parameters.UNTIL,
        Parameter("loteId", parameters.UUID),
        *parameters.PAGE,
    ),
    is_strict=True,
)
@blueprint.get(PATH)
@public
async def list_requests() -> Response:
    """`GET /api/integration/requests`: the integrator's, newest first."""
    asking = await caller(_READ)
    asked = processes.asked()
    # One more than a page shows whether there is a next one.
    found = await core().backend_requests.matching(
        asking.integrator.id, replace(asked, limit=asked.limit + 1)
    )
    page = found[: asked.limit]
    response = json_response([processes.element(each) for each in page])
    if len(page) < len(found) and (place := page[-1].place) is not None:
        following = {
            **dict(request.args.items()),
            "limite": str(asked.limit),
            "cursor": query.cursor_after(place),
        }
        url = f"{core().settings.web.web_url}{PATH}?{urlencode(following)}"
        response.headers["Link"] = f'<{url}>; rel="next"'
    return response


@backend_endpoint(
    "getRequest",
    "GET /requests/{procesoId}",
    "One signature request, and what became of it",
    ApiKeyScope.REQUESTS_READ,
    Told(HTTPStatus.OK, backend_answers.RequestDetail, headers=("ETag",)),
    {ErrorCode.SOLICITUD_NOT_FOUND},
)
@blueprint.get(f"{PATH}/<process>")
@public
async def show(process: str) -> Response:
    """`GET /api/integration/requests/{procesoId}`: all of one, with its history."""
    asking = await caller(_READ)
    wanted = _process_id(process)
    tag = await edits.tag(asking, Subject.PROCESS, wanted)
    details = await core().backend_requests.get(asking.integrator.id, wanted)
    return edits.tagged(await _told(asking, details), tag)


@backend_endpoint(
    "changeRequest",
    "PATCH /requests/{procesoId}",
    "Change what is said of a signature request",
    ApiKeyScope.REQUESTS_WRITE,
    Told(HTTPStatus.OK, backend_answers.RequestDetail),
    {
        ErrorCode.SOLICITUD_NOT_FOUND,
        *codes.CHANGED,
        ErrorCode.STATE,
        ErrorCode.REFERENCE_IN_USE,
    },
    query=(parameters.IF_MATCH,),
    body=in_json(processes.RequestChange),
)
@blueprint.patch(f"{PATH}/<process>")
@public
async def change(process: str) -> Response:
    """`PATCH /api/integration/requests/{procesoId}`: what may change."""
    asking = await caller(_WRITE)
    wanted = _process_id(process)
    sent = await body.read_object()
    asked = processes.change(sent)
    async with edits.unchanged(asking, Subject.PROCESS, wanted, sent):
        details = await core().backend_requests.change(asking, wanted, asked)
    return await _told(asking, details)


@backend_endpoint(
    "cancelRequest",
    "POST /requests/{procesoId}/cancel",
    "Take a signature request back, for good",
    ApiKeyScope.REQUESTS_WRITE,
    Told(HTTPStatus.OK, backend_answers.RequestDetail),
    {ErrorCode.SOLICITUD_NOT_FOUND, ErrorCode.STATE, ErrorCode.IN_PROGRESS},
    body=in_json(processes.Cancellation, is_required=False),
)
@blueprint.post(f"{PATH}/<process>/cancel")
@public
async def cancel(process: str) -> Response:
    """`POST /api/integration/requests/{procesoId}/cancel`: take it back, for good."""
    asking = await caller(_WRITE)
    wanted = _process_id(process)
    details = await core().backend_requests.cancel(asking, wanted, await cancellation())
    return await _told(asking, details)


@backend_endpoint(
    "remindSigners",
    "POST /requests/{procesoId}/remind",
    "Write to those whose turn it is",
    ApiKeyScope.REQUESTS_WRITE,
    Told(HTTPStatus.ACCEPTED, backend_answers.Reminded),
    {ErrorCode.SOLICITUD_NOT_FOUND, ErrorCode.STATE, ErrorCode.MAIL_OFF},
)
@blueprint.post(f"{PATH}/<process>/remind")
@public
async def remind(process: str) -> Response:
    """`POST /api/integration/requests/{procesoId}/remind`: write to signers again."""
    asking = await caller(_WRITE)
    wanted = _process_id(process)
    reminded = await core().backend_reminders.remind(asking, wanted)
    return json_response(processes.reminded(wanted, reminded), HTTPStatus.ACCEPTED)


@backend_endpoint(
    "getOriginal",
    "GET /requests/{procesoId}/original",
    "The PDF of a signature request as it is to be signed",
    ApiKeyScope.REQUESTS_READ,
    parameters.DOCUMENT,
    {ErrorCode.SOLICITUD_NOT_FOUND, ErrorCode.RANGE_UNSATISFIABLE},
    query=parameters.RANGES,
)
@blueprint.get(f"{PATH}/<process>/original")
@public
async def download_original(process: str) -> Response:
    """`GET /api/integration/requests/{procesoId}/original`: what is to be signed."""
    asking = await caller(_READ)
    view, pdf = await core().backend_requests.original(asking, _process_id(process))
    return document_response(pdf, view.document_name, view.sha256)


@backend_endpoint(
    "getSignedDocument",
    "GET /requests/{procesoId}/document",
    "The PDF that all have signed",
    ApiKeyScope.REQUESTS_READ,
    parameters.DOCUMENT,
    {
        ErrorCode.SOLICITUD_NOT_FOUND,
        ErrorCode.RANGE_UNSATISFIABLE,
        ErrorCode.NOT_SIGNED_YET,
        ErrorCode.STATE,
        ErrorCode.QUERY_INVALID,
    },
    query=(parameters.VERSION, *parameters.RANGES),
)
@blueprint.get(f"{PATH}/<process>/document")
@public
async def download_signed(process: str) -> Response:
    """`GET /api/integration/requests/{procesoId}/document`: once all have signed."""
    asking = await caller(_READ)
    view, pdf = await core().backend_requests.signed(
        asking, _process_id(process), query.version()
    )
    return document_response(pdf, signed_name(view.file_name), view.sha256)


async def cancellation() -> str:
    """The reason of the present body, or empty: it may be left out, and the body too.

    Raises:
        FieldInvalidError: it is none.
        ApplianceError: those of the body's reader, `FIELD_UNKNOWN`.
    """
    has_body = request.content_length or "Content-Type" in request.headers
    sent = await body.read_object() if has_body else {}
    return processes.Cancellation.read(sent).motivo or ""


async def _told(
    asking: IntegratorCaller, details: ProcessDetails, status: int = HTTPStatus.OK
) -> Response:
    """All of one request, with its history."""
    history = await core().backend_requests.history(
        asking.integrator.id, details.process.id
    )
    return json_response(
        processes.detail(details, history, i18n.requested()), int(status)
    )


def _process_id(written: str) -> ProcessId:
    wanted = processes.process_id(written)
    request_log.note(proceso=wanted)
    return wanted
