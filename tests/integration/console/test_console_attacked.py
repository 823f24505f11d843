"""Accounts under attack in the console: seen on the way, and helped by an officer."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.ids import PersonId
from appliance.domain.vocab import EventKind
from appliance.identity import console_login_attempts
from tests.support.faces.console import PASSWORD, Site
from tests.support.faces.console_forms import ANA_DIGITS, audited, open_acme_site
from tests.support.faults.password_guessing import guess, guess_at_person

EVA = "/admin/administrators/eva"
OWN = "192.0.2.7"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A console, signed in."""
    async with open_acme_site(tmp_path) as made:
        yield made


@pytest.fixture
async def each_site(tmp_path: Path, each_url: str) -> AsyncIterator[Site]:
    """A console on each database, signed in."""
    async with open_acme_site(tmp_path, each_url) as made:
        yield made


async def attacked_person(site: Site) -> PersonId:
    """Somebody at whose account strangers guess."""
    person = await site.person()
    email = f"{ANA_DIGITS}@demo.example"
    await guess_at_person(site.desk.store, site.desk, person, ANA_DIGITS, email)
    return person


async def attacked_eva(site: Site) -> None:
    """A second administrator, at whose name strangers guess."""
    made = await site.desk.console.create_user("operator", "eva", PASSWORD)
    (account,) = console_login_attempts.account_indexes(site.desk.lookup, "eva")
    await guess(site.desk.store, site.desk, account, user=made.user.id)


async def test_attacked_accounts_are_listed(site: Site) -> None:
    """Once each, persons and administrators; and none where nothing happens."""
    assert "Cuentas atacadas" not in (await site.get("/admin/health")).text
    person = await attacked_person(site)
    await attacked_eva(site)

    text = (await site.get("/admin/health")).text

    assert "Cuentas atacadas" in text
    assert text.count(f'href="/admin/people/{person}"') == 1
    assert text.count(f'href="{EVA}"') == 1
    home = (await site.get("/admin/")).text
    assert "cuentas atacadas" in home


async def test_list_of_attacked_accounts_is_bounded(each_site: Site) -> None:
    """The latest stand in it."""
    site = each_site
    person = await attacked_person(site)
    site.clock.forward(60)
    await attacked_eva(site)

    (only,) = await site.front.failed_tries.attacked(most=1)

    assert only.user == "eva"
    assert len(await site.front.failed_tries.attacked(most=2)) == 2
    assert await site.front.failed_tries.attacked_person(person)


@pytest.mark.parametrize("address", ["", OWN])
async def test_attempts_on_a_person_are_forgotten(site: Site, address: str) -> None:
    """After the officer's code; who did it stands in the audit, no address does."""
    person = await attacked_person(site)
    here = f"/admin/people/{person}"
    assert f'href="{here}/tries"' in (await site.get(here)).text

    asked = await site.get(f"{here}/tries")
    answer = await site.post(f"{here}/tries", code=site.code(), address=address)

    assert asked.status == 200
    assert "Ana María Núñez" in asked.text
    assert answer.location == f"{here}?done=forgotten"
    assert "quedaron olvidados" in (await site.get(answer.location)).text
    assert "/tries" not in (await site.get(here)).text
    assert "Cuentas atacadas" not in (await site.get("/admin/health")).text
    event = await audited(site, EventKind.PERSON_TRIES_FORGOTTEN)
    known = {"knownAddress": True} if address else {}
    assert event.detail == {"person": person, "tries": 60, **known}
    assert event.actor.startswith("console:")
    assert OWN not in str(event)


async def test_attempts_on_an_administrator_are_forgotten(site: Site) -> None:
    """As a person's are."""
    await attacked_eva(site)
    assert f'href="{EVA}/tries"' in (await site.get(EVA)).text
    assert (await site.get(f"{EVA}/tries")).status == 200

    answer = await site.post(f"{EVA}/tries", code=site.code(), address=OWN)

    assert answer.location == EVA
    assert "/tries" not in (await site.get(EVA)).text
    event = await audited(site, EventKind.CONSOLE_USER_TRIES_FORGOTTEN)
    assert event.detail["tries"] == 30


@pytest.mark.parametrize(
    ("field", "sent"), [("code", "000000"), ("code", ""), ("address", "mi casa")]
)
async def test_nothing_is_forgotten_for_a_form_that_is_wrong(
    site: Site, field: str, sent: str
) -> None:
    """What is wrong stands at its field, and what was typed stays."""
    person = await attacked_person(site)
    await attacked_eva(site)
    for here in (f"/admin/people/{person}", EVA):
        typed = {"address": OWN, "code": site.code(), field: sent}
        answer = await site.post(f"{here}/tries", **typed)

        assert answer.status == 422
        assert answer.fault_of(field)
        assert f'value="{typed["address"]}"' in answer.text
    assert len(await site.front.failed_tries.attacked()) == 2


async def test_forgetting_wants_an_own_form(site: Site) -> None:
    """A form of another site changes nothing."""
    person = await attacked_person(site)

    answer = await site.send_form(
        f"/admin/people/{person}/tries", {"csrf": "0" * 64, "code": site.code()}
    )

    assert answer.status == 403
    assert len(await site.front.failed_tries.attacked()) == 1


async def test_nobody_to_forget_for(site: Site) -> None:
    """Unknown people and administrators are said to be none."""
    nobody = "/admin/people/0199aaaa-0000-7000-8000-000000000000/tries"
    assert (await site.get(nobody)).status == 404
    assert (await site.get("/admin/administrators/nadie/tries")).status == 404
