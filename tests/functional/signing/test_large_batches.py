"""As many documents as a batch may have, of one backend and one signer.

Source: docs/integration.md; docs/limits.md.
"""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from appliance.bootstrap import ServiceRegistry
from appliance.documents.document_store import DocumentStore
from appliance.documents.examination import Examined
from appliance.documents.uploaded_document_store import UploadedDocumentStore
from appliance.domain.ids import UploadId, new_id
from appliance.domain.requests.uploads import UploadedDocument
from appliance.people.person_store import PersonStore
from appliance.requests.intake import stored_as
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import (
    BATCHES,
    REQUESTS,
    TestBackend,
    assert_valid,
    backend_of,
    ready_batch,
    sign_batch,
    upload,
)
from tests.support.documents import pdfs
from tests.support.patience import TEST_S

UPLOADED = 100
"""Documents that come over HTTP, of a thousand."""
DISTINCT = 250
"""To examine a thousand would take a minute of a processor."""


def taken_in(backend: TestBackend, originals: list[bytes]) -> list[str]:
    """Ids of uploads that did not come over HTTP."""

    async def take_in(front: ServiceRegistry) -> list[str]:
        store, intake = front.core.store, front.intake
        async with store.read() as transaction:
            integrator = await PersonStore(transaction).integrator(backend.code)
        assert integrator is not None
        each = list(dict.fromkeys(originals))
        examined: dict[bytes, Examined] = {}
        for pdf, found in zip(
            each, await intake.examined_all(integrator.id, each), strict=True
        ):
            assert isinstance(found, Examined)
            examined[pdf] = found
        now = front.clock.now()
        until = now + timedelta(days=1)
        uploads = []
        async with (
            intake.keeping(integrator.id, [*examined.items()]) as kept,
            store.write() as transaction,
        ):
            await kept.recorded(transaction)
            for pdf in originals:
                stored = await stored_as(integrator.id, examined[pdf])
                document = await DocumentStore(transaction).add(stored, now)
                new = UploadedDocument(
                    UploadId(new_id()), document, "a.pdf", now, until
                )
                await UploadedDocumentStore(transaction).add(
                    new, len(pdf), backend.key.key.id
                )
                uploads.append(str(new.id))
        return uploads

    return backend.appliance.do(take_in, timeout_s=TEST_S)


@pytest.mark.timeout(TEST_S)
@pytest.mark.parametrize(
    ("database", "count"), [("sqlite", 200), ("postgresql", 1_000)]
)
def test_many_are_asked_for_and_signed_at_once(
    appliance: Appliance, postgres_appliance: Appliance, database: str, count: int
) -> None:
    """One call makes them, one signs them; the same call again makes nothing new."""
    # Both are named: shared appliances rest while no test names them.
    if database == "postgresql":
        appliance = postgres_appliance
    person = appliance.new_person()
    originals = [pdfs.one_page(f"Recibo {n % DISTINCT:04}") for n in range(count)]
    with backend_of(appliance) as backend, ThreadPoolExecutor(2) as pool:
        # A call for each would take a minute of a processor.
        sent, others = originals[:UPLOADED], originals[UPLOADED:]
        uploads = list(pool.map(lambda pdf: upload(backend, pdf), sent))
        uploads += taken_in(backend, others)
        body = {
            "firmante": {"cuil": person.cuil, "sello": {"page": "ultima"}},
            "documentos": [
                {"documentoId": each, "referencia": f"recibo-{n}"}
                for n, each in enumerate(uploads)
            ],
            "referencia": "recibos-2026-11",
        }
        key = {"Idempotency-Key": "recibos-2026-11"}
        answer = backend.client.post(BATCHES, json=body, headers=key)
        made = ready_batch(backend.client, answer)

        told = sign_batch(appliance, person, made["loteId"])
        again = backend.client.post(BATCHES, json=body, headers=key)
        listed = backend.client.get(BATCHES).json()

        members = made["solicitudes"]
        numbers = [each["solicitudId"] for each in members]
        assert [each["solicitudId"] for each in told["resultados"]] == numbers
        assert (told["status"], told["firmadas"]) == ("success", count)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert [each["solicitudId"] for each in again.json()["solicitudes"]] == numbers
        assert [each["estados"] for each in listed] == [{"firmada": count}]
        paths = [f"{REQUESTS}/{each['procesoId']}/document" for each in members]
        fetched = pool.map(lambda path: backend.client.get(path).content, paths)
        for place, pdf in enumerate(fetched):
            assert pdf.startswith(originals[place])
            digest = hashlib.sha256(pdf).hexdigest()
            assert digest == told["resultados"][place]["sha256"]
            if place % 50 == 0:
                assert_valid(appliance, pdf, 1)
