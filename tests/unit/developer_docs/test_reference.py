"""The reference of the API: what its document says, as a reader writes it."""

from typing import Any, Final

import pytest

from appliance.developer_docs.reference import Field, reference, type_of

_CODES: Final = {"properties": {"code": {"enum": ["NOT_FOUND"]}}}
_DAYS: Final = {"type": "array", "items": {"type": "integer", "minimum": 3}}
DOCUMENT: Final[dict[str, Any]] = {
    "servers": [{"url": "https://firma.example"}],
    "paths": {
        "/auth/login": {
            "servers": [{"url": "https://api.example"}],
            "post": {
                "operationId": "login",
                "summary": "Iniciar sesión",
                "tags": ["auth"],
                "security": [],
                "parameters": [],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/Login"}
                        }
                    },
                },
                "responses": {"200": {"description": "OK"}},
            },
        },
        "/api/integration/requests/{id}": {
            "delete": {
                "operationId": "remove",
                "summary": "Eliminar <algo>",
                "tags": ["requests"],
                "security": [{"apiKey": ["requests:write"]}],
                "parameters": [
                    {
                        "name": "id",
                        "in": "path",
                        "required": True,
                        "schema": {"type": "string", "format": "uuid"},
                    }
                ],
                "responses": {
                    "204": {"description": "No Content"},
                    "404": {
                        "description": "No encontrado",
                        "content": {
                            "application/problem+json": {
                                "schema": {
                                    "allOf": [{"$ref": "#/components/schemas/Problem"}],
                                    "dependentSchemas": {"code": _CODES},
                                }
                            }
                        },
                    },
                },
            }
        },
    },
    "components": {
        "schemas": {
            "Login": {
                "type": "object",
                "required": ["usuario", "dias", "visto"],
                "properties": {
                    "usuario": {"type": "string", "maxLength": 20},
                    "dias": _DAYS,
                    "visto": {"type": "boolean"},
                    "nota": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
            },
            "Problem": {"type": "object"},
        }
    },
}


def test_backends_come_first_and_know_what_they_need() -> None:
    """With their scope, their parameters, and the codes that may come."""
    made = reference(DOCUMENT)
    (remove,) = made.groups["requests"]

    assert list(made.groups) == ["requests", "auth"]
    assert (remove.method, remove.needs) == ("DELETE", ("requests:write",))
    assert [(each.name, each.place) for each in remove.parameters] == [("id", "path")]
    assert [(each.status, each.codes) for each in remove.outcomes] == [
        ("204", ()),
        ("404", ("NOT_FOUND",)),
    ]


def test_call_has_what_is_required() -> None:
    """Where it stands, by whom it is called, and the smallest body."""
    made = reference(DOCUMENT)

    assert made.groups["requests"][0].line == (
        'curl -sS -X DELETE "https://firma.example/api/integration/requests/{id}" \\\n'
        '  -H "X-Api-Key: $API_KEY"'
    )
    assert made.groups["auth"][0].line == (
        'curl -sS "https://api.example/auth/login" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        '  -d \'{"usuario": "…", "dias": [3], "visto": true}\''
    )


def test_schema_lists_its_members() -> None:
    """What may be left out is told."""
    login = reference(DOCUMENT).schemas[0]

    assert login.fields[0] == Field(
        "usuario", type_of({"type": "string", "maxLength": 20}), is_required=True
    )
    assert not login.fields[3].is_required


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer", "minimum": 1, "maximum": 2**53 - 1}, "integer 1…"),
        ({"type": "integer", "minimum": 0, "maximum": 9}, "integer 0…9"),
        ({"type": "string", "format": "uuid"}, "string (uuid)"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"enum": ["es", "en"]}, "<code>es</code>, <code>en</code>"),
        ({"const": False}, "<code>false</code>"),
        ({"enum": ["BAD_HEADER", "BUSY"]}, '<a href="errors">code</a>'),
        ({"type": "array", "items": {"type": "string"}}, "array: string"),
        ({"$ref": "#/components/schemas/A"}, '<a href="#schema-A">A</a>'),
        (
            {"allOf": [{"$ref": "#/components/schemas/A"}, {"required": ["b"]}]},
            '<a href="#schema-A">A</a>',
        ),
        (
            {"type": "object", "properties": {"<b>": {"type": "string"}}},
            "object: <code>&lt;b&gt;</code> string",
        ),
        ({}, "any"),
    ],
)
def test_type_is_written_as_a_reader_would(schema: dict[str, Any], told: str) -> None:
    """Links, words and limits; whatever stands in them is escaped."""
    assert str(type_of(schema)) == told


def test_call_that_may_be_in_parts_is_shown_so_too() -> None:
    """With what it must have, and one file of those whose names are their sender's."""
    sent = {"type": "object", "required": ["nota"]}
    file = {"type": "string", "contentMediaType": "application/pdf"}
    parts = {"properties": {"options": sent}, "additionalProperties": file}
    contents = {
        "multipart/form-data": {"schema": parts},
        "application/json": {"schema": sent},
    }
    login = DOCUMENT["paths"]["/auth/login"]
    told = {**login["post"], "requestBody": {"content": contents}}
    paths = {"/auth/login": {**login, "post": told}}

    made = reference({**DOCUMENT, "paths": paths})

    first, second = made.groups["auth"][0].line.split("\n\n")
    assert first.endswith('-d \'{"nota": "…"}\'')
    assert second == (
        'curl -sS "https://api.example/auth/login" \\\n'
        '  -F \'options={"nota": "…"};type=application/json\' \\\n'
        "  -F 'documento1=@documento.pdf;type=application/pdf'"
    )
