"""rubrica-client, both of it, at a running appliance: from asking to the document."""

import asyncio
import inspect
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from typing import Any, Final, NotRequired, get_origin, get_type_hints

import pytest
from rubrica_client import (
    ApiError,
    AsyncRubricaClient,
    ConflictError,
    NotFoundError,
    RubricaClient,
    WebhookError,
    models,
    read_webhook,
)

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.backends import TestBackend, assert_valid, backend_of
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

README: Final = Path(__file__).resolve().parents[3] / "sdk/python/README.md"
PDF: Final = pdfs.one_page()
_AT_MOST_S: Final = 60
Received = tuple[dict[str, str], bytes]


async def do(told: Any) -> Any:
    """What a call of either client gives; of a list, all of it."""
    if inspect.isawaitable(told):
        return await told
    if isinstance(told, AsyncIterator):
        return [each async for each in told]
    return list(told) if isinstance(told, Iterator) else told


async def until_some(ask: Callable[[], Awaitable[Any]]) -> Any:
    """Ask until there is something."""
    async with asyncio.timeout(_AT_MOST_S):
        while True:
            if found := await ask():
                return found
            await asyncio.sleep(0.1)


def fits(told: Any, kind: Any) -> Any:
    """Demand that an answer has the members that the client's types say."""
    hints = get_type_hints(kind, include_extras=True)
    needed = {n for n, hint in hints.items() if get_origin(hint) is not NotRequired}
    assert needed <= told.keys() <= hints.keys()
    return told


@asynccontextmanager
async def opened(backend: TestBackend, kind: str) -> AsyncIterator[Any]:
    """A client of a backend's, of one kind or the other."""
    web_url = backend.appliance.settings.web.web_url
    if kind == "sync":
        with RubricaClient(web_url, backend.key.secret) as client:
            yield client
    else:
        async with AsyncRubricaClient(web_url, backend.key.secret) as later:
            yield later


@pytest.fixture(params=["sync", "async"])
async def client(
    request: pytest.FixtureRequest, appliance: Appliance
) -> AsyncIterator[Any]:
    """A client of an integrator of its own."""
    with backend_of(appliance) as backend:
        async with opened(backend, request.param) as made:
            yield made


@contextmanager
def receiving() -> Iterator[tuple[str, "Queue[Received]"]]:
    """An address of this machine, and what comes there."""
    came: Queue[Received] = Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.put((dict(self.headers.items()), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/rubrica", came
    finally:
        server.shutdown()
        server.server_close()


async def test_a_request_from_asking_to_the_signed_document(
    appliance: Appliance, client: Any, tmp_path: Path
) -> None:
    """A file is sent, found again, signed by a test signer, and fetched whole."""
    path = tmp_path / "Señal.pdf"
    path.write_bytes(PDF)
    signer = fits(await do(client.test.signers.create()), models.TestSigner)
    named = [{"cuil": signer["cuil"]}]
    options = {"referencia": "r-1", "metadatos": {"a": "1"}}

    made = await do(client.requests.create(path, named, options, idempotency_key="k"))
    again = await do(client.requests.create(path, named, options, idempotency_key="k"))
    fits(made, models.Request)
    fits(made["documento"], models.RequestDocument)
    fits(made["firmantes"][0], models.RequestSigner)
    process = made["procesoId"]
    assert again["procesoId"] == process
    assert made["documento"]["nombre"] == "Señal.pdf"
    (found,) = await do(client.requests.list(referencia="r-1"))
    assert fits(found, models.RequestListed)["procesoId"] == process
    with pytest.raises(ConflictError) as caught:
        await do(client.requests.document(process))
    assert caught.value.code == "NOT_SIGNED_YET"
    changed = await do(client.requests.change(process, {"mensaje": "Hoy"}))
    assert changed["mensaje"] == "Hoy"
    session = await do(client.sessions.create(process=process))
    assert fits(session, models.Session)["solicitudId"] is not None

    await do(client.test.signers.sign(signer["cuil"], process=process))

    assert (await do(client.requests.get(process)))["estado"] == "firmada"
    saved = await do(client.requests.document_to(process, tmp_path / "firmado.pdf"))
    assert_valid(appliance, saved.read_bytes(), 1)
    assert await do(client.requests.document(process)) == saved.read_bytes()
    assert await do(client.requests.original(process)) == PDF
    state = await do(client.signers.get(signer["cuil"]))
    assert fits(state, models.SignerState)["puedeFirmar"] is True


async def test_documents_that_come_with_a_batch(client: Any, tmp_path: Path) -> None:
    """From files and bytes, each for who names it."""
    signer = await do(client.test.signers.create(nombre="Ana Ruiz"))
    path = tmp_path / "año.pdf"
    path.write_bytes(PDF)
    documents: list[models.BatchDocument] = [{"archivo": "b"}, {"archivo": "a"}]

    made = await do(
        client.batches.create(
            {"cuil": signer["cuil"]}, documents, files={"a": path, "b": PDF}
        )
    )

    fits(made, models.Batch)
    assert made["estado"] == "en_preparacion"
    made = await do(client.batches.wait(made["loteId"]))
    assert fits(made, models.Batch)["estado"] == "listo"
    names = [each["documento"]["nombre"] for each in made["solicitudes"]]
    assert names == ["documento.pdf", "año.pdf"]


async def test_a_batch_and_its_pages(client: Any) -> None:
    """What was uploaded is asked for many times, listed over pages, and taken back."""
    signer = await do(client.test.signers.create(nombre="Ana Ruiz"))
    uploaded = await do(client.documents.upload(PDF, name="acta.pdf"))
    document = fits(uploaded, models.Document)["documentoId"]
    many = [{"documentoId": document, "referencia": str(n)} for n in range(201)]

    made = await do(client.batches.create({"cuil": signer["cuil"]}, many))
    made = await do(client.batches.wait(made["loteId"]))
    members = await do(client.batches.members(made["loteId"]))

    fits(made, models.Batch)
    assert [each["referencia"] for each in members] == [str(n) for n in range(201)]
    fits(members[0], models.BatchMember)
    listed = await do(client.requests.list(batch=made["loteId"]))
    assert len({each["procesoId"] for each in listed}) == 201
    (batch,) = await do(client.batches.list())
    assert fits(batch, models.BatchListed)["total"] == 201
    ended = await do(client.batches.cancel(made["loteId"], "Era otra versión"))
    assert ended["estados"] == {"cancelada": 201}
    (kept,) = await do(client.documents.list())
    assert fits(kept, models.DocumentListed)["nombre"] == "acta.pdf"
    assert await do(client.documents.content(document)) == PDF
    assert await do(client.documents.delete(document)) is None
    with pytest.raises(NotFoundError) as caught:
        await do(client.documents.get(document))
    assert caught.value.code == "DOCUMENT_NOT_FOUND"


async def test_a_test_signer_refuses(client: Any) -> None:
    """And leaves; their code is one of six digits."""
    signer = await do(client.test.signers.create())
    cuil = signer["cuil"]
    made = await do(client.requests.create(PDF, [{"cuil": cuil}]))
    code = fits(await do(client.test.signers.otp(cuil)), models.TestCode)
    mails = await until_some(lambda: do(client.test.signers.mails(cuil)))

    await do(client.test.signers.reject(cuil, process=made["procesoId"], motivo="No"))

    assert re.fullmatch(r"\d{6}", code["otp"])
    assert fits(mails[-1], models.TestMail)["tipo"] == "certificado"
    assert (await do(client.requests.get(made["procesoId"])))["estado"] == "rechazada"
    (listed,) = await do(client.test.signers.list())
    assert listed == await do(client.test.signers.get(cuil))
    await do(client.test.signers.delete(cuil))
    assert await do(client.test.signers.list()) == []


async def test_how_the_integrator_is_set_up(client: Any) -> None:
    """Diagnosis and limits; what is not permitted has its code."""
    told = fits(await do(client.installation.diagnose()), models.Diagnosis)
    limits = await do(client.installation.limits())

    assert told["entorno"] == "PREPROD"
    names = [fits(each, models.Limit)["nombre"] for each in limits]
    assert names == ["llamadas", "sesiones", "solicitudes", "bytes"]
    identity = {
        "metodo": "DNI a la vista",
        "responsable": "Marta Gil",
        "cuando": "2026-05-20T14:00:00-03:00",
    }
    with pytest.raises(ApiError) as caught:
        await do(
            client.signers.invite(
                "20-05536168-2",
                nombre="Rosa",
                email="r@example.org",
                identidad=identity,
            )
        )
    assert caught.value.code == "VOUCH_REFUSED"
    assert caught.value.request_id is not None


async def test_webhooks_are_administered(client: Any) -> None:
    """Made, changed, tried out, given another secret, and removed."""
    made = await do(client.webhooks.create("https://x.invalid/", nombre="cobros"))
    webhook = fits(made, models.WebhookWithSecret)["webhookId"]
    (listed,) = await do(client.webhooks.list())
    fits(listed, models.WebhookEndpoint)
    sent = fits(await do(client.webhooks.send_test(webhook)), models.DeliveryDetail)

    async def failing() -> Any:
        return (await do(client.webhooks.get(webhook)))["fallaDesde"]

    # Nobody is at that address. Once it is noted, no try changes the webhook any more.
    await until_some(failing)
    (delivery,) = await do(client.webhooks.deliveries(webhook, tipo="webhook.prueba"))
    fits(delivery, models.Delivery)
    detail = await do(client.webhooks.delivery(webhook, sent["entregaId"]))
    rotated = await do(client.webhooks.rotate(webhook))
    again = await do(client.webhooks.replay_one(webhook, sent["entregaId"]))
    fits(again, models.DeliveryDetail)
    many = await do(client.webhooks.replay(webhook, estado="abandonada"))
    off = await do(client.webhooks.change(webhook, {"habilitado": False}))

    assert delivery["entregaId"] == sent["entregaId"] == again["entregaId"]
    assert fits(detail, models.DeliveryDetail)["cuerpo"]["type"] == "webhook.prueba"
    assert rotated["secreto"] != made["secreto"]
    assert fits(many, models.Replayed)["reenviadas"] == 0
    assert off["habilitado"] is False
    assert await do(client.webhooks.get(webhook)) == off
    assert await do(client.webhooks.delete(webhook)) is None
    assert await do(client.webhooks.list()) == []


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_what_a_webhook_gets_is_verified(
    appliance_of_webhooks: Appliance, kind: str
) -> None:
    """As it comes, by the secret that it was made with; nothing else is."""
    with backend_of(appliance_of_webhooks) as backend, receiving() as (url, came):
        async with opened(backend, kind) as client:
            made = await do(client.webhooks.create(url))
            await do(client.webhooks.send_test(made["webhookId"]))
            headers, body = came.get(timeout=_AT_MOST_S)

    message = fits(read_webhook(made["secreto"], body, headers), models.WebhookMessage)
    assert message["type"] == "webhook.prueba"
    assert message["data"] == {"webhookId": made["webhookId"]}
    with pytest.raises(WebhookError):
        read_webhook(made["secreto"], body + b" ", headers)


@pytest.fixture(scope="module")
def appliance_of_webhooks() -> Iterator[Appliance]:
    """One that may call this machine, as a trial may."""
    more = '[webhooks]\nallowed_networks = ["127.0.0.0/8"]\n'
    with short_folder() as folder, Appliance.made(folder, more=more) as running:
        yield running


async def test_samples_of_the_readme(
    appliance: Appliance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run as they are printed."""
    monkeypatch.chdir(tmp_path)
    Path("contrato.pdf").write_bytes(PDF)
    blocks = re.findall(
        r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, README.name, "exec"), names)  # noqa: S102 (our README)
    with backend_of(appliance) as backend:
        access = (appliance.settings.web.web_url, backend.key.secret)
        with RubricaClient(*access) as client:
            cuil = client.test.signers.create()["cuil"]
            process = names["send"](*access, cuil)
            before = names["fetch"](*access, process)
            client.test.signers.sign(cuil, process=process)
        after = names["fetch"](*access, process)

        assert (before, after) == (False, True)
        assert await names["signed"](*access) == [process]
    assert_valid(appliance, Path("firmado.pdf").read_bytes(), 1)
    assert callable(names["on_message"])
