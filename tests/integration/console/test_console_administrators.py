"""Administrators in the console: what one does to another, and to the own account."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pyotp
import pytest

from appliance.domain.vocab import Environment, EventKind
from tests.integration.console.forms import audited, open_acme_console
from tests.support.installation.console import NAME, PASSWORD, Answer, Console

EVA = "/admin/administrators/eva"
OTHER = "otra clave muy larga"
_URI = re.compile(r'href="(otpauth://[^"]+)"')


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with a second administrator, eva; marta signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


@pytest.fixture
async def eva(console: Console) -> pyotp.TOTP:
    """The second administrator's telephone."""
    made = await console.services.console.create_user("operator", "eva", PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    return totp


def scanned(answer: Answer) -> pyotp.TOTP:
    """What a telephone has after it scanned what a page shows."""
    (uri,) = _URI.findall(answer.text)
    totp = pyotp.parse_uri(unescape(uri))
    assert isinstance(totp, pyotp.TOTP)
    return totp


async def come_as(
    console: Console, name: str, totp: pyotp.TOTP, password: str
) -> Answer:
    """Sign in with another browser, whose cookies are nobody else's."""
    guest = replace(console, cookies={}, csrf="")
    await guest.get("/admin/login")
    console.clock.forward(30)
    code = totp.at(console.clock.now())
    return await guest.post("/admin/login", name=name, password=password, code=code)


async def test_list_leads_to_each(console: Console, eva: pyotp.TOTP) -> None:
    """Both stand in it, oneself marked; the own page leads to the own account."""
    del eva
    text = (await console.get("/admin/administrators")).text
    assert EVA in text
    assert "(vos)" in text
    mine = (await console.get(f"/admin/administrators/{NAME}")).text
    assert "/admin/account" in mine
    assert "Deshabilitar" not in mine
    assert (await console.get("/admin/administrators/nadie")).status == 404


async def test_disabled_one_is_out_until_enabled(
    console: Console, eva: pyotp.TOTP
) -> None:
    """After the own code; the open session is over at its next request."""
    guest = replace(console, cookies={}, csrf="")
    await guest.get("/admin/login")
    console.clock.forward(30)
    code = eva.at(console.clock.now())
    await guest.post("/admin/login", name="eva", password=PASSWORD, code=code)
    assert (await guest.get("/admin/")).status == 200

    wrong = await console.post(f"{EVA}/disable", code="000000")
    assert wrong.status == 422
    assert wrong.fault_of("code")
    assert (await guest.get("/admin/")).status == 200
    done = await console.post(f"{EVA}/disable", code=console.code())

    assert done.location == EVA
    assert (await guest.get("/admin/")).status == 303
    assert (await come_as(console, "eva", eva, PASSWORD)).status == 422
    await audited(console, EventKind.CONSOLE_USER_DISABLED)
    again = await console.post(f"{EVA}/disable", code=console.code())
    assert again.location == EVA

    await console.post(f"{EVA}/enable", code=console.code())
    assert (await come_as(console, "eva", eva, PASSWORD)).status == 303


async def test_last_one_stays(console: Console) -> None:
    """Said in words, above the form."""
    here = f"/admin/administrators/{NAME}/disable"

    answer = await console.post(here, code=console.code())

    assert answer.status == 422
    assert "último administrador" in answer.text
    assert (await console.get("/admin/")).status == 200


async def test_sessions_of_another_end(console: Console, eva: pyotp.TOTP) -> None:
    """Their next page is the sign-in; one's own session goes on."""
    await come_as(console, "eva", eva, PASSWORD)
    assert "Cerrar las sesiones" in (await console.get(EVA)).text

    assert (await console.get(f"{EVA}/sessions")).status == 200
    assert (await console.post(f"{EVA}/sessions", code="1")).fault_of("code")
    assert (await console.services.console_users.get("eva")).sessions == 1
    ended = await console.post(f"{EVA}/sessions", code=console.code())

    assert "sesiones quedaron cerradas" in (await console.get(ended.location)).text
    assert (await console.services.console_users.get("eva")).sessions == 0
    await come_as(console, NAME, console.totp, PASSWORD)
    await console.post(f"/admin/administrators/{NAME}/sessions")
    assert (await console.services.console_users.get(NAME)).sessions == 1
    assert (await console.get("/admin/")).status == 200


async def test_lost_telephone_of_another(console: Console, eva: pyotp.TOTP) -> None:
    """A new QR is shown once; the old codes are wrong."""
    assert (await console.post(f"{EVA}/totp", code="1")).fault_of("code")

    made = await console.post(f"{EVA}/totp", code=console.code())

    new = scanned(made)
    assert "<svg" in made.text
    assert new.secret in made.text.replace(" ", "")
    assert "(consola), con eva." in made.text
    # Another language would lose it.
    assert "data-language" not in made.text
    assert (await come_as(console, "eva", eva, PASSWORD)).status == 422
    assert (await come_as(console, "eva", new, PASSWORD)).status == 303
    row = await audited(console, EventKind.CONSOLE_USER_TOTP_SET)
    assert new.secret not in str(row)


async def test_forgotten_password_of_another(console: Console, eva: pyotp.TOTP) -> None:
    """Typed twice, long enough, after the own code."""
    here = f"{EVA}/password"
    short = await console.post(
        here, password="corta", again="corta", code=console.code()
    )
    assert short.fault_of("password")
    differ = await console.post(
        here, password=OTHER, again=PASSWORD, code=console.code()
    )
    assert differ.fault_of("again")

    await console.post(here, password=OTHER, again=OTHER, code=console.code())

    assert (await come_as(console, "eva", eva, PASSWORD)).status == 422
    assert (await come_as(console, "eva", eva, OTHER)).status == 303


@pytest.mark.parametrize("what", ["totp", "password"])
async def test_production_takes_two(
    console: Console, eva: pyotp.TOTP, what: str
) -> None:
    """Whoever takes over another's account there is not alone in it."""
    await console.services.console.create_user("operator", "luis", PASSWORD)
    object.__setattr__(console.front.settings, "environment", Environment.PROD)
    typed = {"password": OTHER, "again": OTHER}

    assert "Segundo oficial" in (await console.get(f"{EVA}/{what}")).text
    alone = await console.post(f"{EVA}/{what}", code=console.code(), **typed)

    assert alone.status == 422
    assert alone.fault_of("witness")
    assert (await come_as(console, "eva", eva, PASSWORD)).status == 303


@pytest.mark.parametrize("what", ["totp", "password"])
async def test_second_officer_left_out_uses_no_code_up(
    console: Console, eva: pyotp.TOTP, what: str
) -> None:
    """What is missing is told with the rest, and the own code goes on being good."""
    del eva
    made = await console.services.console.create_user("operator", "luis", PASSWORD)
    luis = pyotp.parse_uri(made.totp_uri)
    assert isinstance(luis, pyotp.TOTP)
    object.__setattr__(console.front.settings, "environment", Environment.PROD)
    typed = {"password": OTHER, "again": OTHER}
    empty = await console.post(f"{EVA}/{what}", code="", **typed)
    assert empty.fault_of("code")
    assert empty.fault_of("witness")
    code = console.code()
    await console.post(f"{EVA}/{what}", code=code, **typed)

    second = {"witness": "luis", "witness_password": PASSWORD}
    second |= {"witness_code": luis.at(console.clock.now())}
    done = await console.post(f"{EVA}/{what}", code=code, **typed, **second)

    assert done.status in {200, 303}


async def test_own_password(console: Console) -> None:
    """The present one and a code first; other sessions end, this one goes on."""
    await come_as(console, NAME, console.totp, PASSWORD)
    typed = {"password": OTHER, "again": OTHER}
    here = "/admin/account/password"
    wrong = await console.post(here, present="no es", code=console.code(), **typed)
    assert wrong.fault_of("present")

    done = await console.post(here, present=PASSWORD, code=console.code(), **typed)

    assert done.location == "/admin/account"
    assert (await console.services.console_users.get(NAME)).sessions == 1
    assert (await console.get("/admin/account")).status == 200
    assert (await come_as(console, NAME, console.totp, PASSWORD)).status == 422
    assert (await come_as(console, NAME, console.totp, OTHER)).status == 303


async def test_own_password_form_tells_all_its_faults_at_once(console: Console) -> None:
    """And where it is refused, a right code goes on being good."""
    here = "/admin/account/password"

    empty = await console.post(here, password="corta", again="otra", code="12")

    wanted = ("present", "password", "again", "code")
    assert [name for name in wanted if not empty.fault_of(name)] == []
    code = console.code()
    typed = {"present": PASSWORD, "code": code}
    short = await console.post(here, password="corta", again="corta", **typed)
    assert [name for name in wanted if short.fault_of(name)] == ["password"]
    for weak, told in (
        ("administrador1", "la usa mucha gente"),
        ("marta-1234-5678", "se adivinan fácil"),
    ):
        refused = await console.post(here, password=weak, again=weak, **typed)
        assert told in refused.fault_of("password")
    done = await console.post(here, password=OTHER, again=OTHER, **typed)
    assert done.location == "/admin/account"


async def test_own_telephone(console: Console) -> None:
    """Present password and code, then a code of the new one, which then counts."""
    here = "/admin/account/totp"
    assert (await console.post(here, present=PASSWORD, code="1")).fault_of("code")
    unlike = "000000" if console.code() != "000000" else "000001"
    assert (await console.post(here, present=PASSWORD, code=unlike)).fault_of("present")
    shown = await console.post(here, present=PASSWORD, code=console.code())
    new = scanned(shown)
    assert "data-language" not in shown.text
    found = re.search(r'name="offer" value="([^"]+)"', shown.text)
    assert found
    wrong = await console.post(f"{here}/confirm", offer=found[1], code="000000")
    assert wrong.fault_of("code")
    assert scanned(wrong).secret == new.secret

    console.clock.forward(30)
    code = new.at(console.clock.now())
    done = await console.post(f"{here}/confirm", offer=found[1], code=code)

    assert done.location == "/admin/account"
    assert (await console.get("/admin/account")).status == 200
    assert (await come_as(console, NAME, console.totp, PASSWORD)).status == 422
    assert (await come_as(console, NAME, new, PASSWORD)).status == 303
    forged = await console.post(f"{here}/confirm", offer="x", code=code)
    assert forged.status == 403
