"""The frame's same-origin API over HTTP.

Source: decisions "Iframe"; spec "Iframe init message payload (`svc.init`)".
"""

from dataclasses import replace
from typing import Any

import pytest

from appliance.admission.signing_calls import SigningCalls
from appliance.admission.single_calls_here import SingleCallsHere
from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import RequestState
from appliance.embedding.signing import EmbedSessionSigning
from appliance.integrators.session_store import SessionStore
from appliance.web.auth import is_public
from embed.api import LATE
from embed.core import KEY
from embed.reports import ADDRESS_MOST, SESSION_MOST
from tests.support.factories.fake_sandbox import FakeInspector
from tests.support.installation.frame import CODE, ORIGINS, Frame, init_of, problem

PDF = b"%PDF one"
FIELD = "FIELD_INVALID"


async def test_every_route_is_closed_unless_marked(frame: Frame) -> None:
    """Each route of the API wants a bearer, but init and the warning."""
    open_ones = set()
    for rule in frame.app.url_map.iter_rules():
        view = frame.app.view_functions[rule.endpoint]
        if is_public(view):
            open_ones.add(rule.rule)
            continue
        path = rule.rule.replace("<digits:number>", "1")
        method = (
            frame.client.post if "POST" in (rule.methods or ()) else frame.client.get
        )
        answer = await method(path)
        assert await problem(answer) == (401, "TOKEN_MISSING")

    assert open_ones == {
        "/",
        "/embed/",
        "/embed/v/<version>/<path:name>",
        "/embed/logo/<sha256>.png",
        "/embed/api/init",
        "/embed/api/legacy",
        "/embed/api/note",
        "/healthz",
    }


async def test_routes_that_outlive_the_session_exist(frame: Frame) -> None:
    """The list names real routes."""
    assert {rule.endpoint for rule in frame.app.url_map.iter_rules()} >= LATE


async def test_bearer_ends_sharp_but_for_what_was_begun(frame: Frame) -> None:
    """At 1,799 s it works; at 1,800 s only outcome and renewal are answered."""
    bearer, _ = await frame.opened()
    frame.services.services.clock.forward(1799)
    assert (await frame.call("state", bearer)).status_code == 200
    frame.services.services.clock.forward(1)

    answer = await frame.call("identify", bearer, {"cuil": "x", "email": "x"})
    assert await problem(answer) == (401, "SESSION_TOKEN_EXPIRED")
    assert (await frame.call("state", bearer)).status_code == 200


async def test_later_init_supersedes_the_bearer(frame: Frame) -> None:
    """Of two frames with one token the later one has the session."""
    token = await frame.services.token()
    page = await frame.services.services.sessions.page(token, None)
    body = {"page": page.session_public_id, "init": init_of(token)}
    first = await (await frame.call("init", body=body)).get_json()
    await frame.call("init", body=body)

    answer = await frame.call("state", first["bearer"])
    assert await problem(answer) == (401, "SESSION_SUPERSEDED")


async def test_token_of_another_session_opens_nothing_unless_it_is_adopted(
    frame: Frame,
) -> None:
    """A page that is being left must not answer for the one that comes."""
    own, other = await frame.services.token(), await frame.services.token()
    page = await frame.services.services.sessions.page(own, None)
    body = {"page": page.session_public_id, "init": init_of(other)}
    refused = await (await frame.call("init", body=body)).get_json()
    adopted = await (await frame.call("init", body={**body, "adopt": True})).get_json()

    assert refused == {"isOther": True}
    assert adopted["session"]["id"] != page.session_public_id
    assert (await frame.call("state", adopted["bearer"])).status_code == 200


async def test_session_that_has_a_page_of_its_own_is_not_adopted(frame: Frame) -> None:
    """Its token was in an address: that page answers."""
    own, other = await frame.services.token(), await frame.services.token()
    page = await frame.services.services.sessions.page(own, None)
    await frame.page(other)
    body = {"page": page.session_public_id, "init": init_of(other), "adopt": True}

    answer = await frame.call("init", body=body)

    assert await answer.get_json() == {"isOther": True}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"nonce": ""}, "nonce"),
        ({"nonce": 7}, "nonce"),
        ({"sessionToken": None}, "sessionToken"),
        ({"userData": []}, "userData"),
        ({"userData": {"cuil": "20-26756539-3"}}, "userData.email"),
        ({"userData": {"email": "a@b.example"}}, "userData.cuil"),
        (
            {"userData": {"email": "a@b.example", "cuil": "20-26756539-2"}},
            "userData.cuil",
        ),
        ({"userData": {"email": "a@b.example", "dni": "1234567890"}}, "userData.dni"),
        (
            {
                "userData": {
                    "email": "a@b.example",
                    "dni": "11222333",
                    "cuil": "20-26756539-3",
                }
            },
            "userData.dni",
        ),
        ({"userData": {"email": "no", "cuil": "20-26756539-3"}}, "userData.email"),
    ],
)
async def test_init_that_is_not_valid_names_its_field(
    frame: Frame, changes: dict[str, Any], field: str
) -> None:
    """The server judges by itself, whatever a page would let through."""
    token = await frame.services.token()
    answer = await frame.call(
        "init", body={"page": "", "init": init_of(token, **changes)}
    )
    told = await answer.get_json()

    assert (answer.status_code, told["code"]) == (400, "INIT_INVALID")
    assert told["field"] == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gender", "W"),
        ("phone", "123"),
        ("name", "x" * 201),
        ("address", "x" * 301),
        ("dni", "abc"),
    ],
)
async def test_optional_fields_are_checked_when_present(
    frame: Frame, field: str, value: str
) -> None:
    """Gender, phone, name and address have their forms."""
    user = {"cuil": "20-26756539-3", "email": "a@b.example", field: value}
    token = await frame.services.token()
    answer = await frame.call(
        "init", body={"page": "", "init": init_of(token, userData=user)}
    )
    told = await answer.get_json()

    assert told["field"] == f"userData.{field}"


async def test_empty_and_unknown_fields_are_no_mistake(frame: Frame) -> None:
    """Hosts send whole forms, and fields that we never heard of."""
    token = await frame.services.token()
    page = await frame.services.services.sessions.page(token, None)
    user = {
        "dni": "",
        "cuil": "20-26756539-3",
        "email": "a@b.example",
        "gender": None,
        "phone": "",
        "favourite": "mate",
    }
    init = init_of(token, userData=user, idemKey="", integratorId="old")
    answer = await frame.call(
        "init", body={"page": page.session_public_id, "init": init}
    )

    assert answer.status_code == 200


async def test_document_is_taken_by_name_and_bytes(frame: Frame) -> None:
    """The name comes in percent-encoding; findings come back in words."""
    bearer, _ = await frame.opened()
    headers = {"Content-Type": "application/pdf", "X-File-Name": "acta%20%C3%B1.pdf"}
    answer = await frame.call("document", bearer, data=PDF, headers=headers)
    told = await answer.get_json()

    assert told["document"]["name"] == "acta ñ.pdf"
    assert told["document"]["pages"] == [[595, 842]] * 3
    assert told["document"]["findings"] == ["El documento contiene JavaScript."]
    original = await frame.call("document", bearer)
    assert await original.get_data() == PDF
    assert "attachment" in original.headers["Content-Disposition"]


@pytest.mark.parametrize(
    ("body", "kind", "name", "code"),
    [
        (
            b"%PDF" + b"x" * 4096,
            "application/pdf",
            "a.pdf",
            (413, "DOCUMENT_TOO_LARGE"),
        ),
        (b"", "application/pdf", "a.pdf", (422, "DOCUMENT_EMPTY")),
        (b"<html>", "application/pdf", "a.pdf", (422, "PDF_MALFORMED")),
        (PDF, "application/octet-stream", "a.pdf", (415, "CONTENT_TYPE")),
        (PDF, "application/pdf", "a.exe", (422, "FILENAME")),
        (PDF, "application/pdf", "../a.pdf", (422, "FILENAME")),
        (PDF, "application/pdf", "%FF.pdf", (422, "FILENAME")),
        (PDF, "application/pdf", "x" * 3000, (422, "FILENAME")),
    ],
)
async def test_document_that_cannot_be_taken_is_refused(
    frame: Frame, body: bytes, kind: str, name: str, code: tuple[int, str]
) -> None:
    """By the REST API's codes."""
    bearer, _ = await frame.opened()
    headers = {"Content-Type": kind, "X-File-Name": name}
    answer = await frame.call("document", bearer, data=body, headers=headers)

    assert await problem(answer) == code


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("otp", {}, "FIELD_INVALID"),
        ("otp", {"code": 123456}, "FIELD_INVALID"),
        ("otp", [], "BODY_NOT_OBJECT"),
        ("identify", {"email": "a@b.example"}, "FIELD_INVALID"),
        ("identify", {"cuil": 7, "email": "a@b.example"}, "FIELD_INVALID"),
        ("identify", {"cuil": "20-26756539-3", "email": "x"}, "FIELD_INVALID"),
        ("choose", {"request": True}, "FIELD_INVALID"),
        ("choose", {"request": 0}, "FIELD_INVALID"),
        ("choose", {"request": 1}, "IDENTITY_MISMATCH"),
        ("place", {"corner": "middle", "page": 1}, "FIELD_INVALID"),
        ("place", {"corner": "topLeft", "page": 0}, "FIELD_INVALID"),
        ("place", {"corner": "topLeft", "page": True}, "FIELD_INVALID"),
        ("place", {"corner": "topLeft", "page": 1}, "SESSION_IN_USE"),
        ("sign", {"corner": "topLeft", "page": 1, "password": ""}, "FIELD_INVALID"),
        (
            "sign",
            {"corner": "topLeft", "page": 1, "password": "x", "sha256": "0"},
            "SESSION_IN_USE",
        ),
        ("renew", {"sessionToken": "x"}, "SESSION_TOKEN_INVALID"),
        ("cancel", {"reason": ""}, "FIELD_INVALID"),
        ("reject", {"reason": 7}, "FIELD_INVALID"),
        ("reject", {"reason": "x" * 501}, "FIELD_INVALID"),
        ("reject", {}, "SESSION_IN_USE"),
        ("legacy", {"session": 7}, "FIELD_INVALID"),
        ("note", {"session": "x", "code": "NONE", "reference": "p-1-2"}, FIELD),
        ("note", {"session": "x", "code": "MIME", "reference": "a@b.c"}, FIELD),
        ("note", {"session": "x", "code": "MIME"}, FIELD),
    ],
)
async def test_bodies_are_read_strictly(
    frame: Frame, path: str, body: Any, code: str
) -> None:
    """No input whatsoever yields a 500."""
    bearer, _ = await frame.opened()
    answer = await frame.call(path, bearer, body)
    status, told = await problem(answer)

    assert told == code
    assert status < 500


@pytest.mark.parametrize(
    ("number", "status"),
    [("1", 200), ("3", 200), ("4", 422), ("0", 422), ("9" * 40, 422)],
)
async def test_page_is_drawn_for_browsers_that_cannot(
    frame: Frame, number: str, status: int
) -> None:
    """A PNG of the page, or PAGE_OUT_OF_RANGE."""
    bearer, _ = await frame.opened()
    headers = {"Content-Type": "application/pdf", "X-File-Name": "a.pdf"}
    await frame.call("document", bearer, data=PDF, headers=headers)
    answer = await frame.call(f"page/{number}", bearer)

    assert answer.status_code == status


async def test_nothing_is_signed_yet(frame: Frame) -> None:
    """Neither event nor document before there is a signature."""
    bearer, session = await frame.opened()
    assert session["state"] == "open"
    for path in ("completed", "download"):
        answer = await frame.call(path, bearer)
        assert await problem(answer) == (409, "NOT_SIGNED_YET")
    for path in ("document", "page/1"):
        answer = await frame.call(path, bearer)
        assert await problem(answer) == (404, "SOLICITUD_NOT_FOUND")


async def test_api_answers_have_the_closed_policy(frame: Frame) -> None:
    """What is no page loads nothing and is framed by nobody."""
    bearer, _ = await frame.opened()
    answer = await frame.call("state", bearer)

    policy = answer.headers["Content-Security-Policy"]
    assert policy == "default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cache-Control"] == "no-store"


async def test_workers_know_of_a_frames_signing(
    frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its beginning to its end: batches make way for it."""
    here, seen = SingleCallsHere(), list[bool]()
    core = replace(frame.app.extensions[KEY], signing_calls=SigningCalls(here=here))
    monkeypatch.setitem(frame.app.extensions, KEY, core)

    async def sign(*_: object) -> None:
        seen.append(here.are_any())
        raise ApplianceError(ErrorCode.SESSION_IN_USE)

    monkeypatch.setattr(EmbedSessionSigning, "sign", sign)
    bearer, _ = await frame.opened()
    body = {"corner": "none", "page": 1, "password": "una clave", "sha256": "0"}
    answer = await frame.call("sign", bearer, body)

    assert (await problem(answer))[1] == "SESSION_IN_USE"
    assert seen == [True]
    assert not here.are_any()


async def test_other_origins_pages_may_read_nothing(frame: Frame) -> None:
    """No CORS on this role, whoever asks."""
    bearer, _ = await frame.opened()
    headers = {"Origin": ORIGINS[0]}
    answer = await frame.call("state", bearer, headers=headers)
    preflight = await frame.client.options(
        "/embed/api/sign",
        headers={**headers, "Access-Control-Request-Method": "POST"},
    )

    assert "Access-Control-Allow-Origin" not in answer.headers
    assert "Access-Control-Allow-Origin" not in preflight.headers


async def test_warning_of_a_page_is_recorded_once(frame: Frame) -> None:
    """A page that repeats its mistake does not flood the audit."""
    token = await frame.services.token()
    page = await frame.services.services.sessions.page(token, None)
    for _ in range(3):
        await frame.call("legacy", body={"session": page.session_public_id})

    events = await frame.services.services.record.audited()
    assert events.count("integrator.legacy_credentials") == 1


async def test_log_has_neither_token_nor_password(
    frame: Frame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Addresses of the log are routes; secrets travel elsewhere."""
    token = await frame.services.token()
    await frame.page(token)
    bearer, _ = await frame.opened()
    body = {"corner": "none", "page": 1, "password": "muy secreta", "sha256": "0"}
    await frame.call("sign", bearer, body)
    captured = capsys.readouterr()
    written = captured.out + captured.err

    assert "/embed/" in written
    assert token not in written
    assert bearer not in written
    assert "muy secreta" not in written


async def test_error_of_the_page_is_in_the_log_by_its_reference(
    frame: Frame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks about a reference finds it; a page that repeats it fills no log."""
    token = await frame.services.token()
    page = await frame.services.services.sessions.page(token, None)
    for number in range(SESSION_MOST + 5):
        reference = f"p-{number}-4294967295"
        body = {"session": page.session_public_id, "code": "MIME"}
        answer = await frame.call("note", body={**body, "reference": reference})
        assert answer.status_code == 200
    captured = capsys.readouterr()
    written = captured.out + captured.err

    assert "p-0-4294967295" in written
    assert written.count("pageReference") == SESSION_MOST
    assert page.session_public_id in written


async def test_one_address_fills_no_log(
    frame: Frame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever sessions it makes up."""
    for number in range(ADDRESS_MOST + 5):
        told = {"session": f"{number:024x}", "code": "MIME", "reference": "p-1-2"}
        await frame.call("note", body=told)
    captured = capsys.readouterr()

    assert (captured.out + captured.err).count("pageReference") == ADDRESS_MOST


async def test_document_that_the_page_refused_is_remembered(frame: Frame) -> None:
    """The service never saw it; the next page of the session knows of it."""
    bearer, session = await frame.opened()
    assert session["hostDocument"] is False
    await frame.call("sent", bearer, {})

    told = await (await frame.call("state", bearer)).get_json()
    assert told["hostDocument"] is True


async def test_field_at_fault_is_described(frame: Frame) -> None:
    """What it must be in JSON and, where there is a list, what it may be."""
    token = await frame.services.token()
    user = {"cuil": "20-26756539-3", "email": "a@b.example", "gender": "W"}
    init = init_of(token, userData=user)
    answer = await frame.call("init", body={"page": "", "init": init})
    told = await answer.get_json()

    assert told["field"] == "userData.gender"
    assert told["fieldType"] == "string"
    assert told["allowed"] == ["M", "F", "X"]


async def test_health_is_told(frame: Frame) -> None:
    """A load balancer knows that the process answers."""
    answer = await frame.client.get("/healthz")

    assert (await answer.get_json()) == {"status": "ok"}


async def test_work_counts_in_the_integrators_share(
    frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a session asks of the sandbox is its own and its integrator's."""
    owners: list[WorkOwner] = []
    inspect = FakeInspector.inspect

    async def noting(self: FakeInspector, pdf: bytes) -> Inspection:
        owners.append(WORK_OWNER.get())
        return await inspect(self, pdf)

    monkeypatch.setattr(FakeInspector, "inspect", noting)
    bearer, told = await frame.opened()
    await frame.call(
        "document",
        bearer,
        data=PDF,
        headers={"Content-Type": "application/pdf", "X-File-Name": "a.pdf"},
    )

    async with frame.services.services.store.read() as transaction:
        session = await SessionStore(transaction).by_public_id(told["id"])
    assert session is not None
    assert owners == [WorkOwner(session.integrator.id, f"session:{session.id}")]


@pytest.mark.parametrize("path", ["state", "completed", "download", "renew"])
async def test_revoked_key_leaves_nothing_to_ask(frame: Frame, path: str) -> None:
    """Nor where a session that is only over by time is told its outcome."""
    bearer, _ = await frame.opened()
    (key,) = await frame.services.services.integrators.keys(CODE)
    fresh = await frame.services.token()
    body = {"sessionToken": fresh} if path == "renew" else None
    await frame.services.services.integrators.revoke_key("operator", key.id)

    answer = await frame.call(path, bearer, body)

    assert await problem(answer) == (401, "SESSION_TOKEN_EXPIRED")


async def test_revoked_key_does_not_hide_what_was_submitted(frame: Frame) -> None:
    """A signature that is being made is told of, whatever became of the key."""
    token = await frame.services.token()
    session = await frame.services.proven(
        await frame.services.add_person(), token=token
    )
    opened = await frame.services.open(token)
    await frame.services.move(session.request, RequestState.IN_PROGRESS)
    (key,) = await frame.services.services.integrators.keys(CODE)
    await frame.services.services.integrators.revoke_key("operator", key.id)

    answer = await frame.call("state", opened.bearer)

    assert (await answer.get_json())["state"] == "signing"
