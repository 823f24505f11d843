"""A form whose session had ended comes back as it was typed, and sends nothing."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pyotp
import pytest

from tests.integration.console.forms import ANA, HERE, invitation, open_acme_console
from tests.support.installation.console import (
    ADMIN_URL,
    NAME,
    PASSWORD,
    PDF,
    Answer,
    Console,
)

COOKIE = "__Host-rubrica-form"
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


async def test_secrets_are_not_kept(console: Console) -> None:
    """A password that was typed is nowhere, sealed or not."""
    fields = {"present": PASSWORD, "password": "otra clave larga", "again": "x"}
    page = "/admin/account/password"

    late = await sent_late(console, page, page, fields)

    assert late.status == 303
    assert COOKIE not in console.cookies


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


async def test_large_form_is_not_kept(console: Console) -> None:
    """A cookie has no room for it."""
    late = await sent_late(
        console, f"{HERE}/name", f"{HERE}/name", {"name": "X" * 4000}
    )

    assert late.status == 303
    assert COOKIE not in console.cookies
