"""What the document says of one operation: who may call it, what goes in and out."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

from appliance.domain.errors import ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.web.responses import JSON

BINARY: Final = {
    "type": "string",
    "format": "binary",
    "contentMediaType": "application/octet-stream",
}
"""Bytes that are no JSON. The format is what generators know them by."""


class Caller(StrEnum):
    """By what a call is let in."""

    ANYBODY = "anybody"
    BEARER = "bearer"
    LINK_OR_BEARER = "link_or_bearer"
    SESSION_KEY = "session_key"
    """The API key, in its header alone (contract)."""
    KEY = "key"
    """The API key, in its header or as a bearer."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What may be a body: a class, or a schema; closed by further keywords."""

    kind: Any
    also: Mapping[str, Any] | None = None
    """Keywords that hold besides."""


@dataclass(frozen=True, slots=True)
class BodyIn:
    """The body of a call."""

    content: Mapping[str, Sent]
    """By media type."""
    is_required: bool = True


@dataclass(frozen=True, slots=True)
class Told:
    """An answer that is no error."""

    status: HTTPStatus
    kind: Any = None
    """A class; None: without a body, or bytes."""
    is_list: bool = False
    media_type: str = JSON
    also: tuple[str, ...] = ()
    """Media types of bytes that may come in its place."""
    is_file: bool = False
    """Whether bytes are the usual answer, before the class."""
    headers: tuple[str, ...] = ()
    """Names in `HEADERS` that it always has."""
    may_have: tuple[str, ...] = ()
    """That it sometimes has."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query or a header."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool = False
    place: str = "query"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one address."""

    name: str
    """`operationId`: never changes."""
    method: str
    path: str
    """Its segments in braces are in `PATH_PARAMETERS`."""
    summary: str
    """A msgid."""
    caller: Caller
    told: tuple[Told, ...]
    codes: frozenset[ErrorCode]
    """Errors of its own, besides those of its caller, body and parameters."""
    scope: ApiKeyScope | None = None
    parameters: tuple[Parameter, ...] = ()
    body: BodyIn | None = None
    passes_unknown: bool = True
    """Whether query parameters that are not known are passed over."""
    only_in_test_mode: bool = False
    """Whether it is there in PREPROD alone."""
    body_in_test_mode: BodyIn | None = None
    """The body where there is a test mode; None: the same."""
