"""Sign-in and the bearer: who may call, and for how long."""

import base64
import json
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from appliance.bootstrap import ServiceRegistry
from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import (
    at_once,
    code_of,
    command,
    forged,
    log_in,
    problem,
)
from tests.support.documents import pdfs


@pytest.fixture
def newcomer(appliance: Appliance) -> TestPerson:
    """Somebody none of whose codes was used yet."""
    return appliance.new_person(with_key=False)


@pytest.fixture
def anyone(appliance: Appliance) -> Iterator[httpx.Client]:
    """A client that is not signed in."""
    with appliance.client() as opened:
        yield opened


def _call(client: httpx.Client, what: str) -> httpx.Response:
    """List, or sign something that is not there."""
    if what == "list":
        return client.get("/solicitudes")
    body = {"solicitudId": 999_999_999, "password": "una clave"}
    return client.post("/solicitudes/firmar", json=body)


def _otp(client: httpx.Client, login_token: str, code: str) -> httpx.Response:
    return client.post("/auth/otp", json={"loginToken": login_token, "codigo": code})


@pytest.mark.parametrize("what", ["list", "firmar"])
def test_bearer_is_required(
    anyone: httpx.Client, client: httpx.Client, what: str
) -> None:
    """Without a bearer 401, on every call; with one the call is looked at.

    Source: spec "Authentication".
    """
    for header in ({}, {"Authorization": ""}, {"Authorization": "Basic YTpi"}):
        anyone.headers = httpx.Headers(header)
        answer = _call(anyone, what)
        problem(answer, 401, "TOKEN_MISSING")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")

    assert _call(client, what).status_code == {"list": 200, "firmar": 404}[what]


@pytest.mark.parametrize("what", ["list", "firmar"])
def test_token_without_second_factor_refused(
    appliance: Appliance, signer: TestPerson, anyone: httpx.Client, what: str
) -> None:
    """A password alone makes no token that counts."""
    for factors in (["pwd"], [], ["pwd", "sms"]):
        token = forged(appliance, signer, amr=factors)
        anyone.headers["Authorization"] = f"Bearer {token}"

        problem(_call(anyone, what), 403, "MFA_REQUIRED")


def test_login_needs_password_and_otp(
    newcomer: TestPerson, anyone: httpx.Client, appliance: Appliance
) -> None:
    """Neither factor alone gives a token; both give one that works.

    Source: spec "What the service does", 3; decisions "login".
    """
    code = code_of(appliance, newcomer)
    wrong = {"usuario": newcomer.cuil, "password": newcomer.signing_password}
    problem(anyone.post("/auth/login", json=wrong), 401, "LOGIN_FAILED")
    problem(_otp(anyone, "x" * 43, code), 401, "LOGIN_FAILED")

    login_token = log_in(anyone, newcomer)
    anyone.headers["Authorization"] = f"Bearer {login_token}"
    problem(anyone.get("/solicitudes"), 401, "TOKEN_INVALID")
    problem(_otp(anyone, login_token, "000000"), 401, "OTP_INVALID")

    token = _otp(anyone, login_token, code).json()["access_token"]
    anyone.headers["Authorization"] = f"Bearer {token}"
    assert anyone.get("/solicitudes").json() == []


def test_login_answers_what_is_decided(
    newcomer: TestPerson, anyone: httpx.Client
) -> None:
    """Token, factors and time of the first half of a sign-in; e-mail works too.

    Source: decisions "login".
    """
    answer = anyone.post(
        "/auth/login",
        json={
            "usuario": f" {newcomer.email.upper()} ",
            "password": newcomer.login_password,
        },
    )

    assert answer.status_code == 200
    members = answer.json()
    assert len(members.pop("loginToken")) == 43
    assert members == {"factores": ["totp"], "expiresIn": 300}


def test_otp_code_works_once(
    newcomer: TestPerson, anyone: httpx.Client, appliance: Appliance
) -> None:
    """A code that was used is refused in every later sign-in of its time."""
    code = code_of(appliance, newcomer)
    assert _otp(anyone, log_in(anyone, newcomer), code).status_code == 200

    again = _otp(anyone, log_in(anyone, newcomer), code)

    problem(again, 401, "OTP_INVALID")


def test_otp_code_wins_once_of_many(newcomer: TestPerson, appliance: Appliance) -> None:
    """Of parallel calls with one code and login token exactly one signs in."""
    with appliance.client() as client:
        login_token = log_in(client, newcomer)
        code = code_of(appliance, newcomer)

        def attempt() -> int:
            return _otp(client, login_token, code).status_code

        found = at_once([attempt] * 5)

    # Five tries a minute are looked at; none of them may win twice.
    assert sorted(found) == [200, 401, 401, 401, 401]


@pytest.mark.parametrize("steps", [-2, -1, 0, 1, 2])
def test_code_of_a_neighbouring_step(
    appliance: Appliance, anyone: httpx.Client, steps: int
) -> None:
    """A clock may be one step off, not two."""
    person = appliance.new_person(with_key=False)
    login_token = log_in(anyone, person)

    async def now(front: ServiceRegistry) -> int:
        return int(front.clock.now().timestamp()) // 30

    code = person.totp.generate_otp(appliance.do(now) + steps)
    answer = _otp(anyone, login_token, code)

    if abs(steps) < 2:
        assert answer.status_code == 200
    else:
        problem(answer, 401, "OTP_INVALID")


def test_code_that_is_no_code_refused(
    newcomer: TestPerson, anyone: httpx.Client, appliance: Appliance
) -> None:
    """Five or seven digits, letters, other digits, spaces inside: never right."""
    code = code_of(appliance, newcomer)
    login_token = log_in(anyone, newcomer)
    wide = "".join(chr(ord(digit) + 0xFEE0) for digit in code)

    for shape in (code[:5], f"{code}0", "abcdef", wide):
        problem(_otp(anyone, login_token, shape), 401, "OTP_INVALID")

    # The fifth try of this minute: spaces around do not count.
    assert _otp(anyone, login_token, f"  {code} ").status_code == 200


def test_code_of_another_person_refused(
    newcomer: TestPerson, anyone: httpx.Client, appliance: Appliance
) -> None:
    """A right code of somebody else is a wrong one, and stays usable."""
    second = appliance.new_person(with_key=False)
    code = code_of(appliance, second)

    problem(_otp(anyone, log_in(anyone, newcomer), code), 401, "OTP_INVALID")

    assert _otp(anyone, log_in(anyone, second), code).status_code == 200


def test_unknown_user_is_told_like_a_wrong_password(
    newcomer: TestPerson, anyone: httpx.Client
) -> None:
    """The same status, headers and body but for the request's id."""
    told = []
    for user in (newcomer.cuil, "20999999995", "nadie@demo.example", "x" * 320):
        body = {"usuario": user, "password": "no es la clave"}
        answer = anyone.post("/auth/login", json=body)
        members = problem(answer, 401, "LOGIN_FAILED")
        members.pop("requestId")
        names = sorted(answer.headers)
        told.append((members, names))

    assert told == [told[0]] * 4


def test_sixth_wrong_try_waits_longer_each_round(
    newcomer: TestPerson, anyone: httpx.Client
) -> None:
    """Five tries a minute on one account; then 429, the right password too."""
    body = {"usuario": newcomer.cuil, "password": "no es la clave"}
    began = time.monotonic()
    for _ in range(5):
        problem(anyone.post("/auth/login", json=body), 401, "LOGIN_FAILED")

    right = {"usuario": newcomer.cuil, "password": newcomer.login_password}
    answer = anyone.post("/auth/login", json=right)
    lasted_s = time.monotonic() - began

    members = problem(answer, 429, "RATE_LIMITED")
    # A minute from the last wrong try on, less the time since.
    assert 60 - lasted_s <= members["retryAfter"] <= 60
    assert answer.headers["Retry-After"] == str(members["retryAfter"])


def test_token_lifetime_is_900_s(
    newcomer: TestPerson, anyone: httpx.Client, appliance: Appliance
) -> None:
    """The answer says 900 s, and so does the token.

    Source: decisions "JWT", "login".
    """
    login_token = log_in(anyone, newcomer)
    answer = _otp(anyone, login_token, code_of(appliance, newcomer)).json()

    assert (answer["token_type"], answer["expires_in"]) == ("Bearer", 900)
    payload = answer["access_token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["exp"] - claims["iat"] == 900
    assert claims["iss"] == claims["aud"] == appliance.base_url
    assert (claims["sub"], claims["amr"]) == (newcomer.id, ["pwd", "otp"])


def test_expired_token_refused(
    appliance: Appliance, signer: TestPerson, anyone: httpx.Client
) -> None:
    """One second past its time a token is over, and the answer says that."""
    now = _now(appliance)
    expired = forged(appliance, signer, iat=now - 901, exp=now - 1, auth_time=now - 901)
    anyone.headers["Authorization"] = f"Bearer {expired}"
    problem(anyone.get("/solicitudes"), 401, "TOKEN_EXPIRED")

    valid = forged(appliance, signer, iat=now - 9, exp=now + 9, auth_time=now - 9)
    anyone.headers["Authorization"] = f"Bearer {valid}"
    assert anyone.get("/solicitudes").status_code == 200


def _now(appliance: Appliance) -> int:
    async def ask(front: ServiceRegistry) -> int:
        return int(front.clock.now().timestamp())

    return appliance.do(ask)


FORGERIES: dict[str, Callable[[Appliance, TestPerson], str]] = {
    "no_algorithm": lambda a, p: forged(a, p, header={"alg": "none"}),
    "symmetric": lambda a, p: forged(a, p, header={"alg": "HS256"}),
    "embedded_key": lambda a, p: forged(a, p, header={"jwk": {"kty": "EC"}}),
    "pointed_key": lambda a, p: forged(a, p, header={"jku": "http://127.0.0.1/"}),
    "critical": lambda a, p: forged(a, p, header={"crit": ["exp"]}),
    "kid_is_a_path": lambda a, p: forged(a, p, header={"kid": "../../etc/passwd"}),
    "kid_is_a_list": lambda a, p: forged(a, p, header={"kid": ["x"]}),
    "other_type": lambda a, p: forged(a, p, header={"typ": "JWT"}),
    "no_exp": lambda a, p: forged(a, p, exp=...),
    "endless": lambda a, p: forged(a, p, exp=10**30),
    "long": lambda a, p: forged(a, p, exp=_now(a) + 3600),
    "future": lambda a, p: forged(a, p, iat=_now(a) + 60, exp=_now(a) + 600),
    "exp_is_text": lambda a, p: forged(a, p, exp="9999999999"),
    "other_issuer": lambda a, p: forged(a, p, iss="https://evil.example"),
    "two_audiences": lambda a, p: forged(a, p, aud=[a.base_url, "https://b.example"]),
    "unknown_person": lambda a, p: forged(a, p, sub="nobody"),
    "person_is_a_number": lambda a, p: forged(a, p, sub=1),
    "no_signature": lambda a, p: a.bearer(p).rpartition(".")[0] + ".",
    "four_parts": lambda a, p: a.bearer(p) + ".e30",
    "altered": lambda a, p: a.bearer(p)[:-4] + "AAAA",
    "padded": lambda a, p: a.bearer(p) + "=",
    "long_text": lambda _a, _p: "A" * 9000,
}


@pytest.mark.parametrize("name", [*FORGERIES])
def test_forged_token_refused(
    appliance: Appliance, signer: TestPerson, anyone: httpx.Client, name: str
) -> None:
    """Each kind of forgery, though signed with the right key, gets nowhere.

    Source: RFC 8725; decisions "JWT".
    """
    token = FORGERIES[name](appliance, signer)
    anyone.headers["Authorization"] = f"Bearer {token}"

    problem(anyone.get("/solicitudes"), 401, "TOKEN_INVALID")


def test_old_factor_reads_but_does_not_sign(
    appliance: Appliance, signer: TestPerson, anyone: httpx.Client
) -> None:
    """After eight hours signing needs a new sign-in; reading does not."""
    request = appliance.new_request(signer, pdfs.one_page())
    token = forged(appliance, signer, auth_time=_now(appliance) - 28_801)
    anyone.headers["Authorization"] = f"Bearer {token}"

    assert anyone.get("/solicitudes").status_code == 200
    answer = anyone.post("/solicitudes/firmar", json=command(signer, request))

    problem(answer, 403, "STEP_UP")


def test_key_of_tokens_is_published(appliance: Appliance, anyone: httpx.Client) -> None:
    """The JWK set has the key that signs, and no private half."""
    (key, *_) = anyone.get("/.well-known/jwks.json").json()["keys"]

    assert (key["kty"], key["crv"], key["alg"]) == ("EC", "P-256", "ES256")
    assert "d" not in key
    assert appliance.base_url.startswith("http://127.0.0.1")
