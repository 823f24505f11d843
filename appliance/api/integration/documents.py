"""Documents that an integrator's backend uploads once, to be named later."""

from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from appliance.api import rate_headers
from appliance.api.core import core
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import (
    GONE,
    PDF_FILE,
    backend_endpoint,
    made,
    page_of,
    parts,
)
from appliance.api.declaring.operation import BodyIn, Parameter, Sent, Told
from appliance.api.integration import edits
from appliance.api.integration.caller import caller
from appliance.api.wire import backend_answers, documents, query
from appliance.api.wire.documents import NamedDocument
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.requests.uploads import UploadOrder
from appliance.web import body, i18n, request_log
from appliance.web.auth import public
from appliance.web.body import MULTIPART
from appliance.web.document_response import document_response
from appliance.web.responses import JSON, OCTETS, PDF, json_response

blueprint = Blueprint("integration_documents", __name__)

_PATH: Final = "/api/integration/documents"
_REPEATED: Final = "Idempotent-Replayed"


@backend_endpoint(
    "uploadDocument",
    "POST /documents",
    "Upload a document, to be named later",
    ApiKeyScope.REQUESTS_WRITE,
    made(backend_answers.Upload),
    {*codes.EXAMINED, ErrorCode.DOCUMENT_NOT_FOUND, ErrorCode.IDEMKEY_CONFLICT},
    query=(
        Parameter("nombre", {"type": "string", "format": "pdf-name"}),
        Parameter("reparar", {"type": "boolean"}),
        parameters.IDEMPOTENCY_KEY,
    ),
    body=BodyIn(
        {
            PDF: Sent(PDF_FILE),
            OCTETS: Sent(PDF_FILE),
            MULTIPART: parts(file=PDF_FILE),
            JSON: Sent(documents.UploadBody),
        }
    ),
    is_strict=True,
)
@blueprint.post(_PATH)
@public
@body.brings_document
async def upload_document() -> Response:
    """`POST …/documents`: a PDF, which is examined and kept for a time."""
    asking = await caller(ApiKeyScope.REQUESTS_WRITE)
    idempotency_key = query.conditions(one_document=False).idempotency_key
    whose = asking.integrator.id
    is_repeated = await core().uploads.is_repeated(whose, idempotency_key)
    if not is_repeated:
        await rate_headers.demand_bytes(whose)
    document = await _document()
    await rate_headers.count_bytes(whose, is_repeated=is_repeated)
    order = UploadOrder(
        whose,
        asking.key,
        asking.actor,
        document.name,
        idempotency_key,
        repairs=document.repairs,
    )
    taken = await core().uploads.take(order, document.content)
    request_log.note(documentoId=taken.upload.id)
    response = json_response(
        documents.uploaded(taken.upload, i18n.requested()), HTTPStatus.CREATED
    )
    response.headers["Location"] = _address(f"/{taken.upload.id}")
    if taken.is_repeated:
        response.headers[_REPEATED] = "true"
    return response


async def _document() -> NamedDocument:
    """The document of the present body, in whichever form it came.

    Raises:
        ApplianceError: those of the body's readers, `CONTENT_TYPE`, `FILENAME`,
            `FIELD_INVALID`.
    """
    # What the address says is looked at before the body is taken.
    documents.name_of_query()
    if body.is_multipart():
        return documents.sent_document(await body.read_file())
    match request.mimetype:
        case "application/json":
            return documents.document_in_json(await body.read_document_object())
        case "application/pdf" | "application/octet-stream":
            name = documents.name_beside(documents.name_of_disposition())
            content = await body.read_document(OCTETS)
            return NamedDocument(name, content, repairs=documents.repairs_by_query())
        case _:
            allowed = [PDF, OCTETS, body.MULTIPART, JSON]
            raise ApplianceError(ErrorCode.CONTENT_TYPE, extras={"allowed": allowed})


def _address(rest: str) -> str:
    """Where the documents are in public, and what follows that."""
    return f"{core().settings.web.web_url}{_PATH}{rest}"


@backend_endpoint(
    "listDocuments",
    "GET /documents",
    "The documents that were uploaded",
    ApiKeyScope.REQUESTS_READ,
    page_of(backend_answers.UploadListed),
    query=parameters.PAGE,
    is_strict=True,
)
@blueprint.get(_PATH)
@public
async def list_documents() -> Response:
    """`GET …/documents`: a bare JSON array, newest first."""
    asking = await caller(ApiKeyScope.REQUESTS_READ)
    asked = documents.uploads_query()
    # One more than a page shows whether there is a next one.
    found = await core().uploads.page(
        asking.integrator.id, asked.before, asked.limit + 1
    )
    page = found[: asked.limit]
    response = json_response([documents.element(each) for each in page])
    if len(page) < len(found):
        cursor = documents.cursor_after(page[-1])
        url = _address("?" + urlencode({"limite": asked.limit, "cursor": cursor}))
        response.headers["Link"] = f'<{url}>; rel="next"'
    return response


@backend_endpoint(
    "getDocument",
    "GET /documents/{documentoId}",
    "One document, with what to know of it",
    ApiKeyScope.REQUESTS_READ,
    Told(HTTPStatus.OK, backend_answers.Upload, headers=("ETag",)),
    {ErrorCode.DOCUMENT_NOT_FOUND},
)
@blueprint.get(f"{_PATH}/<documento>")
@public
async def show_document(documento: str) -> Response:
    """`GET …/documents/{documentoId}`: what is known of one."""
    asking = await caller(ApiKeyScope.REQUESTS_READ)
    tag = await edits.tag(asking, Subject.UPLOAD, documento)
    upload = await core().uploads.get(asking.integrator.id, documento)
    request_log.note(documentoId=upload.id)
    told = json_response(documents.uploaded(upload, i18n.requested()))
    return edits.tagged(told, tag)


@backend_endpoint(
    "getDocumentContent",
    "GET /documents/{documentoId}/content",
    "The bytes of a document",
    ApiKeyScope.REQUESTS_READ,
    parameters.DOCUMENT,
    {ErrorCode.DOCUMENT_NOT_FOUND, ErrorCode.RANGE_UNSATISFIABLE},
    query=parameters.RANGES,
)
@blueprint.get(f"{_PATH}/<documento>/content")
@public
async def download_document(documento: str) -> Response:
    """`GET …/documents/{documentoId}/content`: its bytes."""
    asking = await caller(ApiKeyScope.REQUESTS_READ)
    upload, pdf = await core().uploads.content(asking.integrator.id, documento)
    request_log.note(documentoId=upload.id)
    return document_response(pdf, upload.name, upload.document.sha256)


@backend_endpoint(
    "deleteDocument",
    "DELETE /documents/{documentoId}",
    "Have a document named no more",
    ApiKeyScope.REQUESTS_WRITE,
    GONE,
    {ErrorCode.DOCUMENT_NOT_FOUND, *codes.CHANGED},
    query=(parameters.IF_MATCH,),
)
@blueprint.delete(f"{_PATH}/<documento>")
@public
async def delete_document(documento: str) -> Response:
    """`DELETE …/documents/{documentoId}`: it can be named no more."""
    asking = await caller(ApiKeyScope.REQUESTS_WRITE)
    async with edits.unchanged(asking, Subject.UPLOAD, documento):
        await core().uploads.remove(asking.integrator.id, asking.actor, documento)
    request_log.note(documentoId=documento)
    return Response(b"", status=HTTPStatus.NO_CONTENT)
