"""Clients that public generators make of the served document, at a running appliance.

They generate all of it without a warning, and what they made asks for a signature,
finds it and fetches the signed document.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import assert_valid, backend_of, sign
from tests.support.appliance.manual import blocks
from tests.support.clients.generators import (
    PYTHON_PACKAGE,
    GeneratedClient,
    fetch_client,
    hey_client,
    python_client,
)
from tests.support.documents import pdfs

pytestmark = pytest.mark.full
_DOCS: Final = "Generate a client"


def _python(document: Path, folder: Path) -> GeneratedClient:
    """With the settings that the manual writes."""
    (config,) = (
        each.text for each in blocks(_DOCS, "integration.md") if each.language == "yaml"
    )
    return python_client(document, config, folder)


GENERATORS: Final[dict[str, Callable[[Path, Path], GeneratedClient]]] = {
    "openapi-python-client": _python,
    "openapi-typescript": fetch_client,
    "hey-api": hey_client,
}


@pytest.fixture(scope="module")
def document(appliance: Appliance, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The OpenAPI document, as the appliance serves it."""
    answer = httpx.get(f"{appliance.settings.web.web_url}/docs/openapi.json")
    assert answer.status_code == 200, answer.text
    file = tmp_path_factory.mktemp("document") / "openapi.json"
    file.write_bytes(answer.content)
    return file


@pytest.fixture(scope="module", params=GENERATORS)
def generated(
    request: pytest.FixtureRequest,
    document: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> GeneratedClient:
    """A client; the generators fail at a warning, or print it."""
    return GENERATORS[request.param](document, tmp_path_factory.mktemp("client"))


def operations(document: Path) -> list[dict[str, Any]]:
    """All calls of the document."""
    paths = json.loads(document.read_text("utf-8"))["paths"]
    return [
        operation
        for item in paths.values()
        for name, operation in item.items()
        if name != "servers"
    ]


def test_all_of_the_document_is_generated(
    generated: GeneratedClient, document: Path
) -> None:
    """Every operation and every schema, without a warning."""
    said = generated.said.lower()
    assert "warn" not in said, generated.said
    assert "error" not in said, generated.said

    files = sorted((generated.folder / "made").rglob("*.[pt][ys]"))
    made = "\n".join(f"{file.stem}\n{file.read_text('utf-8')}" for file in files)
    plain = made.lower().replace("_", "")
    for operation in operations(document):
        assert operation["operationId"].lower() in plain
    schemas = json.loads(document.read_text("utf-8"))["components"]["schemas"]
    for name in schemas:
        assert name.lower() in plain


def test_package_for_python_has_its_name(document: Path, tmp_path: Path) -> None:
    """In ASCII, and another than that of the client that the appliance serves."""
    generated = _python(document, tmp_path)

    packages = [
        each.parent.name for each in (generated.folder / "made").glob("*/__init__.py")
    ]
    assert packages == [PYTHON_PACKAGE]


def test_generated_client_works(
    generated: GeneratedClient, appliance: Appliance
) -> None:
    """It asks for a signature, finds it, reads a refusal, and fetches the document."""
    person, pdf = appliance.new_person(), pdfs.one_page()
    reference = secrets.token_hex(8)
    with backend_of(appliance) as backend:
        access = {
            "url": appliance.settings.web.web_url,
            "key": backend.key.secret,
        }

        made = generated.run(
            "create",
            **access,
            cuil=person.cuil,
            base64=base64.b64encode(pdf).decode(),
            referencia=reference,
        )
        assert made["listed"] == [made["procesoId"]]
        assert "contrato.pdf" in made["names"]
        assert made["refusedAs"].startswith("FIELD_")
        sign(appliance, person, made["solicitudId"])
        fetched = generated.run("download", **access, proceso=made["procesoId"])

        signed = backend.client.get(
            f"/api/integration/requests/{made['procesoId']}/document"
        ).content
    assert fetched["sha256"] == hashlib.sha256(signed).hexdigest()
    assert_valid(appliance, signed, 1)
