"""Declares an endpoint above its handler: what the OpenAPI document says of it.

    @backend_endpoint(
        "getBatch",
        "GET /batches/{loteId}",
        "One batch: its state, its progress, and its documents",
        ApiKeyScope.REQUESTS_READ,
        Told(HTTPStatus.OK, backend_answers.BatchDetailed),
        {ErrorCode.LOTE_NOT_FOUND},
    )
    @blueprint.get(f"{PATH}/<lote>")
    @public
    async def show(lote: str) -> Response:

Source: docs/contract.md, docs/api.md, docs/integration.md, docs/webhooks.md.
"""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar

from appliance.api.declaring.operation import (
    BINARY,
    BodyIn,
    Caller,
    Operation,
    Parameter,
    Sent,
    Told,
)
from appliance.api.wire import combinations
from appliance.domain.errors import ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.requests.backend_batch import MOST_OF_BATCH
from appliance.domain.vocab import RequestState
from appliance.web.body import PART_LENGTH
from appliance.web.responses import JSON, OCTETS, PDF

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Declares(Protocol):
    """Decorates a handler, which stays as it is."""

    def __call__(self, handler: Handler, /) -> Handler:
        """Note what was declared."""
        ...


DECLARED: Final[list[Operation]] = []
"""Every operation whose handler's module was imported."""
GONE: Final = Told(HTTPStatus.NO_CONTENT)
PDF_FILE: Final = {"type": "string", "format": "binary", "contentMediaType": PDF}
LISTED_STATES: Final = [
    each for each in RequestState if each is not RequestState.WAITING
]
ONE_DOCUMENT_IN_JSON: Final = {
    "if": {"required": ["firmantes"]},
    "then": combinations.given(
        "documento",
        combinations.exactly_one("documentoId", "contenido", value=combinations.TEXT),
    ),
}
"""Of JSON, which brings no file beside it."""
DOCUMENTS_IN_JSON: Final = {
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
_BACKEND: Final = "/api/integration"


def endpoint(
    name: str,
    call: str,
    summary: str,
    told: Told | tuple[Told, ...],
    own: Iterable[ErrorCode] = (),
    *,
    caller: Caller = Caller.BEARER,
    query: tuple[Parameter, ...] = (),
    body: BodyIn | None = None,
    scope: ApiKeyScope | None = None,
    is_strict: bool = False,
) -> Declares:
    """Declare an endpoint of signers, or of anybody.

    Args:
        name: its `operationId`, which never changes.
        call: method and path; segments in braces are in `PATH_PARAMETERS`.
        summary: a msgid.
        told: answers that are no error.
        own: errors of its own, besides those of its caller, body and parameters.
        caller: by what a call is let in.
        query: parameters of the query and headers.
        body: of the call.
        scope: of the API key, if it is one.
        is_strict: whether parameters that are not known are refused.
    """
    method, path = call.split()
    return _declare(
        Operation(
            name,
            method,
            path,
            summary,
            caller,
            told if isinstance(told, tuple) else (told,),
            frozenset(own),
            scope,
            query,
            body,
            passes_unknown=not is_strict,
        )
    )


def backend_endpoint(
    name: str,
    call: str,
    summary: str,
    scope: ApiKeyScope | None,
    told: Told | tuple[Told, ...],
    own: Iterable[ErrorCode] = (),
    *,
    query: tuple[Parameter, ...] = (),
    body: BodyIn | None = None,
    is_strict: bool = False,
    only_in_test_mode: bool = False,
    body_in_test_mode: BodyIn | None = None,
) -> Declares:
    """Declare an endpoint of integrators' backends, below `/api/integration`.

    Args:
        name: as of `endpoint`, as are all that are not named here.
        call: method and path below that.
        summary: a msgid.
        scope: that the API key must have; None: none.
        told: answers that are no error.
        own: errors of its own.
        query: parameters of the query and headers.
        body: of the call.
        is_strict: whether parameters that are not known are refused.
        only_in_test_mode: whether it is there in PREPROD alone.
        body_in_test_mode: of the call, where that has more in it.
    """
    method, path = call.split()
    return _declare(
        Operation(
            name,
            method,
            _BACKEND + path,
            summary,
            Caller.KEY,
            told if isinstance(told, tuple) else (told,),
            frozenset(own),
            scope,
            query,
            body,
            passes_unknown=not is_strict,
            only_in_test_mode=only_in_test_mode,
            body_in_test_mode=body_in_test_mode,
        )
    )


def published_endpoint(name: str, call: str, summary: str, media_type: str) -> Declares:
    """Declare a file that the internal CA publishes.

    Args:
        name: as of `endpoint`.
        call: method and path.
        summary: a msgid.
        media_type: of the file.
    """
    return endpoint(
        name,
        call,
        summary,
        (
            Told(HTTPStatus.OK, media_type=media_type, headers=("Cache-Control",)),
            Told(HTTPStatus.NOT_MODIFIED, headers=("ETag",)),
        ),
        {ErrorCode.NOT_FOUND, ErrorCode.HSM_UNAVAILABLE, ErrorCode.RATE_LIMITED},
        caller=Caller.ANYBODY,
    )


def in_json(kind: Any, *, is_required: bool = True) -> BodyIn:
    """A body of JSON.

    Args:
        kind: a class.
        is_required: whether it may not be left out.
    """
    return BodyIn({JSON: Sent(kind)}, is_required)


def in_bytes(media_type: str) -> BodyIn:
    """A body of bytes, by their own media type or as bytes of any kind.

    Args:
        media_type: their own.
    """
    return BodyIn({name: Sent(BINARY) for name in (media_type, OCTETS)})


def parts(*, besides: Any = None, **required: Any) -> Sent:
    """A body of parts.

    Args:
        besides: what others may be; None: there are no others.
        **required: schemas of parts that must be there.
    """
    others: dict[str, Any] = {"additionalProperties": False}
    if besides is not None:
        names = {"minLength": 1, "maxLength": PART_LENGTH}
        others = {
            "additionalProperties": besides,
            "propertyNames": names,
            "maxProperties": len(required) + MOST_OF_BATCH,
        }
    told = {"type": "object", "properties": required, "required": list(required)}
    return Sent({**told, **others})


def page_of(kind: Any) -> Told:
    """A page of a list.

    Args:
        kind: of its elements.
    """
    return Told(HTTPStatus.OK, kind, is_list=True, may_have=("Link",))


def made(kind: Any) -> Told:
    """Something new, and where it is; said again to a repeated call.

    Args:
        kind: of what tells it.
    """
    return Told(
        HTTPStatus.CREATED,
        kind,
        headers=("Location",),
        may_have=("Idempotent-Replayed",),
    )


def _declare(operation: Operation) -> Declares:
    def declared(handler: Handler, /) -> Handler:
        DECLARED.append(operation)
        return handler

    return declared
