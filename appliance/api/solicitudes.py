"""Signature requests: list, see, preview, reject, sign, download.

Handlers parse, call one service and render; nothing is decided here.
"""

from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from appliance.api import pages, rate_headers
from appliance.api.core import core
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import LISTED_STATES, PDF_FILE, endpoint, in_json
from appliance.api.declaring.operation import BodyIn, Caller, Parameter, Sent, Told
from appliance.api.wire import answers, query, representations, requests
from appliance.documents.document_bytes import sha256_of
from appliance.domain.documents.inspected import signed_name
from appliance.domain.errors import LINK_OVER, ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.ports import DocumentStream
from appliance.domain.requests.request import (
    RequestView,
    SignedDocumentView,
)
from appliance.web import (
    auth,
    body,
    byte_ranges,
    content_negotiation,
    cors,
    i18n,
    request_log,
)
from appliance.web.body import MULTIPART
from appliance.web.document_response import document_response
from appliance.web.responses import JSON, PDF, file_response, json_response

blueprint = Blueprint("solicitudes", __name__)

_RETRY_S: Final = 2
"""`Retry-After` of a 202, and of the 503 in its place."""
_PNG: Final = "image/png"


@endpoint(
    "listSignerRequests",
    "GET /solicitudes",
    "The signer's requests",
    Told(
        HTTPStatus.OK,
        answers.SignerRequest,
        is_list=True,
        may_have=("Link", *parameters.RATES),
    ),
    {ErrorCode.RATE_LIMITED},
    query=(parameters.one_of("estado", LISTED_STATES), *parameters.PAGE),
    is_strict=True,
)
@blueprint.get("/solicitudes")
async def list_requests() -> Response:
    """`GET /solicitudes`: a bare JSON array, newest first."""
    signer = await auth.signer()
    await rate_headers.count(core().signer_quotas.list(signer.person))
    asked = query.list_query()
    # One more than a page shows whether there is a next one.
    most = None if asked.limit is None else asked.limit + 1
    views = await core().requests.list_for(
        signer.person, asked.states, most, asked.before
    )
    page = views if asked.limit is None else views[: asked.limit]
    response = json_response([representations.element(view) for view in page])
    if len(page) < len(views):
        following = {"limite": asked.limit, "cursor": query.cursor_after(page[-1].id)}
        if "estado" in request.args:
            following["estado"] = request.args["estado"]
        url = f"{core().settings.web.base_url}/solicitudes?{urlencode(following)}"
        response.headers["Link"] = f'<{url}>; rel="next"'
    return response


@endpoint(
    "getSignerRequest",
    "GET /solicitudes/{solicitudId}",
    "One request, with what to know before signing",
    Told(HTTPStatus.OK, answers.SignerRequestDetail, headers=("ETag",)),
    {ErrorCode.SOLICITUD_NOT_FOUND},
)
@blueprint.get("/solicitudes/<digits:solicitud>")
async def show_request(solicitud: str) -> Response:
    """`GET /solicitudes/{id}`: all of one request; its ETag serves If-Match."""
    signer = await auth.signer()
    view = await core().requests.detail(signer.person, _request_id(solicitud))
    versions = await core().requests.versions(view)
    told: answers.SignerRequestDetail = {
        **representations.detail(view, i18n.requested(), versions),
        "mensaje": await core().requests.message(view),
    }
    return _tagged(json_response(told), view)


@endpoint(
    "getSignerOriginal",
    "GET /solicitudes/{solicitudId}/original",
    "The PDF to be signed",
    parameters.DOCUMENT,
    {ErrorCode.SOLICITUD_NOT_FOUND, ErrorCode.RANGE_UNSATISFIABLE},
    query=parameters.RANGES,
)
@blueprint.get("/solicitudes/<digits:solicitud>/original")
async def download_original(solicitud: str) -> Response:
    """`GET /solicitudes/{id}/original`: the PDF to be signed."""
    signer = await auth.signer()
    view, pdf = await core().requests.original(
        signer.person, _request_id(solicitud), goes_on=byte_ranges.goes_on()
    )
    return document_response(pdf, view.document_name, view.sha256)


@endpoint(
    "download",
    "GET /solicitudes/{solicitudId}/documento",
    "The signed PDF",
    (
        Told(
            HTTPStatus.OK,
            answers.SignedAnswer,
            also=(PDF,),
            is_file=True,
            may_have=("ETag", "Content-Disposition", "Accept-Ranges"),
        ),
        parameters.PART,
    ),
    {
        ErrorCode.SOLICITUD_NOT_FOUND,
        ErrorCode.RANGE_UNSATISFIABLE,
        ErrorCode.NOT_SIGNED_YET,
        ErrorCode.STATE,
        ErrorCode.QUERY_INVALID,
    },
    caller=Caller.LINK_OR_BEARER,
    query=(
        Parameter("clave", {"type": "string"}),
        parameters.VERSION,
        *parameters.RANGES,
    ),
)
@blueprint.get("/solicitudes/<digits:solicitud>/documento")
@auth.public
async def download_signed(solicitud: str) -> Response:
    """`GET /solicitudes/{id}/documento`: by a link's `clave`, or by its signer.

    Of several versions the newest, or the one that `sha256` names. Marked public
    because a link needs no bearer; without a valid `clave` the bearer is demanded
    here. A fresh link is only for the signer.

    Raises:
        ApplianceError: `TOKEN_MISSING`, of a link that opens nothing any more; those
            of `signer` and of the document.
    """
    wanted = _request_id(solicitud)
    fresh = content_negotiation.wants_only(JSON)
    clave = request.args.get("clave", "")
    linked = not fresh and await core().links.open(clave, wanted)
    if clave and not (linked or fresh or "Authorization" in request.headers):
        raise ApplianceError(ErrorCode.TOKEN_MISSING, sentence=LINK_OVER)
    signer = None if linked else await auth.signer()
    person = None if signer is None else signer.person
    view, pdf = await core().requests.signed(person, wanted, query.version())
    if fresh and signer is not None:
        base_url = core().settings.web.base_url
        clave = await core().links.mint(view.request, signer.actor)
        url = representations.document_url(base_url, view.request, clave)
        return json_response(representations.signed(view, url))
    if linked:
        # The page that was told this address may fetch it (decisions "CORS").
        cors.open_to(await core().sessions.origins(view.integrator))
    return _signed_file(view, pdf)


@endpoint(
    "preview",
    "POST /solicitudes/{solicitudId}/vista-previa",
    "Where the stamp would lie, and the page with it",
    Told(
        HTTPStatus.OK,
        answers.PreviewAnswer,
        also=("image/png",),
        may_have=("Content-Disposition",),
    ),
    {
        ErrorCode.SOLICITUD_NOT_FOUND,
        *codes.PLACED,
        ErrorCode.PRESET_FIXED,
        ErrorCode.STATE,
        ErrorCode.PDF_MALFORMED,
    },
    body=in_json(requests.Parameters),
)
@blueprint.post("/solicitudes/<digits:solicitud>/vista-previa")
async def preview(solicitud: str) -> Response:
    """`POST /solicitudes/{id}/vista-previa`: the stamp's box and the page."""
    signer = await auth.signer()
    wanted = _request_id(solicitud)
    given = requests.preview_parameters(await body.read_object())
    made = await core().requests.preview(signer.person, wanted, given)
    if content_negotiation.prefers(_PNG, over=JSON):
        return file_response(made.png, _PNG, f"{wanted}-{made.page}.png")
    return json_response(representations.preview(made, i18n.requested()))


@endpoint(
    "reject",
    "POST /solicitudes/{solicitudId}/rechazar",
    "The signer refuses",
    Told(HTTPStatus.OK, answers.RejectedRequest),
    {ErrorCode.SOLICITUD_NOT_FOUND, ErrorCode.STATE, ErrorCode.IN_PROGRESS},
    body=in_json(requests.Rejection),
)
@blueprint.post("/solicitudes/<digits:solicitud>/rechazar")
async def reject(solicitud: str) -> Response:
    """`POST /solicitudes/{id}/rechazar`: the signer refuses, with a reason."""
    signer = await auth.signer()
    wanted = _request_id(solicitud)
    asked = requests.Rejection.read(await body.read_object())
    view = await core().requests.reject(signer, wanted, asked.motivo)
    return json_response(representations.detail(view, i18n.requested()))


def _demand_room() -> None:
    core().signing_calls.demand_room()


@endpoint(
    "sign",
    "POST /solicitudes/firmar",
    "The signing command",
    (
        Told(
            HTTPStatus.OK,
            answers.SignedAnswer,
            also=(PDF,),
            may_have=(
                "ETag",
                "Content-Disposition",
                "Accept-Ranges",
                *parameters.RATES,
            ),
        ),
        Told(
            HTTPStatus.ACCEPTED,
            answers.StillSigning,
            headers=("Location", "Retry-After"),
            may_have=parameters.RATES,
        ),
    ),
    {
        *codes.SIGNING,
        *codes.FRESH,
        *codes.PLACED,
        *codes.EXAMINED,
        ErrorCode.ALREADY_SIGNED,
        ErrorCode.DOCUMENT_CHANGED,
        ErrorCode.DOCUMENT_MISMATCH,
        ErrorCode.NOT_SIGNED_YET,
        ErrorCode.PRESET_FIXED,
        ErrorCode.STILL_SIGNING,
    },
    query=(parameters.IDEMPOTENCY_KEY, parameters.IF_MATCH),
    body=BodyIn(
        {
            JSON: Sent(requests.SignBody),
            MULTIPART: Sent(
                {
                    "type": "object",
                    "properties": {"file": PDF_FILE, "options": requests.SignBody},
                    "required": ["file", "options"],
                    "additionalProperties": False,
                }
            ),
        }
    ),
)
@blueprint.post("/solicitudes/firmar")
@body.brings_document
@auth.before_record(_demand_room)
async def sign() -> Response:
    """`POST /solicitudes/firmar`: the signing command."""
    signer = await auth.signer()
    async with rate_headers.signing_command(signer.person):
        core().tokens.require_fresh(signer)
        conditions, document = query.conditions(), None
        if body.is_multipart():
            form = await body.read_form()
            command = requests.sign_command(form.options, conditions, lenient=True)
            document = form.file
        else:
            command = requests.sign_command(await body.read_object(), conditions)
        request_log.note(solicitudId=command.request)
        sent = None if document is None else await sha256_of(document)
        signing = partial(core().signing.sign, command, signer, sent)
        outcome = await core().signing_calls.run(command.request, signing)
    # A call that brought its document wants the PDF (decisions "PDF in the answer").
    wants_pdf = (
        content_negotiation.prefers(PDF, over=JSON)
        if document is None
        else not content_negotiation.wants_only(JSON)
    )
    if outcome.document is None:
        return going_on(outcome.request, wants_pdf=wants_pdf)
    if wants_pdf:
        view, pdf = await core().requests.signed(signer.person, outcome.request)
        return _signed_file(view, pdf)
    base_url = core().settings.web.base_url
    clave = await core().links.mint(outcome.request, signer.actor)
    url = representations.document_url(base_url, outcome.request, clave)
    return json_response(representations.signed(outcome.document, url))


def going_on(wanted: RequestId, *, wants_pdf: bool) -> Response:
    """202: the work goes on; where to look and when.

    Raises:
        ApplianceError: `STILL_SIGNING` where a PDF was asked for: clients would save
            the JSON of a success as one (decisions "PDF in the answer").
    """
    if wants_pdf:
        raise ApplianceError(
            ErrorCode.STILL_SIGNING,
            extras={"solicitudId": wanted, "retryAfter": _RETRY_S},
        )
    answer: answers.StillSigning = {"status": "en_proceso", "solicitudId": wanted}
    response = json_response(answer, HTTPStatus.ACCEPTED)
    response.headers["Location"] = f"{pages.base_path()}/solicitudes/{wanted}"
    response.headers["Retry-After"] = str(_RETRY_S)
    return response


def _signed_file(view: SignedDocumentView, pdf: DocumentStream) -> Response:
    return document_response(pdf, signed_name(view.file_name), view.sha256)


def _tagged(response: Response, view: RequestView) -> Response:
    response.headers["ETag"] = f'"{view.sha256}"'
    return response


def _request_id(text: str) -> RequestId:
    wanted = requests.request_id(text)
    request_log.note(solicitudId=wanted)
    return wanted
