"""rubrica-client, both of it, against a transport that answers as a test says."""

import json
import re
import resource
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from rubrica_client import (
    ApiError,
    AsyncRubricaClient,
    ConnectionFailedError,
    ForbiddenError,
    IntegrityError,
    InvalidRequestError,
    NotFoundError,
    RateLimitedError,
    RubricaClient,
    UnavailableError,
    WebhookError,
    models,
    read_webhook,
    resources,
    test_mode,
)
from rubrica_client.calls import Resource, _Described
from standardwebhooks import Webhook

from appliance.domain.integrators.integrators import SessionFault

DOCS = Path(__file__).resolve().parents[3] / "docs"
URL = "https://api.example.com/base"
KEY = "rbk_test_1_0123456789abcdef"
PDF = b"%PDF-1.7 x"
MADE = {"procesoId": "p-1"}
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
BEYOND_THE_TABLE = {
    # docs/integrators.md
    "POST /api/integration/session/new",
    # The test mode, docs/integration.md
    "POST /api/integration/test/signers",
    "GET /api/integration/test/signers",
    "GET /api/integration/test/signers/{cuil}",
    "GET /api/integration/test/signers/{cuil}/otp",
    "GET /api/integration/test/signers/{cuil}/mails",
    "POST /api/integration/test/signers/{cuil}/sign",
    "POST /api/integration/test/signers/{cuil}/reject",
}
Answer = httpx.Response | type[httpx.TransportError]


class Service:
    """Answers one call after the other, and keeps what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.bodies: list[bytes] = []

    def _answer(self, request: httpx.Request, body: bytes) -> httpx.Response:
        self.asked.append(request)
        self.bodies.append(body)
        answer = self.answers.pop(0)
        if isinstance(answer, httpx.Response):
            return answer
        raise answer("as a test wants it", request=request)

    def sync(self, request: httpx.Request) -> httpx.Response:
        """Answer a client that waits."""
        return self._answer(request, request.read())

    async def later(self, request: httpx.Request) -> httpx.Response:
        """Answer one that awaits."""
        return self._answer(request, await request.aread())


Calls = Callable[[Any], Any]


class Both:
    """Has the one or the other client make a call."""

    def __init__(self, *, is_async: bool) -> None:
        self.is_async = is_async

    async def __call__(self, service: Service, calls: Calls, **options: Any) -> Any:
        """Make it; the answer, lists as lists."""
        if not self.is_async:
            transport = httpx.MockTransport(service.sync)
            with httpx.Client(transport=transport) as http:
                told = calls(RubricaClient(URL, KEY, http=http, **options))
                return list(told) if isinstance(told, Iterator) else told
        later = httpx.MockTransport(service.later)
        async with httpx.AsyncClient(transport=later) as opened:
            told = calls(AsyncRubricaClient(URL, KEY, http=opened, **options))
            if isinstance(told, AsyncIterator):
                return [each async for each in told]
            return await told


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def both(request: pytest.FixtureRequest) -> Both:
    """The one, and the other."""
    return Both(is_async=request.param)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, in seconds; nobody waits."""
    waited: list[float] = []

    async def later(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("rubrica_client.client.time.sleep", waited.append)
    monkeypatch.setattr("rubrica_client.client.asyncio.sleep", later)
    return waited


def refusal(status: int, code: str, **more: Any) -> httpx.Response:
    """An answer that says what is wrong."""
    wait_s = more.pop("retry_after", None)
    headers = {} if wait_s is None else {"Retry-After": str(wait_s)}
    problem = {"code": code, "detail": "No.", "category": "retry", **more}
    return httpx.Response(status, json=problem, headers=headers)


def pdf(content: bytes = PDF, told: bytes = PDF) -> httpx.Response:
    """A document, and the ETag of what it should be."""
    headers = {
        "Content-Type": "application/pdf",
        "ETag": f'"{sha256(told).hexdigest()}"',
    }
    return httpx.Response(200, content=content, headers=headers)


def described() -> set[str]:
    """Every route that has a method."""
    kinds = {
        kind
        for module in (resources, test_mode)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Resource)
    }
    return {
        f"{each.route.method} {each.route.path}"
        for kind in kinds
        for each in vars(kind).values()
        if isinstance(each, _Described)
    }


def test_each_route_of_the_table_has_a_method() -> None:
    """docs/integration.md: whoever adds a route adds its method."""
    table = set(
        re.findall(
            r"^\| `([A-Z]+ /api/integration/[^`]*)`",
            (DOCS / "integration.md").read_text("utf-8"),
            re.MULTILINE,
        )
    )

    assert len(table) >= 33
    assert table - described() == set()
    assert described() - table <= BEYOND_THE_TABLE


async def test_call_is_what_the_manual_says(both: Both) -> None:
    """Address, key, language, and the document beside its options."""
    service = Service(httpx.Response(201, json=MADE))
    told = await both(
        service,
        lambda client: client.requests.create(
            PDF, [{"cuil": "20-26756539-3"}], {"referencia": "r"}, name="Señal.pdf"
        ),
        language="en",
    )

    assert told == MADE
    (request,) = service.asked
    assert str(request.url) == f"{URL}/api/integration/requests"
    assert request.headers["X-Api-Key"] == KEY
    assert request.headers["Accept-Language"] == "en"
    assert len(request.headers["Idempotency-Key"]) == 36
    body = service.bodies[0]
    assert b'name="file"; filename="documento.pdf"' in body
    assert PDF in body
    options = json.loads(re.findall(rb"\r\n\r\n(\{.*?\})\r\n", body)[0])
    assert options == {
        "referencia": "r",
        "firmantes": [{"cuil": "20-26756539-3"}],
        "documento": {"nombre": "Señal.pdf"},
    }


async def test_uploaded_document_is_named(both: Both) -> None:
    """By JSON alone."""
    service = Service(httpx.Response(201, json=MADE))
    document = {"documentoId": "d-1"}
    await both(
        service,
        lambda c: c.requests.create(document, [{"personaId": "x"}], name="a.pdf"),
    )

    assert json.loads(service.bodies[0]) == {
        "firmantes": [{"personaId": "x"}],
        "documento": {"documentoId": "d-1", "nombre": "a.pdf"},
    }


async def test_places_of_an_address_are_escaped(both: Both) -> None:
    """An id is one part of the address, whatever it has."""
    service = Service(httpx.Response(200, json=MADE))
    await both(service, lambda client: client.requests.get("a/../b?c"))

    (request,) = service.asked
    assert request.url.raw_path == b"/base/api/integration/requests/a%2F..%2Fb%3Fc"


async def test_file_is_sent_anew_at_each_attempt(
    both: Both, waits: list[float], tmp_path: Path
) -> None:
    """From its beginning, under the same idempotency key, by its own name."""
    path = tmp_path / "acta.pdf"
    path.write_bytes(PDF)
    busy = refusal(503, "OVERLOADED", retry_after=2)
    service = Service(busy, httpx.ReadError, httpx.Response(201, json={"ok": 1}))
    await both(service, lambda client: client.documents.upload(path))

    assert [PDF in body for body in service.bodies] == [True] * 3
    assert service.asked[0].url.params["nombre"] == "acta.pdf"
    keys = {request.headers["Idempotency-Key"] for request in service.asked}
    assert len(keys) == 1
    assert waits[0] == 2
    assert 0.5 <= waits[1] <= 1


async def test_given_key_is_taken(both: Both) -> None:
    """So that the caller's own repeat makes nothing new."""
    service = Service(httpx.Response(201, json=MADE))
    await both(
        service,
        lambda client: client.batches.create({"cuil": "x"}, [], idempotency_key="k-1"),
    )

    assert service.asked[0].headers["Idempotency-Key"] == "k-1"


@pytest.mark.parametrize("is_told", [True, False])
async def test_reading_is_repeated_a_few_times(
    both: Both, waits: list[float], is_told: bool
) -> None:
    """Four times in all, then it is an error."""
    service = Service(
        *[
            refusal(429, "A_CODE", retry_after=1) if is_told else httpx.ReadTimeout
            for _ in range(9)
        ]
    )
    with pytest.raises((RateLimitedError, ConnectionFailedError)):
        await both(service, lambda client: client.installation.limits())

    assert len(service.asked) == 4
    assert len(waits) == 3


async def test_writing_without_a_key_is_not_repeated(
    both: Both, waits: list[float]
) -> None:
    """Nobody knows what became of it; but where nothing was sent, it is."""
    for answer in (refusal(503, "OVERLOADED", retry_after=1), httpx.ReadError):
        service = Service(answer)
        with pytest.raises((UnavailableError, ConnectionFailedError)):
            await both(service, lambda client: client.webhooks.rotate("w"))
    service = Service(httpx.ConnectError, httpx.Response(200, json={}))
    await both(service, lambda client: client.webhooks.rotate("w"))

    assert len(waits) == 1


async def test_too_long_a_wait_is_an_error(both: Both, waits: list[float]) -> None:
    """The caller is told how long it would be."""
    service = Service(refusal(429, "RATE_LIMITED", retry_after=3600))
    with pytest.raises(RateLimitedError) as caught:
        await both(service, lambda client: client.installation.diagnose())

    assert caught.value.retry_after_s == 3600
    assert waits == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, ForbiddenError),
        (404, NotFoundError),
        (422, InvalidRequestError),
        (507, UnavailableError),
        (418, ApiError),
    ],
)
async def test_refusal_is_an_error_with_its_code(
    both: Both, status: int, kind: type[ApiError]
) -> None:
    """Its class goes by the status, all else is as it was told."""
    told = {"category": "fix_request", "field": "firmantes[0].cuil", "requestId": "q"}
    service = Service(refusal(status, "A_CODE", **told))
    with pytest.raises(ApiError) as caught:
        await both(service, lambda client: client.requests.get("x"))

    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.detail) == (status, "A_CODE", "No.")
    assert (error.category, error.field) == ("fix_request", "firmantes[0].cuil")
    assert (error.request_id, error.retry_after_s) == ("q", None)


async def test_answer_of_something_in_between(both: Both) -> None:
    """A proxy's page has no code: the status stands for it."""
    service = Service(httpx.Response(400, text="<h1>Bad</h1>"))
    with pytest.raises(InvalidRequestError) as caught:
        await both(service, lambda client: client.requests.get("x"))

    assert caught.value.code == "HTTP_400"


async def test_list_goes_over_all_pages(both: Both) -> None:
    """By the parameters of `Link`, at the address of the client and no other."""
    link = '<https://evil.example/x?estado=firmada&limite=200&cursor=c%2B1>; rel="next"'
    service = Service(
        httpx.Response(200, json=[{"n": 1}, {"n": 2}], headers={"Link": link}),
        httpx.Response(200, json=[{"n": 3}]),
    )
    told = await both(service, lambda client: client.requests.list(estado="firmada"))

    assert [each["n"] for each in told] == [1, 2, 3]
    first, second = service.asked
    assert dict(first.url.params) == {"limite": "200", "estado": "firmada"}
    assert second.url.host == "api.example.com"
    assert second.url.params["cursor"] == "c+1"


async def test_documents_of_a_batch_are_paged_too(both: Both) -> None:
    """They stand in a member of the answer."""
    link = '<https://x.example/?limite=200&cursor=2>; rel="next"'
    service = Service(
        httpx.Response(200, json={"solicitudes": [1]}, headers={"Link": link}),
        httpx.Response(200, json={"solicitudes": [2]}),
    )

    assert await both(service, lambda client: client.batches.members("l")) == [1, 2]


async def test_document_is_compared_with_its_hash(both: Both, tmp_path: Path) -> None:
    """One that came otherwise is none, and leaves no file."""
    path = tmp_path / "firmado.pdf"
    assert await both(Service(pdf()), lambda c: c.requests.document("p")) == PDF
    saved = await both(Service(pdf()), lambda c: c.requests.document_to("p", path))
    assert saved == path
    assert path.read_bytes() == PDF
    path.unlink()

    with pytest.raises(IntegrityError):
        await both(Service(pdf(b"%PDF-")), lambda c: c.requests.original("p"))
    with pytest.raises(IntegrityError):
        await both(Service(pdf(b"%PDF-")), lambda c: c.documents.content_to("d", path))
    assert list(tmp_path.iterdir()) == []
    early = refusal(409, "NOT_SIGNED_YET")
    with pytest.raises(ApiError):
        await both(Service(early), lambda c: c.requests.document_to("p", path))
    assert list(tmp_path.iterdir()) == []


async def test_answer_without_a_body(both: Both) -> None:
    """What is deleted says nothing."""
    service = Service(httpx.Response(204))

    assert await both(service, lambda client: client.documents.delete("d")) is None


def test_client_shows_no_key() -> None:
    """Neither in its own text nor in that of its parts."""
    with RubricaClient(URL, KEY) as client:
        shown = repr(client) + repr(vars(client.requests._runner))

    assert KEY not in shown


def test_webhook_is_verified() -> None:
    """By its secret and its time, names of headers in whatever case."""
    body = b'{"type":"webhook.prueba","timestamp":"2026-11-27T12:00:00Z","data":{}}'
    now = datetime.now(UTC)
    signature = Webhook(SECRET).sign("id-1", now, body.decode())
    headers = {
        "Webhook-Id": "id-1",
        "Webhook-Timestamp": str(int(now.timestamp())),
        "Webhook-Signature": signature,
    }

    assert read_webhook(SECRET, body, headers)["type"] == "webhook.prueba"
    old = headers | {"Webhook-Timestamp": str(int(now.timestamp()) - 301)}
    for wrong, given in ((body + b" ", headers), (body, old), (body, {})):
        with pytest.raises(WebhookError):
            read_webhook(SECRET, wrong, given)


async def test_more_files_are_sent_than_may_be_open(
    both: Both, tmp_path: Path, waits: list[float]
) -> None:
    """Each is open only while it is read, at each attempt from its beginning."""
    names = [f"recibo-{number}" for number in range(1_000)]
    for name in names:
        (tmp_path / name).write_bytes(PDF + name.encode())
    service = Service(refusal(503, "OVERLOADED"), httpx.Response(201, json=MADE))
    documents = [{"archivo": name} for name in names]
    files = {name: tmp_path / name for name in names}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        await both(
            service,
            lambda client: client.batches.create(
                {"cuil": "20000000028"}, documents, files=files
            ),
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert len(waits) == 1
    for body in service.bodies:
        assert all(PDF + name.encode() + b"\r\n" in body for name in names)


async def test_client_of_the_caller_stays_open() -> None:
    """What it was given is not closed, what it made is."""
    transport = httpx.MockTransport(Service().sync)
    with httpx.Client(transport=transport) as http:
        with RubricaClient(URL, KEY, http=http):
            pass
        assert not http.is_closed
    async with httpx.AsyncClient(transport=transport) as later:
        async with AsyncRubricaClient(URL, KEY, http=later):
            pass
        assert not later.is_closed
    own, other = RubricaClient(URL, KEY), AsyncRubricaClient(URL, KEY)
    own.close()
    await other.aclose()
    assert own._http.is_closed
    assert other._http.is_closed


def test_faults_are_those_of_the_service() -> None:
    """What a session can be asked to go wrong by."""
    assert {*get_args(models.Fault)} == {fault.value for fault in SessionFault}


def prepared(state: str, retry_after: str | None = None) -> httpx.Response:
    """A batch in a state."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return httpx.Response(200, json={"loteId": "l", "estado": state}, headers=headers)


async def test_batch_is_waited_for(both: Both, waits: list[float]) -> None:
    """For as long as each answer says; another state ends it, also a bad one."""
    for end in ("listo", "rechazado", "cancelado"):
        waits.clear()
        service = Service(
            prepared("en_preparacion", "7"),
            refusal(503, "OVERLOADED", retry_after=3),
            prepared("en_preparacion"),
            prepared(end),
        )
        told = await both(service, lambda client: client.batches.wait("l"))
        assert told["estado"] == end
        assert waits == [7, 3, 2]
        assert {each.url.path for each in service.asked} == {
            "/base/api/integration/batches/l"
        }


async def test_batch_is_waited_for_so_long(both: Both, waits: list[float]) -> None:
    """Then it is given as it is."""
    service = Service(*(prepared("en_preparacion", "4") for _ in range(3)))
    told = await both(service, lambda client: client.batches.wait("l", longest_s=9))
    assert (told["estado"], waits) == ("en_preparacion", [4, 4])
