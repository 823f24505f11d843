"""Who gets into the console, and what may change anything there."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from werkzeug.routing import Rule

from admin_ui.app import POLICY
from admin_ui.session import COOKIE, local_path
from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.domain.integrators.integrators import ConsoleSession
from appliance.domain.vocab import EventKind
from appliance.identity.console_login import ConsoleLogin
from appliance.web.auth import is_public
from tests.support.installation.console import ADMIN_URL, NAME, PASSWORD, Console
from tests.support.installation.installation import Installation

PUBLIC = {
    # Empty without a session: a page that stays open is not sent to the sign-in.
    "health.mark",
    "root",
    "assets.serve",
    "login.show",
    "login.enter",
    "login.choose_language",
}
INLINE = re.compile(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=", re.ASCII)


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with one administrator."""
    async with Installation(tmp_path).console() as made:
        yield made


@pytest.fixture
async def inside(console: Console) -> Console:
    """The same, signed in."""
    await console.sign_in()
    return console


def rules(console: Console, method: str) -> list[Rule]:
    """The routes that answer a method."""
    return [r for r in console.app.url_map.iter_rules() if method in (r.methods or ())]


def address(rule: Rule) -> str:
    """An address of a route, with something in each place."""
    return re.sub(r"<digits:[^>]*>", "1", re.sub(r"<(?!digits)[^>]*>", "x", rule.rule))


async def recorded(console: Console) -> list[EventKind]:
    """Kinds of all audit rows, oldest first within a writer."""
    async with console.services.store.read() as transaction:
        writers = await transaction.audit.writers()
        rows = [row for w in writers for row in await transaction.audit.of_writer(w)]
    return [row.event.event for row in rows]


def test_public_routes_are_listed(console: Console) -> None:
    """No route is public but those that must be."""
    public = {
        rule.endpoint
        for rule in console.app.url_map.iter_rules()
        if is_public(console.app.view_functions[rule.endpoint])
    }

    assert public == PUBLIC


async def test_every_page_needs_a_sign_in(console: Console) -> None:
    """Without a session every other route leads to the sign-in, and back after it."""
    for rule in rules(console, "GET"):
        if rule.endpoint not in PUBLIC:
            answer = await console.get(address(rule))
            assert answer.status == 303, rule
            assert answer.location.startswith("/admin/login?next=%2Fadmin"), rule


async def test_every_change_needs_a_sign_in(console: Console) -> None:
    """Without a session no form is taken, wherever it comes from."""
    before = await recorded(console)

    for rule in rules(console, "POST"):
        if rule.endpoint not in PUBLIC:
            answer = await console.send_form(address(rule), {})
            assert (answer.status, answer.location) == (303, "/admin/login"), rule

    assert await recorded(console) == before


@pytest.mark.parametrize("csrf", ["", "0" * 64, "é"])
async def test_every_change_needs_the_forms_token(inside: Console, csrf: str) -> None:
    """A form without its session's token is refused on every route."""
    before = await recorded(inside)

    for rule in rules(inside, "POST"):
        if rule.endpoint != "login.enter":
            answer = await inside.send_form(address(rule), {"csrf": csrf})
            assert answer.status == 403, rule
            assert "CSRF_REFUSED" in answer.text, rule

    assert await recorded(inside) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "", "Sec-Fetch-Site": "same-site"},
        {"Origin": "", "Sec-Fetch-Site": "none"},
        {"Origin": "http://127.0.0.1:9999", "Sec-Fetch-Site": ""},
        {"Origin": "null", "Sec-Fetch-Site": ""},
        {"Origin": "http://localhost:8082", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "", "Sec-Fetch-Site": ""},
    ],
)
async def test_every_change_needs_a_page_of_the_console(
    inside: Console, headers: dict[str, str]
) -> None:
    """A form from elsewhere is refused even with the token, signed in or not."""
    for rule in rules(inside, "POST"):
        fields = {"csrf": inside.csrf}
        answer = await inside.send_form(address(rule), fields, headers=headers)
        assert answer.status == 403, rule
        assert ADMIN_URL in answer.text, rule


@pytest.mark.parametrize(
    "headers", [{"Origin": "", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": ""}]
)
async def test_one_sign_of_the_own_page_suffices(
    inside: Console, headers: dict[str, str]
) -> None:
    """Browsers without one of both headers can use the console."""
    fields = {"csrf": inside.csrf, "code": "acme", "name": "ACME"}

    answer = await inside.send_form("/admin/integrators", fields, headers=headers)

    assert answer.location == "/admin/integrators/acme"


async def test_token_may_come_as_a_header(inside: Console) -> None:
    """Scripts of our pages send the token as a header."""
    fields = {"code": "acme", "name": "ACME"}

    answer = await inside.send_form(
        "/admin/integrators", fields, headers={"X-CSRF-Token": inside.csrf}
    )

    assert answer.status == 303


async def test_short_addresses_lead_home(console: Console) -> None:
    """Whoever types the host alone gets to the console."""
    for path in ("/", "/admin"):
        assert (await console.get(path)).location == "/admin/"


async def test_lost_administrator_finds_the_way_back(inside: Console) -> None:
    """An address that is not there shows the menu to whoever is signed in."""
    assert "Integradores" in (await inside.get("/admin/nada")).text
    inside.cookies.clear()
    assert "Integradores" not in (await inside.get("/admin/nada")).text


async def test_every_answer_has_the_headers(inside: Console) -> None:
    """Pages, errors, redirects and files carry policy and isolation."""
    for path in ("/admin/", "/admin/nada", "/", "/admin/login"):
        headers = (await inside.get(path)).headers
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_policy_allows_nothing_inline() -> None:
    """The policy names our own origin alone."""
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in POLICY


async def test_pages_have_nothing_inline(inside: Console) -> None:
    """No page needs what the policy refuses."""
    await inside.post("/admin/integrators", code="acme", name="ACME")

    for rule in rules(inside, "GET"):
        path = address(rule).replace("/integrators/x", "/integrators/acme")
        answer = await inside.get(path)
        assert not INLINE.search(answer.text), path


async def test_assets_are_kept_for_ever_by_their_content(console: Console) -> None:
    """Style and scripts are served under their hash, without a sign-in."""
    page = (await console.get("/admin/login")).text
    found = re.findall(r'(?:href|src)="(/admin/static/[^"]+)"', page)

    assert len(found) == 4
    for path in found:
        answer = await console.get(path)
        assert answer.status == 200
        assert "immutable" in answer.headers["Cache-Control"]
        other = re.sub(r"/static/\w+/", "/static/0000000000000000/", path)
        assert (await console.get(other)).status == 404


async def test_cookie_is_bound_to_host_and_page(console: Console) -> None:
    """The session's cookie has every attribute that narrows it."""
    answer = await console.post(
        "/admin/login", name=NAME, password=PASSWORD, code=console.code()
    )

    value = answer.headers["Set-Cookie"]
    assert value.startswith(f"{COOKIE}=")
    attributes = {part.strip().lower() for part in value.split(";")[1:]}
    assert attributes == {"secure", "httponly", "samesite=strict", "path=/"}
    assert COOKIE.startswith("__Host-")


async def test_wrong_sign_ins_look_alike(console: Console) -> None:
    """Unknown name, wrong password and wrong code are told the same."""
    right = {"name": NAME, "password": PASSWORD, "code": console.code()}
    tries = [{"name": "nadie"}, {"password": "otra contraseña"}, {"code": "000000"}]

    answers = [
        await console.post("/admin/login", **{**right, **wrong}) for wrong in tries
    ]

    texts = {a.text.replace('value="nadie"', f'value="{NAME}"') for a in answers}
    assert {a.status for a in answers} == {422}
    assert len(texts) == 1
    assert COOKIE not in console.cookies


async def test_code_signs_in_once(console: Console) -> None:
    """A code that was used opens no second session."""
    fields = {"name": NAME, "password": PASSWORD, "code": console.code()}
    assert (await console.post("/admin/login", **fields)).status == 303
    console.cookies.clear()

    assert (await console.post("/admin/login", **fields)).status == 422


async def test_many_sign_ins_have_to_wait(console: Console) -> None:
    """After too many tries even the right ones are told to wait."""
    for _ in range(100):
        answer = await console.post("/admin/login", name=NAME, password="x", code="1")
        if answer.status == 429:
            break
    fields = {"name": NAME, "password": PASSWORD, "code": console.totp.now()}

    answer = await console.post("/admin/login", **fields)

    assert answer.status == 429
    assert int(answer.headers["Retry-After"]) > 0


async def test_session_ends_after_half_an_hour_without_use(inside: Console) -> None:
    """An idle session is over, and the sign-in says so."""
    inside.clock.forward(29 * 60)
    assert (await inside.get("/admin/people")).status == 200
    inside.clock.forward(30 * 60 + 1)

    answer = await inside.get("/admin/people")

    assert answer.location == "/admin/login?next=%2Fadmin%2Fpeople"
    assert "Tu sesión terminó" in (await inside.get(answer.location)).text


@pytest.mark.parametrize(
    ("header", "page", "kept"),
    [
        ("Referer", "/admin/people?q=ana", "/admin/people?q=ana"),
        ("Referer", "/admin/integrators/acme/name", "/admin/integrators/acme/name"),
        ("Referer", "/admin/account/totp/confirm", ""),
        ("Referer", "/otra", ""),
        ("HX-Current-URL", "/admin/requests/1#story", "/admin/requests/1"),
    ],
)
async def test_sign_in_leads_back_to_the_page_of_a_form(
    console: Console, header: str, page: str, kept: str
) -> None:
    """Whoever sent a form after the end of a session comes back to where it stood."""
    own = {"Origin": ADMIN_URL, "Sec-Fetch-Site": "same-origin"}

    answer = await console.send(
        "POST", "/admin/people", headers={**own, header: f"{ADMIN_URL}{page}"}, form={}
    )

    wanted = f"?{urlencode({'next': kept})}" if kept else ""
    assert answer.location == f"/admin/login{wanted}"
    elsewhere = {**own, header: f"https://elsewhere.example{page}"}
    answer = await console.send("POST", "/admin/people", headers=elsewhere, form={})
    assert answer.location == "/admin/login"


async def test_pages_that_renew_themselves_keep_no_session(inside: Console) -> None:
    """What a page asks for by itself is no use of the session."""
    for _ in range(3):
        inside.clock.forward(10 * 60)
        answer = await inside.get("/admin/", **{"HX-Request": "true"})

    assert answer.status == 401
    assert answer.headers["HX-Redirect"] == "/admin/login"


async def test_session_ends_after_eight_hours_of_use(inside: Console) -> None:
    """However much it is used, a session has an end."""
    for _ in range(23):
        inside.clock.forward(20 * 60)
        assert (await inside.get("/admin/people")).status == 200
    inside.clock.forward(21 * 60)

    assert (await inside.get("/admin/people")).status == 303


async def test_sign_out_ends_the_session_on_the_server(inside: Console) -> None:
    """A copied cookie is of no use after signing out."""
    kept = dict(inside.cookies)

    answer = await inside.post("/admin/logout")

    assert answer.location == "/admin/login"
    assert COOKIE not in inside.cookies
    inside.cookies.update(kept)
    assert (await inside.get("/admin/people")).status == 303


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/admin/",
        "//evil.example/admin/",
        "/\\evil.example",
        "/admin/\\..\\x",
        "javascript:alert(1)",
        "/otra",
        "/admin/\n/x",
        "",
    ],
)
async def test_sign_in_leads_nowhere_else(console: Console, wanted: str) -> None:
    """Whoever makes up where to go after signing in ends at the home page."""
    async with console.app.test_request_context("/"):
        assert local_path(wanted) == "/admin/"


async def test_sign_in_leads_back_to_where_one_was(console: Console) -> None:
    """The page asked for comes after the sign-in, its filters with it."""
    answer = await console.post(
        "/admin/login",
        name=NAME,
        password=PASSWORD,
        code=console.code(),
        next="/admin/people?q=ana",
    )

    assert answer.location == "/admin/people?q=ana"


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "BREW"])
async def test_other_methods_change_nothing(inside: Console, method: str) -> None:
    """No route answers a method that it does not have."""
    answer = await inside.send(method, "/admin/integrators")

    assert answer.status == 405


async def test_fault_of_ours_is_told_without_its_cause(
    inside: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown error shows an id and nothing else."""

    async def fail(*args: object) -> None:
        del args
        raise RuntimeError("secreto")

    monkeypatch.setattr(type(inside.front.views), "home", fail)

    answer = await inside.get("/admin/")

    assert answer.status == 500
    assert "secreto" not in answer.text
    assert answer.headers["X-Request-Id"] in answer.text


async def test_call_with_bad_headers_has_its_address_share(
    inside: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its page looks whether somebody is signed in: by the record, in turn."""
    owners: list[WorkOwner] = []
    by_token = ConsoleLogin.by_token

    async def noting(
        self: ConsoleLogin, token: str, *, active: bool = True
    ) -> ConsoleSession:
        owners.append(WORK_OWNER.get())
        return await by_token(self, token, active=active)

    monkeypatch.setattr(ConsoleLogin, "by_token", noting)
    many = {f"X-{number}": "x" for number in range(101)}
    answer = await inside.get("/", **many)

    assert answer.status == 400
    assert owners
    assert all(owner.share.startswith("address:") for owner in owners)
