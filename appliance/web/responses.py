"""Answers that are not errors: JSON and files, in one way each."""

import json
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from quart import Response

from appliance.domain.ports import DocumentStream

PDF: Final = "application/pdf"
JSON: Final = "application/json"
OCTETS: Final = "application/octet-stream"
"""Bytes of any kind: what clients say that know no better name for a file."""
_PATIENCE_S: Final = 60
SLOWEST: Final = 65_536
"""Bytes a second of the slowest line on which a document is waited for."""


def json_response(
    value: object, status: int = HTTPStatus.OK, *, media_type: str = JSON
) -> Response:
    """Answer with one JSON value, UTF-8.

    Args:
        value: plain JSON values.
        status: HTTP status.
        media_type: of the answer.
    """
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Response(
        body.encode() + b"\n", status=int(status), headers={"Content-Type": media_type}
    )


def file_response(
    content: bytes | DocumentStream, media_type: str, file_name: str
) -> Response:
    """Answer with a file to be saved, never shown in place.

    Args:
        content: its bytes, or where they come from in pieces.
        media_type: of the file.
        file_name: as the reader should save it; any characters.

    Source: RFC 6266; RFC 8187; decisions "documentoFirmado".
    """
    fallback = "".join(
        char if char.isascii() and char.isprintable() and char not in '"\\%;' else "_"
        for char in file_name
    )
    disposition = (
        f'attachment; filename="{fallback}"; '
        f"filename*=UTF-8''{quote(file_name, safe='')}"
    )
    headers = {"Content-Type": media_type, "Content-Disposition": disposition}
    if isinstance(content, bytes):
        return Response(content, headers=headers)
    headers["Content-Length"] = str(content.size_bytes)
    response = Response(content.pieces, headers=headers)
    # Quart ends an answer after a minute, however large it is.
    response.timeout = _PATIENCE_S + content.size_bytes // SLOWEST
    return response
