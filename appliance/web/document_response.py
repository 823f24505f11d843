"""Stored documents as answers: whole, or one range of them.

The `ETag` is the document's SHA-256. A range is read from the store by itself, so what
a reader of one page costs does not grow with the document.
"""

from http import HTTPStatus

from quart import Response, g

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ports import DocumentStream
from appliance.web import byte_ranges, i18n, problems
from appliance.web.responses import PDF, file_response


def document_response(pdf: DocumentStream, file_name: str, sha256: str) -> Response:
    """Answer with a stored PDF, or with the range of it that was asked for.

    Args:
        pdf: the document.
        file_name: as the reader should save it; any characters.
        sha256: of the document, hex.

    Source: RFC 9110, 14; RFC 6266.
    """
    tag = f'"{sha256}"'
    response = _chosen(pdf, file_name, tag)
    response.headers["ETag"] = tag
    if pdf.part is not None:
        response.headers["Accept-Ranges"] = "bytes"
    return response


def _chosen(pdf: DocumentStream, file_name: str, tag: str) -> Response:
    wanted = byte_ranges.asked()
    if wanted is None or pdf.part is None or not byte_ranges.still_holds(tag):
        return file_response(pdf, PDF, file_name)
    found = wanted.within(pdf.size_bytes)
    if found is None:
        return _past_the_end(pdf.size_bytes)
    start, end = found
    part = DocumentStream(end - start, pdf.part(start, end))
    response = file_response(part, PDF, file_name)
    response.status_code = HTTPStatus.PARTIAL_CONTENT
    response.headers["Content-Range"] = f"bytes {start}-{end - 1}/{pdf.size_bytes}"
    return response


def _past_the_end(size_bytes: int) -> Response:
    error = ApplianceError(
        ErrorCode.RANGE_UNSATISFIABLE, params={"size": str(size_bytes)}
    )
    response = problems.render(error, g.request_id, i18n.requested())
    response.headers["Content-Range"] = f"bytes */{size_bytes}"
    return response
