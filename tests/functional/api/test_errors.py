"""Refusals: each by its status and code, in one shape, in two languages."""

from collections.abc import Callable

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import command, problem, sign
from tests.support.documents import pdfs

SIGN = "/solicitudes/firmar"
WRONG = "esta no es la clave"
Refusal = Callable[[Appliance, TestPerson, httpx.Client], httpx.Response]


@pytest.fixture(scope="module")
def forgetful(appliance: Appliance) -> TestPerson:
    """Somebody whose signing password may get locked."""
    return appliance.new_person("Olga Olvido")


def _fresh(appliance: Appliance, person: TestPerson) -> int:
    return appliance.new_request(person, pdfs.one_page())


def _without_bearer(
    appliance: Appliance, signer: TestPerson, _client: httpx.Client
) -> httpx.Response:
    with appliance.client() as anyone:
        return sign(anyone, signer, _fresh(appliance, signer))


def _wrong_password(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> httpx.Response:
    request = _fresh(appliance, signer)
    wrong = sign(client, signer, request, password=WRONG)
    # A right one sets the shared person's count to nothing again.
    assert sign(client, signer, request).status_code == 200
    return wrong


def _already_signed(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> httpx.Response:
    request = _fresh(appliance, signer)
    assert sign(client, signer, request).status_code == 200
    return sign(client, signer, request, fontSize=13)


def _changed(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> httpx.Response:
    body = command(signer, _fresh(appliance, signer))
    return client.post(SIGN, json=body, headers={"If-Match": f'"{"0" * 64}"'})


def _content(content: bytes, media_type: str = "application/json") -> Refusal:
    def call(
        _appliance: Appliance, _signer: TestPerson, client: httpx.Client
    ) -> httpx.Response:
        headers = {"Content-Type": media_type}
        return client.post(SIGN, content=content, headers=headers)

    return call


def _field(name: str, value: object, **others: object) -> Refusal:
    def call(
        appliance: Appliance, signer: TestPerson, client: httpx.Client
    ) -> httpx.Response:
        request = _fresh(appliance, signer)
        return sign(client, signer, request, **{**others, name: value})

    return call


def _locked(
    appliance: Appliance, signer: TestPerson, _client: httpx.Client
) -> httpx.Response:
    """The eleventh call of a person after ten wrong passwords."""
    request = _fresh(appliance, signer)
    with appliance.client(signer) as client:
        for left in range(9, 0, -1):
            wrong = sign(client, signer, request, password=f"{WRONG} {left}")
            members = problem(wrong, 403, "SIGN_PASSWORD_WRONG")
            assert members["attemptsLeft"] == left
        last = sign(client, signer, request, password=WRONG)
        problem(last, 423, "SIGN_LOCKED")
        return sign(client, signer, request)


REFUSALS: dict[str, tuple[int, Refusal]] = {
    "TOKEN_MISSING": (401, _without_bearer),
    "SIGN_PASSWORD_WRONG": (403, _wrong_password),
    "SOLICITUD_NOT_FOUND": (404, _field("solicitudId", 999_999_999)),
    "ALREADY_SIGNED": (409, _already_signed),
    "DOCUMENT_CHANGED": (412, _changed),
    "BODY_TOO_LARGE": (413, _content(b" " * 1_048_577)),
    "CONTENT_TYPE": (415, _content(b"{}", "text/plain")),
    "PAGE_OUT_OF_RANGE": (422, _field("page", 2)),
    "SIGN_LOCKED": (423, _locked),
    "JSON_INVALID": (400, _content(b'{"solicitudId":1')),
    "FIELD_UNKNOWN": (400, _field("color", "BLACK")),
    "FIELD_INVALID": (400, _field("fontSize", "12")),
    "POSITION_OUT_OF_PAGE": (422, _field("x", 594, y=0)),
}
CATEGORIES = {"TOKEN_MISSING": "new_session"} | dict.fromkeys(
    ["SOLICITUD_NOT_FOUND", "ALREADY_SIGNED", "SIGN_LOCKED"], "terminal"
)


@pytest.mark.parametrize("code", [*REFUSALS])
def test_refusal(
    appliance: Appliance,
    signer: TestPerson,
    forgetful: TestPerson,
    client: httpx.Client,
    code: str,
) -> None:
    """Each status of the signing endpoints, by its code.

    Source: decisions "errors", "wrong signing password", "repeating firmar".
    """
    status, refuse = REFUSALS[code]
    person = forgetful if code == "SIGN_LOCKED" else signer

    members = problem(refuse(appliance, person, client), status, code)

    assert members["category"] == CATEGORIES.get(code, "fix_request")
    if code == "SIGN_PASSWORD_WRONG":
        assert members["attemptsLeft"] == 9
    if code.startswith("FIELD"):
        assert members["field"] == {"FIELD_UNKNOWN": "color"}.get(code, "fontSize")
        assert members["allowed"]
    if code == "PAGE_OUT_OF_RANGE":
        assert (members["field"], members["allowed"]) == ("page", ["1..1"])
    if code == "POSITION_OUT_OF_PAGE":
        most = int(595 - members["stamp"]["width"])
        assert (members["field"], members["allowed"]) == ("x", [f"0..{most}"])
        assert members["stamp"]["x"] == 594
        assert members["page"]["width"] == 595


def test_problem_shape(client: httpx.Client) -> None:
    """An error has the members of the decision, and no others without a cause.

    Source: RFC 9457; decisions "errors".
    """
    answer = client.get("/solicitudes/999999999")

    members = problem(answer, 404, "SOLICITUD_NOT_FOUND")
    assert members.keys() == {
        "type",
        "title",
        "status",
        "detail",
        "code",
        "category",
        "requestId",
    }
    assert members["type"] == "urn:rubrica:error:SOLICITUD_NOT_FOUND"
    assert (members["status"], members["category"]) == (404, "terminal")
    assert len(members["requestId"]) == 24


@pytest.mark.parametrize(
    ("accepted", "lang", "detail"),
    [
        (None, "es", "La contraseña de firma no es correcta."),
        ("es-AR, en;q=0.5", "es", "La contraseña de firma no es correcta."),
        ("en-GB, es;q=0.5", "en", "The signing password is wrong."),
        ("fr, pt", "es", "La contraseña de firma no es correcta."),
    ],
)
def test_detail_in_the_language_asked_for(
    appliance: Appliance,
    signer: TestPerson,
    client: httpx.Client,
    accepted: str | None,
    lang: str,
    detail: str,
) -> None:
    """Spanish or English by Accept-Language; the code is the same."""
    request = _fresh(appliance, signer)
    headers = {} if accepted is None else {"Accept-Language": accepted}

    wrong = client.post(
        SIGN, json=command(signer, request, password=WRONG), headers=headers
    )
    assert sign(client, signer, request).status_code == 200

    assert problem(wrong, 403, "SIGN_PASSWORD_WRONG")["detail"] == detail
    assert wrong.headers["Content-Language"] == lang


def test_same_wrong_password_counts_once(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """A client that repeats a typing error loses one try; another error another.

    Source: decisions "wrong signing password".
    """
    request = _fresh(appliance, signer)

    left = [
        sign(client, signer, request, password=password).json()["attemptsLeft"]
        for password in (WRONG, WRONG, f"{WRONG}!", WRONG)
    ]
    assert sign(client, signer, request).status_code == 200
    again = _fresh(appliance, signer)
    after = sign(client, signer, again, password=WRONG).json()["attemptsLeft"]
    assert sign(client, signer, again).status_code == 200

    assert left == [9, 9, 8, 8]
    assert after == 9


def test_wrong_password_is_not_told_before_other_faults(
    appliance: Appliance, signer: TestPerson, client: httpx.Client
) -> None:
    """What needs no password is refused first, and costs no try."""
    request = _fresh(appliance, signer)

    refused = sign(client, signer, request, page=7, password=WRONG)
    wrong = sign(client, signer, request, password=WRONG)
    assert sign(client, signer, request).status_code == 200

    problem(refused, 422, "PAGE_OUT_OF_RANGE")
    assert wrong.json()["attemptsLeft"] == 9


def test_lock_stops_signing_and_nothing_else(
    appliance: Appliance, forgetful: TestPerson
) -> None:
    """A locked person lists, sees and rejects; only signing is over."""
    request = _fresh(appliance, forgetful)
    with appliance.client(forgetful) as client:
        for number in range(10):
            sign(client, forgetful, request, password=f"{WRONG} {number}")

        problem(sign(client, forgetful, request), 423, "SIGN_LOCKED")
        assert client.get("/solicitudes").status_code == 200
        rejected = client.post(
            f"/solicitudes/{request}/rechazar", json={"motivo": "bloqueado"}
        )

    assert rejected.json()["estado"] == "rechazada"
