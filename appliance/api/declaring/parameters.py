"""Parameters and headers that operations have in common."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from appliance.api.declaring.operation import Parameter, Told
from appliance.api.wire import fields
from appliance.api.wire.orders import REFERENCE_LENGTH
from appliance.api.wire.query import LIMIT_AT_MOST
from appliance.domain.ids import MAX_REQUEST_ID
from appliance.web.responses import PDF

UUID: Final = {
    "type": "string",
    "format": "uuid",
    "pattern": "^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
}
CUIL: Final = {
    "type": "string",
    "format": "cuil",
    "pattern": fields.CUIL,
}
SHA256: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
PATH_PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "procesoId": UUID,
    "loteId": UUID,
    "webhookId": UUID,
    "entregaId": UUID,
    "documentoId": UUID,
    "credencialId": UUID,
    "cuil": CUIL,
    "solicitudId": {"type": "integer", "minimum": 1, "maximum": MAX_REQUEST_ID},
    "ordenId": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    # Base64 of a question; what is none is answered all the same (RFC 6960, 4.2.1).
    "consulta": {"type": "string", "minLength": 1},
}
"""By their names in addresses."""

_LINE: Final = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]*$"
_MOMENT: Final = {"type": "string", "format": "date-time"}


def one_of(name: str, words: Iterable[str]) -> Parameter:
    """A parameter of the query that is a word of a closed list.

    Args:
        name: the parameter.
        words: the list.
    """
    return Parameter(name, {"type": "string", "enum": [str(word) for word in words]})


LIMIT: Final = Parameter(
    "limite", {"type": "integer", "minimum": 1, "maximum": LIMIT_AT_MOST}
)
CURSOR: Final = Parameter("cursor", {"type": "string", "format": "cursor"})
PAGE: Final = (LIMIT, CURSOR)
REFERENCE: Final = Parameter(
    "referencia", {"type": "string", "maxLength": REFERENCE_LENGTH, "pattern": _LINE}
)
SINCE: Final = Parameter("desde", _MOMENT)
UNTIL: Final = Parameter("hasta", _MOMENT)
VERSION: Final = Parameter("sha256", SHA256)
IDEMPOTENCY_KEY: Final = Parameter(
    "Idempotency-Key",
    {"type": "string", "pattern": "^[!-~]{1,128}$"},
    place="header",
)
IF_MATCH: Final = Parameter(
    "If-Match",
    {"type": "string", "pattern": '^(?:\\*|(?:W/)?"[!#-~]*")$'},
    place="header",
)
RANGES: Final = (
    # No form of it is refused: whatever is not one range gets the whole document.
    Parameter("Range", {"type": "string"}, place="header"),
    Parameter("If-Range", {"type": "string"}, place="header"),
)
"""Of every operation that answers with `PART`."""

RATES: Final = ("RateLimit", "RateLimit-Policy")
"""What is left of what the caller may call for."""
HEADERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Location": {"type": "string", "format": "uri-reference"},
    "Link": {"type": "string"},
    "ETag": {"type": "string", "pattern": '^"[0-9a-f]{64}"$'},
    "Retry-After": {"type": "integer", "minimum": 0},
    "Content-Disposition": {"type": "string"},
    "Accept-Ranges": {"type": "string", "enum": ["bytes"]},
    "Content-Range": {"type": "string", "pattern": "^bytes [0-9]+-[0-9]+/[0-9]+$"},
    "Cache-Control": {"type": "string"},
    "Content-Language": {"type": "string", "enum": ["es", "en"]},
    "Idempotent-Replayed": {"type": "string", "enum": ["true"]},
    "RateLimit": {"type": "string"},
    "RateLimit-Policy": {"type": "string"},
    "WWW-Authenticate": {"type": "string"},
    "X-Request-Id": {"type": "string", "pattern": "^[0-9a-f]{24}$"},
}
"""Headers of answers, by name."""
_OF_A_DOCUMENT: Final = ("ETag", "Content-Disposition")
PART: Final = Told(
    HTTPStatus.PARTIAL_CONTENT,
    media_type=PDF,
    headers=(*_OF_A_DOCUMENT, "Accept-Ranges", "Content-Range"),
)
"""One range of a stored document."""
DOCUMENT: Final = (
    Told(
        HTTPStatus.OK,
        media_type=PDF,
        headers=_OF_A_DOCUMENT,
        may_have=("Accept-Ranges",),
    ),
    PART,
)
"""A stored document, or the range of it that was asked for."""
