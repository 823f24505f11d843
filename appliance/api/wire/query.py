"""Query strings and conditional headers, read as strictly as bodies."""

import base64
import binascii
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from quart import request

from appliance.api.wire.requests import Conditions
from appliance.domain.errors import (
    HEADER_MALFORMED,
    HEADER_NOT_HERE,
    ApplianceError,
    BadHeaderError,
    ErrorCode,
)
from appliance.domain.ids import MAX_REQUEST_ID, RequestId, is_id
from appliance.domain.requests.request import LISTED
from appliance.domain.text.unicode_nfc import is_line
from appliance.domain.vocab import RequestState
from appliance.record import pagination

LIST_PARAMETERS: Final = ("estado", "limite", "cursor")
LIMIT_AT_MOST: Final = 200
_NUMBER = re.compile(r"[0-9]{1,16}", re.ASCII)
_STRONG_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"', re.ASCII)
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,128}", re.ASCII)
_CURSOR_PREFIX = "s1:"
_UNKNOWN = ErrorCode.QUERY_UNKNOWN
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


class QueryInvalidError(ApplianceError):
    """A query parameter that is repeated or out of its domain, or is not known.

    Args:
        name: the parameter.
        allowed: what it may be; of an unknown one, the parameters that there are.
        code: `QUERY_INVALID` or `QUERY_UNKNOWN`.
        sentence: the msgid of what is said, where it is not that of the code.
    """

    def __init__(
        self,
        name: str,
        *allowed: str,
        code: ErrorCode = ErrorCode.QUERY_INVALID,
        sentence: str | None = None,
    ) -> None:
        shown = name[:64]
        super().__init__(
            code,
            params={"field": shown},
            extras={"field": shown, "allowed": list(allowed)},
            sentence=sentence,
        )


def version() -> str | None:
    """The version of a signed document that is asked for: its SHA-256, in hex.

    Raises:
        QueryInvalidError: `QUERY_INVALID`, naming `sha256`.
    """
    given = request.args.getlist("sha256")
    if not given:
        return None
    if len(given) > 1 or not _SHA256.fullmatch(given[0]):
        raise QueryInvalidError("sha256", "64 hexadecimal digits, once")
    return given[0]


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What of the list is asked for."""

    states: frozenset[RequestState]
    limit: int | None
    before: RequestId | None


def list_query() -> ListQuery:
    """Read the query string of `GET /solicitudes`.

    Raises:
        QueryInvalidError: `QUERY_INVALID`, `QUERY_UNKNOWN`, naming the parameter.

    Source: decisions "GET /solicitudes".
    """
    demand_known(LIST_PARAMETERS)
    most = limit(request.args.get("limite"))
    cursor = request.args.get("cursor")
    if cursor is not None and most is None:
        raise QueryInvalidError("cursor", "with limite")
    return ListQuery(
        _states(request.args.get("estado")),
        most,
        None if cursor is None else before(cursor),
    )


def demand_known(names: Collection[str]) -> None:
    """Refuse query parameters that are not known, or come more than once.

    Args:
        names: of those that are.

    Raises:
        QueryInvalidError: `QUERY_INVALID`, `QUERY_UNKNOWN`.
    """
    for name in request.args:
        if name not in names:
            raise QueryInvalidError(name, *names, code=_UNKNOWN)
        if len(request.args.getlist(name)) > 1:
            raise QueryInvalidError(name, "once")


def demand_length(name: str, given: str, most: int) -> None:
    """Refuse a text that can be no name of anything: too long, or not of one line.

    Args:
        name: the parameter.
        given: its value.
        most: characters.

    Raises:
        QueryInvalidError: `QUERY_INVALID`.
    """
    if len(given) > most or not is_line(given):
        raise QueryInvalidError(name, f"1..{most} characters")


def cursor_after(last: RequestId) -> str:
    """The cursor of the page that begins after a request.

    Args:
        last: of the present page.
    """
    return base64.urlsafe_b64encode(f"{_CURSOR_PREFIX}{last}".encode()).decode()


def conditions(*, one_document: bool = True) -> Conditions:
    """Read If-Match and Idempotency-Key of firmar.

    Args:
        one_document: whether the call is about one document: of several an
            If-Match, `*` too, could mean any.

    Returns:
        If-Match without its quotes, so that it compares with a SHA-256; a weak
        tag keeps its `W/` and matches nothing (RFC 9110, 13.1.1).

    Raises:
        BadHeaderError: one is malformed, or not allowed.

    Source: decisions "seeing before signing", "repeating firmar".
    """
    tag = request.headers.get("If-Match")
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
        raise BadHeaderError(
            "Idempotency-Key", HEADER_MALFORMED, "1 to 128 visible ASCII characters"
        )
    if tag is not None and not one_document:
        raise BadHeaderError("If-Match", HEADER_NOT_HERE)
    return Conditions(if_match(), key)


def if_match() -> str | None:
    """Read If-Match of a call that changes something which was read with an ETag.

    Returns:
        The tag without its quotes; a weak one keeps its `W/` and matches nothing.
        None where any will do: without the header, and by `*`.

    Raises:
        BadHeaderError: it is malformed.

    Source: RFC 9110, 13.1.1.
    """
    tag = request.headers.get("If-Match")
    if tag is None or tag == "*":
        return None
    if not _STRONG_TAG.fullmatch(tag):
        raise BadHeaderError("If-Match", HEADER_MALFORMED, '"<sha256>"', "*")
    return tag if tag.startswith("W/") else tag[1:-1]


def limit(text: str | None) -> int | None:
    """Number of elements of a page.

    Args:
        text: `limite`, or None where it was not given.

    Raises:
        QueryInvalidError: `QUERY_INVALID`.
    """
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= LIMIT_AT_MOST:
        raise QueryInvalidError("limite", f"1..{LIMIT_AT_MOST}")
    return int(text)


def _states(text: str | None) -> frozenset[RequestState]:
    """The one state asked for, or those listed by themselves.

    Raises:
        QueryInvalidError: `QUERY_INVALID`.
    """
    if text is None:
        return LISTED
    # Another signer's turn is nobody's business yet: never listed.
    allowed = [state for state in RequestState if state is not RequestState.WAITING]
    for state in allowed:
        if state.value == text:
            return frozenset({state})
    raise QueryInvalidError("estado", *(state.value for state in allowed))


def before_time(cursor: str) -> tuple[datetime, str]:
    """Time and id of the row that a cursor of `pagination.instant` stands after.

    Args:
        cursor: as `Link` gave it.

    Raises:
        QueryInvalidError: `QUERY_INVALID`.
    """
    try:
        place = pagination.read_instant(cursor)
    except ApplianceError as exc:
        raise QueryInvalidError("cursor", "as Link gave it") from exc
    if place is None or not is_id(place[1]):
        raise QueryInvalidError("cursor", "as Link gave it")
    return place


def before(cursor: str) -> RequestId:
    """The request that a cursor stands after.

    Args:
        cursor: as `cursor_after` made it.

    Raises:
        QueryInvalidError: `QUERY_INVALID`.
    """
    try:
        raw = base64.b64decode(cursor.encode("ascii"), b"-_", validate=True)
        prefix, number = raw[:3].decode("ascii"), raw[3:].decode("ascii")
    except (ValueError, binascii.Error) as exc:
        raise QueryInvalidError("cursor", "as Link gave it") from exc
    if prefix != _CURSOR_PREFIX or not _NUMBER.fullmatch(number):
        raise QueryInvalidError("cursor", "as Link gave it")
    if not 1 <= int(number) <= MAX_REQUEST_ID:
        raise QueryInvalidError("cursor", "as Link gave it")
    return RequestId(int(number))
