"""Conversations with the faces over HTTP, and what was answered.

Each is played on fresh storage with a clock that stands; workers and the sandbox are
played by fakes. The files of `wire` hold the answers, in order.
"""

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast

import pyotp

from appliance.domain.errors import (
    ApplianceError,
    CheckDigitError,
    ErrorCode,
    FieldInvalidError,
    FieldMissingError,
    PageOutOfRangeError,
    TsaUnavailableError,
)
from appliance.domain.ids import CredentialId, PersonId, RequestId, TaskId, new_id
from appliance.domain.keys.hsm_keys import DigestAlgorithm, KeyAlgorithm
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.pki.certificates import CertificateRecord
from appliance.domain.pki.timestamps import IssuedTimestamp
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import (
    CertificateKind,
    RequestState,
    RevocationReason,
    TaskKind,
    VouchedBy,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_tasks import HsmTasks, issue_binding, submit_issue
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords
from appliance.pki.certificates import Certificates
from appliance.pki.csr import CsrWork, SigningRequests
from appliance.pki.publication import Publishing
from appliance.pki.revocation import Revocations
from appliance.pki.tsa.authority import Timestamps, TimestampWork
from appliance.settings import SigningSettings
from appliance.system.background import Shielded
from appliance.web import problems
from embed.assets import load_assets
from tests.support.factories.fakes import FakeTasks, request_view
from tests.support.factories.held_credential import hold
from tests.support.factories.signing_front import open_front
from tests.support.factories.signing_host import password_attempts
from tests.support.installation.api import CUIL, LOGIN_PASSWORD, ApiServices, create_api
from tests.support.installation.frame import ORIGINS, Frame, init_of
from tests.support.installation.installation import Installation
from tests.support.installation.record import (
    PASSWORD,
    CoreFixture,
    new_credential,
    open_record,
)
from tests.support.installation.settings import settings_in
from tests.vectors.answers import Randoms, factored, recorded, token_parts, told

Answers = dict[str, Any]
Scene = Callable[[Path], Coroutine[Any, Any, Answers]]
_SIGN: Final = {"solicitudId": 7, "password": "clave de firma"}
_JSON: Final = {"Content-Type": "application/json"}
_PDF: Final = b"%PDF-1.7\n%one\n%%EOF\n"


class _Calls:
    """Calls of a client, each answer kept under its name."""

    def __init__(self, client: Any, headers: dict[str, str] | None = None) -> None:
        self._client = client
        self.headers = headers or {}
        self.randoms = Randoms()
        self.answers: Answers = {}

    async def __call__(
        self, name: str, method: str, path: str, body: Any = None, **headers: str
    ) -> Any:
        """Call, and keep the answer."""
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        sent = {**self.headers, **named}
        more: dict[str, Any] = {}
        if isinstance(body, bytes):
            more["data"] = body
        elif body is not None:
            more["data"] = json.dumps(body).encode()
            sent = {**_JSON, **sent}
        answer = await self._client.open(path, method=method, headers=sent, **more)
        assert name not in self.answers
        self.answers[name] = await told(answer, self.randoms)
        return answer


@asynccontextmanager
async def _signer(folder: Path) -> AsyncIterator[tuple[ApiServices, PersonId, str]]:
    """The REST API's parts, and a person with a request in each state that is told."""
    async with Installation(folder).api() as api_services:
        who, seed = await api_services.add_person()
        await api_services.add_requests(who, 11)
        states = [
            (7, RequestState.PENDING),
            (8, RequestState.IN_PROGRESS),
            (9, RequestState.SIGNED),
            (10, RequestState.REJECTED),
        ]
        api_services.requests.views = [
            request_view(n, who, state) for n, state in states
        ]
        yield api_services, who, seed


async def sign_in(folder: Path) -> Answers:
    """Signing in, the access token, and what it opens."""
    async with _signer(folder) as (parts, _, seed):
        call = _Calls(create_api(parts).test_client(use_cookies=False))
        login = {"usuario": CUIL, "password": LOGIN_PASSWORD}
        await call("wrong password", "POST", "/auth/login", {**login, "password": "x"})
        await call("unknown field", "POST", "/auth/login", {**login, "a": 1})
        await call("missing field", "POST", "/auth/login", {"usuario": CUIL})
        answer = await call("login", "POST", "/auth/login", login)
        token = (await answer.get_json())["loginToken"]
        await call(
            "wrong code", "POST", "/auth/otp", {"loginToken": token, "codigo": "1"}
        )
        code = pyotp.TOTP(seed).at(parts.clock.now())
        answer = await call(
            "code", "POST", "/auth/otp", {"loginToken": token, "codigo": code}
        )
        bearer = (await answer.get_json())["access_token"]
        call.answers["access token"] = token_parts(bearer)
        await call("keys", "GET", "/.well-known/jwks.json")
        await call("no bearer", "GET", "/solicitudes")
        await call(
            "bad bearer", "GET", "/solicitudes", Authorization=f"Bearer {bearer}x"
        )
        await call("list", "GET", "/solicitudes", Authorization=f"Bearer {bearer}")
        parts.clock.forward(901)
        await call("expired", "GET", "/solicitudes", Authorization=f"Bearer {bearer}")
        call.answers["record"] = recorded(folder, call.randoms)
        return call.answers


async def requests(folder: Path) -> Answers:
    """Requests: listed, looked at, downloaded, rejected."""
    async with _signer(folder) as (parts, who, _):
        client = create_api(parts).test_client(use_cookies=False)
        call = _Calls(client, await parts.bearer(who))
        await call("list", "GET", "/solicitudes")
        await call("signed ones", "GET", "/solicitudes?estado=firmada")
        first = await call("a page", "GET", "/solicitudes?limite=1")
        link = first.headers["Link"].partition(">")[0].rpartition("?")[2]
        await call("the next page", "GET", f"/solicitudes?{link}")
        await call("a bad cursor", "GET", "/solicitudes?limite=1&cursor=x")
        await call("an unknown parameter", "GET", "/solicitudes?a=1")
        await call("a parameter twice", "GET", "/solicitudes?limite=1&limite=2")
        await call("a pending one", "GET", "/solicitudes/7")
        await call("a signed one", "GET", "/solicitudes/9")
        await call("somebody else's", "GET", "/solicitudes/70")
        await call("in English", "GET", "/solicitudes/70", Accept_Language="en")
        await call("an original", "GET", "/solicitudes/7/original")
        await call("a signed document", "GET", "/solicitudes/9/documento")
        await call("a fresh link", "GET", "/solicitudes/9/documento", **_ACCEPTS_JSON)
        await call("not signed yet", "GET", "/solicitudes/7/documento")
        await call(
            "a bad link, and a bearer", "GET", "/solicitudes/9/documento?clave=x"
        )
        await call("a preview", "POST", "/solicitudes/7/vista-previa", {"page": 2})
        await call(
            "an invisible one",
            "POST",
            "/solicitudes/7/vista-previa",
            {"visible": False},
        )
        await call("rejected", "POST", "/solicitudes/7/rechazar", {"motivo": "No"})
        await call("no reason", "POST", "/solicitudes/7/rechazar", {})
        await call("no such page", "GET", "/nada")
        await call("no such method", "DELETE", "/solicitudes")
        return call.answers


_ACCEPTS_JSON: Final = {"Accept": "application/json"}


async def signing(folder: Path) -> Answers:
    """Firmar and firmar/lote, and how they are refused."""
    async with _signer(folder) as (parts, who, _):
        client = create_api(parts).test_client(use_cookies=False)
        call = _Calls(client, await parts.bearer(who))
        path = "/solicitudes/firmar"
        await call("signed", "POST", path, _SIGN)
        done = {**_SIGN, "solicitudId": 9}
        await call("as a PDF", "POST", path, done, Accept="application/pdf")
        parts.signing.slow = True
        await call("still going on", "POST", path, _SIGN)
        await call("no PDF yet", "POST", path, _SIGN, Accept="application/pdf")
        parts.signing.slow = False
        for name, changes in _WRONG.items():
            await call(name, "POST", path, {**_SIGN, **changes})
        await call("missing fields", "POST", path, {})
        await call("no object", "POST", path, [])
        await call("no JSON", "POST", path, b"{", Content_Type="application/json")
        await call("no media type", "POST", path, b"{}", Content_Type="text/plain")
        await call("too large", "POST", path, {**_SIGN, "motivo": "x" * 5000})
        await call("a bad header", "POST", path, _SIGN, If_Match="x")
        for error in _FAILURES:
            parts.signing.failure = error
            await call(f"refused: {error.code}", "POST", path, _SIGN)
        return call.answers


async def batches(folder: Path) -> Answers:
    """firmar/lote."""
    async with _signer(folder) as (parts, who, _):
        client = create_api(parts).test_client(use_cookies=False)
        call = _Calls(client, await parts.bearer(who))
        path = "/solicitudes/firmar/lote"
        batch = {"solicitudIds": [7, 8, 7], "password": "clave de firma"}
        await call("signed", "POST", path, batch)
        parts.batch_signing.refused[RequestId(8)] = ApplianceError(ErrorCode.PDF_LOCKED)
        await call("one refused", "POST", path, batch)
        parts.batch_signing.open.add(RequestId(7))
        going = await call("going on", "POST", path, batch)
        where = going.headers["Location"].rpartition("/")[2]
        await call("asked again", "GET", f"/solicitudes/lotes/{where}")
        await call("unknown", "GET", f"/solicitudes/lotes/{'0' * 32}")
        await call("none", "POST", path, {**batch, "solicitudIds": []})
        await call(
            "too many", "POST", path, {**batch, "solicitudIds": [*range(1, 202)]}
        )
        return call.answers


_WRONG: Final[dict[str, dict[str, Any]]] = {
    "an unknown field": {"otra": 1},
    "a request of text": {"solicitudId": "7"},
    "a short password": {"password": "corta"},
    "a colour": {"fontColor": "blau"},
    "a font": {"fontName": "Comic"},
    "a size": {"fontSize": 73},
    "half a place": {"x": 1},
    "a truth of text": {"visible": "true"},
    "a restriction": {"restriccion": "NADA"},
    "a long reason": {"motivo": "x" * 121},
}
_FAILURES: Final[tuple[ApplianceError, ...]] = (
    ApplianceError(ErrorCode.SIGN_PASSWORD_WRONG, extras={"attemptsLeft": 9}),
    ApplianceError(ErrorCode.SIGN_LOCKED),
    ApplianceError(ErrorCode.RATE_LIMITED, extras={"retryAfter": 7}),
    ApplianceError(ErrorCode.STEP_UP),
    ApplianceError(ErrorCode.ALREADY_SIGNED),
    ApplianceError(ErrorCode.IN_PROGRESS),
    ApplianceError(ErrorCode.IDEMKEY_CONFLICT),
    ApplianceError(ErrorCode.DOCUMENT_CHANGED),
    ApplianceError(ErrorCode.STATE, params={"estado": "cancelada"}),
    ApplianceError(ErrorCode.STORE_UNAVAILABLE),
    ApplianceError(ErrorCode.ACTIVATION_EXPIRED),
    ApplianceError(ErrorCode.HSM_UNAVAILABLE),
)


async def sessions(folder: Path) -> Answers:
    """The session endpoint, and the faces' small answers."""
    async with Installation(folder).api() as api_services:
        owner = api_services.integrators
        await owner.create("operator", "acme", "ACME")
        key = (await owner.create_key("operator", "acme", "k")).secret
        call = _Calls(create_api(api_services).test_client(use_cookies=False))
        call.randoms.know(key.split("_")[2], "key id")
        path = "/api/integration/session/new"
        good = {"X_Api_Key": key}
        await call("opened", "POST", f"{path}?id=acme", **good)
        await call("opened by a body", "POST", f"{path}?id=acme", {}, **good)
        await call("no key", "POST", f"{path}?id=acme")
        await call("a bad key", "POST", f"{path}?id=acme", X_Api_Key=f"{key}x")
        await call("another's id", "POST", f"{path}?id=otra", **good)
        await call("no id", "POST", path, **good)
        await call("a live key", "POST", f"{path}?id=acme", X_Api_Key="rbk_live_x")
        await call("a key in the address", "POST", f"{path}?id=acme&key={key}", **good)
        await call(
            "a browser",
            "POST",
            f"{path}?id=acme",
            **good,
            Origin="https://app.example",
            Sec_Fetch_Site="cross-site",
        )
        await call("alive", "GET", "/healthz")
        await call("ready", "GET", "/readyz")
        api_services.health.checks = {"database": "STORE_UNAVAILABLE", "hsm": "ok"}
        await call("not ready", "GET", "/readyz")
        await call("home", "GET", "/", Accept="application/json")
        await call("no code", "GET", f"/verificar/{'0' * 26}", **_ACCEPTS_JSON)
        await call(
            "preflight",
            "OPTIONS",
            "/solicitudes",
            Origin="https://app.example",
            Access_Control_Request_Method="GET",
        )
        await call("no timestamp", "POST", "/tsa", b"x", Content_Type=_QUERY)
        await call("no OCSP", "POST", "/pki/ocsp", b"x", Content_Type=_OCSP)
        call.answers["record"] = recorded(folder, call.randoms)
        return call.answers


_QUERY: Final = "application/timestamp-query"
_OCSP: Final = "application/ocsp-request"


async def frame(folder: Path) -> Answers:
    """The frame's page and its API, until the document is placed."""
    async with Installation(folder).frame(load_assets()) as role:
        call = _Calls(role.client)
        call.randoms.know(role.services.key.split("_")[2], "key id")
        token = await role.services.token()
        page = await role.services.services.sessions.page(token, None)
        someone = await role.services.add_person()
        user = {"cuil": "20-26756539-3", "email": someone.email}
        init = init_of(token, userData=user)
        body = {"page": page.session_public_id, "init": init}
        api = "/embed/api"
        await _pages(role, call, token)
        answer = await call("init", "POST", f"{api}/init", body)
        bearer = (await answer.get_json())["bearer"]
        await call(
            "a bad init", "POST", f"{api}/init", {**body, "init": {"nonce": "n"}}
        )
        call.headers = {"Authorization": f"Bearer {bearer}"}
        await call("state", "GET", f"{api}/state")
        await call("identified", "POST", f"{api}/identify", user)
        await call("a wrong code", "POST", f"{api}/otp", {"code": "000000"})
        await call(
            "document",
            "POST",
            f"{api}/document",
            _PDF,
            Content_Type="application/pdf",
            X_File_Name="acta%20%C3%B1.pdf",
        )
        await call("no PDF", "POST", f"{api}/document", b"x", **_UPLOAD)
        await call("its bytes", "GET", f"{api}/document")
        await call("a page of it", "GET", f"{api}/page/1")
        await call("a page too far", "GET", f"{api}/page/4")
        await call(
            "the code", "POST", f"{api}/otp", {"code": role.services.code(someone)}
        )
        await call("requests", "GET", f"{api}/requests")
        place = {"corner": "bottomLeft", "page": 1}
        await call("placed", "POST", f"{api}/place", place)
        await call("no place", "POST", f"{api}/place", {**place, "page": 0})
        await call("not signed yet", "GET", f"{api}/completed")
        await call("signed unseen", "POST", f"{api}/sign", {**place, "password": "x"})
        await call("renewed by none", "POST", f"{api}/renew", {"sessionToken": "x"})
        await call("cancelled", "POST", f"{api}/cancel", {"reason": "user"})
        await call("after that", "GET", f"{api}/state")
        call.answers["record"] = recorded(folder, call.randoms)
        return call.answers


_UPLOAD: Final = {"Content_Type": "application/pdf", "X_File_Name": "a.pdf"}


async def _pages(role: Frame, call: _Calls, token: str) -> None:
    """What the frame's page is served with."""
    await call("page", "GET", f"/embed/?sessionToken={token}")
    await call("page of nobody", "GET", f"/embed/?sessionToken={'A' * 43}")
    assert set(ORIGINS) <= set(
        call.answers["page"]["headers"]["content-security-policy"].split()
    ), role


async def credentials(folder: Path) -> Answers:
    """A person's certificates, and what they may ask for them."""
    async with Installation(folder).api() as api_services:
        who, _ = await api_services.add_person()
        held = await hold(api_services.store, who, CUIL, api_services.clock.now())
        client = create_api(api_services).test_client(use_cookies=False)
        call = _Calls(client, await api_services.bearer(who))
        await call("list", "GET", "/credenciales")
        (element,) = call.answers["list"]["body"]
        serial = f"{held.certificate.serial_number:x}"
        assert element["numeroDeSerie"] == serial
        element["numeroDeSerie"] = "its serial number"
        path = f"/credenciales/{held.id}"
        await call("unknown", "GET", f"/credenciales/{'0' * 36}/certificado")
        await call("no chain", "POST", f"{path}/cadena", {"certificados": "x"})
        await call("no reason", "POST", f"{path}/revocar", {"motivo": "x"})
        await call("no password", "POST", f"{path}/csr", {})
        await call("a PIN", "POST", "/credenciales/pin-de-revocacion", {})
        call.answers["a PIN"]["body"] = sorted(call.answers["a PIN"]["body"])
        return call.answers


async def record_of_signing(folder: Path) -> Answers:
    """What stands recorded after signatures, refusals, and a wrong password."""
    settings = settings_in(folder)
    async with open_record(settings) as core, open_front(core) as front:
        first, second, third = [await front.new_request() for _ in range(3)]
        params = SignParameters(reason="Conforme", x=10, y=20)
        await front.signed(front.command(first, params, key="k"))
        assert await front.code(front.command(second, password=b"otra palabra"))
        call = front.start(front.command(second))
        await front.notified(2)
        await front.hand_back(ErrorCode.PDF_LOCKED)
        with suppress(ApplianceError):
            await call
        await core.add_activation(front.signer, items=2)
        assert third
        return {"record": recorded(folder, Randoms())}


async def record_of_tasks(folder: Path) -> Answers:
    """What each kind of HSM task is recorded as, for whichever worker takes it."""
    settings = settings_in(folder)
    async with open_record(settings) as core, open_front(core) as front:
        store, clock, person = core.store, core.clock, front.signer.person
        async with store.read() as transaction:
            held = await CredentialStore(transaction).active(person)
        assert held is not None
        passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots(1))
        attempts = password_attempts(store, passwords, clock, SigningSettings())
        asks = SigningRequests(
            store, attempts, front.host.hosts(store, clock), clock, Shielded()
        )
        await asks.ask(front.signer, held.id, PASSWORD)
        await Certificates(store, clock).renew(held.id, "operator")
        binding = issue_binding(
            TaskId(new_id()), person, VouchedBy.OFFICER, KeyAlgorithm.RSA_3072
        )
        async with store.write() as transaction:
            await submit_issue(transaction, binding, (), clock)
        await Publishing(store, clock, settings.pki, "test").submit()
        nobody = FakeTasks()
        nobody.failure = ApplianceError(ErrorCode.HSM_UNAVAILABLE)
        tsa = Timestamps(store, clock, cast("HsmTasks", nobody))
        with suppress(TsaUnavailableError):
            await tsa.stamp(b"i" * 32, DigestAlgorithm.SHA256)
        revoked = await hold(store, person, "20267565393", core.now)
        async with store.write() as transaction:
            await Revocations(store, clock).submit(
                transaction, revoked.id, RevocationReason.KEY_COMPROMISE, "operator"
            )
        randoms = Randoms()
        asked = recorded(folder, randoms)
        await _worked_off(core, person)
        answered = recorded(folder, randoms)
        return {
            "asked": {table: asked[table] for table in ("hsm_task", "task_seal")},
            "answered": {
                table: answered[table] for table in ("hsm_task", "audit_event")
            },
        }


async def _worked_off(core: CoreFixture, person: PersonId) -> None:
    """Have a worker answer what it can without an HSM, and give the rest up."""
    store, clock, slot = core.store, core.clock, "signing/h/1"
    tasks = HsmTasks(store, clock, slot, "p")
    for kind in TaskKind:
        claim = await tasks.claim_next((kind,))
        assert claim is not None
        match kind:
            case TaskKind.CSR:
                await CsrWork(store, slot).made(claim, "a request in PEM")
            case TaskKind.TIMESTAMP:
                issued = IssuedTimestamp(b"token", 5, clock.now())
                await TimestampWork(store, clock, slot).stamped(claim, issued)
            case TaskKind.ISSUE:
                made = new_credential(person, id=CredentialId(claim.id))
                record = CertificateRecord(
                    "05",
                    CertificateKind.SIGNER,
                    "0" * 40,
                    made.id,
                    made.certificate,
                    made.not_before,
                    made.not_after,
                )
                await tasks.issued(claim, made, record)
            case _:
                await tasks.failed(claim, "CERTIFICATE_STATE")


async def errors(folder: Path) -> Answers:
    """Errors that bring more than their code, as members of an answer."""
    del folder
    kinds: dict[str, ApplianceError] = {
        "invalid field": FieldInvalidError("fontSize", "4..72"),
        "missing field": FieldMissingError("password", "text"),
        "check digit": CheckDigitError("cuil", "XX-XXXXXXXX-X"),
        "page": PageOutOfRangeError(3, 2),
    }
    return {
        f"{name}, {lang}": problems.problem(error, "0" * 24, lang)
        for name, error in kinds.items()
        for lang in ("es", "en")
    }


SCENES: Final[dict[str, Scene]] = {
    "batches": batches,
    "credentials": credentials,
    "errors-with-more": errors,
    "frame": frame,
    "record-of-signing": record_of_signing,
    "record-of-tasks": record_of_tasks,
    "requests": requests,
    "sessions": sessions,
    "sign-in": sign_in,
    "signing": signing,
}
"""By the name of the file."""


async def play(name: str, folder: Path) -> Answers:
    """A scene, as its file holds it.

    Args:
        name: of the scene.
        folder: empty, for what it stores.
    """
    return factored(await SCENES[name](folder))
