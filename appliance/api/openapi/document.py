"""The whole document: OpenAPI 3.1 of every operation of the HTTP API.

    document = openapi_document("en", web_url="https://firma.example")

Nothing of it is written by hand but what each endpoint declares above its handler
(`endpoint`): schemas are those that calls are checked by and that answers are built by,
statuses those of the errors.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from re import findall
from typing import Any, Final

from appliance.api import (
    auth,
    clave,
    credenciales,
    lotes,
    pki,
    public,
    sessions,
    solicitudes,
    tsa,
)
from appliance.api.declaring import codes, parameters
from appliance.api.declaring.endpoint import DECLARED
from appliance.api.declaring.operation import (
    BINARY,
    Caller,
    Operation,
    Parameter,
    Sent,
    Told,
)
from appliance.api.integration import (
    batches,
    diagnose,
    documents,
    limits,
    requests,
    signers,
    signers_for_tests,
)
from appliance.api.integration import sessions as backend_sessions
from appliance.api.integration import (
    webhooks as backend_webhooks,
)
from appliance.api.openapi.meanings import meaning_of, with_meanings
from appliance.api.openapi.schemas import Schema, Schemas, array_of
from appliance.api.openapi.webhooks import webhooks
from appliance.api.wire import answers
from appliance.domain.errors import ErrorCode
from appliance.web import i18n, problems
from appliance.web.responses import JSON, OCTETS, PDF

DECLARING: Final = (
    *(auth, clave, credenciales, lotes, pki, public, sessions, solicitudes, tsa),
    *(backend_sessions, backend_webhooks, batches, diagnose, documents, limits),
    *(requests, signers, signers_for_tests),
)
"""Modules whose handlers declare their endpoints as they are imported."""
_METHODS: Final = ("POST", "GET", "PUT", "PATCH", "DELETE")
OPERATIONS: Final = tuple(
    sorted(DECLARED, key=lambda each: (each.path, _METHODS.index(each.method)))
)
"""All that there are anywhere."""
TITLE: Final = "Rubrica API"
SUMMARY: Final = "Rúbrica: remote signing of PDF documents"
_VERSION: Final = version("rubrica")
_BACKEND: Final = "/api/integration/"
_HTML: Final = "text/html"
_ALWAYS: Final = frozenset({"X-Request-Id", "WWW-Authenticate"})
"""Headers that answers have wherever they are named."""
_SECURITY: Final[Mapping[Caller, tuple[str, ...]]] = {
    Caller.ANYBODY: (),
    Caller.BEARER: ("token",),
    Caller.LINK_OR_BEARER: ("token",),
    Caller.SESSION_KEY: ("apiKey",),
    Caller.KEY: ("apiKey", "apiKeyAsBearer"),
}
_SCHEMES: Final = {
    "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
    "apiKeyAsBearer": {"type": "http", "scheme": "bearer"},
}


def openapi_document(
    lang: str = i18n.DEFAULT,
    *,
    web_url: str = "/",
    base_url: str | None = None,
    has_test_mode: bool = True,
) -> dict[str, Any]:
    """OpenAPI 3.1 of the HTTP API, for JSON.

    Args:
        lang: of its summaries, `es` or `en`.
        web_url: where `/api/integration` stands, without a slash at its end.
        base_url: where all else does; None: there too.
        has_test_mode: whether that is there, as in PREPROD alone.
    """
    made = _document(lang, has_test_mode)
    document = {**made, "servers": [{"url": web_url}]}
    if base_url is None or base_url == web_url:
        return document
    elsewhere = {"servers": [{"url": base_url}]}
    document["paths"] = {
        path: item if path.startswith(_BACKEND) else {**item, **elsewhere}
        for path, item in made["paths"].items()
    }
    return document


@cache
def _document(lang: str, has_test_mode: bool) -> dict[str, Any]:  # noqa: FBT001 (of a cache)
    """The same, wherever it is served."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for operation in _operations(has_test_mode=has_test_mode):
        told = _operation(operation, schemas, lang)
        paths[operation.path][operation.method.lower()] = told
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": _info(lang),
        "paths": {path: paths[path] for path in sorted(paths)},
        "webhooks": webhooks(schemas, lang),
        "components": {
            "schemas": {
                name: with_meanings(schemas.made[name], name, lang)
                for name in sorted(schemas.made)
            },
            "headers": {
                name: {"required": name in _ALWAYS, "schema": dict(schema)}
                for name, schema in parameters.HEADERS.items()
            },
            "securitySchemes": _SCHEMES,
        },
    }


def _info(lang: str) -> dict[str, str]:
    """The Info Object. Generators name packages by the title, so it is ASCII."""
    return {
        "title": TITLE,
        "summary": i18n.translate(lang, SUMMARY),
        "version": _VERSION,
    }


def _operations(*, has_test_mode: bool) -> list[Operation]:
    """Those that there are, as they are there."""
    if not has_test_mode:
        return [each for each in OPERATIONS if not each.only_in_test_mode]
    return [
        replace(each, body=each.body_in_test_mode or each.body) for each in OPERATIONS
    ]


def _operation(operation: Operation, schemas: Schemas, lang: str) -> dict[str, Any]:
    """An Operation Object."""
    in_path = [
        Parameter(name, parameters.PATH_PARAMETERS[name], True, "path")  # noqa: FBT003
        for name in findall(r"{(\w+)}", operation.path)
    ]
    told: dict[str, Any] = {
        "operationId": operation.name,
        "summary": i18n.translate(lang, operation.summary),
        "tags": [_tag(operation.path)],
        "security": _security(operation),
        "parameters": [
            _parameter(each, lang) for each in (*in_path, *operation.parameters)
        ],
        "responses": _responses(operation, schemas, lang),
    }
    if operation.body is not None:
        told["requestBody"] = {
            "required": operation.body.is_required,
            "content": {
                media_type: {"schema": _sent(sent, schemas)}
                for media_type, sent in operation.body.content.items()
            },
        }
    return told


def _parameter(parameter: Parameter, lang: str) -> dict[str, Any]:
    """A Parameter Object."""
    told: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.is_required,
        "schema": dict(parameter.schema),
    }
    said = meaning_of(parameter.name, "", lang)
    return told if said is None else {**told, "description": said}


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    """Security Requirement Objects: one of them is enough."""
    scopes = [] if operation.scope is None else [operation.scope.value]
    found: list[dict[str, list[str]]] = [
        {name: scopes} for name in _SECURITY[operation.caller]
    ]
    return [*found, {}] if operation.caller is Caller.LINK_OR_BEARER else found


def _tag(path: str) -> str:
    """What an operation is listed under: the first word of its address that tells."""
    return path.removeprefix(_BACKEND).strip("/").split("/")[0]


def _sent(sent: Sent, schemas: Schemas) -> Schema:
    """What a body may be."""
    schema = _schema_of(sent.kind, schemas)
    # Validators apply it. Generators leave it aside, and see the class alone.
    return schema if sent.also is None else {"allOf": [schema], **sent.also}


def _schema_of(kind: Any, schemas: Schemas) -> Schema:
    """The schema of a class, of one of several, or of an object that has some."""
    if isinstance(kind, type):
        return schemas.of(kind)
    if isinstance(kind, tuple):
        return {"oneOf": [schemas.of(each) for each in kind]}
    return {
        name: {part: _schema_of(each, schemas) for part, each in value.items()}
        if name == "properties"
        else value
        for name, value in kind.items()
    }


def _responses(operation: Operation, schemas: Schemas, lang: str) -> dict[str, Any]:
    """A Responses Object: what is answered, status by status."""
    made = {
        str(told.status.value): _answered(operation, told, schemas)
        for told in operation.told
    }
    by_status: dict[HTTPStatus, list[ErrorCode]] = defaultdict(list)
    for code in sorted(_codes(operation)):
        by_status[problems.ANSWERS[code].status].append(code)
    for status in sorted(by_status):
        refused = _refused(operation, status, by_status[status], schemas, lang)
        also = made.get(str(status.value))
        if also is not None:
            refused["content"] |= also["content"]
        made[str(status.value)] = refused
    return {status: made[status] for status in sorted(made)}


def _codes(operation: Operation) -> frozenset[ErrorCode]:
    """Every error that it may answer with."""
    found = codes.ANY | codes.OF_CALLER[operation.caller] | operation.codes
    if PDF in _media_types(operation):
        found |= codes.STORED
    if "{" in operation.path:
        found |= codes.ADDRESS
    if not operation.passes_unknown:
        found |= codes.QUERY
    if operation.body is not None:
        found |= codes.BODY
        if JSON in operation.body.content:
            found |= codes.OBJECT
    return found


def _media_types(operation: Operation) -> set[str]:
    """Media types of the answers that are no errors."""
    return {
        media_type
        for told in operation.told
        for media_type in (told.media_type, *told.also)
    }


def _answered(operation: Operation, told: Told, schemas: Schemas) -> dict[str, Any]:
    """A Response Object of what is no error."""
    values: dict[str, Any] = {}
    if told.kind is not None:
        schema = _schema_of(told.kind, schemas)
        schema = array_of(schema) if told.is_list else schema
        values[told.media_type] = {"schema": schema}
    is_file = told.is_file or (told.kind is None and told.media_type != JSON)
    names = [*told.also] if told.kind is not None else [told.media_type, *told.also]
    files = {
        media_type: {"schema": BINARY}
        for media_type in (*names, *([OCTETS] if is_file else ()))
        if media_type != JSON
    }
    # Generated clients read what the first of them that they know says.
    content = {**files, **values} if is_file else {**values, **files}
    may_have = told.may_have
    if operation.caller is Caller.KEY:
        may_have = (*may_have, *parameters.RATES)
    return {
        "description": told.status.phrase,
        "headers": _headers(("X-Request-Id", *told.headers), may_have),
        **({"content": content} if content else {}),
    }


def _refused(
    operation: Operation,
    status: HTTPStatus,
    found: list[ErrorCode],
    schemas: Schemas,
    lang: str,
) -> dict[str, Any]:
    """A Response Object of the errors of one status."""
    narrowed = {"code": {"enum": [*found]}, "status": {"const": status.value}}
    schema = {
        "allOf": [schemas.of(answers.Problem)],
        # Validators apply it. Generators leave it aside, and have one type of error.
        "dependentSchemas": {"code": {"properties": narrowed}},
    }
    content: dict[str, Any] = {problems.MEDIA_TYPE: {"schema": schema}}
    if operation.method == "GET":
        # To a person's browser the same is told on a page.
        content[_HTML] = {"schema": {"type": "string"}}
    always = ["X-Request-Id"]
    if status is HTTPStatus.UNAUTHORIZED:
        always.append("WWW-Authenticate")
    return {
        "description": i18n.translate(lang, problems.TITLES[status]),
        "headers": _headers(always, ("Content-Language", "Retry-After")),
        "content": content,
    }


def _headers(always: tuple[str, ...] | list[str], maybe: tuple[str, ...]) -> Schema:
    """Headers Objects."""
    return {
        name: {"$ref": f"#/components/headers/{name}"}
        if name in maybe or name in _ALWAYS
        else {"required": True, "schema": dict(parameters.HEADERS[name])}
        for name in (*always, *maybe)
    }
