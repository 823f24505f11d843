"""Documents and their options in one body, part by part."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from quart import request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.sansio.multipart import (
    Data,
    Epilogue,
    Field,
    File,
    MultipartDecoder,
    NeedData,
)

from appliance.domain import strict_json
from appliance.domain.errors import (
    PART_REPEATED,
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
    FieldMissingError,
)
from appliance.domain.ports import DocumentMemory
from appliance.system.sealed_memory import SealedMemory
from appliance.web.body.arriving_document import ArrivingDocument
from appliance.web.body.multipart_decoder import BoundedDecoder, is_boundary
from appliance.web.body.reading import (
    MULTIPART,
    check_type,
    chunks,
    face_limits,
    multipart_limit,
)

_PARTS_AT_MOST = 16
_FILE: Final = "file"
_OPTIONS: Final = "options"
PART_LENGTH: Final = 64
"""Longest name of a part that is a document."""
Part: TypeAlias = Field | File | Data
"""The head of a part, or more of what is in it."""


@dataclass(frozen=True, slots=True)
class DocumentForm:
    """A multipart body: a PDF and the JSON that goes with it."""

    options: dict[str, object] = field(repr=False)
    file: DocumentMemory = field(repr=False)
    file_name: str | None = None
    """As its part has it; None for a part without a name of a file."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that came as a part of a multipart body."""

    name: str | None
    """As its part has it; None for a part without a name of a file."""
    content: DocumentMemory = field(repr=False)


@dataclass(frozen=True, slots=True)
class DocumentsForm:
    """A multipart body: the JSON of many documents, and their PDFs."""

    options: dict[str, object] = field(repr=False)
    files: Mapping[str, SentFile] = field(repr=False)
    """By the names of their parts, in the order in which they came."""


async def read_file() -> SentFile:
    """Read the present request's body, which must be one part `file`.

    Raises:
        FieldMissingError: it is not there.
        FieldInvalidError: it is there twice, or the body is not what its boundary
            says.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`,
            `FIELD_UNKNOWN`, `DOCUMENT_TOO_LARGE`, `DOCUMENT_EMPTY`.

    Source: RFC 7578.
    """
    parts = _Parts({})
    await read_parts(parts.take, _PARTS_AT_MOST)
    return SentFile(parts.file_name, parts.file())


async def read_form() -> DocumentForm:
    """Read the present request's body, which must be parts `file` and `options`.

    Returns:
        The file's bytes, of any content, and the options read as strictly as
        a JSON body.

    Raises:
        FieldMissingError: a part is missing.
        FieldInvalidError: a part is there twice, or the body is not what its
            boundary says.
        ApplianceError: those of `read_object`, `FIELD_UNKNOWN`,
            `DOCUMENT_TOO_LARGE`, `DOCUMENT_EMPTY`.

    Source: RFC 7578; decisions "document in the call".
    """
    parts = _Parts({_OPTIONS: face_limits().json})
    await read_parts(parts.take, _PARTS_AT_MOST)
    file, options = parts.file(), parts.pick(_OPTIONS)
    return DocumentForm(strict_json.parse_object(options), file, parts.file_name)


async def read_documents(most: int) -> DocumentsForm:
    """Read the present request's body: a part `options`, and files of other names.

    Args:
        most: files that there may be.

    Returns:
        The files' bytes, of any content, and the options, as of `read_form`.

    Raises:
        FieldMissingError: there are no options.
        FieldInvalidError: a part is there twice, its name is too long, or the body
            is not what its boundary says, or has more parts.
        ApplianceError: those of `read_object`, `FIELD_UNKNOWN` of a part without a
            name; with the part as their field `DOCUMENT_TOO_LARGE`, `DOCUMENT_EMPTY`.

    Source: RFC 7578.
    """
    parts = _Documents()
    await read_parts(parts.take, most + 1)
    options, files = parts.options(), parts.files()
    return DocumentsForm(strict_json.parse_object(options), files)


async def read_parts(take: Callable[[Part], None], most: int) -> None:
    """Read the present request's multipart body, as it comes in.

    Args:
        take: what comes of it, one after the other.
        most: parts that it may have.

    Raises:
        FieldInvalidError: the body is not what its boundary says, or has more.
        ApplianceError: `CONTENT_TYPE`, `BODY_TOO_LARGE`, `BODY_TIMEOUT`.

    Source: RFC 7578.
    """
    check_type(MULTIPART)
    boundary = request.mimetype_params.get("boundary", "")
    if not is_boundary(boundary):
        raise ApplianceError(ErrorCode.CONTENT_TYPE)
    try:
        decoder = BoundedDecoder(boundary.encode(), max_parts=most)
        async for chunk in chunks(multipart_limit()):
            decoder.receive_data(chunk)
            _take_ready(decoder, take)
        decoder.receive_data(None)
        is_whole = _take_ready(decoder, take)
    except (ValueError, RequestEntityTooLarge) as exc:
        raise FieldInvalidError("(body)", MULTIPART) from exc
    if not is_whole:
        raise FieldInvalidError("(body)", MULTIPART)


def _take_ready(decoder: MultipartDecoder, take: Callable[[Part], None]) -> bool:
    """Take what the decoder has ready; whether that was the end."""
    while True:
        match decoder.next_event():
            case Field() | File() | Data() as part:
                take(part)
            case Epilogue():
                return True
            case NeedData():
                return False
            case _:
                continue


class _Parts:
    """The parts of a multipart body as they come in: `file`, and others.

    Args:
        limits: of the others, in bytes.
    """

    def __init__(self, limits: dict[str, int]) -> None:
        self._limits = limits
        # A BytesIO grows in place and gives its buffer away uncopied.
        self._content: dict[str, io.BytesIO] = {}
        self._document: ArrivingDocument | None = None
        self._name = ""
        self.file_name: str | None = None

    def take(self, part: Part) -> None:
        """Take what came.

        Raises:
            FieldInvalidError: a part comes twice.
            ApplianceError: `FIELD_UNKNOWN`, `DOCUMENT_TOO_LARGE`,
                `BODY_TOO_LARGE`, `OVERLOADED`.
        """
        if isinstance(part, Data):
            self._add(part.data)
        else:
            self._begin(part.name)
            if isinstance(part, File) and part.name == _FILE:
                self.file_name = part.filename

    def file(self) -> SealedMemory:
        """The document.

        Raises:
            FieldMissingError: it did not come.
            ApplianceError: `DOCUMENT_EMPTY`.
        """
        if self._document is None:
            raise FieldMissingError(_FILE)
        return self._document.whole()

    def pick(self, name: str) -> bytes:
        """The whole of another part.

        Raises:
            FieldMissingError: it did not come.
        """
        if name not in self._content:
            raise FieldMissingError(name)
        return self._content[name].getvalue()

    def _begin(self, name: str | None) -> None:
        allowed = {_FILE, *self._limits}
        if name is None or name not in allowed:
            raise _unknown(name, allowed)
        is_file = name == _FILE
        if name in self._content or (is_file and self._document is not None):
            raise FieldInvalidError(name, sentence=PART_REPEATED)
        self._name = name
        if is_file:
            self._document = ArrivingDocument(face_limits().document)
        else:
            self._content[name] = io.BytesIO()

    def _add(self, data: bytes) -> None:
        if self._name == _FILE and self._document is not None:
            self._document.write(data)
            return
        content = self._content[self._name]
        content.write(data)
        if content.tell() > self._limits[self._name]:
            raise ApplianceError(ErrorCode.BODY_TOO_LARGE)


class _Documents:
    """The parts of a body of many documents as they come in: `options`, and files."""

    def __init__(self) -> None:
        self._limits = face_limits()
        self._documents = ArrivingDocument(self._limits.document)
        self._names: dict[str, str | None] = {}
        self._options: io.BytesIO | None = None
        self._name = ""

    def take(self, part: Part) -> None:
        """Take what came.

        Raises:
            FieldInvalidError: a part comes twice, or its name is too long.
            ApplianceError: `FIELD_UNKNOWN`, `BODY_TOO_LARGE`, `OVERLOADED`; with the
                part as their field `DOCUMENT_TOO_LARGE`, `DOCUMENT_EMPTY`.
        """
        if isinstance(part, Data):
            self._add(part)
        else:
            self._begin(part)

    def options(self) -> bytes:
        """The JSON.

        Raises:
            FieldMissingError: it did not come.
        """
        if self._options is None:
            raise FieldMissingError(_OPTIONS)
        return self._options.getvalue()

    def files(self) -> dict[str, SentFile]:
        """What came besides, by the names of its parts, in order."""
        named = zip(self._names.items(), self._documents.all(), strict=True)
        return {name: SentFile(file_name, each) for (name, file_name), each in named}

    def _begin(self, part: Field | File) -> None:
        # The decoder's types promise a name, but a part may have none.
        name: str | None = part.name
        if not name:
            raise _unknown(name, {_OPTIONS})
        if len(name) > PART_LENGTH:
            raise FieldInvalidError(name[:PART_LENGTH], f"1..{PART_LENGTH} characters")
        self._name = name
        if name in self._names or (name == _OPTIONS and self._options is not None):
            raise FieldInvalidError(name, sentence=PART_REPEATED)
        if name == _OPTIONS:
            self._options = io.BytesIO()
        else:
            self._names[name] = part.filename if isinstance(part, File) else None

    def _add(self, part: Data) -> None:
        if self._name == _OPTIONS and self._options is not None:
            self._options.write(part.data)
            if self._options.tell() > self._limits.json:
                raise ApplianceError(ErrorCode.BODY_TOO_LARGE)
            return
        try:
            self._documents.write(part.data)
            if not part.more_data:
                self._documents.end()
        except ApplianceError as refusal:
            refusal.extras["field"] = self._name
            raise


def _unknown(name: str | None, allowed: set[str]) -> ApplianceError:
    """`FIELD_UNKNOWN` of a part."""
    shown = (name or "")[:PART_LENGTH]
    return ApplianceError(
        ErrorCode.FIELD_UNKNOWN,
        params={"field": shown},
        extras={"field": shown, "allowed": sorted(allowed)},
    )
