"""Documents that waited, and others that were signed, when an upgrade came.

A tree that saw less in a file takes them in and signs some of them, forged ones too.
This one examines again what waits, and `rubrica documents recheck` what was signed.

Source: docs/documents.md "After an upgrade"; SECURITY.md "Advisories".
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any, Final

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.functional.integration.test_webhook_listener import Received, receiving
from tests.support.documents.validators import pdfsig, pyhanko_valid
from tests.support.faults.fault_injection import until
from tests.support.hosts.earlier_tree import (
    Tree,
    TreeInstallation,
    before_one_reading,
)
from tests.support.hosts.waiting_documents import (
    API,
    Backend,
    LeftDocuments,
    leave_documents,
)
from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer

NOW: Final = Tree.present()
pytestmark = pytest.mark.long


@dataclass
class Upgraded:
    """An installation that this tree serves, and what an earlier one left in it."""

    site: TreeInstallation
    left: LeftDocuments
    came: "Queue[Received]"
    """To the integrator's webhook."""
    told: list[dict[str, Any]] = field(default_factory=list)

    def webhooks(self, kind: str) -> set[tuple[str, str]]:
        """Process and reason of what the webhook was told of a kind."""
        while not self.came.empty():
            self.told.append(json.loads(self.came.get()[1]))
        return {
            (each["data"]["procesoId"], each["data"].get("motivo", ""))
            for each in self.told
            if each["type"] == kind
        }

    def recheck(self, status: int, *words: str) -> list[dict[str, Any]]:
        """Run the command; the JSON objects that it wrote."""
        command = ("documents", "recheck", "--json", *words)
        lines = self.site.run(NOW, *command, status=status).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def upgraded(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
) -> Iterator[Upgraded]:
    """Left by an earlier tree; served by this one from here on."""
    earlier = Tree.committed(tmp_path_factory.mktemp("tree"), before_one_reading())
    database = None
    if request.param == "postgresql":
        database = postgres_server.url(postgres_server.create_database())
    with short_folder() as folder, receiving(204) as (url, came):
        site = TreeInstallation(folder, database)
        with site.running(earlier):
            site.run(earlier, "demo", "setup")
            backend = Backend.at(site)
            left = leave_documents(backend, url)
        with site.running(NOW), closing(backend.client), closing(left.frame):
            yield Upgraded(site, left, came)


def test_what_is_refused_now_ends_with_its_reason(upgraded: Upgraded) -> None:
    """In the API, in the webhook and in the frame that has shown it; nothing hangs."""
    left = upgraded.left
    backend = left.backend

    def are_over() -> bool:
        states = [backend.standing(process)[0] for process, _ in left.refused.values()]
        return all(state == "fallida" for state, _ in states)

    until(are_over)
    ends = {
        name: backend.standing(process) for name, (process, _) in left.refused.items()
    }
    shown = left.frame.get("/embed/api/state").json()
    ana = backend.people[0]["cuil"]
    again = backend.client.post(
        f"{API}/test/signers/{ana}/sign",
        json={"procesoId": left.refused["ambiguous"][0]},
    )

    for name, (_, code) in left.refused.items():
        assert ends[name][0] == ("fallida", code)
    assert ends["of two"][1] == ("cancelada", "PROCESS_ENDED")
    assert (shown["state"], shown["reason"]["code"]) == (
        "failed",
        "PDF_EXTERNAL_CONTENT",
    )
    assert again.status_code == httpx.codes.CONFLICT
    expected = set(left.refused.values())
    until(lambda: expected <= upgraded.webhooks("solicitud.fallida"))


def test_uploads_of_before_are_examined_where_they_are_named(
    upgraded: Upgraded,
) -> None:
    """By a request and by a batch, with a mark and without one."""
    backend = upgraded.left.backend
    cuil = backend.people[0]["cuil"]
    plain, outside = (
        {"documentoId": upgraded.left.uploads[name]} for name in ("plain", "outside")
    )
    signer = {"cuil": cuil, "sello": {"page": 1}}

    refused = backend.post("/requests", 422, firmantes=[signer], documento=outside)
    batch = backend.post("/batches", 202, firmante=signer, documentos=[plain, outside])
    address = f"/batches/{batch['loteId']}"
    until(lambda: backend.get(address)["estado"] != "en_preparacion")
    made = backend.post("/requests", 201, firmantes=[signer], documento=plain)

    assert refused["code"] == "PDF_EXTERNAL_CONTENT"
    told = backend.get(address)
    assert told["estado"] == "rechazado"
    assert [(each["code"], each["field"]) for each in told["errors"]] == [
        ("PDF_EXTERNAL_CONTENT", "documentos[1].documentoId")
    ]
    backend.sign(backend.people[0], procesoId=made["procesoId"])


def test_batches_go_on(upgraded: Upgraded) -> None:
    """Whole, half signed, and with a document that is refused now."""
    left = upgraded.left
    backend = left.backend
    ana, bruno = backend.people

    for name, person in {"whole": ana, "half": bruno, "one refused": bruno}.items():
        backend.sign(person, loteId=left.batches[name])

    def states(name: str) -> Counter[str]:
        told = backend.get(f"/batches/{left.batches[name]}")["solicitudes"]
        return Counter(each["estado"] for each in told)

    until(lambda: states("one refused")["firmada"] == 4)
    assert states("whole") == states("half") == {"firmada": 4}
    assert states("one refused") == {"firmada": 4, "fallida": 1}


def test_the_rest_is_signed_and_valid(upgraded: Upgraded, tmp_path: Path) -> None:
    """For `rubrica verify`, pyHanko and pdfsig, each signature of each document."""
    left = upgraded.left
    backend = left.backend
    root = certificate_in(upgraded.site.folder / "pki/root.pem")

    for name, process in left.waiting.items():
        backend.sign_all(process)
        path = tmp_path / f"{name}.pdf"
        path.write_bytes(backend.document(process))

        upgraded.site.run(NOW, "verify", str(path))
        assert all(each.valid for each in pdfsig(path))
        assert pyhanko_valid(path.read_bytes(), [root])


def test_recheck_finds_what_was_forged_and_nothing_else(upgraded: Upgraded) -> None:
    """And goes on where a run ended; a file that is missing is told apart."""
    left = upgraded.left
    numbers = {left.backend.number(each): how for each, how in left.forged.items()}
    (broken,) = (each for each, how in numbers.items() if how == "broken")

    *listed, counts = upgraded.recheck(1)
    *below, _ = upgraded.recheck(0, "--before", str(min(numbers)))

    assert {each["request"]: each["outcome"] for each in listed} == numbers
    assert counts["counts"].keys() == {"broken", "unchecked", "whole"}
    assert below == []
    upgraded.recheck(1, "--request", str(broken))


def certificate_in(path: Path) -> bytes:
    """The certificate of a PEM file, DER."""
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    return certificate.public_bytes(Encoding.DER)
