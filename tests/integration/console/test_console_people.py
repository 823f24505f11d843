"""People in the console: invited, unlocked, disabled; refusals, audit rows."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.console import PeopleFilter
from appliance.domain.errors import ApplianceError
from appliance.domain.vocab import EventKind, PersonState
from appliance.identity.access_tokens import AccessTokens
from appliance.people.login_store import LoginSecretStore
from appliance.people.person_store import PersonStore
from tests.support.faces.console import PDF, Site
from tests.support.faces.console_forms import (
    ANA,
    ANA_DIGITS,
    audited,
    invitation,
    lock,
    open_acme_site,
    with_secret,
)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_site(tmp_path) as made:
        yield made


async def test_person_is_invited_by_a_link_shown_once(site: Site) -> None:
    """The link opens the enrolment page, and stands on no other page."""
    answer = await site.post("/admin/people", **invitation())

    (code,) = set(re.findall(r"/alta/([A-Za-z0-9_-]{43})", answer.text))
    assert (await site.desk.enrolment.look(code)).cuil == ANA_DIGITS
    (row,) = (await site.front.views.people(PeopleFilter())).rows
    page = await site.get(f"/admin/people/{row.id}")
    assert code not in page.text
    assert "ana@demo.example" not in page.text
    assert "a…@demo.example" in page.text
    event = await audited(site, EventKind.PERSON_INVITED)
    assert code not in str(event)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"cuil": "20-05536168-3"}, "cuil"),
        ({"cuil": ""}, "cuil"),
        ({"name": " "}, "name"),
        ({"email": "ana"}, "email"),
        ({"locale": "fr"}, "locale"),
        ({"checked": ""}, "checked"),
        ({"vouched_by": "external"}, "vouched_by"),
    ],
)
async def test_invitation_refused(
    site: Site, wrong: dict[str, str], field: str
) -> None:
    """Each fault stands at its field, and nobody is recorded."""
    answer = await site.post("/admin/people", **invitation(**wrong))

    assert answer.status == 422
    assert answer.fault_of(field)
    assert (await site.front.views.people(PeopleFilter())).rows == ()


async def test_invitation_tells_all_faults_at_once(site: Site) -> None:
    """Nobody has to send a form once for each fault."""
    wrong = {"cuil": "1", "name": "", "email": "x", "checked": ""}

    answer = await site.post("/admin/people", **invitation(**wrong))

    assert [bool(answer.fault_of(name)) for name in wrong] == [True] * 4


async def test_person_is_invited_once(site: Site) -> None:
    """A page sent again makes no second link."""
    await site.post("/admin/people", **invitation())

    answer = await site.post("/admin/people", **invitation())

    assert answer.status == 422
    assert answer.fault_of("cuil")
    assert "/alta/" not in answer.text


async def test_new_link_ends_the_earlier_one(site: Site) -> None:
    """A lost link is replaced from the person's page."""
    person = await site.person(enrolled=False)

    answer = await site.post(f"/admin/people/{person}/link")

    assert answer.status == 200
    assert len(re.findall(r"/alta/[A-Za-z0-9_-]{43}", answer.text)) == 1


async def test_enrolled_person_gets_no_link(site: Site) -> None:
    """Whoever has secrets gets no way to choose others."""
    person = await site.person()

    answer = await site.post(f"/admin/people/{person}/link")

    assert answer.status == 409
    assert "/alta/" not in answer.text


@pytest.mark.parametrize(
    ("typed", "told"),
    [("20-05536168-3", "El dígito verificador"), ("20-0553616-2", "los 11 números")],
)
async def test_what_is_wrong_with_a_cuil_is_named(
    site: Site, typed: str, told: str
) -> None:
    """A digit that does not fit is not told as a wrong form; both where one asks."""
    answer = await site.post("/admin/people", **invitation(cuil=typed))
    assert told in answer.fault_of("cuil")

    filled = {"integrator": "acme", "cuil": typed, "days": ""}
    answer = await site.upload("/admin/requests", PDF, "a.pdf", **filled)
    assert told in answer.fault_of("cuil")


async def test_certificate_is_told_in_full(site: Site) -> None:
    """The person's page says who issued it, until when, and for whom."""
    person = await site.person()

    text = (await site.get(f"/admin/people/{person}")).text

    assert "DEMO SIN VALIDEZ" in text
    assert f"CUIL {ANA}" in text
    assert "guardada dentro del HSM" in text
    assert "hx-get" not in text


async def test_page_of_a_person_without_certificate_waits_for_it(site: Site) -> None:
    """Between enrolment and certificate the page renews itself."""
    person = await site.person(enrolled=False)
    async with site.desk.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.INVITED, PersonState.ACTIVE
        )

    answer = await site.get(f"/admin/people/{person}")

    assert "El HSM está creando la clave" in answer.text
    assert "hx-get" in answer.text


async def test_lock_is_lifted_after_the_officers_code(site: Site) -> None:
    """A fresh code of the administrator lifts it, and stands in the audit."""
    person = await with_secret(site)
    await lock(site, person)
    assert "Contraseña bloqueada" in (await site.get("/admin/people?locked=yes")).text

    answer = await site.post(f"/admin/people/{person}/unlock", code=site.code())

    assert answer.location == f"/admin/people/{person}?done=unlocked"
    event = await audited(site, EventKind.PERSON_UNLOCKED)
    assert event.detail["before"] == {"counted": 10, "locked": True}
    assert event.detail["after"] == {"counted": 0, "locked": False}
    assert (await site.front.views.person(person)).row.locked_at is None


async def test_what_was_done_is_confirmed_while_it_is_so(site: Site) -> None:
    """Once, on the page that follows; no address makes the page say what is not."""
    person = await with_secret(site)
    here = f"/admin/people/{person}"
    told = "La contraseña de firma quedó desbloqueada."
    await lock(site, person)
    assert told not in (await site.get(f"{here}?done=unlocked")).text

    answer = await site.post(f"{here}/unlock", code=site.code())

    assert told in (await site.get(answer.location)).text
    assert told not in (await site.get(here)).text
    assert "quedó" not in (await site.get(f"{here}?done=disabled")).text
    assert "quedó" not in (await site.get(f"{here}?done=x")).text
    stopped = await site.post(f"{here}/disable")
    assert "La persona quedó deshabilitada." in (await site.get(stopped.location)).text


@pytest.mark.parametrize("code", ["", "000000", "abc"])
async def test_lock_stays_without_the_officers_code(site: Site, code: str) -> None:
    """A wrong code lifts nothing, and is recorded."""
    person = await with_secret(site)
    await lock(site, person)

    answer = await site.post(f"/admin/people/{person}/unlock", code=code)

    assert answer.status == 422
    assert answer.fault_of("code")
    await audited(site, EventKind.CONSOLE_CODE_WRONG)
    assert (await site.front.views.person(person)).row.locked_at is not None


async def test_code_of_the_sign_in_lifts_no_lock(site: Site) -> None:
    """A code that was used is of no further use."""
    used = site.totp.at(site.clock.now())
    person = await with_secret(site)
    await lock(site, person)

    answer = await site.post(f"/admin/people/{person}/unlock", code=used)

    assert answer.status == 422


async def test_person_is_disabled_and_enabled(site: Site) -> None:
    """Both leave a row with the state before and after; neither works twice."""
    person = await site.person()
    await site.request(ANA_DIGITS)
    asked = await site.get(f"/admin/people/{person}/disable")
    assert "1 solicitud espera esta firma" in asked.text

    assert (await site.post(f"/admin/people/{person}/disable")).status == 303
    assert (await site.post(f"/admin/people/{person}/disable")).status == 409
    disabled = await audited(site, EventKind.PERSON_DISABLED)
    assert (await site.post(f"/admin/people/{person}/enable")).status == 303
    enabled = await audited(site, EventKind.PERSON_ENABLED)

    assert disabled.detail["before"] == enabled.detail["after"] == {"state": "active"}
    assert disabled.detail["after"] == enabled.detail["before"] == {"state": "disabled"}


async def test_disabling_ends_what_a_person_has_open(site: Site) -> None:
    """Sessions of frames, login tokens and access tokens: none comes back."""
    person = await site.person()
    desk = site.desk
    made = await desk.integrators.create_key("operator", "acme", "backend")
    opened = await desk.sessions.exchange(
        (await desk.sessions.open("acme", made.secret)).token
    )
    session = await desk.progress.set_person(opened.session, person)
    await desk.progress.set_otp(session, person)
    assert (await desk.sessions.by_bearer(opened.bearer)).person == person
    tokens = AccessTokens(desk.store, desk.sealer, desk.clock, desk.settings)
    issued = await tokens.issue(person, ("pwd", "otp"), desk.clock.now())
    await tokens.verify(issued.token)

    await site.post(f"/admin/people/{person}/disable")

    for late in (False, True):
        with pytest.raises(ApplianceError, match="SESSION_TOKEN_EXPIRED"):
            await desk.sessions.by_bearer(opened.bearer, late=late)
    disabled = await audited(site, EventKind.PERSON_DISABLED)
    assert disabled.detail["sessions"] == [session.public_id]
    await site.post(f"/admin/people/{person}/enable")
    for late in (False, True):
        with pytest.raises(ApplianceError, match="SESSION_TOKEN_EXPIRED"):
            await desk.sessions.by_bearer(opened.bearer, late=late)
    with pytest.raises(ApplianceError, match="TOKEN_INVALID"):
        await tokens.verify(issued.token)
    desk.clock.forward(1)
    issued = await tokens.issue(person, ("pwd", "otp"), desk.clock.now())
    assert (await tokens.verify(issued.token)).person == person


async def test_invited_person_cannot_be_enabled(site: Site) -> None:
    """Enabling is no way around enrolment."""
    person = await site.person(enrolled=False)

    assert (await site.post(f"/admin/people/{person}/enable")).status == 409


@pytest.mark.parametrize("rest", ["", "/unlock", "/disable"])
async def test_person_that_is_not_there(site: Site, rest: str) -> None:
    """An unknown id is a page in words."""
    answer = await site.get(f"/admin/people/x{rest}")

    assert answer.status == 404
    assert "PERSON_NOT_FOUND" in answer.text


@pytest.mark.parametrize(
    ("typed", "field"),
    [({}, "cuil"), ({"cuil": "20-26756539-3"}, "email")],
)
async def test_somebody_who_is_there_is_led_to(
    site: Site, typed: dict[str, str], field: str
) -> None:
    """A CUIL or an address in use is said at its field, with the way to its owner."""
    await site.post("/admin/people", **invitation())
    (row,) = (await site.front.views.people(PeopleFilter())).rows

    answer = await site.post("/admin/people", **invitation(**typed))

    assert answer.fault_of(field).startswith("Ya hay una persona"), answer.text
    assert f'href="/admin/people/{row.id}">Ver Ana María Núñez</a>' in answer.text


async def test_lost_telephone_is_replaced_with_certificate_kept(site: Site) -> None:
    """After the officer's code; a new QR once, no secret in the audit."""
    person = await with_secret(site)
    here = f"/admin/people/{person}"
    assert (await site.post(f"{here}/totp", code="1")).fault_of("code")
    async with site.desk.store.read() as transaction:
        before = await LoginSecretStore(transaction).secret(person)

    made = await site.post(f"{here}/totp", code=site.code())

    (seed,) = set(re.findall(r"secret=([A-Z2-7]{32})", made.text))
    async with site.desk.store.read() as transaction:
        after = await LoginSecretStore(transaction).secret(person)
    assert before is not None
    assert after is not None
    assert after.phc == before.phc
    assert after.totp_sealed != before.totp_sealed
    event = await audited(site, EventKind.PERSON_TOTP_SET)
    assert event.detail["person"] == person
    assert seed not in str(event)
    invited = await site.person("20267565393", "Luis", enrolled=False)
    wrong = await site.post(f"/admin/people/{invited}/totp", code=site.code())
    assert wrong.status == 409
