"""Bodies as they arrive, whole: bytes, one JSON object, or a document."""

import asyncio
import io
from collections.abc import AsyncIterator

from quart import request
from werkzeug.http import parse_options_header

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.text import strict_json
from appliance.web.body.limits import ceiling, face_limits, held, json_limit
from appliance.web.responses import PDF, SLOWEST

_JSON = "application/json"


async def read_object() -> dict[str, object]:
    """Read the present request's body, which must be one JSON object.

    Raises:
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `BODY_NOT_OBJECT`, `JSON_INVALID`, `BAD_HEADER`.

    Source: decisions "errors", "Limits".
    """
    check_type(_JSON)
    raw = b"".join([chunk async for chunk in chunks(json_limit())])
    return as_object(raw)


async def read_document() -> bytes:
    """Read the present request's body, which must be a PDF and nothing else.

    Raises:
        ApplianceError: `CONTENT_TYPE`, `DOCUMENT_TOO_LARGE`, `DOCUMENT_EMPTY`,
            `BODY_TIMEOUT`.
    """
    check_type(PDF)
    limits = face_limits()
    # A BytesIO grows in place and gives its buffer away uncopied.
    content = io.BytesIO()
    try:
        async for chunk in chunks(limits.document):
            content.write(chunk)
    except ApplianceError as exc:
        if exc.code is not ErrorCode.BODY_TOO_LARGE:
            raise
        raise ApplianceError(
            ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": limits.document}
        ) from exc
    if not content.tell():
        raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
    return content.getvalue()


async def read_bytes(expected: str, limit: int) -> bytes:
    """Read the present request's body, whatever bytes it holds.

    Args:
        expected: its media type.
        limit: most that is taken, in bytes.

    Raises:
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    check_type(expected)
    return b"".join([c async for c in chunks(limit, limit)])


async def discard(limit: int) -> None:
    """Take the present request's body and forget it, whatever it is.

    Args:
        limit: most that is taken, in bytes.

    Raises:
        ApplianceError: `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    async for _ in chunks(limit, limit, keep=False):
        pass


def as_object(raw: bytes) -> dict[str, object]:
    """Read bytes that must be one JSON object.

    Args:
        raw: the bytes.

    Raises:
        ApplianceError: `BODY_NOT_OBJECT`, `JSON_INVALID`.
    """
    if not raw.strip(b" \t\r\n"):
        raise ApplianceError(ErrorCode.BODY_NOT_OBJECT)
    value = strict_json.parse(raw)
    if not isinstance(value, dict):
        raise ApplianceError(ErrorCode.BODY_NOT_OBJECT)
    return value


def check_type(expected: str) -> None:
    """Refuse a body of another type, charset or coding before reading it.

    Args:
        expected: media type.

    Raises:
        ApplianceError: `CONTENT_TYPE`.
    """
    media_type, params = parse_options_header(request.headers.get("Content-Type"))
    charset = params.get("charset", "utf-8").lower()
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if (
        media_type.lower() != expected
        or charset not in {"utf-8", "utf8"}
        or coding not in {"", "identity"}
    ):
        raise ApplianceError(ErrorCode.CONTENT_TYPE, extras={"allowed": [expected]})


async def chunks(
    limit: int, most: int | None = None, *, keep: bool = True
) -> AsyncIterator[bytes]:
    """The present request's body as it arrives, up to a size and a time.

    It may take `web.body_timeout_s`, and longer by what came at 64 KiB a second: a
    body that stops, or that comes slower, is not waited for.

    Args:
        limit: in bytes.
        most: of this route, in bytes; None for what its mark says.
        keep: whether somebody holds what came: it counts in the process's budget.

    Raises:
        ApplianceError: `BODY_TOO_LARGE`, `BODY_TIMEOUT`, `OVERLOADED`.
    """
    limit = min(limit, ceiling() if most is None else most)
    if (request.content_length or 0) > limit:
        raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
    holding = held()
    if keep:
        holding.grow(request.content_length or 0)
    taken = 0
    until = asyncio.get_running_loop().time() + face_limits().timeout_s
    body = aiter(request.body)
    while True:
        try:
            async with asyncio.timeout_at(until + taken / SLOWEST):
                chunk = await anext(body, None)
        except TimeoutError as exc:
            raise ApplianceError(ErrorCode.BODY_TIMEOUT) from exc
        if chunk is None:
            return
        taken += len(chunk)
        if taken > limit:
            raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
        if keep:
            holding.grow(taken)
        yield chunk
