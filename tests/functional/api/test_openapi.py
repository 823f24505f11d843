"""Whatever the OpenAPI document allows, and what it does not: schemathesis calls it.

With a key, a bearer or neither: no 5xx, and no answer that is not documented.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.api.openapi.document import openapi_document
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import TestBackend, backend_of
from tests.support.documents import pdfs
from tests.support.patience import TEST_S
from tests.support.processes.scratch import short_folder

_CASES: Final = 50
_FEW: Final = 3
_BACKEND: Final = "/api/integration"
_MORE: Final = """\
[timestamps]
public = true
requests_per_minute_address = 1000000

[integration]
calls_per_minute = 1000000
sessions_per_minute = 1000000
"""
_REFUSED: Final = "401, 403, 404, 409, 412, 413, 422, 423, 429, 507"
"""Of what fits its schema: it may not fit the record, its document or who asks."""
_MORE_THAN_A_SCHEMA: Final = (
    # A cursor, which only an earlier answer gives.
    *("listBatches", "listDeliveries", "listDocuments", "listRequests"),
    *("listSignerRequests", "listTestSigners", "getBatch"),
    # The check digit of a CUIL.
    *("getSigner", "vouchForSigner", "getTestSigner", "deleteTestSigner"),
    *(
        "getTestSignerCode",
        "listTestSignerMails",
        "signAsTestSigner",
        "rejectAsTestSigner",
    ),
    "createTestSigner",
    # Whether a time is still to come, or after another one.
    *("changeRequest", "createBatch", "createRequest", "replayDeliveries"),
    # What an address may be.
    *("changeWebhook", "createWebhook"),
    # 5.0, which JSON Schema has for a whole number, and the API has not.
    *("openSession", "preview", "sign", "signSeveral"),
    # A word of a closed list, and a new password that is not the one before.
    *("revokeCredential", "changePassword"),
    # What a file may be called.
    "uploadDocument",
)
"""Operations that may answer 400 to what fits its schema, by why."""
_CONFIG: Final = f"""\
[generation]
database = "none"
# No text of a body may have it: JSON_INVALID, which a schema could say of each alone.
allow-x00 = false

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", {_REFUSED}]

[checks.negative_data_rejection]
expected-statuses = [400, 405, 406, 408, 415, {_REFUSED}]

[[operations]]
include-operation-id = {json.dumps(_MORE_THAN_A_SCHEMA)}
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, {_REFUSED}]

# There schemathesis compares a file with the schema of the object beside it, and fails.
[[operations]]
include-operation-id = ["createRequest", "sign"]
phases.coverage.enabled = false
"""


@pytest.fixture(scope="module")
def own() -> Iterator[Appliance]:
    """An appliance whose rates nothing here exceeds."""
    with (
        short_folder() as folder,
        Appliance.made(folder, more=_MORE) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def backend(own: Appliance) -> Iterator[TestBackend]:
    """A backend of an integrator of its own, whose key may do everything."""
    with backend_of(own) as made:
        yield made


@pytest.fixture(scope="module")
def person(own: Appliance) -> TestPerson:
    """Somebody who signs."""
    return own.new_person()


@pytest.fixture
def things(backend: TestBackend, person: TestPerson) -> dict[str, Any]:
    """Of what addresses name, one that there is."""
    made = backend.made(pdfs.one_page(), person)

    def post(path: str, **body: Any) -> dict[str, Any]:
        answer = backend.client.post(f"{_BACKEND}/{path}", **body)
        assert answer.status_code < 300, answer.text
        told: dict[str, Any] = answer.json()
        return told

    for each in backend.client.get(f"{_BACKEND}/webhooks").json():
        backend.client.delete(f"{_BACKEND}/webhooks/{each['webhookId']}")
    as_pdf = {"Content-Type": "application/pdf"}
    document = post("documents", content=pdfs.one_page(), headers=as_pdf)["documentoId"]
    batch = {
        "firmante": {"cuil": person.cuil},
        "documentos": [{"documentoId": document}],
    }
    webhook = post("webhooks", json={"url": "https://receiver.example/"})["webhookId"]
    return {
        "procesoId": made["procesoId"],
        "solicitudId": made["firmantes"][0]["solicitudId"],
        "documentoId": document,
        "loteId": post("batches", json=batch)["loteId"],
        "webhookId": webhook,
        "entregaId": post(f"webhooks/{webhook}/test")["entregaId"],
        "cuil": person.cuil,
    }


@pytest.fixture(params=["key", "bearer", "nothing"])
def calling(
    request: pytest.FixtureRequest,
    own: Appliance,
    backend: TestBackend,
    person: TestPerson,
) -> list[str]:
    """Options that say which operations are called, and with what."""
    if request.param == "key":
        only = f"^{_BACKEND}/"
        return ["-H", f"X-Api-Key: {backend.key.secret}", "--include-path-regex", only]
    if request.param == "bearer":
        others = ["--exclude-path-regex", f"^{_BACKEND}/"]
        return ["-H", f"Authorization: Bearer {own.bearer(person)}", *others]
    return []


def run(own: Appliance, things: dict[str, Any], folder: Path, *options: str) -> None:
    """Have the document called; nothing is found."""
    config, document = folder / "schemathesis.toml", folder / "openapi.json"
    config.write_text(_CONFIG, encoding="utf-8")
    document.write_text(json.dumps(openapi_document("en")), encoding="utf-8")
    program = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)]
    done = subprocess.run(
        [
            *(*program, "run", str(document), "--url", own.base_url),
            *("--checks", "all", "--continue-on-failure", "--no-color"),
            *("--warnings", "off", "--output-sanitize", "true", *options),
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "SCHEMATHESIS_HOOKS": "tests.support.faces.openapi_hooks",
            "RUBRICA_THINGS": json.dumps(things),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]


@pytest.mark.full
def test_document_called_a_few_times(
    own: Appliance, things: dict[str, Any], calling: list[str], tmp_path: Path
) -> None:
    """Documented answers alone, to some of what may be sent: each time the same."""
    few = ("--phases", "fuzzing", "--max-examples", str(_FEW), "--no-shrink")

    run(own, things, tmp_path, *calling, *few, "--seed", "1")


@pytest.mark.long
@pytest.mark.timeout(TEST_S)
def test_document_called_many_times(
    own: Appliance, things: dict[str, Any], calling: list[str], tmp_path: Path
) -> None:
    """The same to each bound of each schema, and to whatever else fits or does not."""
    many = ("--phases", "examples,coverage,fuzzing", "--max-examples", str(_CASES))

    run(own, things, tmp_path, *calling, *many)
