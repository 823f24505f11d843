"""Rules by which generators of clients make all of the document, without a warning.

Each is what one of them failed at; tests/functional/api/test_generated_clients.py has
the generators themselves.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import jsonschema_rs
import pytest

from appliance.api.openapi.document import openapi_document
from appliance.api.wire import combinations
from appliance.web.content_negotiation import FILES
from appliance.web.responses import OCTETS
from tests.unit.api.test_openapi import schemas

DOCUMENT: Final = openapi_document("en", web_url="https://firma.example")
_COMPONENTS: Final = DOCUMENT["components"]["schemas"]
_RULES: Final = ("if", "then", "else", "not", "dependentSchemas")
"""Keywords that generators leave aside, with all that is below them."""
_SEVERAL: Final = ("oneOf", "anyOf", "allOf")
_SDK_PACKAGE: Final = "rubrica_client"
_NOTES: Final = {"$ref", "description"}
_KNOWN_TYPES: Final = ("application/json", "multipart/form-data", OCTETS, "text/html")


def typed() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document that a generator makes a type of."""
    for at, node in schemas(DOCUMENT):
        if not set(at.split("/")) & {*_RULES}:
            yield at, node


def bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    """The `content` of every request and answer."""
    for at, node in typed():
        if "content" in node and "schemas" not in at:
            yield at, node["content"]


def test_title_gives_a_package_name() -> None:
    """In ASCII, and not that of the package for Python that the appliance serves."""
    title = DOCUMENT["info"]["title"]

    package = re.sub(r"\W+", "_", title.lower()) + "_client"
    assert title.isascii()
    assert package != _SDK_PACKAGE


def test_each_branch_is_a_type_of_its_own() -> None:
    """A branch that narrows its neighbours would be made a type without the rest."""
    for at, node in typed():
        for several in _SEVERAL:
            for branch in node.get(several, ()):
                assert {"$ref", "type", "enum", "const"} & branch.keys(), at
            if several in node:
                assert "properties" not in node, f"{at}: {several} beside properties"


def test_nothing_is_merged() -> None:
    """`allOf` names one type, whose members are nowhere defined twice."""
    for at, node in typed():
        if "allOf" in node:
            (one,) = node["allOf"]
            assert one.keys() == {"$ref"}, at


def test_reference_stands_alone() -> None:
    """But for words: what else were beside it, generators would refuse or drop."""
    for at, node in typed():
        if "$ref" in node:
            assert node.keys() <= _NOTES, at


def test_words_of_a_list_are_texts() -> None:
    """Neither null nor booleans are among them."""
    for at, node in schemas(DOCUMENT):
        for word in node.get("enum", ()):
            assert isinstance(word, str), at


def test_file_has_a_name_that_every_client_knows() -> None:
    """Bytes are `application/octet-stream` as well, and bytes by their format."""
    offered = 0
    for at, content in bodies():
        for media_type in content.keys() & {*FILES, OCTETS}:
            schema = content[media_type]["schema"]
            assert schema["format"] == "binary", at
            offered += 1
        assert content.keys() & {*_KNOWN_TYPES} or all(
            media_type.endswith("+json") for media_type in content
        ), at
    assert offered > 0


def test_usual_answer_comes_first() -> None:
    """A client without `Accept` gets it, and reads what the first type says."""
    content = DOCUMENT["paths"]["/solicitudes/{solicitudId}/documento"]["get"]
    types = [*content["responses"]["200"]["content"]]

    assert types == ["application/pdf", OCTETS, "application/json"]


def test_names_differ_by_more_than_case() -> None:
    """Of schemas, operations and tags: each becomes a file."""
    operations = [
        operation
        for paths in (DOCUMENT["paths"], DOCUMENT["webhooks"])
        for item in paths.values()
        for operation in item.values()
        if isinstance(operation, dict)
    ]
    for names in (_COMPONENTS, [each["operationId"] for each in operations]):
        assert len({name.lower() for name in names}) == len(names)
    of_webhooks = {
        tag for item in DOCUMENT["webhooks"].values() for tag in item["post"]["tags"]
    }
    of_paths = {
        tag
        for item in DOCUMENT["paths"].values()
        for operation in item.values()
        for tag in operation["tags"]
    }
    assert not of_webhooks & of_paths


def holds(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value fits a schema."""
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({}, False),
        ({"a": "x"}, True),
        ({"c": "x"}, True),
        ({"a": "x", "b": None}, True),
        ({"a": None, "b": "x"}, True),
        ({"a": None}, False),
        ({"a": "x", "b": "y"}, False),
        ({"b": "x", "c": "y"}, False),
        (None, False),
    ],
)
def test_exactly_one_field_is_given(value: Any, fits: bool) -> None:
    """Null is as if it were not there."""
    rule = combinations.exactly_one("a", "b", "c", value=combinations.TEXT)

    assert holds(rule, value) is fits


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({}, True),
        ({"a": None}, True),
        ({"a": None, "b": None}, True),
        ({"a": 1, "b": 2}, True),
        ({"a": 1}, False),
        ({"a": 1, "b": None}, False),
        ({"a": None, "b": 1}, False),
        ({"b": 1}, False),
    ],
)
def test_both_fields_are_given_or_neither(value: Any, fits: bool) -> None:
    """As `x` and `y`."""
    rule = combinations.both_or_neither("a", "b", combinations.NUMBER)

    assert holds(rule, value) is fits


@pytest.mark.parametrize(
    ("value", "at_most_one", "not_beside"),
    [
        ({}, True, True),
        ({"a": 1}, True, True),
        ({"a": 1, "b": 1}, False, False),
        ({"b": 1, "c": 1}, False, True),
        ({"a": 1, "c": 1}, False, False),
    ],
)
def test_fields_exclude_each_other(
    value: Any, at_most_one: bool, not_beside: bool
) -> None:
    """All of them each other, or one of them the rest."""
    assert holds(combinations.at_most_one("a", "b", "c"), value) is at_most_one
    assert holds(combinations.not_beside("a", "b", "c"), value) is not_beside


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ({"documento": {"contenido": "JVBERi0x"}}, True),
        ({"documento": {"documentoId": "u"}}, True),
        ({"documento": {"documentoId": "u", "contenido": None}}, True),
        ({"documento": {"documentoId": "u", "contenido": "JVBERi0x"}}, False),
        ({"documento": {"nombre": "a.pdf"}}, False),
        ({"documento": None}, False),
        ({}, False),
    ],
)
def test_request_in_json_brings_one_document(body: dict[str, Any], fits: bool) -> None:
    """A generator sees `NewRequest` alone; validators know the rest."""
    operation = DOCUMENT["paths"]["/api/integration/requests"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    signer = {"cuil": "20-26756539-3"}

    whole = {"allOf": [schema], "components": DOCUMENT["components"]}
    assert holds(whole, {**body, "firmantes": [signer]}) is fits


def test_error_is_one_of_its_operation() -> None:
    """A generator sees `Problem` alone; validators know code and status."""
    operation = DOCUMENT["paths"]["/api/integration/requests"]["post"]
    content = operation["responses"]["404"]["content"]
    schema = content["application/problem+json"]["schema"]
    whole = {"allOf": [schema], "components": DOCUMENT["components"]}
    problem = {
        "type": "urn:rubrica:error:DOCUMENT_NOT_FOUND",
        "title": "No encontrado",
        "status": 404,
        "detail": "…",
        "code": "DOCUMENT_NOT_FOUND",
        "category": "fix_request",
        "requestId": "0" * 24,
    }

    assert holds(whole, problem)
    assert not holds(whole, {**problem, "code": "PDF_LOCKED"})
    assert not holds(whole, {**problem, "status": 400})
