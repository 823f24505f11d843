"""Whether an answer is one of those that the OpenAPI document has for its call.

check("GET", "/solicitudes", 200, response.headers, response.content)
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import jsonschema_rs

from appliance.api.openapi.document import openapi_document

_OF_NO_OPERATION: Final = frozenset({405, 431, 501})
"""Of any address: told by the protocol, or of a method that is not answered."""
_NO_BODY: Final = frozenset({204, 304})
_PLAIN: Final = r"[^/]+"


class UndocumentedError(AssertionError):
    """An answer that the document does not have."""


def check(
    method: str,
    path: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes | None,
) -> None:
    """Compare an answer with what the document says of its operation.

    Args:
        method: of the call.
        path: of the call, without its query; that of no operation is passed over.
        status: of the answer.
        headers: of the answer; without an `X-Request-Id` it is another server's.
        body: of the answer; None where it is not read.

    Raises:
        UndocumentedError: status, media type, header or a member is not documented.
    """
    headers = {name.lower(): value for name, value in headers.items()}
    if "x-request-id" not in headers or status in _OF_NO_OPERATION:
        return
    found = _operation("GET" if method == "HEAD" else method, path)
    if found is None:
        return
    name, operation = found
    response = operation["responses"].get(str(status))
    if response is None:
        message = f"{name}: {status} is not documented: {(body or b'')[:500]!r}"
        raise UndocumentedError(message)
    for header, told in response["headers"].items():
        if _is_required(told) and header.lower() not in headers:
            message = f"{name}: {status} lacks the header {header}"
            raise UndocumentedError(message)
    if status not in _NO_BODY and method != "HEAD":
        _check_body(name, status, response, headers, body)


def _check_body(
    name: str,
    status: int,
    response: dict[str, Any],
    headers: Mapping[str, str],
    body: bytes | None,
) -> None:
    media_type = headers.get("content-type", "").partition(";")[0]
    if media_type not in response["content"]:
        message = f"{name}: {status} of the type {media_type} is not documented"
        raise UndocumentedError(message)
    if body is None or not media_type.endswith("json"):
        return
    value = json.loads(body)
    for error in _validator(name, status, media_type).iter_errors(value):
        at = "/".join(map(str, error.instance_path))
        message = f"{name}: {status} at {at or '(body)'}: {error.message}\n{value}"
        raise UndocumentedError(message)


@cache
def _document() -> dict[str, Any]:
    return openapi_document("en")


@cache
def _operations() -> tuple[tuple[re.Pattern[str], dict[str, Any]], ...]:
    """Addresses, those without parameters first."""
    paths = sorted(_document()["paths"].items(), key=lambda each: each[0].count("{"))
    return tuple((re.compile(_pattern(path), re.ASCII), item) for path, item in paths)


def _pattern(path: str) -> str:
    # What follows /pki/ocsp/ may have slashes; a request's number is of digits.
    path = path.replace("{consulta}", ".+").replace("{solicitudId}", "[0-9]+")
    return re.sub(r"{\w+}", _PLAIN, path)


@cache
def _operation(method: str, path: str) -> tuple[str, dict[str, Any]] | None:
    for pattern, item in _operations():
        if pattern.fullmatch(path) and method.lower() in item:
            operation = item[method.lower()]
            return operation["operationId"], operation
    return None


def _is_required(header: dict[str, Any]) -> bool:
    name = header.get("$ref", "").rpartition("/")[2]
    told = _document()["components"]["headers"][name] if name else header
    return bool(told.get("required"))


@cache
def _validator(
    name: str, status: int, media_type: str
) -> jsonschema_rs.Draft202012Validator:
    (operation,) = (
        operation
        for item in _document()["paths"].values()
        for operation in item.values()
        if operation["operationId"] == name
    )
    schema = operation["responses"][str(status)]["content"][media_type]["schema"]
    components = {"schemas": _document()["components"]["schemas"]}
    return jsonschema_rs.Draft202012Validator(
        {"allOf": [schema], "components": components}, validate_formats=True
    )
