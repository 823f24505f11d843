"""The words about documents that an integrator's backend uploads, in and out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final
from urllib.parse import unquote_to_bytes

from pydantic_core import core_schema
from quart import request

from appliance.api.wire import backend_answers, representations
from appliance.api.wire.fields import Body, Rule, base64_bytes, boolean
from appliance.api.wire.query import (
    QueryInvalidError,
    before_time,
    demand_known,
    limit,
)
from appliance.domain.errors import (
    HEADER_MALFORMED,
    ApplianceError,
    BadHeaderError,
    ErrorCode,
)
from appliance.domain.ports import DocumentBytes
from appliance.domain.requests.uploads import DEFAULT_NAME, UploadedDocument
from appliance.record import pagination
from appliance.web.body import SentFile

LIST_PARAMETERS: Final = ("limite", "cursor")
_PAGE: Final = 50
_NAME: Final = "nombre"
_REPAIRS: Final = "reparar"
_WORDS: Final = {"true": True, "false": False}
_HEADER: Final = "Content-Disposition"
_HEADER_AT_MOST: Final = 2048
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 (a grammar's word)
_DISPOSITION: Final = re.compile(
    rf'{_TOKEN}(?:[ \t]*;[ \t]*{_TOKEN}[ \t]*=[ \t]*(?:{_TOKEN}|"(?:[^"\\]|\\.)*"))*',
    re.ASCII,
)
_PARAMETER: Final = re.compile(
    rf';[ \t]*({_TOKEN})[ \t]*=[ \t]*(?:({_TOKEN})|"((?:[^"\\]|\\.)*)")', re.ASCII
)
_EXTENDED: Final = re.compile(
    r"(?i:UTF-8)'[A-Za-z0-9-]*'((?:%[0-9A-Fa-f]{2}|[!#$&+.^_`|~0-9A-Za-z-])+)",
    re.ASCII,
)
"""Source: RFC 8187, 3.2.1."""
_BROKEN: Final = "\N{REPLACEMENT CHARACTER}"


def _file_name() -> Rule:
    """A string: what no file may be called is refused where it is kept."""
    return Rule(core_schema.str_schema(strict=True), "string", ("a file name",))


class UploadBody(Body):
    """A PDF in JSON."""

    nombre: Annotated[str | None, _file_name()] = None
    contenido: Annotated[bytes, base64_bytes()]
    reparar: Annotated[bool, boolean()] = True


class _NameHeaderError(BadHeaderError):
    """A Content-Disposition that cannot be read in one way alone."""

    def __init__(self) -> None:
        example = "attachment; filename*=UTF-8''a%C3%B1o.pdf"
        super().__init__(_HEADER, HEADER_MALFORMED, example)


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A PDF, and how its file is called."""

    name: str
    content: DocumentBytes = field(repr=False)
    repairs: bool = True
    """Whether a copy may be written anew and taken in its place."""


def sent_document(sent: SentFile) -> NamedDocument:
    """A body of parts, named by the query or by its part.

    Args:
        sent: the part.

    Raises:
        QueryInvalidError: the query has something else, or it twice.
        ApplianceError: `FILENAME`.
    """
    name = name_beside(sent.name)
    return NamedDocument(name, sent.content, repairs=repairs_by_query())


def document_in_json(body: Mapping[str, object]) -> NamedDocument:
    """A JSON object, named by the query or by itself.

    Args:
        body: the object.

    Raises:
        FieldInvalidError: a value of another type, or one is missing.
        QueryInvalidError: the query has something else, or it twice.
        ApplianceError: `FIELD_UNKNOWN`, `FILENAME`.
    """
    read = UploadBody.read(body)
    repairs = read.reparar and repairs_by_query()
    return NamedDocument(name_beside(read.nombre), read.contenido, repairs=repairs)


def name_beside(own: str | None) -> str:
    """The name of the query, else the one that came with the document.

    Args:
        own: the latter; None where it has none.

    Raises:
        QueryInvalidError: the query has something else, or it twice.
        ApplianceError: `FILENAME`: it is not all text.
    """
    name = name_of_query() or (DEFAULT_NAME if own is None else own)
    if _BROKEN in name:
        raise ApplianceError(ErrorCode.FILENAME)
    return name


def name_of_query() -> str | None:
    """The name that the query string gives.

    Raises:
        QueryInvalidError: it is there twice, empty, or beside something else.
    """
    demand_known((_NAME, _REPAIRS))
    name = request.args.get(_NAME)
    if name == "":
        raise QueryInvalidError(_NAME, "a file name")
    return name


def repairs_by_query() -> bool:
    """Whether a copy may be made of the document, as the query string says.

    Raises:
        QueryInvalidError: it is neither `true` nor `false`.
    """
    word = request.args.get(_REPAIRS, "true")
    if word not in _WORDS:
        raise QueryInvalidError(_REPAIRS, *_WORDS)
    return _WORDS[word]


def name_of_disposition() -> str | None:
    """The name that Content-Disposition gives; `filename*` goes before `filename`.

    Raises:
        _NameHeaderError: it is malformed, has one of them twice, or has characters in
            `filename` that two readers would read differently.

    Source: RFC 6266, 4.1, 4.3; RFC 8187.
    """
    headers = request.headers.getlist(_HEADER)
    if not headers:
        return None
    header = headers[0].strip(" \t")
    found: dict[str, str] = {}
    if (
        len(headers) > 1
        or len(header) > _HEADER_AT_MOST
        or not _DISPOSITION.fullmatch(header)
    ):
        raise _NameHeaderError
    for name, word, quoted in _PARAMETER.findall(header):
        if name.lower() in found:
            raise _NameHeaderError
        found[name.lower()] = word or _unquoted(quoted)
    if "filename*" in found:
        return _extended(found["filename*"])
    plain = found.get("filename")
    if plain is not None and not plain.isascii():
        raise _NameHeaderError
    return plain


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _extended(text: str) -> str:
    """Text of RFC 8187.

    Raises:
        _NameHeaderError: it is none, or not in UTF-8.
    """
    value = _EXTENDED.fullmatch(text)
    if value is None:
        raise _NameHeaderError
    try:
        return unquote_to_bytes(value[1]).decode("utf-8")
    except UnicodeDecodeError as exc:
        raise _NameHeaderError from exc


@dataclass(frozen=True, slots=True)
class UploadsQuery:
    """What of the list is asked for."""

    limit: int
    before: tuple[datetime, str] | None


def uploads_query() -> UploadsQuery:
    """Read the query string of the list.

    Raises:
        QueryInvalidError: `QUERY_INVALID`, `QUERY_UNKNOWN`, naming the parameter.
    """
    demand_known(LIST_PARAMETERS)
    most = limit(request.args.get("limite"))
    cursor = request.args.get("cursor")
    before = None if cursor is None else before_time(cursor)
    return UploadsQuery(_PAGE if most is None else most, before)


def cursor_after(last: UploadedDocument) -> str:
    """The cursor of the page that begins after a document.

    Args:
        last: of the present page.
    """
    return pagination.instant(last.created, last.id)


def element(upload: UploadedDocument) -> backend_answers.UploadListed:
    """An element of the list.

    Args:
        upload: the document.
    """
    return {**_about(upload), **_times(upload)}


def uploaded(upload: UploadedDocument, lang: str) -> backend_answers.Upload:
    """All of one document, in the words of `GET /solicitudes/{id}`.

    Args:
        upload: the document.
        lang: of what is told about it.
    """
    kept = upload.document
    return {
        **_about(upload),
        **representations.described(kept.inspection, kept.repair, lang),
        **_times(upload),
    }


def _about(upload: UploadedDocument) -> backend_answers.UploadNamed:
    inspection = upload.document.inspection
    return {
        "documentoId": upload.id,
        "nombre": upload.name,
        "sha256": upload.document.sha256,
        "tamano": inspection.size_bytes,
        "paginas": len(inspection.pages),
    }


def _times(upload: UploadedDocument) -> backend_answers.UploadTimes:
    return {
        "creado": representations.instant(upload.created),
        "vence": representations.instant(upload.until),
    }
