"""Accounts under attack in the console: seen on the way, and helped by an officer."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.ids import PersonId
from appliance.domain.vocab import EventKind
from appliance.identity import console_login_attempts
from tests.integration.console.forms import ANA_DIGITS, audited, open_acme_console
from tests.support.faults.password_guessing import guess, guess_at_person
from tests.support.installation.console import PASSWORD, Console

EVA = "/admin/administrators/eva"
OWN = "192.0.2.7"


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


@pytest.fixture
async def each_console(tmp_path: Path, each_url: str) -> AsyncIterator[Console]:
    """A console on each database, signed in."""
    async with open_acme_console(tmp_path, each_url) as made:
        yield made


async def attacked_person(console: Console) -> PersonId:
    """Somebody at whose account strangers guess."""
    person = await console.person()
    email = f"{ANA_DIGITS}@demo.example"
    await guess_at_person(
        console.services.store, console.services, person, ANA_DIGITS, email
    )
    return person


async def attacked_eva(console: Console) -> None:
    """A second administrator, at whose name strangers guess."""
    made = await console.services.console.create_user("operator", "eva", PASSWORD)
    (account,) = console_login_attempts.account_indexes(console.services.lookup, "eva")
    await guess(console.services.store, console.services, account, user=made.user.id)


async def test_attacked_accounts_are_listed(console: Console) -> None:
    """Once each, persons and administrators; and none where nothing happens."""
    assert "Cuentas atacadas" not in (await console.get("/admin/health")).text
    person = await attacked_person(console)
    await attacked_eva(console)

    text = (await console.get("/admin/health")).text

    assert "Cuentas atacadas" in text
    assert text.count(f'href="/admin/people/{person}"') == 1
    assert text.count(f'href="{EVA}"') == 1
    home = (await console.get("/admin/")).text
    assert "cuentas atacadas" in home


async def test_list_of_attacked_accounts_is_bounded(each_console: Console) -> None:
    """The latest stand in it."""
    site = each_console
    person = await attacked_person(site)
    site.clock.forward(60)
    await attacked_eva(site)

    (only,) = await site.front.failed_tries.attacked(most=1)

    assert only.user == "eva"
    assert len(await site.front.failed_tries.attacked(most=2)) == 2
    assert await site.front.failed_tries.attacked_person(person)


@pytest.mark.parametrize("address", ["", OWN])
async def test_attempts_on_a_person_are_forgotten(
    console: Console, address: str
) -> None:
    """After the officer's code; who did it stands in the audit, no address does."""
    person = await attacked_person(console)
    here = f"/admin/people/{person}"
    assert f'href="{here}/tries"' in (await console.get(here)).text

    asked = await console.get(f"{here}/tries")
    answer = await console.post(f"{here}/tries", code=console.code(), address=address)

    assert asked.status == 200
    assert "Ana María Núñez" in asked.text
    assert answer.location == here
    assert "quedaron olvidados" in (await console.get(answer.location)).text
    assert "/tries" not in (await console.get(here)).text
    assert "Cuentas atacadas" not in (await console.get("/admin/health")).text
    event = await audited(console, EventKind.PERSON_TRIES_FORGOTTEN)
    known = {"knownAddress": True} if address else {}
    assert event.detail == {"person": person, "tries": 60, **known}
    assert event.actor.startswith("console:")
    assert OWN not in str(event)


async def test_attempts_on_an_administrator_are_forgotten(console: Console) -> None:
    """As a person's are."""
    await attacked_eva(console)
    assert f'href="{EVA}/tries"' in (await console.get(EVA)).text
    assert (await console.get(f"{EVA}/tries")).status == 200

    answer = await console.post(f"{EVA}/tries", code=console.code(), address=OWN)

    assert answer.location == EVA
    assert "/tries" not in (await console.get(EVA)).text
    event = await audited(console, EventKind.CONSOLE_USER_TRIES_FORGOTTEN)
    assert event.detail["tries"] == 30


@pytest.mark.parametrize(
    ("field", "sent"), [("code", "000000"), ("code", ""), ("address", "mi casa")]
)
async def test_nothing_is_forgotten_for_a_form_that_is_wrong(
    console: Console, field: str, sent: str
) -> None:
    """What is wrong stands at its field, and what was typed stays."""
    person = await attacked_person(console)
    await attacked_eva(console)
    for here in (f"/admin/people/{person}", EVA):
        typed = {"address": OWN, "code": console.code(), field: sent}
        answer = await console.post(f"{here}/tries", **typed)

        assert answer.status == 422
        assert answer.fault_of(field)
        assert f'value="{typed["address"]}"' in answer.text
    assert len(await console.front.failed_tries.attacked()) == 2


async def test_forgetting_wants_an_own_form(console: Console) -> None:
    """A form of another site changes nothing."""
    person = await attacked_person(console)

    answer = await console.send_form(
        f"/admin/people/{person}/tries", {"csrf": "0" * 64, "code": console.code()}
    )

    assert answer.status == 403
    assert len(await console.front.failed_tries.attacked()) == 1


async def test_nobody_to_forget_for(console: Console) -> None:
    """Unknown people and administrators are said to be none."""
    nobody = "/admin/people/0199aaaa-0000-7000-8000-000000000000/tries"
    assert (await console.get(nobody)).status == 404
    assert (await console.get("/admin/administrators/nadie/tries")).status == 404
