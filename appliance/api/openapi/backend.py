"""Operations of an integrator's backend.

Source: docs/integration.md, docs/webhooks.md.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from appliance.api.openapi import codes, parameters
from appliance.api.openapi.operation import (
    BodyIn,
    Caller,
    Operation,
    Parameter,
    Sent,
    Told,
)
from appliance.api.wire import (
    backend_answers,
    batches,
    combinations,
    documents,
    processes,
    signers,
    webhooks,
)
from appliance.domain.errors import ErrorCode as E
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.requests.backend_batch import MOST_OF_BATCH
from appliance.domain.vocab import RequestState, WebhookEvent
from appliance.web.body import MULTIPART, PART_LENGTH
from appliance.web.responses import JSON, OCTETS, PDF

_AT: Final = "/api/integration"
_READ, _WRITE = ApiKeyScope.REQUESTS_READ, ApiKeyScope.REQUESTS_WRITE
_OK, _CREATED, _ACCEPTED = HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED
GONE: Final = Told(HTTPStatus.NO_CONTENT)
_FILE: Final = {"type": "string", "format": "binary", "contentMediaType": PDF}
_ONE_DOCUMENT: Final = {
    "if": {"required": ["firmantes"]},
    "then": combinations.given(
        "documento",
        combinations.exactly_one("documentoId", "contenido", value=combinations.TEXT),
    ),
}
"""Of JSON, which brings no file beside it."""
_DOCUMENTS_IN_JSON: Final = {
    "if": {"required": ["documentos"]},
    "then": combinations.given(
        "documentos",
        {
            "items": {
                "properties": {"archivo": {"type": "null"}},
                **combinations.exactly_one(
                    "documentoId", "contenido", value=combinations.TEXT
                ),
            }
        },
    ),
}
"""The same of a batch."""
_LISTED: Final = [each for each in RequestState if each is not RequestState.WAITING]
_PDF_FILE: Final = parameters.DOCUMENT
_PART_GONE: Final = {E.RANGE_UNSATISFIABLE}
_REQUEST_GONE: Final = {E.SOLICITUD_NOT_FOUND}
_LOTE_GONE: Final = {E.LOTE_NOT_FOUND}
_WEBHOOK_GONE: Final = {E.WEBHOOK_NOT_FOUND}


def _parts(*, besides: Any = None, **parts: Any) -> Sent:
    """A body of parts, all of them required; `besides`: what others may be."""
    others: dict[str, Any] = {"additionalProperties": False}
    if besides is not None:
        names = {"minLength": 1, "maxLength": PART_LENGTH}
        others = {
            "additionalProperties": besides,
            "propertyNames": names,
            "maxProperties": len(parts) + MOST_OF_BATCH,
        }
    told = {"type": "object", "properties": parts, "required": list(parts)}
    return Sent({**told, **others})


def in_json(kind: Any, *, is_required: bool = True) -> BodyIn:
    """A body of JSON.

    Args:
        kind: a class.
        is_required: whether it may not be left out.
    """
    return BodyIn({JSON: Sent(kind)}, is_required)


def page_of(kind: Any) -> Told:
    """A page of a list.

    Args:
        kind: of its elements.
    """
    return Told(_OK, kind, is_list=True, may_have=("Link",))


def _made(kind: Any) -> Told:
    return Told(
        _CREATED, kind, headers=("Location",), may_have=("Idempotent-Replayed",)
    )


def backend_operation(
    name: str,
    call: str,
    summary: str,
    scope: ApiKeyScope | None,
    told: Told | tuple[Told, ...],
    own: Iterable[E] = (),
    *,
    query: tuple[Parameter, ...] = (),
    body: BodyIn | None = None,
    is_strict: bool = False,
) -> Operation:
    """An operation below `/api/integration`; see `Operation`."""
    method, path = call.split()
    return Operation(
        name,
        method,
        _AT + path,
        summary,
        Caller.KEY,
        told if isinstance(told, tuple) else (told,),
        frozenset(own),
        scope,
        query,
        body,
        passes_unknown=not is_strict,
    )


REQUESTS: Final = (
    backend_operation(
        "createRequest",
        "POST /requests",
        "Ask people to sign a document",
        _WRITE,
        _made(backend_answers.RequestDetail),
        codes.ORDERED,
        query=(parameters.IDEMPOTENCY_KEY,),
        body=BodyIn(
            {
                MULTIPART: _parts(file=_FILE, options=processes.NewRequest),
                JSON: Sent(processes.NewRequest, _ONE_DOCUMENT),
            }
        ),
    ),
    backend_operation(
        "listRequests",
        "GET /requests",
        "The integrator's signature requests",
        _READ,
        page_of(backend_answers.RequestListed),
        query=(
            parameters.one_of("estado", _LISTED),
            parameters.REFERENCE,
            Parameter("cuil", parameters.CUIL),
            parameters.SINCE,
            parameters.UNTIL,
            Parameter("loteId", parameters.UUID),
            *parameters.PAGE,
        ),
        is_strict=True,
    ),
    backend_operation(
        "getRequest",
        "GET /requests/{procesoId}",
        "One signature request, and what became of it",
        _READ,
        Told(_OK, backend_answers.RequestDetail, headers=("ETag",)),
        _REQUEST_GONE,
    ),
    backend_operation(
        "changeRequest",
        "PATCH /requests/{procesoId}",
        "Change what is said of a signature request",
        _WRITE,
        Told(_OK, backend_answers.RequestDetail),
        {*_REQUEST_GONE, *codes.CHANGED, E.STATE, E.REFERENCE_IN_USE},
        query=(parameters.IF_MATCH,),
        body=in_json(processes.RequestChange),
    ),
    backend_operation(
        "cancelRequest",
        "POST /requests/{procesoId}/cancel",
        "Take a signature request back, for good",
        _WRITE,
        Told(_OK, backend_answers.RequestDetail),
        {*_REQUEST_GONE, E.STATE, E.IN_PROGRESS},
        body=in_json(processes.Cancellation, is_required=False),
    ),
    backend_operation(
        "remindSigners",
        "POST /requests/{procesoId}/remind",
        "Write to those whose turn it is",
        _WRITE,
        Told(_ACCEPTED, backend_answers.Reminded),
        {*_REQUEST_GONE, E.STATE, E.MAIL_OFF},
    ),
    backend_operation(
        "getOriginal",
        "GET /requests/{procesoId}/original",
        "The PDF of a signature request as it is to be signed",
        _READ,
        _PDF_FILE,
        {*_REQUEST_GONE, *_PART_GONE},
        query=parameters.RANGES,
    ),
    backend_operation(
        "getSignedDocument",
        "GET /requests/{procesoId}/document",
        "The PDF that all have signed",
        _READ,
        _PDF_FILE,
        {*_REQUEST_GONE, *_PART_GONE, E.NOT_SIGNED_YET, E.STATE, E.QUERY_INVALID},
        query=(parameters.VERSION, *parameters.RANGES),
    ),
    backend_operation(
        "createBatch",
        "POST /batches",
        "Ask one person to sign many documents",
        _WRITE,
        Told(
            _ACCEPTED,
            backend_answers.BatchDetailed,
            headers=("Location",),
            may_have=("Idempotent-Replayed", "Retry-After"),
        ),
        codes.BATCH_ORDERED,
        query=(parameters.IDEMPOTENCY_KEY,),
        body=BodyIn(
            {
                MULTIPART: _parts(besides=_FILE, options=batches.NewBatch),
                JSON: Sent(batches.NewBatch, _DOCUMENTS_IN_JSON),
            }
        ),
    ),
    backend_operation(
        "listBatches",
        "GET /batches",
        "The integrator's batches",
        _READ,
        page_of(backend_answers.BatchListed),
        query=(parameters.REFERENCE, *parameters.PAGE),
        is_strict=True,
    ),
    backend_operation(
        "getBatch",
        "GET /batches/{loteId}",
        "One batch: its state, its progress, and its documents",
        _READ,
        Told(_OK, backend_answers.BatchDetailed, may_have=("Link", "Retry-After")),
        _LOTE_GONE,
        query=parameters.PAGE,
        is_strict=True,
    ),
    backend_operation(
        "cancelBatch",
        "POST /batches/{loteId}/cancel",
        "Take a batch back, or what of it is not signed yet",
        _WRITE,
        Told(_OK, backend_answers.BatchListed),
        {*_LOTE_GONE, E.STATE, E.IN_PROGRESS},
        body=in_json(processes.Cancellation, is_required=False),
    ),
)

OTHERS: Final = (
    backend_operation(
        "openSession",
        "POST /sessions",
        "Open a session of the iframe for a signature request, or for a batch",
        ApiKeyScope.SESSIONS_WRITE,
        Told(_CREATED, backend_answers.SessionOpened),
        {*_REQUEST_GONE, *_LOTE_GONE, E.STATE},
        body=in_json(processes.SessionWanted),
    ),
    backend_operation(
        "getSigner",
        "GET /signers/{cuil}",
        "Whether somebody can sign, and if not, why",
        ApiKeyScope.PEOPLE_READ,
        Told(_OK, backend_answers.Signer, headers=("ETag",)),
        {E.FIELD_INVALID},
    ),
    backend_operation(
        "vouchForSigner",
        "PUT /signers/{cuil}",
        "Answer for somebody, and invite them",
        ApiKeyScope.PEOPLE_WRITE,
        (
            Told(_OK, backend_answers.VouchedSigner),
            Told(_CREATED, backend_answers.VouchedSigner),
        ),
        {
            E.ALREADY_EXISTS,
            E.MAIL_OFF,
            E.PERSON_NOT_FOUND,
            E.PERSON_STATE,
            E.VOUCH_REFUSED,
            *codes.CHANGED,
        },
        query=(parameters.IF_MATCH,),
        body=in_json(signers.VouchBody),
    ),
    backend_operation(
        "uploadDocument",
        "POST /documents",
        "Upload a document, to be named later",
        _WRITE,
        _made(backend_answers.Upload),
        {*codes.EXAMINED, E.DOCUMENT_NOT_FOUND, E.IDEMKEY_CONFLICT},
        query=(
            Parameter("nombre", {"type": "string", "format": "pdf-name"}),
            Parameter("reparar", {"type": "boolean"}),
            parameters.IDEMPOTENCY_KEY,
        ),
        body=BodyIn(
            {
                PDF: Sent(_FILE),
                OCTETS: Sent(_FILE),
                MULTIPART: _parts(file=_FILE),
                JSON: Sent(documents.UploadBody),
            }
        ),
        is_strict=True,
    ),
    backend_operation(
        "listDocuments",
        "GET /documents",
        "The documents that were uploaded",
        _READ,
        page_of(backend_answers.UploadListed),
        query=parameters.PAGE,
        is_strict=True,
    ),
    backend_operation(
        "getDocument",
        "GET /documents/{documentoId}",
        "One document, with what to know of it",
        _READ,
        Told(_OK, backend_answers.Upload, headers=("ETag",)),
        {E.DOCUMENT_NOT_FOUND},
    ),
    backend_operation(
        "getDocumentContent",
        "GET /documents/{documentoId}/content",
        "The bytes of a document",
        _READ,
        _PDF_FILE,
        {E.DOCUMENT_NOT_FOUND, *_PART_GONE},
        query=parameters.RANGES,
    ),
    backend_operation(
        "deleteDocument",
        "DELETE /documents/{documentoId}",
        "Have a document named no more",
        _WRITE,
        GONE,
        {E.DOCUMENT_NOT_FOUND, *codes.CHANGED},
        query=(parameters.IF_MATCH,),
    ),
    backend_operation(
        "diagnose",
        "GET /diagnose",
        "How the integrator is set up, and what is wrong with it",
        None,
        Told(_OK, backend_answers.DiagnosisTold),
    ),
    backend_operation(
        "getLimits",
        "GET /limits",
        "How much may be called for, and what is left of it",
        _READ,
        Told(_OK, backend_answers.RateLeft, is_list=True),
    ),
)

_HOOKS_READ, _HOOKS_WRITE = ApiKeyScope.WEBHOOKS_READ, ApiKeyScope.WEBHOOKS_WRITE
_DELIVERY_GONE: Final = {*_WEBHOOK_GONE, E.DELIVERY_NOT_FOUND}

WEBHOOKS: Final = (
    backend_operation(
        "createWebhook",
        "POST /webhooks",
        "Be told of what happens",
        _HOOKS_WRITE,
        Told(_CREATED, backend_answers.WebhookWithSecret, headers=("Location",)),
        {E.WEBHOOKS_TOO_MANY},
        body=in_json(webhooks.NewEndpoint),
    ),
    backend_operation(
        "listWebhooks",
        "GET /webhooks",
        "The integrator's webhooks",
        _HOOKS_READ,
        Told(_OK, backend_answers.Webhook, is_list=True),
    ),
    backend_operation(
        "getWebhook",
        "GET /webhooks/{webhookId}",
        "One webhook",
        _HOOKS_READ,
        Told(_OK, backend_answers.Webhook, headers=("ETag",)),
        _WEBHOOK_GONE,
    ),
    backend_operation(
        "changeWebhook",
        "PATCH /webhooks/{webhookId}",
        "Change a webhook, or turn it off or on",
        _HOOKS_WRITE,
        Told(_OK, backend_answers.Webhook),
        {*_WEBHOOK_GONE, *codes.CHANGED},
        query=(parameters.IF_MATCH,),
        body=in_json(webhooks.WebhookChange),
    ),
    backend_operation(
        "deleteWebhook",
        "DELETE /webhooks/{webhookId}",
        "Have a webhook told nothing ever again",
        _HOOKS_WRITE,
        GONE,
        {*_WEBHOOK_GONE, *codes.CHANGED},
        query=(parameters.IF_MATCH,),
    ),
    backend_operation(
        "rotateWebhookSecret",
        "POST /webhooks/{webhookId}/rotate",
        "Give a webhook another secret",
        _HOOKS_WRITE,
        Told(_OK, backend_answers.WebhookWithSecret),
        _WEBHOOK_GONE,
        body=in_json(webhooks.Rotation, is_required=False),
    ),
    backend_operation(
        "testWebhook",
        "POST /webhooks/{webhookId}/test",
        "Have a test sent to a webhook",
        _HOOKS_WRITE,
        Told(_ACCEPTED, backend_answers.DeliveryDetail),
        {*_WEBHOOK_GONE, E.WEBHOOK_DISABLED},
        body=in_json(webhooks.Nothing, is_required=False),
    ),
    backend_operation(
        "listDeliveries",
        "GET /webhooks/{webhookId}/deliveries",
        "What was sent to a webhook",
        _HOOKS_READ,
        page_of(backend_answers.Delivery),
        _WEBHOOK_GONE,
        query=(
            parameters.one_of("estado", webhooks.STATES.values()),
            parameters.one_of("tipo", WebhookEvent),
            Parameter("procesoId", parameters.UUID),
            parameters.SINCE,
            parameters.UNTIL,
            *parameters.PAGE,
        ),
        is_strict=True,
    ),
    backend_operation(
        "getDelivery",
        "GET /webhooks/{webhookId}/deliveries/{entregaId}",
        "One delivery, with each attempt",
        _HOOKS_READ,
        Told(_OK, backend_answers.DeliveryDetail),
        _DELIVERY_GONE,
    ),
    backend_operation(
        "replayDelivery",
        "POST /webhooks/{webhookId}/deliveries/{entregaId}/replay",
        "Send a delivery again",
        _HOOKS_WRITE,
        Told(_ACCEPTED, backend_answers.DeliveryDetail),
        {*_DELIVERY_GONE, E.WEBHOOK_DISABLED},
        body=in_json(webhooks.Nothing, is_required=False),
    ),
    backend_operation(
        "replayDeliveries",
        "POST /webhooks/{webhookId}/replay",
        "Send again what was given up, or all of a time",
        _HOOKS_WRITE,
        Told(_ACCEPTED, backend_answers.ReplayStarted),
        {*_WEBHOOK_GONE, E.WEBHOOK_DISABLED},
        body=in_json(webhooks.ReplayWanted),
    ),
)

OPERATIONS: Final = (*REQUESTS, *OTHERS, *WEBHOOKS)
