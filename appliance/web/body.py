"""The one reader of request bodies: what it lets through is exactly what it says.

Every route that takes a body takes it here. A body is never held beyond its
limit, never waited for beyond its time, and never read as two things.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from quart import Request, current_app, request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import (
    Data,
    Epilogue,
    Field,
    File,
    MultipartDecoder,
    NeedData,
)

from appliance.domain import strict_json
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.web.response import PDF, SLOWEST

MULTIPART: Final = "multipart/form-data"
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_FORM_BYTES = 65_536
_FIELDS_AT_MOST = 64
_PARTS_AT_MOST = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a body is taken, and for how long."""

    json: int
    """Largest JSON body, in bytes."""
    document: int
    """Largest document in a multipart body, in bytes."""
    timeout_s: float
    """Longest a body may take to arrive, in seconds."""

    @property
    def multipart(self) -> int:
        """Largest multipart body, in bytes: a document, its options, its frame."""
        return self.document + 2 * self.json


def bounded_request(limits: Limits, large: Collection[str]) -> type[Request]:
    """Make the request class whose unread body is held up to its kind's limit.

    Quart buffers what arrives while nobody reads; only a body that brings a
    document may be as large as one.

    Args:
        limits: of the face; `limits.json` is its MAX_CONTENT_LENGTH too.
        large: media types of the bodies that bring a document.
    """

    class BoundedRequest(Request):
        """A request with a larger body if that brings a document."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if self.mimetype in large:
                self.body = self.body_class(self.content_length, limits.multipart)

    return BoundedRequest


@dataclass(frozen=True, slots=True)
class Form:
    """A multipart body: a PDF and the JSON that goes with it."""

    options: dict[str, object] = field(repr=False)
    file: bytes = field(repr=False)


def is_multipart() -> bool:
    """Tell whether the present request's body is multipart/form-data."""
    return request.mimetype == MULTIPART


async def read_object() -> dict[str, object]:
    """Read the present request's body, which must be one JSON object.

    Raises:
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `BODY_NOT_OBJECT`, `JSON_INVALID`, `BAD_HEADER`.

    Source: decisions "errors", "Limits".
    """
    check_type(_JSON)
    limits = face_limits()
    raw = b"".join([chunk async for chunk in chunks(limits.json, limits.timeout_s)])
    return as_object(raw)


async def read_fields(*names: str) -> dict[str, str]:
    """Read the present request's body, which must be a page's plain form.

    Args:
        names: the form's fields; each must be there once, and no other.

    Raises:
        FieldInvalidError: a field is missing or there twice, or the body is
            not UTF-8.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `FIELD_UNKNOWN`.

    Source: URL standard, application/x-www-form-urlencoded.
    """
    check_type(_FORM)
    raw = b"".join([c async for c in chunks(_FORM_BYTES, face_limits().timeout_s)])
    try:
        given = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_FIELDS_AT_MOST,
        )
    except ValueError as exc:
        raise FieldInvalidError("(body)", _FORM) from exc
    fields: dict[str, str] = {}
    for name, value in given:
        if name not in names:
            shown = name[:64]
            raise ApplianceError(
                ErrorCode.FIELD_UNKNOWN,
                params={"field": shown},
                extras={"field": shown, "allowed": sorted(names)},
            )
        if name in fields:
            raise FieldInvalidError(name)
        fields[name] = value
    for name in names:
        if name not in fields:
            raise FieldInvalidError(name)
    return fields


async def discard(limit: int) -> None:
    """Take the present request's body and forget it, whatever it is.

    Args:
        limit: most that is taken, in bytes.

    Raises:
        ApplianceError: `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    async for _ in chunks(limit, face_limits().timeout_s):
        pass


async def read_form() -> Form:
    """Read the present request's body, which must be parts `file` and `options`.

    Returns:
        The file's bytes, of any content, and the options read as strictly as
        a JSON body.

    Raises:
        FieldInvalidError: a part is missing, is there twice, or the body is
            not what its boundary says.
        ApplianceError: those of `read_object`, `FIELD_UNKNOWN`,
            `DOCUMENT_TOO_LARGE`, `DOCUMENT_EMPTY`.

    Source: RFC 7578; decisions "document in the call".
    """
    check_type(MULTIPART)
    boundary = request.mimetype_params.get("boundary", "")
    if not boundary:
        raise ApplianceError(ErrorCode.CONTENT_TYPE)
    limits = face_limits()
    parts = _Parts({"file": limits.document, "options": limits.json})
    try:
        decoder = MultipartDecoder(boundary.encode(), max_parts=_PARTS_AT_MOST)
        async for chunk in chunks(limits.multipart, _patience_s(limits)):
            decoder.receive_data(chunk)
            parts.take(decoder)
        decoder.receive_data(None)
        parts.take(decoder)
    except (ValueError, RequestEntityTooLarge) as exc:
        raise FieldInvalidError("(body)", MULTIPART) from exc
    file, options = parts.pick("file"), parts.pick("options")
    if not parts.complete:
        raise FieldInvalidError("(body)", MULTIPART)
    if not file:
        raise ApplianceError(ErrorCode.DOCUMENT_EMPTY)
    return Form(as_object(options), file)


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
        async for chunk in chunks(limits.document, _patience_s(limits)):
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


def _patience_s(limits: Limits) -> float:
    """How long the present request's document is waited for, by its size."""
    return limits.timeout_s + (request.content_length or 0) / SLOWEST


async def read_bytes(expected: str, limit: int) -> bytes:
    """Read the present request's body, whatever bytes it holds.

    Args:
        expected: its media type.
        limit: most that is taken, in bytes.

    Raises:
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    check_type(expected)
    return b"".join([c async for c in chunks(limit, face_limits().timeout_s)])


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


class _Parts:
    """The parts of a multipart body as they come in."""

    def __init__(self, limits: dict[str, int]) -> None:
        self._limits = limits
        # A BytesIO grows in place and gives its buffer away uncopied.
        self._content: dict[str, io.BytesIO] = {}
        self._name = ""
        self.complete = False

    def take(self, decoder: MultipartDecoder) -> None:
        """Take what the decoder has ready.

        Raises:
            FieldInvalidError: a part comes twice.
            ApplianceError: `FIELD_UNKNOWN`, `DOCUMENT_TOO_LARGE`,
                `BODY_TOO_LARGE`.
        """
        while True:
            match decoder.next_event():
                case Field(name=name) | File(name=name):
                    self._begin(name)
                case Data(data=data):
                    self._add(data)
                case Epilogue():
                    self.complete = True
                    return
                case NeedData():
                    return
                case _:
                    continue

    def pick(self, name: str) -> bytes:
        """The whole of one part.

        Raises:
            FieldInvalidError: it did not come.
        """
        if name not in self._content:
            raise FieldInvalidError(name)
        return self._content[name].getvalue()

    def _begin(self, name: str | None) -> None:
        if name is None or name not in self._limits:
            # The decoder's types promise a name, but a part may have none.
            shown = (name or "")[:64]
            raise ApplianceError(
                ErrorCode.FIELD_UNKNOWN,
                params={"field": shown},
                extras={"field": shown, "allowed": sorted(self._limits)},
            )
        if name in self._content:
            raise FieldInvalidError(name)
        self._name = name
        self._content[name] = io.BytesIO()

    def _add(self, data: bytes) -> None:
        content, limit = self._content[self._name], self._limits[self._name]
        content.write(data)
        if content.tell() > limit:
            if self._name == "file":
                raise ApplianceError(
                    ErrorCode.DOCUMENT_TOO_LARGE, params={"limit": limit}
                )
            raise ApplianceError(ErrorCode.BODY_TOO_LARGE)


def face_limits() -> Limits:
    """What the present face takes of a body."""
    limits: Limits = current_app.extensions["rubrica.limits"]
    return limits


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


async def chunks(limit: int, timeout_s: float) -> AsyncIterator[bytes]:
    """The present request's body as it arrives, up to a size and a time.

    Args:
        limit: in bytes.
        timeout_s: for all of it, in seconds.

    Raises:
        ApplianceError: `BODY_TOO_LARGE`, `BODY_TIMEOUT`.
    """
    if (request.content_length or 0) > limit:
        raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
    taken = 0
    deadline = asyncio.get_running_loop().time() + timeout_s
    body = aiter(request.body)
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                chunk = await anext(body, None)
        except TimeoutError as exc:
            raise ApplianceError(ErrorCode.BODY_TIMEOUT) from exc
        except RequestEntityTooLarge as exc:
            raise ApplianceError(ErrorCode.BODY_TOO_LARGE) from exc
        if chunk is None:
            return
        taken += len(chunk)
        if taken > limit:
            raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
        yield chunk
