"""firmar over HTTP, as JSON and as a form with the document; signing is faked."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pyotp
import pytest

from appliance.admission.fair_queue import FairLimits
from appliance.admission.signing_calls import SigningCalls
from appliance.admission.work_owner import working_for
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestId
from appliance.people.person_store import PersonStore
from tests.support.factories.fakes import PDF, SHA256, SIGNED_PDF, SIGNED_SHA256
from tests.support.installation.api import (
    BASE_URL,
    CUIL,
    LOGIN_PASSWORD,
    SIGN,
    ApiServices,
    Caller,
    code,
    create_api,
)

BOUNDARY = "limite"


async def test_sign_in_over_http(api_services: ApiServices) -> None:
    """Login, code, token, list: the bodies are those of decisions."""
    _, seed = await api_services.add_person()
    client = create_api(api_services).test_client(use_cookies=False)

    login = await client.post(
        "/auth/login", json={"usuario": CUIL, "password": LOGIN_PASSWORD}
    )
    challenge = await login.get_json()
    otp = await client.post(
        "/auth/otp",
        json={
            "loginToken": challenge["loginToken"],
            "codigo": pyotp.TOTP(seed).at(api_services.clock.now()),
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


async def test_sign_beyond_the_places_is_told_before_anything_else(
    api_services: ApiServices, caller: Caller
) -> None:
    """Nothing is read, counted or handed on; a place that is free again serves."""
    limits = FairLimits(places=1, per_share=1, per_party=1, waiting=0)
    calls = SigningCalls(limits)
    caller = caller.over(replace(api_services, signing_calls=calls))
    async with calls.place(RequestId(8)):
        refused = await caller.post("/solicitudes/firmar", {})
    served = await caller.post("/solicitudes/firmar", {**SIGN, "solicitudId": 9})

    assert (await code(refused, 503))["code"] == "OVERLOADED"
    assert refused.headers["Retry-After"] == "2"
    assert "RateLimit" not in refused.headers
    assert served.status_code == 200
    assert served.headers["RateLimit"].startswith('"firmar";r=119;')


async def test_refused_token_is_not_asked_of_the_record(
    api_services: ApiServices, caller: Caller, person: PersonId
) -> None:
    """That it was revoked is seen once there is room; a forged one is refused first."""
    limits = FairLimits(places=1, per_share=1, per_party=1, waiting=0)
    calls = SigningCalls(limits)
    caller = caller.over(replace(api_services, signing_calls=calls))
    async with api_services.store.write() as transaction:
        now = api_services.clock.now()
        await PersonStore(transaction).sign_out(person, now)
    forged = {"Authorization": f"{caller.headers['Authorization'][:-4]}AAAA"}
    async with calls.place(RequestId(8)):
        busy = await caller.post("/solicitudes/firmar", {})
        unknown = await caller.post("/solicitudes/firmar", {}, **forged)
    served = await caller.post("/solicitudes/firmar", {})

    assert (await code(busy, 503))["code"] == "OVERLOADED"
    assert (await code(unknown, 401))["code"] == "TOKEN_INVALID"
    assert (await code(served, 401))["code"] == "TOKEN_INVALID"


async def test_call_that_is_not_begun_counts_for_no_rate(
    api_services: ApiServices, caller: Caller, person: PersonId
) -> None:
    """Of several requests, where it turns out late that they are one."""
    limits = FairLimits(places=1, per_share=1, per_party=1, waiting=0)
    calls = SigningCalls(limits)
    caller = caller.over(replace(api_services, signing_calls=calls))
    with working_for(f"person:{person}", f"person:{person}"):
        async with calls.place(RequestId(8)):
            body = {"solicitudIds": [9, 9], "password": SIGN["password"]}
            refused = await caller.post("/solicitudes/firmar/lote", body)
    served = await caller.post("/solicitudes/firmar", {**SIGN, "solicitudId": 9})

    assert (await code(refused, 503))["code"] == "OVERLOADED"
    assert refused.headers["Retry-After"] == "2"
    assert served.status_code == 200
    # What was not begun with is given back.
    assert refused.headers["RateLimit"].startswith('"firmar";r=120;')
    assert served.headers["RateLimit"].startswith('"firmar";r=119;')
    assert len(api_services.signing.commands) == 1


async def test_sign_hands_command_on(api_services: ApiServices, caller: Caller) -> None:
    """Body and headers become one command."""
    await caller.post(
        "/solicitudes/firmar",
        {**SIGN, "x": 5, "y": 6, "restriccion": "NO_CHANGES_ALLOWED"},
        If_Match=f'"{SHA256}"',
        Idempotency_Key="c0ffee",
    )

    (command,) = api_services.signing.commands
    assert (command.request, command.password) == (7, b"clave de firma")
    assert (command.given.params.x, command.given.params.y) == (5, 6)
    assert (command.if_match, command.idempotency_key) == (SHA256, "c0ffee")
    assert api_services.signing.sent == [None]


@pytest.mark.parametrize(
    ("sent", "meant"), [("*", None), ('W/"ab"', 'W/"ab"'), ('"otro"', "otro")]
)
async def test_if_match_read(
    api_services: ApiServices, caller: Caller, sent: str, meant: str | None
) -> None:
    """A weak tag can never match, a star always does."""
    await caller.post("/solicitudes/firmar", SIGN, If_Match=sent)

    assert api_services.signing.commands[0].if_match == meant


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
    api_services: ApiServices, caller: Caller, name: str, value: str
) -> None:
    """A malformed condition signs nothing."""
    response = await caller.post("/solicitudes/firmar", SIGN, **{name: value})

    told = await code(response, 400)
    assert (told["code"], told["field"]) == ("BAD_HEADER", name.replace("_", "-"))
    assert api_services.signing.commands == []


async def test_sign_going_on_answers_202(
    api_services: ApiServices, caller: Caller
) -> None:
    """When the work outlasts the wait the answer says where to look."""
    api_services.signing.slow = True

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
    api_services: ApiServices,
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
    assert api_services.signing.sent == [hashlib.sha256(PDF).hexdigest()]


async def test_multipart_options_may_have_more(
    api_services: ApiServices, caller: Caller
) -> None:
    """Unknown keys of options are left aside."""
    options = json.dumps({**SIGN, "solicitudId": 9, "certificateOptions": {}}).encode()

    response = await send_form(caller, form(("name=options", options), FILE))

    assert response.status_code == 200
    assert api_services.signing.commands[0].request == 9


FORMS: dict[str, tuple[bytes, int, str]] = {
    "no_file": (form(OPTIONS), 400, "FIELD_MISSING"),
    "no_options": (form(FILE), 400, "FIELD_MISSING"),
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
    api_services: ApiServices, caller: Caller, body: bytes, status: int, expected: str
) -> None:
    """Every bad form has its answer, and signs nothing."""
    response = await send_form(caller, body)

    assert (await code(response, status))["code"] == expected
    assert api_services.signing.commands == []


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/mixed; boundary=x"])
async def test_multipart_without_boundary_refused(caller: Caller, kind: str) -> None:
    """A form needs its boundary."""
    response = await send_form(caller, form(FILE, OPTIONS), **{"Content-Type": kind})

    assert (await code(response, 415))["code"] == "CONTENT_TYPE"


_BOX = {"x": 1, "y": 1, "width": 100, "height": 40}
REFUSALS = [
    (ErrorCode.SIGN_PASSWORD_WRONG, 403, "fix_request", {"attemptsLeft": 9}),
    (ErrorCode.SIGN_LOCKED, 423, "terminal", {}),
    (ErrorCode.ALREADY_SIGNED, 409, "terminal", {}),
    (ErrorCode.IN_PROGRESS, 409, "retry", {}),
    (ErrorCode.STATE, 409, "terminal", {}),
    (ErrorCode.IDEMKEY_CONFLICT, 409, "fix_request", {}),
    (ErrorCode.DOCUMENT_CHANGED, 412, "fix_request", {}),
    (ErrorCode.PAGE_OUT_OF_RANGE, 422, "fix_request", {}),
    (ErrorCode.POSITION_OUT_OF_PAGE, 422, "fix_request", {"stamp": _BOX}),
    (ErrorCode.PRESET_FIXED, 409, "fix_request", {"fields": ["x", "y"]}),
    (ErrorCode.HSM_UNAVAILABLE, 503, "retry", {}),
    (ErrorCode.RATE_LIMITED, 429, "retry", {"retryAfter": 3}),
]


@pytest.mark.parametrize(("failure", "status", "category", "extras"), REFUSALS)
async def test_sign_refusal_told(
    api_services: ApiServices,
    caller: Caller,
    failure: ErrorCode,
    status: int,
    category: str,
    extras: dict[str, object],
) -> None:
    """What the core refuses has the status of decisions; none is a 401."""
    api_services.signing.failure = ApplianceError(failure, extras=extras)

    members = await code(await caller.post("/solicitudes/firmar", SIGN), status)

    assert (members["code"], members["category"]) == (failure.value, category)
    assert members.items() >= extras.items()


async def test_sign_needs_young_factor(
    api_services: ApiServices, person: PersonId, caller: Caller
) -> None:
    """A factor of eight hours ago lists, but does not sign."""
    caller.headers = await api_services.bearer(person, age_s=28_800)

    listed = await caller.get("/solicitudes")
    signed = await caller.post("/solicitudes/firmar", SIGN)

    assert listed.status_code == 200
    assert (await code(signed, 403))["code"] == "STEP_UP"
    assert api_services.signing.commands == []
