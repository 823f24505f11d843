"""The REST API's routes, over real sign-in and links; signing itself is faked."""

import base64
import json
from pathlib import Path
from typing import Any

import pyotp
import pytest

from appliance.asgi import create_api
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.vocab import RequestState
from tests.fakes import PDF, PNG, SHA256, SIGNED_PDF, SIGNED_SHA256, request_view
from tests.parts.api_caller import Caller, code
from tests.web_parts import BASE_URL, CUIL, LOGIN_PASSWORD, Parts, open_parts

SIGN = {"solicitudId": 7, "password": "clave de firma"}
BOUNDARY = "limite"


@pytest.fixture
async def person(parts: Parts) -> PersonId:
    """A signer with requests in every state that is told."""
    who, _ = await parts.add_person()
    await parts.add_requests(who, 11)
    states = [
        (7, RequestState.PENDING),
        (8, RequestState.IN_PROGRESS),
        (9, RequestState.SIGNED),
        (10, RequestState.REJECTED),
    ]
    parts.requests.views = [
        request_view(number, who, state) for number, state in states
    ]
    parts.requests.views.append(request_view(70, "somebody else"))
    return who


async def test_sign_in_over_http(parts: Parts) -> None:
    """Login, code, token, list: the bodies are those of decisions."""
    _, seed = await parts.add_person()
    client = create_api(parts).test_client(use_cookies=False)

    login = await client.post(
        "/auth/login", json={"usuario": CUIL, "password": LOGIN_PASSWORD}
    )
    challenge = await login.get_json()
    otp = await client.post(
        "/auth/otp",
        json={
            "loginToken": challenge["loginToken"],
            "codigo": pyotp.TOTP(seed).at(parts.clock.now()),
        },
    )
    token = await otp.get_json()
    listed = await client.get(
        "/solicitudes", headers={"Authorization": f"Bearer {token['access_token']}"}
    )

    assert {**challenge, "loginToken": ""} == {
        "loginToken": "",
        "factores": ["totp"],
        "expiresIn": 300,
    }
    assert {**token, "access_token": ""} == {
        "access_token": "",
        "token_type": "Bearer",
        "expires_in": 900,
    }
    assert (listed.status_code, await listed.get_json()) == (200, [])


async def test_wrong_sign_in_told(parts: Parts) -> None:
    """A wrong password and an unknown login token are 401 LOGIN_FAILED."""
    await parts.add_person()
    client = create_api(parts).test_client(use_cookies=False)

    login = await client.post("/auth/login", json={"usuario": CUIL, "password": "x"})
    otp = await client.post("/auth/otp", json={"loginToken": "x", "codigo": "123456"})

    assert (await code(login, 401))["code"] == "LOGIN_FAILED"
    assert (await code(otp, 401))["code"] == "LOGIN_FAILED"


async def test_rate_told_with_time_to_wait(tmp_path: Path) -> None:
    """The sixth try is a 429 with Retry-After."""
    async with open_parts(tmp_path, auth={"login_per_minute_account": 5}) as parts:
        client = create_api(parts).test_client(use_cookies=False)
        body = {"usuario": CUIL, "password": "x"}
        for _ in range(5):
            await client.post("/auth/login", json=body)

        response = await client.post("/auth/login", json=body)

    members = await code(response, 429)
    assert (members["code"], members["category"]) == ("RATE_LIMITED", "retry")
    assert response.headers["Retry-After"] == str(members["retryAfter"]) == "60"


async def test_list_is_bare_array_of_what_waits(caller: Caller) -> None:
    """What is pending or in progress, newest first, with the spec's fields."""
    response = await caller.get("/solicitudes")

    elements = await response.get_json()
    assert response.headers["Content-Type"] == "application/json"
    assert [element["solicitudId"] for element in elements] == [8, 7]
    assert elements[1] == {
        "solicitudId": 7,
        "documento": "Señal «uno».pdf",
        "estado": "pendiente",
        "paginas": 2,
        "tamano": len(PDF),
        "sha256": SHA256,
        "creada": "2026-05-25T12:00:00Z",
        "vence": None,
        "integrador": "Demo",
    }
    assert "Link" not in response.headers


async def test_list_of_one_state(caller: Caller) -> None:
    """`estado` asks for one state."""
    response = await caller.get("/solicitudes?estado=firmada")

    elements = await response.get_json()
    assert [element["solicitudId"] for element in elements] == [9]


async def test_list_paged_by_link(
    parts: Parts, person: PersonId, caller: Caller
) -> None:
    """Following rel=next visits every request once, newest first."""
    parts.requests.views = [request_view(number, person) for number in range(1, 8)]
    path, seen = "/solicitudes?limite=3&estado=pendiente", []
    while path:
        response = await caller.get(path)
        seen.append([e["solicitudId"] for e in await response.get_json()])
        link = response.headers.get("Link", "")
        assert not link or link.endswith('>; rel="next"')
        path = link.partition(">")[0].removeprefix(f"<{BASE_URL}")

    assert seen == [[7, 6, 5], [4, 3, 2], [1]]


async def test_list_page_that_just_fits_has_no_next(caller: Caller) -> None:
    """A page that holds the rest is the last."""
    response = await caller.get("/solicitudes?limite=2")

    assert "Link" not in response.headers


CURSOR = base64.urlsafe_b64encode(b"s1:7").decode()


@pytest.mark.parametrize(
    "query",
    [
        "limite=0",
        "limite=201",
        "limite=1000000000",
        "limite=-1",
        "limite=1.0",
        "limite=",
        "limite=%D9%A1",
        "limite=5&limite=6",
        "limite=" + "9" * 5000,
        "estado=PENDIENTE",
        "estado=en_espera",
        "estado=",
        "sort=1;DROP TABLE person",
        f"cursor={CURSOR}",
        "limite=5&cursor=x",
        "limite=5&cursor=%C3%A9",
        "limite=5&cursor=czE6MA==",
        "limite=5&cursor=czE6OTk5OTk5OTk5OTk5OTk5OQ==",
        "%FF=%FF",
    ],
)
async def test_list_query_refused(caller: Caller, query: str) -> None:
    """Every bad query is a 400 that names the parameter."""
    response = await caller.get(f"/solicitudes?{query}")

    members = await code(response, 400)
    assert members["code"] == "QUERY_INVALID"
    assert members["allowed"]


async def test_detail_tells_pages_and_findings(caller: Caller) -> None:
    """The detail has what a signer needs before signing, and an ETag."""
    response = await caller.get("/solicitudes/7", **{"Accept-Language": "en"})

    members = await response.get_json()
    assert response.headers["ETag"] == f'"{SHA256}"'
    assert members["medidas"] == [
        {"ancho": 595.28, "alto": 841.89},
        {"ancho": 841.89, "alto": 595.28},
    ]
    assert members["avisos"] == [
        {"codigo": "javascript", "texto": "The document contains JavaScript."}
    ]
    assert (members["motivo"], members["firmas"], members["certificacion"]) == (
        None,
        0,
        None,
    )


async def test_detail_tells_level_and_versions_once_signed(caller: Caller) -> None:
    """Oldest first, and the level of the last; nothing of either before."""
    pending = await (await caller.get("/solicitudes/7")).get_json()
    signed = await (await caller.get("/solicitudes/9")).get_json()

    assert (pending["nivel"], pending["versiones"]) == (None, [])
    assert signed["nivel"] == "B-LT"
    assert [each["version"] for each in signed["versiones"]] == [1, 2]
    assert signed["versiones"][0] == {
        "version": 1,
        "nivel": "B-B",
        "sha256": SIGNED_SHA256,
        "tamano": len(SIGNED_PDF),
        "creada": "2026-05-25T12:00:00Z",
    }


ABSENT = ["6", "70", "0", "007", "9007199254740992", "9" * 5000]


@pytest.mark.parametrize("number", ABSENT)
@pytest.mark.parametrize("rest", ["", "/original", "/documento"])
async def test_request_of_others_is_absent(
    caller: Caller, number: str, rest: str
) -> None:
    """Somebody else's request is told like one that does not exist."""
    response = await caller.get(f"/solicitudes/{number}{rest}")

    assert (await code(response, 404))["code"] == "SOLICITUD_NOT_FOUND"


async def test_original_downloaded_as_attachment(caller: Caller) -> None:
    """The original is a file to be saved, with its ETag."""
    response = await caller.get("/solicitudes/7/original")

    assert await response.get_data() == PDF
    assert response.headers["Content-Type"] == "application/pdf"
    assert response.headers["ETag"] == f'"{SHA256}"'
    assert response.headers["Content-Disposition"] == (
        'attachment; filename="Se_al _uno_.pdf"; '
        "filename*=UTF-8''Se%C3%B1al%20%C2%ABuno%C2%BB.pdf"
    )


async def test_preview_has_box_and_picture(parts: Parts, caller: Caller) -> None:
    """The preview tells the stamp's box, and shows the page."""
    response = await caller.post(
        "/solicitudes/7/vista-previa", {"page": 2, "fontSize": 9}
    )

    assert await response.get_json() == {
        "pagina": 2,
        "sello": {
            "x": 10,
            "y": 20.5,
            "ancho": 120,
            "alto": 26.4,
            "texto": ["Firmado"],
            "tamanoLetra": 12,
        },
        "dpi": 96,
        "png": base64.b64encode(PNG).decode(),
    }
    assert [(p.page, p.font_size) for p in parts.requests.previewed] == [(2, 9)]


async def test_preview_as_picture_alone(caller: Caller) -> None:
    """Accept: image/png gives the picture."""
    response = await caller.post("/solicitudes/7/vista-previa", {}, Accept="image/png")

    assert response.headers["Content-Type"] == "image/png"
    assert await response.get_data() == PNG


async def test_preview_of_invisible_signature(caller: Caller) -> None:
    """An invisible signature has no stamp."""
    response = await caller.post("/solicitudes/7/vista-previa", {"visible": False})

    assert (await response.get_json())["sello"] is None


async def test_preview_refuses_password(caller: Caller) -> None:
    """A preview takes no password and no request."""
    response = await caller.post(
        "/solicitudes/7/vista-previa", {"password": "12345678"}
    )

    members = await code(response, 400)
    assert (members["code"], members["field"]) == ("FIELD_UNKNOWN", "password")


async def test_reject_takes_reason(parts: Parts, caller: Caller) -> None:
    """The signer's reason arrives, and the new state is told."""
    response = await caller.post("/solicitudes/7/rechazar", {"motivo": " No es mío "})

    members = await response.get_json()
    assert (members["estado"], members["motivo"]) == ("rechazada", "No es mío")
    assert parts.requests.reasons == ["No es mío"]


async def test_sign_answers_link(caller: Caller) -> None:
    """The answer has the spec's two fields and three more; its link works."""
    response = await caller.post("/solicitudes/firmar", {**SIGN, "solicitudId": 9})

    members = await response.get_json()
    url = members.pop("documentoFirmado")
    assert (response.status_code, members) == (
        200,
        {
            "status": "success",
            "solicitudId": 9,
            "sha256": SIGNED_SHA256,
            "nivel": "B-B",
        },
    )
    assert url.startswith(f"{BASE_URL}/solicitudes/9/documento?clave=")
    download = await caller.client.get(url.removeprefix(BASE_URL))
    assert await download.get_data() == SIGNED_PDF


async def test_sign_hands_command_on(parts: Parts, caller: Caller) -> None:
    """Body and headers become one command."""
    await caller.post(
        "/solicitudes/firmar",
        {**SIGN, "x": 5, "y": 6, "restriccion": "NO_CHANGES_ALLOWED"},
        If_Match=f'"{SHA256}"',
        Idempotency_Key="c0ffee",
    )

    (command,) = parts.signing.commands
    assert (command.request, command.password) == (7, b"clave de firma")
    assert (command.params.x, command.params.y) == (5, 6)
    assert (command.if_match, command.idempotency_key) == (SHA256, "c0ffee")
    assert parts.signing.documents == [None]


@pytest.mark.parametrize(
    ("sent", "meant"), [("*", None), ('W/"ab"', 'W/"ab"'), ('"otro"', "otro")]
)
async def test_if_match_read(
    parts: Parts, caller: Caller, sent: str, meant: str | None
) -> None:
    """A weak tag can never match, a star always does."""
    await caller.post("/solicitudes/firmar", SIGN, If_Match=sent)

    assert parts.signing.commands[0].if_match == meant


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("If_Match", SHA256),
        ("If_Match", f'"{SHA256}", "b"'),
        ("If_Match", '"'),
        ("Idempotency_Key", ""),
        ("Idempotency_Key", "a b"),
        ("Idempotency_Key", "x" * 129),
        ("Idempotency_Key", "ñ"),
    ],
)
async def test_conditional_header_refused(
    parts: Parts, caller: Caller, name: str, value: str
) -> None:
    """A malformed condition signs nothing."""
    response = await caller.post("/solicitudes/firmar", SIGN, **{name: value})

    assert (await code(response, 400))["code"] == "BAD_HEADER"
    assert parts.signing.commands == []


async def test_sign_going_on_answers_202(parts: Parts, caller: Caller) -> None:
    """When the work outlasts the wait the answer says where to look."""
    parts.signing.slow = True

    response = await caller.post("/solicitudes/firmar", SIGN)

    assert response.status_code == 202
    assert await response.get_json() == {"status": "en_proceso", "solicitudId": 7}
    assert response.headers["Location"] == "/solicitudes/7"
    assert int(response.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("accept", "is_pdf"),
    [
        ("application/pdf", True),
        ("application/pdf, */*", True),
        ("application/json;q=0.5, application/pdf", True),
        ("application/json, application/pdf", False),
        ("application/json, text/plain, */*", False),
        ("*/*", False),
        ("text/html", False),
        ("application/pdf;q=0", False),
        ("application/*", False),
        (";;,q=x,", False),
    ],
)
async def test_sign_answers_pdf_when_named(
    caller: Caller,
    accept: str,
    *,
    is_pdf: bool,
) -> None:
    """The PDF itself is the answer only where Accept prefers it by name."""
    body = {**SIGN, "solicitudId": 9}

    response = await caller.post("/solicitudes/firmar", body, Accept=accept)

    content = await response.get_data()
    assert (content == SIGNED_PDF) is is_pdf
    assert (response.headers["Content-Type"] == "application/pdf") is is_pdf


def form(*parts: tuple[str, bytes], end: bool = True) -> bytes:
    """A multipart body; names hold what follows them."""
    body = b""
    for head, content in parts:
        body += (
            f"--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode()
        )
        body += content + b"\r\n"
    return body + (f"--{BOUNDARY}--\r\n".encode() if end else b"")


FILE = ('name="file"; filename="a.pdf"', PDF)
OPTIONS = ('name="options"', json.dumps({**SIGN, "solicitudId": 9}).encode())


async def send_form(caller: Caller, body: bytes, **headers: str) -> Any:
    """POST a multipart body to firmar."""
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    return await caller.client.post(
        "/solicitudes/firmar",
        data=body,
        headers={**caller.headers, "Content-Type": kind, **headers},
    )


@pytest.mark.parametrize(
    ("accept", "is_pdf"),
    [(None, True), ("*/*", True), ("application/json", False)],
)
async def test_multipart_answers_pdf_unless_json_alone(
    parts: Parts,
    caller: Caller,
    accept: str | None,
    *,
    is_pdf: bool,
) -> None:
    """The file arrives; the PDF is the answer unless only JSON is accepted."""
    headers = {} if accept is None else {"Accept": accept}

    response = await send_form(caller, form(FILE, OPTIONS), **headers)

    assert response.status_code == 200
    assert (await response.get_data() == SIGNED_PDF) is is_pdf
    assert parts.signing.documents == [PDF]


async def test_multipart_options_may_have_more(parts: Parts, caller: Caller) -> None:
    """Unknown keys of options are left aside."""
    options = json.dumps({**SIGN, "solicitudId": 9, "certificateOptions": {}}).encode()

    response = await send_form(caller, form(("name=options", options), FILE))

    assert response.status_code == 200
    assert parts.signing.commands[0].request == 9


FORMS: dict[str, tuple[bytes, int, str]] = {
    "no_file": (form(OPTIONS), 400, "FIELD_INVALID"),
    "no_options": (form(FILE), 400, "FIELD_INVALID"),
    "empty_file": (form((FILE[0], b""), OPTIONS), 422, "DOCUMENT_EMPTY"),
    "large_file": (form((FILE[0], b"x" * 8193), OPTIONS), 413, "DOCUMENT_TOO_LARGE"),
    "two_files": (form(FILE, FILE, OPTIONS), 400, "FIELD_INVALID"),
    "unknown_part": (form(FILE, OPTIONS, ("name=otra", b"")), 400, "FIELD_UNKNOWN"),
    "bad_options": (form(FILE, ("name=options", b"{")), 400, "JSON_INVALID"),
    "list_options": (form(FILE, ("name=options", b"[]")), 400, "BODY_NOT_OBJECT"),
    "not_closed": (form(FILE, OPTIONS, end=False), 400, "FIELD_INVALID"),
    "no_multipart": (b"hola", 400, "FIELD_INVALID"),
    "empty": (b"", 400, "FIELD_INVALID"),
    "nameless": (form(("", b"x")), 400, "FIELD_UNKNOWN"),
    "many_parts": (
        form(*[(f"name=file{n}", b"") for n in range(50)]),
        400,
        "FIELD_UNKNOWN",
    ),
    "huge": (form((FILE[0], b"x" * 40_000), OPTIONS), 413, "BODY_TOO_LARGE"),
}


@pytest.mark.parametrize(
    ("body", "status", "expected"), FORMS.values(), ids=FORMS.keys()
)
async def test_multipart_refused(
    parts: Parts, caller: Caller, body: bytes, status: int, expected: str
) -> None:
    """Every bad form has its answer, and signs nothing."""
    response = await send_form(caller, body)

    assert (await code(response, status))["code"] == expected
    assert parts.signing.commands == []


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/mixed; boundary=x"])
async def test_multipart_without_boundary_refused(caller: Caller, kind: str) -> None:
    """A form needs its boundary."""
    response = await send_form(caller, form(FILE, OPTIONS), **{"Content-Type": kind})

    assert (await code(response, 415))["code"] == "CONTENT_TYPE"


REFUSALS = [
    (ErrorCode.SIGN_PASSWORD_WRONG, 403, "fix_request", {"attemptsLeft": 9}),
    (ErrorCode.SIGN_LOCKED, 423, "terminal", {}),
    (ErrorCode.ALREADY_SIGNED, 409, "terminal", {}),
    (ErrorCode.IN_PROGRESS, 409, "retry", {}),
    (ErrorCode.STATE, 409, "terminal", {}),
    (ErrorCode.IDEMKEY_CONFLICT, 409, "fix_request", {}),
    (ErrorCode.DOCUMENT_CHANGED, 412, "fix_request", {}),
    (ErrorCode.PAGE_OUT_OF_RANGE, 422, "fix_request", {}),
    (ErrorCode.POSITION_OUT_OF_PAGE, 422, "fix_request", {"stamp": {"x": 1}}),
    (ErrorCode.HSM_UNAVAILABLE, 503, "retry", {}),
    (ErrorCode.RATE_LIMITED, 429, "retry", {"retryAfter": 3}),
]


@pytest.mark.parametrize(("failure", "status", "category", "extras"), REFUSALS)
async def test_sign_refusal_told(
    parts: Parts,
    caller: Caller,
    failure: ErrorCode,
    status: int,
    category: str,
    extras: dict[str, object],
) -> None:
    """What the core refuses has the status of decisions; none is a 401."""
    parts.signing.failure = ApplianceError(failure, extras=extras)

    members = await code(await caller.post("/solicitudes/firmar", SIGN), status)

    assert (members["code"], members["category"]) == (failure.value, category)
    assert members.items() >= extras.items()


async def test_sign_needs_young_factor(
    parts: Parts, person: PersonId, caller: Caller
) -> None:
    """A factor of eight hours ago lists, but does not sign."""
    caller.headers = await parts.bearer(person, age_s=28_800)

    listed = await caller.get("/solicitudes")
    signed = await caller.post("/solicitudes/firmar", SIGN)

    assert listed.status_code == 200
    assert (await code(signed, 403))["code"] == "STEP_UP"
    assert parts.signing.commands == []


async def test_document_by_link_then_by_bearer(parts: Parts, caller: Caller) -> None:
    """A stored link never rots: after its time the signer's bearer opens it."""
    url = await _link(caller)

    by_link = await caller.client.get(url)
    parts.clock.forward(900)
    caller.headers = await parts.bearer(parts.requests.views[0].person)
    ended = await caller.client.get(url)
    by_bearer = await caller.get(url)

    assert await by_link.get_data() == await by_bearer.get_data() == SIGNED_PDF
    assert (await code(ended, 401))["code"] == "TOKEN_MISSING"
    assert by_link.headers["Cache-Control"] == "no-store"
    assert by_link.headers["Content-Disposition"].startswith("attachment; ")
    assert by_link.headers["ETag"] == f'"{SIGNED_SHA256}"'


async def _link(caller: Caller) -> str:
    """A fresh link's path and query."""
    response = await caller.post("/solicitudes/firmar", {**SIGN, "solicitudId": 9})
    url: str = (await response.get_json())["documentoFirmado"]
    return url.removeprefix(BASE_URL)


async def test_link_of_one_request_opens_no_other(
    parts: Parts, person: PersonId, caller: Caller
) -> None:
    """The secret of one document is none for another."""
    parts.requests.views.append(request_view(11, person, RequestState.SIGNED))
    url = (await _link(caller)).replace("/9/", "/11/")

    response = await caller.client.get(url)

    assert (await code(response, 401))["code"] == "TOKEN_MISSING"


async def test_fresh_link_for_signer_alone(caller: Caller) -> None:
    """`Accept: application/json` gives a link, to the signer only."""
    url = await _link(caller)

    fresh = await caller.get("/solicitudes/9/documento", Accept="application/json")
    without = await caller.client.get(url, headers={"Accept": "application/json"})

    members = await fresh.get_json()
    again = await caller.client.get(members["documentoFirmado"].removeprefix(BASE_URL))
    assert await again.get_data() == SIGNED_PDF
    assert members["documentoFirmado"] != f"{BASE_URL}{url}"
    assert (await code(without, 401))["code"] == "TOKEN_MISSING"


async def test_document_is_pdf_for_usual_accept(caller: Caller) -> None:
    """What libraries send by themselves downloads the PDF."""
    response = await caller.get(
        "/solicitudes/9/documento", Accept="application/json, text/plain, */*"
    )

    assert await response.get_data() == SIGNED_PDF


@pytest.mark.parametrize(
    ("sha256", "status"),
    [
        ("{own}", 200),
        ("0" * 64, 409),
        ("1", 400),
        ("{own}&sha256={own}", 400),
    ],
    ids=["that one", "none", "no hash", "twice"],
)
async def test_download_names_a_version(
    caller: Caller, sha256: str, status: int
) -> None:
    """Of several versions the one with that hash."""
    query = sha256.format(own=SIGNED_SHA256)
    response = await caller.get(f"/solicitudes/9/documento?sha256={query}")

    assert response.status_code == status


async def test_document_not_signed_yet(caller: Caller) -> None:
    """Before signing there is no document."""
    response = await caller.get("/solicitudes/7/documento")

    assert (await code(response, 409))["code"] == "NOT_SIGNED_YET"


async def test_keys_published(parts: Parts, caller: Caller) -> None:
    """The key set is public and may be kept for minutes."""
    response = await caller.client.get("/.well-known/jwks.json")

    assert response.headers["Content-Type"] == "application/jwk-set+json"
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert await response.get_json(force=True) == await parts.tokens.jwks()


async def test_health_and_readiness(parts: Parts, caller: Caller) -> None:
    """Alive is one thing, ready another; what is not ready is named."""
    alive = await caller.client.get("/healthz")
    ready = await caller.client.get("/readyz")
    parts.health.checks["hsm"] = "NO_WORKER"
    unready = await caller.client.get("/readyz")

    assert (alive.status_code, ready.status_code) == (200, 200)
    assert await code(unready, 503) == {
        "status": "unready",
        "checks": {"database": "ok", "hsm": "NO_WORKER"},
    }
