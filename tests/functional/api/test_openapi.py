"""Whatever the OpenAPI document allows, and what it does not: schemathesis calls it.

With a key or a bearer, and without: no 5xx, and no answer that is not documented.
"""

import base64
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig

from appliance.api.openapi.document import OPERATIONS, openapi_document
from appliance.api.openapi.operation import Caller
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import TestBackend, backend_of
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

pytestmark = pytest.mark.long

CASES: Final = 10
_BACKEND: Final = "/api/integration"
_NUMBERS: Final = (
    "[integration]\ncalls_per_minute = 1000000\nsessions_per_minute = 1000000\n"
)
_MORE: Final = f"""\
[timestamps]
public = true
requests_per_minute_address = 1000000

{_NUMBERS}"""
_CALLERS: Final = {each.name: each.caller for each in OPERATIONS}
_CHECKS: Final = {
    # What fits its schema may still not fit the record or its document, and a
    # password may be wrong.
    "positive_data_acceptance": {
        "expected-statuses": [
            *("2xx", "3xx", "401", "403", "404", "409", "412", "413", "422", "423"),
            *("429", "503", "507"),
        ]
    },
    "negative_data_rejection": {
        "expected-statuses": [
            *("400", "401", "403", "404", "405", "406", "408", "409", "413", "415"),
            *("422", "423", "429", "503"),
        ]
    },
    # Said of each operation by its codes: a CRL that is not signed yet, a busy HSM.
    "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx"]},
}


class Things:
    """What the present operation may be about; filled in by `things`."""

    names: dict[str, Any] = {}  # noqa: RUF012 (of the process, one test at a time)


@cache
def _schema() -> Any:
    made = schemathesis.openapi.from_dict(
        openapi_document("en"),
        config=SchemathesisConfig.from_dict(
            {
                "generation": {"max-examples": CASES, "database": "none"},
                "checks": _CHECKS,
            }
        ),
    )
    made.hook(map_path_parameters)
    return made


@pytest.fixture(params=[each.name for each in OPERATIONS])
def operation(request: pytest.FixtureRequest) -> Any:
    """One operation of the document."""
    return _schema().include(operation_id=request.param)


# Not by `parametrize` of the schema itself, which makes up cases while tests are
# collected.
LAZY = schemathesis.pytest.from_fixture("operation")


def known(name: str, otherwise: str) -> st.SearchStrategy[str]:
    """Something that there is, or something else of its form."""
    return st.sampled_from([name, otherwise]).map(
        lambda which: str(Things.names.get(which, which))
    )


schemathesis.openapi.format("cuil", known("cuil", "20-05536168-2"))
schemathesis.openapi.format("cursor", st.just(base64.b64encode(b"s1:7").decode()))
schemathesis.openapi.format(
    "date-time",
    st.datetimes()
    .map(lambda at: at.replace(year=2000 + at.year % 90))
    .map(lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}"),
)
schemathesis.openapi.format("pdf-name", st.sampled_from(["a.pdf", "año 2.pdf"]))
for media_type, samples in (
    ("application/pdf", (pdfs.one_page(), b"%PDF-1.4", b"x")),
    ("application/ocsp-request", (b"0", b"\x30\x00")),
    ("application/timestamp-query", (b"0", b"\x30\x00")),
):
    schemathesis.openapi.media_type(media_type, st.sampled_from(samples))


def map_path_parameters(context: Any, parameters: Any) -> Any:
    """Every other well-formed id is one that there is."""
    del context
    for name, value in (parameters or {}).items():
        there = Things.names.get(name)
        if there is not None and _is_even(value):
            parameters[name] = there
    return parameters


def _is_even(value: object) -> bool:
    """Whether a well-formed value is one of every two."""
    if isinstance(value, int):
        return value % 2 == 0
    return isinstance(value, str) and len(value) == 36 and value[-1] in "02468ace"


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
def things(backend: TestBackend, person: TestPerson) -> Iterator[dict[str, Any]]:
    """Of everything one that nobody has done anything to."""
    made = backend.made(pdfs.one_page(), person)
    client = backend.client
    document = client.post(
        f"{_BACKEND}/documents",
        content=pdfs.one_page(),
        headers={"Content-Type": "application/pdf"},
    ).json()["documentoId"]
    batch = client.post(
        f"{_BACKEND}/batches",
        json={
            "firmante": {"cuil": person.cuil},
            "documentos": [{"documentoId": document}],
        },
    ).json()["loteId"]
    for each in client.get(f"{_BACKEND}/webhooks").json():
        client.delete(f"{_BACKEND}/webhooks/{each['webhookId']}")
    webhook = client.post(
        f"{_BACKEND}/webhooks", json={"url": "https://192.0.2.7/"}
    ).json()["webhookId"]
    sent = client.post(f"{_BACKEND}/webhooks/{webhook}/test").json()["entregaId"]
    Things.names = {
        "procesoId": made["procesoId"],
        "solicitudId": made["firmantes"][0]["solicitudId"],
        "documentoId": document,
        "loteId": batch,
        "webhookId": webhook,
        "entregaId": sent,
        "cuil": person.cuil,
    }
    yield Things.names
    Things.names = {}


@LAZY.parametrize()
def test_operation_with_its_credential(
    case: schemathesis.Case[Any],
    own: Appliance,
    backend: TestBackend,
    person: TestPerson,
    things: dict[str, Any],
) -> None:
    """Documented answers alone to whoever may call."""
    del things
    caller = _CALLERS[case.operation.definition.raw["operationId"]]
    headers = {}
    if caller in {Caller.KEY, Caller.SESSION_KEY}:
        headers["X-Api-Key"] = backend.key.secret
    elif caller is not Caller.ANYBODY:
        headers["Authorization"] = f"Bearer {own.bearer(person)}"
    case.call_and_validate(base_url=own.base_url, headers=headers)


@LAZY.parametrize()
def test_operation_without_any(case: schemathesis.Case[Any], own: Appliance) -> None:
    """The same to whoever may not."""
    case.call_and_validate(base_url=own.base_url)
