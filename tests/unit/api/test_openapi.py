"""The OpenAPI document: all of the API, valid, closed, and in both languages."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis

from appliance.api.openapi.document import OPERATIONS, openapi_document
from appliance.api.openapi.meanings import MEANINGS
from appliance.domain.errors import ErrorCode
from appliance.web import i18n

_ROUTES = Path(__file__).parents[2] / "vectors/names/routes.json"
_PAGES = (
    "/",
    "/alta/",
    "/ayuda",
    "/docs",
    "/sdk/",
    "/revocar",
    "/static/",
    "/verificar",
)
"""For people: they link to one another."""
_MAPS = {"metadatos", "estados"}
"""Whose names are whoever's; their number and their values are bounded."""
_SAID_BY_NAME = {"nombre", "estado", "id"}
"""They are the name, the state and the id of what they are in."""
DOCUMENT = openapi_document("en", web_url="https://firma.example")


def served() -> set[tuple[str, str]]:
    """Methods and addresses of the API's routes."""
    found = set()
    for line in json.loads(_ROUTES.read_text(encoding="utf-8"))["api"]:
        path, *methods = line.split()
        is_page = any(
            path == page or (page != "/" and path.startswith(page)) for page in _PAGES
        )
        if not is_page:
            plain = re.sub(r"<[^>]+>", "{}", path)
            found |= {(method, plain) for method in {*methods} - {"HEAD", "OPTIONS"}}
    return found


def schemas(node: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document, with where it stands."""
    if isinstance(node, dict):
        yield at, node
        for name, each in node.items():
            yield from schemas(each, f"{at}/{name}")
    elif isinstance(node, list):
        for place, each in enumerate(node):
            yield from schemas(each, f"{at}/{place}")


def test_every_route_has_its_operation() -> None:
    """A route without an entry is missed here, and an entry without a route."""
    told = {(each.method, re.sub(r"{\w+}", "{}", each.path)) for each in OPERATIONS}

    assert told == served()


def test_document_is_openapi() -> None:
    """By the schema of OpenAPI 3.1, with every reference in it."""
    schemathesis.openapi.from_dict(DOCUMENT).validate()

    refs = {node["$ref"] for _, node in schemas(DOCUMENT) if "$ref" in node}
    parts = {
        f"#/components/{kind}/{name}"
        for kind, named in DOCUMENT["components"].items()
        for name in named
    }
    assert refs <= parts
    named = {
        f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]
    }
    assert named <= refs


def test_document_says_exactly_what_is_answered() -> None:
    """Neither `default` nor `4XX`, and no schema that takes whatever comes."""
    for at, node in schemas(DOCUMENT):
        if at.endswith("/responses"):
            assert all(re.fullmatch(r"[1-5]\d\d", status) for status in node), at
        if at.endswith(("/schema", "/items", "/anyOf/0", "/anyOf/1")):
            assert node, f"{at} is free"
        assert "default" not in node, at
        if node.get("type") == "object" and "propertyNames" not in node:
            assert node.get("additionalProperties") is False, at
        if at.endswith("multipart/form-data/schema"):
            # Parts whose names are their sender's: files, so many and no more.
            assert node.get("maxProperties", 0) <= 1_001, at
        elif "propertyNames" in node:
            assert at.rpartition("/")[2] in _MAPS or at.split("/")[-3] in _MAPS, at
            assert node["maxProperties"] <= 20, at
            assert node["additionalProperties"]["type"] in {"string", "integer"}, at


def test_every_answer_has_a_shape() -> None:
    """A body's schema, or none where there is no body."""
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            if method == "servers":
                continue
            for status, response in operation["responses"].items():
                empty = status in {"204", "304"}
                assert ("content" in response) is not empty, (method, path, status)


def test_every_answer_in_part_can_be_asked_for() -> None:
    """By `Range` and `If-Range`, where there is 206 and nowhere else."""
    for each in OPERATIONS:
        asked = {one.name for one in each.parameters if one.place == "header"}
        in_part = any(one.status == 206 for one in each.told)
        assert ({"Range", "If-Range"} <= asked) is in_part, each.name
        assert (ErrorCode.RANGE_UNSATISFIABLE in each.codes) is in_part, each.name


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_summary_has_its_spanish(operation: Any) -> None:
    """The document is in the reader's language."""
    assert i18n.translate("es", operation.summary) != operation.summary


def test_names_are_unique() -> None:
    """Clients are made of them."""
    names = [each.name for each in OPERATIONS]

    assert len(names) == len(set(names))


def test_two_addresses_are_told() -> None:
    """Where the signers' API stands elsewhere than the integrators'."""
    two = openapi_document(
        web_url="https://web.example", base_url="https://api.example"
    )

    assert two["servers"] == [{"url": "https://web.example"}]
    assert two["paths"]["/solicitudes"]["servers"] == [{"url": "https://api.example"}]
    assert "servers" not in two["paths"]["/api/integration/requests"]


def test_document_needs_no_file() -> None:
    """A role goes on while its files are another version's: it has all of it."""
    ask = (
        "import sys, appliance.api.app\n"
        "from appliance.api.openapi.document import openapi_document\n"
        "from appliance.web import i18n\n"
        "[i18n.translate(lang, '') for lang in ('es', 'en')]\n"
        "before = set(sys.modules)\n"
        "sys.addaudithook(lambda name, given: name == 'open' and print(name, given))\n"
        "openapi_document()\n"
        "print(*sorted(set(sys.modules) - before), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == []


def test_test_mode_is_told_where_it_is() -> None:
    """In PROD its addresses are not there, so the document has none of them."""
    path = "/api/integration/test/signers"

    assert path in DOCUMENT["paths"]
    assert path not in openapi_document(has_test_mode=False)["paths"]


def members(node: Any, seen: frozenset[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Members of every schema that a body leads to."""
    named = DOCUMENT["components"]["schemas"]
    if isinstance(node, list):
        for each in node:
            yield from members(each, seen)
    elif isinstance(node, dict):
        name = str(node.get("$ref", "")).rpartition("/")[2]
        if name in named and name not in seen:
            yield from named[name].get("properties", {}).items()
            yield from members(named[name], seen | {name})
        for each in node.values():
            yield from members(each, seen)


def sent_fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Fields and parameters of every operation, by its name and theirs."""
    for item in DOCUMENT["paths"].values():
        for told in item.values():
            if isinstance(told, dict) and "operationId" in told:
                given = ((each["name"], each) for each in told["parameters"])
                for name, member in (*members(told.get("requestBody", {})), *given):
                    yield told["operationId"], name, member


def test_what_is_sent_says_what_it_means() -> None:
    """Each field and parameter, unless its name says all there is to say."""
    silent = {
        f"{operation}: {name}"
        for operation, name, member in sent_fields()
        if "description" not in member and name not in _SAID_BY_NAME
    }
    assert silent == set()


@pytest.mark.parametrize("said", sorted({*MEANINGS.values()}))
def test_meanings_are_translated(said: str) -> None:
    """In Spanish they are other words."""
    assert i18n.translate("es", said) != said
