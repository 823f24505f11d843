"""A form whose session had ended comes back as it was typed, and sends nothing."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pyotp
import pytest

from admin_ui.edits import FORMS, VERSION
from tests.integration.console.forms import (
    ANA,
    HERE,
    colleague,
    invitation,
    open_acme_console,
    opened,
)
from tests.integration.console.populated import populate
from tests.support.faces.page_forms import FormReader
from tests.support.installation.console import (
    ADMIN_URL,
    NAME,
    PASSWORD,
    PDF,
    Answer,
    Console,
)

COOKIE = "__Host-rubrica-form"
PLACE = {"table": "console_session", "row": "form", "column": "typed"}
IDLE_S = 1800


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


async def sent_late(
    console: Console, page: str, path: str, fields: dict[str, str]
) -> Answer:
    """Send a form from a page whose session has ended meanwhile."""
    console.clock.forward(IDLE_S)
    headers = {"Referer": f"{ADMIN_URL}{page}"}
    return await console.send_form(
        path, {"csrf": console.csrf, **fields}, None, headers
    )


async def signed_in_again(console: Console, answer: Answer) -> str:
    """Follow to the sign-in and sign in; return where that leads."""
    assert answer.status == 303
    shown = await console.get(answer.location)
    assert "Tu sesión terminó" in shown.text or shown.status == 200
    wanted = answer.location.partition("next=")[2].replace("%2F", "/")
    entered = await console.post(
        "/admin/login", name=NAME, password=PASSWORD, code=console.code(), next=wanted
    )
    assert entered.status == 303, entered.text
    return entered.location


async def test_form_comes_back_as_typed(console: Console) -> None:
    """Text, choices and boxes; once, and nobody is invited by it."""
    typed = invitation(name="Ana Núñez", email="ana@demo.example", locale="en")
    late = await sent_late(console, "/admin/people/new", "/admin/people", typed)

    where = await signed_in_again(console, late)
    shown = await console.get(where)

    assert where == "/admin/people/new"
    assert "el formulario no se envió" in shown.text
    assert 'value="Ana Núñez"' in shown.text
    assert 'value="ana@demo.example"' in shown.text
    people = await console.get("/admin/people?q=Ana")
    assert "Ana Núñez" not in people.text.partition("<main")[2].partition("rows")[2]
    assert COOKIE not in console.cookies
    assert 'value="Ana Núñez"' not in (await console.get(where)).text


async def test_form_with_a_file_comes_back_without_it(console: Console) -> None:
    """What was typed beside the file is kept."""
    page = "/admin/requests/new"
    console.clock.forward(IDLE_S)
    from io import BytesIO  # noqa: PLC0415 (only here)

    from werkzeug.datastructures import FileStorage  # noqa: PLC0415 (only here)

    file = FileStorage(BytesIO(PDF), "a.pdf", "file", "application/pdf")
    late = await console.send_form(
        "/admin/requests",
        {"csrf": console.csrf, "integrator": "acme", "cuil": ANA, "days": "12"},
        {"file": file},
        {"Referer": f"{ADMIN_URL}{page}"},
    )

    shown = await console.get(await signed_in_again(console, late))

    assert f'value="{ANA}"' in shown.text
    assert 'value="12"' in shown.text


async def test_new_integrator_comes_back_with_its_code(console: Console) -> None:
    """Its short code is no one-time code, though both fields have one name."""
    typed = {"code": "nuevo", "name": "Nuevo S.A."}
    late = await sent_late(
        console, "/admin/integrators/new", "/admin/integrators", typed
    )

    shown = await console.get(await signed_in_again(console, late))

    assert 'value="nuevo"' in shown.text
    assert 'value="Nuevo S.A."' in shown.text


CHANGES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    f"{HERE}/name": (f"{HERE}/name", {"name": "Mía S.A."}, {"name": "Suya S.A."}),
    f"{HERE}/prefix": (HERE, {"event_prefix": "mia"}, {"event_prefix": "suya"}),
    f"{HERE}/mail": (
        f"{HERE}/mail",
        {"reminder_days": "3, 7", "sign_url": "https://mia.example"},
        {"reminder_days": "3, 7", "sign_url": "https://suya.example"},
    ),
    f"{HERE}/profile": (
        f"{HERE}/profile",
        {"level": "B-B", "policy": "", "digest": ""},
        {"level": "B-T", "policy": "", "digest": ""},
    ),
    "{webhook}/change": (
        "{webhook}/change",
        {"url": "https://app.example/mia", "label": "cobros"},
        {"url": "https://app.example/suya", "label": "cobros"},
    ),
}
"""Page, what one sends late and what another one changes meanwhile, by path."""


@pytest.mark.parametrize("path", CHANGES)
async def test_kept_form_undoes_no_change_of_a_colleague(
    console: Console, path: str
) -> None:
    """It comes back as old as it was sent: somebody changed the values meanwhile."""
    acme = (await console.front.integrators.get("acme")).id
    webhooks = console.front.webhooks
    made = await webhooks.create("operator", acme, "https://app.example/", "cobros")
    webhook = f"{HERE}/webhooks/{made.endpoint.id}"
    page, mine, theirs = CHANGES[path]
    page, path = (text.format(webhook=webhook) for text in (page, path))
    hidden = await opened(console, page, path)
    late = await sent_late(console, page, path, {**hidden, **mine})
    other = await colleague(console)
    assert (await other.post(path, **theirs)).status == 303

    where = await signed_in_again(console, late)
    shown = await console.get(where)

    assert where == page
    assert all(f'value="{text}"' in shown.text for text in mine.values() if text)
    (form,) = [f for f in FormReader(page, shown.text).forms if f.path == path]
    again = await console.post(path, **{**form.hidden, **mine})
    assert again.status == 412
    assert "Alguien lo cambió" in again.text
    assert "suya" in again.text.lower() or "B-T" in again.text


def place_of(console: Console, endpoint: str, values: Mapping[str, str]) -> str:
    """Return the path of an endpoint about some of the values."""
    routes, form = console.app.url_map, FORMS.get(endpoint)
    method = "GET" if form is None else "POST"
    (rule,) = [r for r in routes.iter_rules(endpoint) if method in (r.methods or ())]
    named = {name: values[name] for name in rule.arguments}
    return routes.bind("").build(endpoint, named, method=method)


async def test_every_kept_form_has_the_version_that_it_was_sent_with(
    console: Console,
) -> None:
    """So that it is refused if anything that it shows was changed meanwhile."""
    made = await populate(console)
    await console.services.console.create_user("operator", "eva", PASSWORD)
    await console.upload(f"{HERE}/stamp/logo", b"picture", "a.png")
    first = {name: found[0] for name, found in made.values.items()} | {"name": "eva"}
    invited = {**first, "person_id": made.values["person_id"][1]}
    # A new telephone begins with the password again.
    for endpoint in [name for name in FORMS if name != "account.take_totp"]:
        values = invited if endpoint == "person.renew" else first
        page = place_of(console, FORMS[endpoint].page, values)
        path = place_of(console, endpoint, values)
        if endpoint.endswith(".enable"):
            disable = f"{path.rpartition('/')[0]}/disable"
            done = await console.post(disable, code=console.code())
            assert done.status == 303, endpoint
        late = await sent_late(console, page, path, {VERSION: "old"})
        shown = await console.get(await signed_in_again(console, late))

        assert "el formulario no se envió" in shown.text, endpoint
        (form,) = [f for f in FormReader(page, shown.text).forms if f.path == path]
        assert form.hidden[VERSION] == "old", endpoint
        typed = dict.fromkeys(form.shown, "otro")
        again = await console.post(path, **{**typed, **form.hidden})
        assert again.status == 412, endpoint


async def test_form_of_an_earlier_release_is_passed_over(console: Console) -> None:
    """It has no version: nobody knows what its author saw."""
    (user,) = await console.front.console.users()
    until = console.clock.now().timestamp() + 60
    page = f"{HERE}/name"
    kept = {"user": user.id, "page": page, "until": until, "typed": {"name": "Vieja"}}
    sealed = console.front.sealer.seal(json.dumps(kept).encode(), **PLACE)
    console.cookies[COOKIE] = urlsafe_b64encode(sealed).decode()

    shown = await console.get(page)

    assert shown.status == 200
    assert "Vieja" not in shown.text
    assert COOKIE not in console.cookies


async def test_secrets_are_not_kept(console: Console) -> None:
    """A password or code that was typed is nowhere, sealed or not."""
    secrets = {
        "present": PASSWORD,
        "password": "otra clave larga",
        "again": "x",
        "code": "123456",
    }
    page = "/admin/account/password"

    late = await sent_late(console, page, page, secrets)

    assert late.status == 303
    sealed = urlsafe_b64decode(console.cookies[COOKIE])
    kept = json.loads(console.front.sealer.open(sealed, **PLACE))
    assert kept["typed"] == {}
    assert not any(secret in kept.values() for secret in secrets.values())


async def test_form_is_sealed_and_for_whoever_typed_it(console: Console) -> None:
    """The cookie shows nothing; another administrator at the browser sees nothing."""
    made = await console.services.console.create_user("operator", "eva", PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    late = await sent_late(console, f"{HERE}/name", f"{HERE}/name", {"name": "Secreto"})
    assert "Secreto" not in console.cookies[COOKIE]
    assert late.status == 303

    other = replace(console, totp=totp, name="eva", csrf="")
    other.cookies = {COOKIE: console.cookies[COOKIE]}
    await other.get("/admin/login")
    entered = await other.post(
        "/admin/login", name="eva", password=PASSWORD, code=other.code()
    )
    assert entered.status == 303
    shown = await other.get(f"{HERE}/name")

    assert "Secreto" not in shown.text
    assert COOKIE not in other.cookies


async def test_kept_form_is_forgotten_after_half_an_hour(console: Console) -> None:
    """It is not shown to whoever comes back the next day."""
    await sent_late(console, f"{HERE}/name", f"{HERE}/name", {"name": "Secreto"})
    console.clock.forward(IDLE_S)
    await console.sign_in()

    shown = await console.get(f"{HERE}/name")

    assert "Secreto" not in shown.text


async def test_altered_cookie_is_passed_over(console: Console) -> None:
    """The page is as without it."""
    console.cookies[COOKIE] = "bm8"

    shown = await console.get(f"{HERE}/name")

    assert shown.status == 200
    assert COOKIE not in console.cookies


async def test_unknown_session_keeps_nothing(console: Console) -> None:
    """A stranger's form is not read."""
    console.cookies = {"__Host-rubrica-console": "x" * 43}

    late = await sent_late(console, f"{HERE}/name", f"{HERE}/name", {"name": "X"})

    assert late.status == 303
    assert COOKIE not in console.cookies


async def test_large_form_is_said_to_be_lost(console: Console) -> None:
    """A cookie has no room for it: the sign-in says so, and its page once."""
    page = f"{HERE}/name"
    late = await sent_late(console, page, page, {"name": "X" * 4000})

    assert late.status == 303
    shown = await console.get(late.location)
    assert "era demasiado grande para guardarlo" in shown.text
    where = await signed_in_again(console, late)
    there = await console.get(where)

    assert where == page
    assert "el formulario no se envió" in there.text
    assert "Era demasiado grande para guardarlo: completalo de nuevo." in there.text
    assert "Está como lo habías completado" not in there.text
    assert 'value="ACME S.A."' in there.text
    assert COOKIE not in console.cookies
    assert "demasiado grande" not in (await console.get(where)).text


async def test_sign_in_says_that_the_form_is_kept(console: Console) -> None:
    """Nobody has to fear for it, or goes back for it."""
    page = f"{HERE}/name"
    late = await sent_late(console, page, page, {"name": "Nueva S.A."})

    shown = await console.get(late.location)

    assert "Cuando ingreses vas a encontrar lo que habías completado" in shown.text
    assert "Nueva S.A." not in shown.text


Ending = Callable[[Console, Console], Awaitable[Answer]]


async def sessions_ended(console: Console, other: Console) -> Answer:
    """Another administrator ends all sessions."""
    del console
    return await other.post("/admin/administrators/marta/sessions", code=other.code())


async def password_set(console: Console, other: Console) -> Answer:
    """Another administrator sets the password: the same one, for this test."""
    del console
    new = {"password": PASSWORD, "again": PASSWORD}
    return await other.post(
        "/admin/administrators/marta/password", code=other.code(), **new
    )


async def disabled_and_enabled(console: Console, other: Console) -> Answer:
    """Another administrator disables the account, and enables it again."""
    del console
    here = "/admin/administrators/marta"
    done = await other.post(f"{here}/disable", code=other.code())
    assert done.status == 303, done.text
    return await other.post(f"{here}/enable", code=other.code())


@pytest.mark.parametrize("ending", [sessions_ended, password_set, disabled_and_enabled])
async def test_form_of_a_session_that_another_one_ended_comes_back(
    console: Console, ending: Ending
) -> None:
    """As one whose session ran out; the session itself opens nothing any more."""
    other = await colleague(console)
    page = f"{HERE}/name"
    ended = await ending(console, other)
    assert ended.status == 303, ended.text
    headers = {"Referer": f"{ADMIN_URL}{page}"}
    late = await console.send_form(
        page, {"csrf": console.csrf, "name": "Nueva S.A."}, None, headers
    )
    assert late.status == 303
    assert late.location.startswith("/admin/login")

    shown = await console.get(await signed_in_again(console, late))

    assert 'value="Nueva S.A."' in shown.text
    assert "el formulario no se envió" in shown.text
    assert (await console.front.integrators.get("acme")).name == "ACME S.A."


async def test_form_of_the_session_before_comes_back_at_once(console: Console) -> None:
    """Its author signed in again in another tab, and sends it from the first one."""
    page = f"{HERE}/name"
    hidden = await opened(console, page, page)
    former = console.csrf
    await console.sign_in()
    headers = {"Referer": f"{ADMIN_URL}{page}"}
    fields = {**hidden, "csrf": former, "name": "Nueva S.A."}

    sent = await console.send_form(page, fields, None, headers)
    assert (sent.status, sent.location) == (303, page)
    shown = await console.get(page)

    assert 'value="Nueva S.A."' in shown.text
    assert (await console.front.integrators.get("acme")).name == "ACME S.A."
    (form,) = [f for f in FormReader(page, shown.text).forms if f.path == page]
    done = await console.post(page, **{**form.hidden, "name": "Nueva S.A."})
    assert done.status == 303
    assert (await console.front.integrators.get("acme")).name == "Nueva S.A."


async def test_form_without_fields_of_the_session_before_is_refused(
    console: Console,
) -> None:
    """There is nothing to bring back; and without its page nobody knows where to."""
    former = console.csrf
    await console.sign_in()
    headers = {"Referer": f"{ADMIN_URL}/admin/"}

    left = await console.send_form("/admin/logout", {"csrf": former}, None, headers)
    lost = await console.send_form(f"{HERE}/name", {"csrf": former, "name": "X"})

    assert (left.status, lost.status) == (403, 403)
    assert COOKIE not in console.cookies
