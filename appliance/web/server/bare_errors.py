"""Errors that are answered without a call: by the connection, or its protocol.

They have the one shape of all errors, in the language that everybody reads first:
what the client would like to read is not known yet.
"""

import json
import secrets
from http import HTTPStatus
from typing import Final

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web import i18n, problems

_ALWAYS: Final = (
    (b"connection", b"close"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-language", i18n.DEFAULT.encode()),
    (b"content-type", problems.MEDIA_TYPE.encode()),
)


def bare(
    error: ApplianceError, status: int | None = None
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """The headers and the body of an error's answer, after which the connection ends.

    Args:
        error: what is told.
        status: HTTP status, where the protocol's is more exact than the code's.
    """
    request_id = secrets.token_hex(12)
    told = problems.problem(error, request_id, i18n.DEFAULT)
    if status is not None:
        told["status"] = status
        title = problems.TITLES.get(HTTPStatus(status))
        if title is not None:
            told["title"] = i18n.translate(i18n.DEFAULT, title)
    body = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    headers = [*_ALWAYS, (b"x-request-id", request_id.encode())]
    if "retryAfter" in told:
        headers.append((b"retry-after", str(told["retryAfter"]).encode()))
    headers.append((b"content-length", str(len(body)).encode()))
    return headers, body


def bare_answer(code: ErrorCode) -> bytes:
    """The whole of such an answer, as it goes over the connection.

    Args:
        code: of the error.
    """
    headers, body = bare(ApplianceError(code))
    status: HTTPStatus = problems.ANSWERS[code].status
    first = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return first + lines + b"\r\n" + body
