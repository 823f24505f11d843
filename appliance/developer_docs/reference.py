"""The reference of the API, as a page shows it, made of its OpenAPI document.

    made = reference(openapi_document("es", web_url=…), lang="es")

Nothing is told here that the document does not say: operations by the first word of
their address, schemas by name, each type as a reader writes it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup, escape

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_SCHEMAS: Final = "#/components/schemas/"
_BACKEND: Final = "/api/integration/"
_LIMITS: Final = (
    ("minLength", "maxLength"),
    ("minimum", "maximum"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_MULTIPART: Final = "multipart/form-data"
_SAFE: Final = 2**53 - 1
"""The largest integer of JSON that every program reads exactly."""
_SEVERAL: Final = {
    "anyOf": Markup(" | "),
    "oneOf": Markup(" | "),
    "allOf": Markup(" + "),
}
_DEEPEST: Final = 4
"""Levels of an example."""
_SAMPLES: Final = {
    "cuil": "27-31415926-3",
    "date-time": "2030-01-31T18:00:00-03:00",
    "email": "ana@example.com",
    "uri": "https://example.com/webhooks",
}
"""Strings, by their format."""


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a member of a schema."""

    name: str
    type: Markup
    is_required: bool
    place: str = ""
    """Of a parameter: `path`, `query` or `header`."""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """A body: what is sent, or what is answered."""

    media_type: str
    type: Markup


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one status means: a body, or codes of errors."""

    status: str
    meaning: str
    contents: tuple[Content, ...]
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """A method at an address."""

    name: str
    method: str
    path: str
    summary: str
    needs: tuple[str, ...]
    """Scopes of an API key, `token` for a signer's bearer, or nothing."""
    parameters: tuple[Field, ...]
    bodies: tuple[Content, ...]
    outcomes: tuple[Outcome, ...]
    line: str
    """A call with curl, or two where its body has two forms."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A named schema."""

    name: str
    told: str
    fields: tuple[Field, ...]
    type: Markup
    """Where it has no members."""


@dataclass(frozen=True, slots=True)
class Reference:
    """All of it."""

    groups: dict[str, list[Operation]]
    """By the first word of their address; what backends call first."""
    schemas: list[Schema]


def reference(document: Mapping[str, Any]) -> Reference:
    """Read an OpenAPI 3.1 document.

    Args:
        document: as `openapi_document` makes it.
    """
    groups: dict[str, list[Operation]] = {}
    paths = document["paths"]
    for path in sorted(paths, key=lambda each: (not each.startswith(_BACKEND), each)):
        for method in _METHODS:
            if method in paths[path]:
                told = paths[path][method]
                made = _operation(document, path, method, told)
                groups.setdefault(told["tags"][0], []).append(made)
    schemas = [
        _schema(name, schema)
        for name, schema in document["components"]["schemas"].items()
    ]
    return Reference(groups, schemas)


def _operation(
    document: Mapping[str, Any], path: str, method: str, told: Mapping[str, Any]
) -> Operation:
    bodies = told.get("requestBody", {}).get("content", {})
    return Operation(
        name=told["operationId"],
        method=method.upper(),
        path=path,
        summary=told["summary"],
        needs=_needs(told),
        parameters=tuple(
            Field(
                each["name"],
                type_of(each["schema"]),
                each["required"],
                each["in"],
                each.get("description", ""),
            )
            for each in told["parameters"]
        ),
        bodies=_contents(bodies),
        outcomes=tuple(
            _outcome(status, answer) for status, answer in told["responses"].items()
        ),
        line=_line(document, path, method, told),
    )


def _needs(told: Mapping[str, Any]) -> tuple[str, ...]:
    needs = [
        scope
        for way in told["security"]
        for name, scopes in way.items()
        for scope in scopes or [name]
    ]
    return tuple(dict.fromkeys(needs))


def _outcome(status: str, answer: Mapping[str, Any]) -> Outcome:
    contents = answer.get("content", {})
    codes = _codes(contents)
    shown = {} if codes else contents
    return Outcome(status, answer["description"], _contents(shown), tuple(codes))


def _codes(contents: Mapping[str, Any]) -> list[str]:
    """The codes of errors that a status may have."""
    return [
        code
        for content in contents.values()
        for rule in content["schema"].get("dependentSchemas", {}).values()
        for code in rule["properties"].get("code", {}).get("enum", ())
    ]


def _contents(contents: Mapping[str, Any]) -> tuple[Content, ...]:
    return tuple(
        Content(media_type, type_of(content.get("schema", {})))
        for media_type, content in contents.items()
    )


def _schema(name: str, schema: Mapping[str, Any]) -> Schema:
    required = schema.get("required", ())
    members = schema.get("properties", {})
    return Schema(
        name,
        schema.get("description", ""),
        tuple(
            Field(
                each,
                type_of(member),
                each in required,
                meaning=member.get("description", ""),
            )
            for each, member in members.items()
        ),
        type_of({**schema, "properties": {}}) if not members else Markup(),
    )


def type_of(schema: Mapping[str, Any]) -> Markup:
    """How a reader writes a type: `string`, a link, `array of`, words, limits.

    Args:
        schema: JSON Schema, of those keywords that our documents have.
    """
    if ref := schema.get("$ref"):
        name = ref.removeprefix(_SCHEMAS)
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    if words := schema.get("enum") or [schema[k] for k in ("const",) if k in schema]:
        return _words(words)
    for several, between in _SEVERAL.items():
        if parts := [each for each in schema.get(several, ()) if _is_told(each)]:
            return between.join(type_of(each) for each in parts)
    return _plain(schema)


def _words(words: Sequence[object]) -> Markup:
    if "BAD_HEADER" in words:
        return Markup('<a href="errors">code</a>')
    told = (each if isinstance(each, str) else json.dumps(each) for each in words)
    return Markup(", ").join(_code(each) for each in told)


def _plain(schema: Mapping[str, Any]) -> Markup:
    kind = schema.get("type", "any")
    if kind == "array":
        return Markup("array: {}").format(type_of(schema.get("items", {})))
    if members := schema.get("properties"):
        return Markup("object: ") + Markup(", ").join(
            _code(name) + " " + type_of(member) for name, member in members.items()
        )
    words = " | ".join(kind) if isinstance(kind, list) else kind
    return escape(" ".join([words, *_limits(schema)]))


def _is_told(schema: Mapping[str, Any]) -> bool:
    return bool({"$ref", "type", "enum", "const", "anyOf", "oneOf"} & schema.keys())


def _limits(schema: Mapping[str, Any]) -> Iterator[str]:
    if kind := schema.get("format") or schema.get("contentMediaType"):
        yield f"({kind})"
    for least, most in _LIMITS:
        if least in schema or most in schema:
            largest = schema.get(most, "")
            yield f"{schema.get(least, '')}…{'' if largest == _SAFE else largest}"
    if "default" in schema:
        yield f"= {json.dumps(schema['default'], ensure_ascii=False)}"


def _code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)


def _line(
    document: Mapping[str, Any], path: str, method: str, told: Mapping[str, Any]
) -> str:
    """A call with curl, with what it must have; once more where it may be in parts."""
    servers = document["paths"][path].get("servers") or document["servers"]
    words = [f'curl -sS "{servers[0]["url"]}{path}"']
    if method != "get" and (method != "post" or "requestBody" not in told):
        words[0] = words[0].replace("-sS", f"-sS -X {method.upper()}")
    ways = [name for way in told["security"] for name in way]
    if "apiKey" in ways:
        words.append('-H "X-Api-Key: $API_KEY"')
    elif "token" in ways:
        words.append('-H "Authorization: Bearer $TOKEN"')
    calls = [[*words, *_sent(document, told)]]
    if parts := _in_parts(document, told):
        calls.append([*words, *parts])
    return "\n\n".join(" \\\n  ".join(call) for call in calls)


def _sent(document: Mapping[str, Any], told: Mapping[str, Any]) -> Sequence[str]:
    contents = told.get("requestBody", {}).get("content", {})
    if "application/json" in contents and "application/pdf" not in contents:
        schema = contents["application/json"].get("schema", {})
        example = _json(document, schema)
        return ["-H 'Content-Type: application/json'", f"-d '{example}'"]
    for media_type in contents:
        return [f"-H 'Content-Type: {media_type}'", "--data-binary @file"]
    return []


def _in_parts(document: Mapping[str, Any], told: Mapping[str, Any]) -> Sequence[str]:
    """What is sent as parts, where JSON may be sent as well."""
    contents = told.get("requestBody", {}).get("content", {})
    if "application/json" not in contents or _MULTIPART not in contents:
        return []
    schema = contents[_MULTIPART]["schema"]
    parts = {**schema["properties"]}
    if others := schema.get("additionalProperties"):
        parts["documento1"] = others
    return [
        f"-F '{name}=@documento.pdf;type={part['contentMediaType']}'"
        if "contentMediaType" in part
        else f"-F '{name}={_json(document, part)};type=application/json'"
        for name, part in parts.items()
    ]


def _json(document: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    return json.dumps(_example(document, schema), ensure_ascii=False)


def _example(
    document: Mapping[str, Any], schema: Mapping[str, Any], depth: int = 0
) -> Any:
    """A value that has what is required, and no more."""
    facets = list(_facets(document, schema))
    members: dict[str, list[Mapping[str, Any]]] = {}
    required: dict[str, None] = {}
    for facet in facets:
        required |= dict.fromkeys(facet.get("required", ()))
        for name, member in facet.get("properties", {}).items():
            members.setdefault(name, []).append(member)
    if required and depth < _DEEPEST:
        return {
            name: _example(document, {"allOf": members.get(name, ())}, depth + 1)
            for name in required
        }
    items = [facet["items"] for facet in facets if "items" in facet]
    if items:
        return [_example(document, {"allOf": items}, depth + 1)]
    for facet in facets:
        if words := facet.get("enum") or [facet[k] for k in ("const",) if k in facet]:
            return words[0]
    kinds = [facet["type"] for facet in facets if "type" in facet]
    return _plain_example(facets, kinds[0] if kinds else "string")


def _plain_example(facets: Sequence[Mapping[str, Any]], kind: str) -> Any:
    """A value without members."""
    match kind:
        case "object":
            return {}
        case "array":
            return []
        case "integer" | "number":
            return max(1, *(facet.get("minimum", 1) for facet in facets))
        case "boolean":
            return True
        case _:
            known = [facet.get("format") for facet in facets]
            return next((_SAMPLES[each] for each in known if each in _SAMPLES), "…")


def _facets(
    document: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Schemas that hold at once: of several that would do one."""
    if ref := schema.get("$ref"):
        named = document["components"]["schemas"][ref.removeprefix(_SCHEMAS)]
        yield from _facets(document, named)
    for part in schema.get("allOf", ()):
        yield from _facets(document, part)
    for several in ("oneOf", "anyOf"):
        parts = [each for each in schema.get(several, ()) if each.get("type") != "null"]
        if parts:
            # The one that asks for least.
            yield from _facets(document, min(parts, key=_asked))
    if "if" in schema:
        fulfilled = {"allOf": [schema["if"], schema.get("then", {})]}
        yield from _facets(document, min(fulfilled, schema.get("else", {}), key=_asked))
    yield schema


def _asked(schema: Mapping[str, Any]) -> int:
    """How much a schema asks for."""
    parts = sum(map(_asked, schema.get("allOf", ())))
    return parts + len(schema.get("required", ())) + ("if" in schema)
