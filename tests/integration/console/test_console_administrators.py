"""Administrators in the console: what one does to another, and to the own account."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pyotp
import pytest

from appliance.domain.vocab import Environment, EventKind
from tests.support.faces.console import NAME, PASSWORD, Answer, Site
from tests.support.faces.console_forms import audited, open_acme_site

EVA = "/admin/administrators/eva"
OTHER = "otra clave muy larga"
_URI = re.compile(r'href="(otpauth://[^"]+)"')


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A console with a second administrator, eva; marta signed in."""
    async with open_acme_site(tmp_path) as made:
        yield made


@pytest.fixture
async def eva(site: Site) -> pyotp.TOTP:
    """The second administrator's telephone."""
    made = await site.desk.console.create_user("operator", "eva", PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    return totp


def scanned(answer: Answer) -> pyotp.TOTP:
    """What a telephone has after it scanned what a page shows."""
    (uri,) = _URI.findall(answer.text)
    totp = pyotp.parse_uri(unescape(uri))
    assert isinstance(totp, pyotp.TOTP)
    return totp


async def come_as(site: Site, name: str, totp: pyotp.TOTP, password: str) -> Answer:
    """Sign in with another browser, whose cookies are nobody else's."""
    guest = replace(site, cookies={}, csrf="")
    await guest.get("/admin/login")
    site.clock.forward(30)
    code = totp.at(site.clock.now())
    return await guest.post("/admin/login", name=name, password=password, code=code)


async def test_list_leads_to_each(site: Site, eva: pyotp.TOTP) -> None:
    """Both stand in it, oneself marked; the own page leads to the own account."""
    del eva
    text = (await site.get("/admin/administrators")).text
    assert EVA in text
    assert "(vos)" in text
    mine = (await site.get(f"/admin/administrators/{NAME}")).text
    assert "/admin/account" in mine
    assert "Deshabilitar" not in mine
    assert (await site.get("/admin/administrators/nadie")).status == 404


async def test_disabled_one_is_out_until_enabled(site: Site, eva: pyotp.TOTP) -> None:
    """After the own code; the open session is over at its next request."""
    guest = replace(site, cookies={}, csrf="")
    await guest.get("/admin/login")
    site.clock.forward(30)
    code = eva.at(site.clock.now())
    await guest.post("/admin/login", name="eva", password=PASSWORD, code=code)
    assert (await guest.get("/admin/")).status == 200

    wrong = await site.post(f"{EVA}/disable", code="000000")
    assert wrong.status == 422
    assert wrong.fault_of("code")
    assert (await guest.get("/admin/")).status == 200
    done = await site.post(f"{EVA}/disable", code=site.code())

    assert done.location == EVA
    assert (await guest.get("/admin/")).status == 303
    assert (await come_as(site, "eva", eva, PASSWORD)).status == 422
    await audited(site, EventKind.CONSOLE_USER_DISABLED)
    again = await site.post(f"{EVA}/disable", code=site.code())
    assert again.location == EVA

    await site.post(f"{EVA}/enable", code=site.code())
    assert (await come_as(site, "eva", eva, PASSWORD)).status == 303


async def test_last_one_stays(site: Site) -> None:
    """Said in words, above the form."""
    here = f"/admin/administrators/{NAME}/disable"

    answer = await site.post(here, code=site.code())

    assert answer.status == 422
    assert "último administrador" in answer.text
    assert (await site.get("/admin/")).status == 200


async def test_sessions_of_another_end(site: Site, eva: pyotp.TOTP) -> None:
    """Their next page is the sign-in; one's own session goes on."""
    await come_as(site, "eva", eva, PASSWORD)
    assert "Cerrar las sesiones" in (await site.get(EVA)).text

    await site.post(f"{EVA}/sessions")

    assert (await site.desk.console_users.get("eva")).sessions == 0
    await come_as(site, NAME, site.totp, PASSWORD)
    await site.post(f"/admin/administrators/{NAME}/sessions")
    assert (await site.desk.console_users.get(NAME)).sessions == 1
    assert (await site.get("/admin/")).status == 200


async def test_lost_telephone_of_another(site: Site, eva: pyotp.TOTP) -> None:
    """A new QR is shown once; the old codes are wrong."""
    assert (await site.post(f"{EVA}/totp", code="1")).fault_of("code")

    made = await site.post(f"{EVA}/totp", code=site.code())

    new = scanned(made)
    assert "<svg" in made.text
    assert (await come_as(site, "eva", eva, PASSWORD)).status == 422
    assert (await come_as(site, "eva", new, PASSWORD)).status == 303
    row = await audited(site, EventKind.CONSOLE_USER_TOTP_SET)
    assert new.secret not in str(row)


async def test_forgotten_password_of_another(site: Site, eva: pyotp.TOTP) -> None:
    """Typed twice, long enough, after the own code."""
    here = f"{EVA}/password"
    short = await site.post(here, password="corta", again="corta", code=site.code())
    assert short.fault_of("password")
    differ = await site.post(here, password=OTHER, again=PASSWORD, code=site.code())
    assert differ.fault_of("again")

    await site.post(here, password=OTHER, again=OTHER, code=site.code())

    assert (await come_as(site, "eva", eva, PASSWORD)).status == 422
    assert (await come_as(site, "eva", eva, OTHER)).status == 303


@pytest.mark.parametrize("what", ["totp", "password"])
async def test_production_takes_two(site: Site, eva: pyotp.TOTP, what: str) -> None:
    """Whoever takes over another's account there is not alone in it."""
    await site.desk.console.create_user("operator", "luis", PASSWORD)
    object.__setattr__(site.front.settings, "environment", Environment.PROD)
    typed = {"password": OTHER, "again": OTHER}

    assert "Segundo oficial" in (await site.get(f"{EVA}/{what}")).text
    alone = await site.post(f"{EVA}/{what}", code=site.code(), **typed)

    assert alone.status == 422
    assert alone.fault_of("witness")
    assert (await come_as(site, "eva", eva, PASSWORD)).status == 303


@pytest.mark.parametrize("what", ["totp", "password"])
async def test_second_officer_left_out_uses_no_code_up(
    site: Site, eva: pyotp.TOTP, what: str
) -> None:
    """What is missing is told with the rest, and the own code goes on being good."""
    del eva
    made = await site.desk.console.create_user("operator", "luis", PASSWORD)
    luis = pyotp.parse_uri(made.totp_uri)
    assert isinstance(luis, pyotp.TOTP)
    object.__setattr__(site.front.settings, "environment", Environment.PROD)
    typed = {"password": OTHER, "again": OTHER}
    empty = await site.post(f"{EVA}/{what}", code="", **typed)
    assert empty.fault_of("code")
    assert empty.fault_of("witness")
    code = site.code()
    await site.post(f"{EVA}/{what}", code=code, **typed)

    second = {"witness": "luis", "witness_password": PASSWORD}
    second |= {"witness_code": luis.at(site.clock.now())}
    done = await site.post(f"{EVA}/{what}", code=code, **typed, **second)

    assert done.status in {200, 303}


async def test_own_password(site: Site) -> None:
    """The present one and a code first; other sessions end, this one goes on."""
    await come_as(site, NAME, site.totp, PASSWORD)
    typed = {"password": OTHER, "again": OTHER}
    here = "/admin/account/password"
    wrong = await site.post(here, present="no es", code=site.code(), **typed)
    assert wrong.fault_of("present")

    done = await site.post(here, present=PASSWORD, code=site.code(), **typed)

    assert done.location == "/admin/account"
    assert (await site.desk.console_users.get(NAME)).sessions == 1
    assert (await site.get("/admin/account")).status == 200
    assert (await come_as(site, NAME, site.totp, PASSWORD)).status == 422
    assert (await come_as(site, NAME, site.totp, OTHER)).status == 303


async def test_own_password_form_tells_all_its_faults_at_once(site: Site) -> None:
    """And where it is refused, a right code goes on being good."""
    here = "/admin/account/password"

    empty = await site.post(here, password="corta", again="otra", code="12")

    wanted = ("present", "password", "again", "code")
    assert [name for name in wanted if not empty.fault_of(name)] == []
    code = site.code()
    typed = {"present": PASSWORD, "code": code}
    short = await site.post(here, password="corta", again="corta", **typed)
    assert [name for name in wanted if short.fault_of(name)] == ["password"]
    done = await site.post(here, password=OTHER, again=OTHER, **typed)
    assert done.location == "/admin/account"


async def test_own_telephone(site: Site) -> None:
    """Present password and code, then a code of the new one, which then counts."""
    here = "/admin/account/totp"
    assert (await site.post(here, present=PASSWORD, code="1")).fault_of("present")
    shown = await site.post(here, present=PASSWORD, code=site.code())
    new = scanned(shown)
    found = re.search(r'name="offer" value="([^"]+)"', shown.text)
    assert found
    wrong = await site.post(f"{here}/confirm", offer=found[1], code="000000")
    assert wrong.fault_of("code")
    assert scanned(wrong).secret == new.secret

    site.clock.forward(30)
    code = new.at(site.clock.now())
    done = await site.post(f"{here}/confirm", offer=found[1], code=code)

    assert done.location == "/admin/account"
    assert (await site.get("/admin/account")).status == 200
    assert (await come_as(site, NAME, site.totp, PASSWORD)).status == 422
    assert (await come_as(site, NAME, new, PASSWORD)).status == 303
    forged = await site.post(f"{here}/confirm", offer="x", code=code)
    assert forged.status == 403
