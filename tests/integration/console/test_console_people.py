"""People in the console: invited, unlocked, disabled; refusals, audit rows."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.console.lists import PeopleFilter
from appliance.domain.errors import ApplianceError
from appliance.domain.mail.mails import MailKind
from appliance.domain.vocab import EventKind, HelpTopic, PersonState
from appliance.identity.access_tokens import AccessTokens
from appliance.people.login_store import LoginSecretStore
from appliance.people.person_store import PersonStore
from appliance.settings.mail import MailSettings
from tests.integration.console.forms import (
    ANA,
    ANA_DIGITS,
    audited,
    from_page,
    invitation,
    lock,
    open_acme_console,
    with_secret,
)
from tests.support.installation.console import PDF, Answer, Console


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


async def test_person_is_invited_by_a_link_shown_once(console: Console) -> None:
    """The link opens the enrolment page, and stands on no other page."""
    answer = await console.post("/admin/people", **invitation())

    (code,) = set(re.findall(r"/alta/([A-Za-z0-9_-]{43})", answer.text))
    assert (await console.services.enrolment.look(code)).cuil == ANA_DIGITS
    (row,) = (await console.front.views.people(PeopleFilter())).rows
    page = await console.get(f"/admin/people/{row.id}")
    assert code not in page.text
    assert "ana@demo.example" not in page.text
    assert "a…@demo.example" in page.text
    event = await audited(console, EventKind.PERSON_INVITED)
    assert code not in str(event)


async def test_invitation_goes_by_mail_if_mail_is_set(tmp_path: Path) -> None:
    """The box is offered, keeps its tick beside a fault, and sends the link."""
    mail = MailSettings(host="mail.example", from_address="rubrica@mail.example")
    async with open_acme_console(tmp_path, mail=mail) as console:
        offered = await console.get("/admin/people/new")
        wrong = invitation(by_mail="yes", email="ana")
        refused = await console.post("/admin/people", **wrong)
        made = await console.post("/admin/people", **invitation(by_mail="yes"))

        assert _boxes(offered) == {"checked": False, "by_mail": False}
        assert refused.status == 422
        assert _boxes(refused) == {"checked": True, "by_mail": True}
        assert made.status == 200
        (row,) = (await console.front.views.people(PeopleFilter())).rows
        (queued,) = await console.front.mails.of_person(row.id)
        assert queued.kind is MailKind.INVITATION


async def test_invitation_offers_no_mail_if_none_is_set(console: Console) -> None:
    """A form of a page from before, with the box, is refused and makes no link."""
    offered = await console.get("/admin/people/new")
    refused = await console.post("/admin/people", **invitation(by_mail="yes"))

    assert _boxes(offered) == {"checked": False}
    assert refused.status == 422
    assert (await console.front.views.people(PeopleFilter())).rows == ()


def _boxes(page: Answer) -> dict[str, bool]:
    """Checkboxes of a page by name, and whether each is ticked."""
    found = re.findall(r'<input type="checkbox"[^>]* name="(\w+)"([^>]*)>', page.text)
    return {name: " checked" in rest for name, rest in found}


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
    console: Console, wrong: dict[str, str], field: str
) -> None:
    """Each fault stands at its field, and nobody is recorded."""
    answer = await console.post("/admin/people", **invitation(**wrong))

    assert answer.status == 422
    assert answer.fault_of(field)
    assert (await console.front.views.people(PeopleFilter())).rows == ()


async def test_invitation_tells_all_faults_at_once(console: Console) -> None:
    """Nobody has to send a form once for each fault."""
    wrong = {"cuil": "1", "name": "", "email": "x", "checked": ""}

    answer = await console.post("/admin/people", **invitation(**wrong))

    assert [bool(answer.fault_of(name)) for name in wrong] == [True] * 4


async def test_person_is_invited_once(console: Console) -> None:
    """A page sent again makes no second link."""
    await console.post("/admin/people", **invitation())

    answer = await console.post("/admin/people", **invitation())

    assert answer.status == 422
    assert answer.fault_of("cuil")
    assert "/alta/" not in answer.text


async def test_new_link_ends_the_earlier_one(console: Console) -> None:
    """A lost link is replaced from the person's page."""
    person = await console.person(enrolled=False)

    answer = await from_page(console, f"/admin/people/{person}/link")

    assert answer.status == 200
    assert len(re.findall(r"/alta/[A-Za-z0-9_-]{43}", answer.text)) == 1


async def test_new_link_outlives_a_page_that_is_loaded_anew(console: Console) -> None:
    """The same form again makes no other link: the one just copied works on."""
    person = await console.person(enrolled=False)
    here = f"/admin/people/{person}/link"
    form = await console.version(here)
    console.clock.forward(1)
    made = await console.post(here, **form)
    (code,) = set(re.findall(r"/alta/([A-Za-z0-9_-]{43})", made.text))

    again = await console.post(here, **form)

    assert again.status == 412
    assert "Se creó otro enlace" in again.text
    assert (await console.services.enrolment.look(code)).person == person


async def test_enrolled_person_gets_no_link(console: Console) -> None:
    """Whoever has secrets gets no way to choose others."""
    person = await console.person()

    answer = await console.post(f"/admin/people/{person}/link")

    assert answer.status == 409
    assert "/alta/" not in answer.text


@pytest.mark.parametrize(
    ("typed", "told"),
    [("20-05536168-3", "El dígito verificador"), ("20-0553616-2", "los 11 números")],
)
async def test_what_is_wrong_with_a_cuil_is_named(
    console: Console, typed: str, told: str
) -> None:
    """A digit that does not fit is not told as a wrong form; both where one asks."""
    answer = await console.post("/admin/people", **invitation(cuil=typed))
    assert told in answer.fault_of("cuil")

    filled = {"integrator": "acme", "cuil": typed, "days": ""}
    answer = await console.upload("/admin/requests", PDF, "a.pdf", **filled)
    assert told in answer.fault_of("cuil")


@pytest.mark.parametrize(
    ("field", "typed", "told"),
    [
        ("cuil", "", "Falta el CUIL."),
        ("name", "", "Falta el nombre."),
        ("name", "a" * 65, "hasta 64 caracteres"),
        ("name", "ñ" * 33, "la ñ cuentan por dos"),
        ("name", "Ana\nNúñez", "en una sola línea"),
        ("name", "Ana\u200b", "ni caracteres invisibles"),
        ("name", "Ana 🙂", "sin emojis"),
        ("name", "Ana משה", "No mezcles letras latinas"),
        ("name", "¡!…", "con letras"),
        ("email", "", "Falta el correo electrónico."),
        ("email", "<a@b.com>", "Escribí"),
        ("email", "x@y", "Escribí"),
        ("email", "a..b@demo.example", "Escribí"),
        ("email", "a@b@demo.example", "Escribí"),
        ("email", "a@-demo.example", "Escribí"),
    ],
)
async def test_what_is_wrong_with_an_invitation_is_told(
    console: Console, field: str, typed: str, told: str
) -> None:
    """At its field, with the number; what is missing as missing."""
    answer = await console.post("/admin/people", **invitation(**{field: typed}))

    assert answer.status == 422
    assert told in answer.fault_of(field)


@pytest.mark.parametrize("email", ["o'ana+firma.1@sub.demo.example", "ana@localhost"])
async def test_address_of_any_atoms_is_taken(console: Console, email: str) -> None:
    """What RFC 5321 lets stand without quotes is an address."""
    answer = await console.post("/admin/people", **invitation(email=email))

    assert answer.status == 200


async def test_link_is_told_until_when(console: Console) -> None:
    """Day and time, as they are said."""
    made = await console.post("/admin/people", **invitation())

    assert re.search(r"hasta el \d\d/\d\d/\d{4} a las \d\d:\d\d\.", made.text)


async def test_error_leads_back_to_whom_it_is_about(console: Console) -> None:
    """A form of an old tab ends on a page with the way to what it was about."""
    person = await console.person(enrolled=False)
    here = f"/admin/people/{person}"

    answer = await console.post(f"{here}/disable")

    assert answer.status == 409
    assert f'href="{here}"' in answer.text
    assert "Ir a la página de la persona" in answer.text


async def test_certificate_is_told_in_full(console: Console) -> None:
    """The person's page says who issued it, until when, and for whom."""
    person = await console.person()

    text = (await console.get(f"/admin/people/{person}")).text

    assert "DEMO SIN VALIDEZ" in text
    assert f"CUIL {ANA}" in text
    assert "guardada dentro del HSM" in text
    assert "hx-get" not in text.partition("<main")[2]


async def test_page_of_a_person_without_certificate_waits_for_it(
    console: Console,
) -> None:
    """Between enrolment and certificate the page renews itself."""
    person = await console.person(enrolled=False)
    async with console.services.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.INVITED, PersonState.ACTIVE
        )

    answer = await console.get(f"/admin/people/{person}")

    assert "El HSM está creando la clave" in answer.text
    assert "hx-get" in answer.text


async def test_lock_is_lifted_after_the_officers_code(console: Console) -> None:
    """A fresh code of the administrator lifts it, and stands in the audit."""
    person = await with_secret(console)
    await lock(console, person)
    assert (
        "Contraseña bloqueada" in (await console.get("/admin/people?locked=yes")).text
    )

    answer = await console.post(f"/admin/people/{person}/unlock", code=console.code())

    assert answer.location == f"/admin/people/{person}"
    event = await audited(console, EventKind.PERSON_UNLOCKED)
    assert event.detail["before"] == {"counted": 10, "locked": True}
    assert event.detail["after"] == {"counted": 0, "locked": False}
    assert (await console.front.views.person(person)).row.locked_at is None


async def test_what_was_done_is_confirmed_once(console: Console) -> None:
    """On the page that follows; no address makes a page say what was not done."""
    person = await with_secret(console)
    here = f"/admin/people/{person}"
    told = "La contraseña de firma quedó desbloqueada."
    await lock(console, person)

    answer = await console.post(f"{here}/unlock", code=console.code())

    partial = await console.get(answer.location, **{"HX-Request": "true"})
    assert told not in partial.text
    assert told in (await console.get(answer.location)).text
    assert told not in (await console.get(here)).text
    assert "quedó" not in (await console.get(f"{here}?done=disabled")).text
    stopped = await console.post(f"{here}/disable")
    assert (
        "La persona quedó deshabilitada." in (await console.get(stopped.location)).text
    )


@pytest.mark.parametrize("code", ["", "000000", "abc"])
async def test_lock_stays_without_the_officers_code(
    console: Console, code: str
) -> None:
    """A wrong code lifts nothing, and is recorded."""
    person = await with_secret(console)
    await lock(console, person)

    answer = await console.post(f"/admin/people/{person}/unlock", code=code)

    assert answer.status == 422
    assert answer.fault_of("code")
    await audited(console, EventKind.CONSOLE_CODE_WRONG)
    assert (await console.front.views.person(person)).row.locked_at is not None


async def test_code_of_the_sign_in_lifts_no_lock(console: Console) -> None:
    """A code that was used is of no further use."""
    used = console.totp.at(console.clock.now())
    person = await with_secret(console)
    await lock(console, person)

    answer = await console.post(f"/admin/people/{person}/unlock", code=used)

    assert answer.status == 422


async def test_person_is_disabled_and_enabled(console: Console) -> None:
    """Each leaves one row with the state before and after, also if done twice."""
    person = await console.person()
    await console.request(ANA_DIGITS)
    asked = await console.get(f"/admin/people/{person}/disable")
    assert "1 solicitud espera esta firma" in asked.text

    for _ in range(2):
        done = await console.post(f"/admin/people/{person}/disable")
        assert done.status == 303
    disabled = await audited(console, EventKind.PERSON_DISABLED)
    assert (await console.post(f"/admin/people/{person}/enable")).status == 303
    enabled = await audited(console, EventKind.PERSON_ENABLED)

    assert disabled.detail["before"] == enabled.detail["after"] == {"state": "active"}
    assert disabled.detail["after"] == enabled.detail["before"] == {"state": "disabled"}


async def test_disabling_ends_what_a_person_has_open(console: Console) -> None:
    """Sessions of frames, login tokens and access tokens: none comes back."""
    person = await console.person()
    services = console.services
    made = await services.integrators.create_key("operator", "acme", "backend")
    opened = await services.sessions.exchange(
        (await services.sessions.open("acme", made.secret)).token
    )
    session = await services.progress.set_person(opened.session, person)
    async with services.store.write() as transaction:
        await services.progress.set_otp_in(transaction, session, person)
    assert (await services.sessions.by_bearer(opened.bearer)).person == person
    tokens = AccessTokens(
        services.store, services.sealer, services.clock, services.settings
    )
    issued = await tokens.issue(person, ("pwd", "otp"), services.clock.now())
    await tokens.verify(issued.token)

    await console.post(f"/admin/people/{person}/disable")

    for late in (False, True):
        with pytest.raises(ApplianceError, match="SESSION_TOKEN_EXPIRED"):
            await services.sessions.by_bearer(opened.bearer, late=late)
    disabled = await audited(console, EventKind.PERSON_DISABLED)
    assert disabled.detail["sessions"] == [session.public_id]
    await console.post(f"/admin/people/{person}/enable")
    for late in (False, True):
        with pytest.raises(ApplianceError, match="SESSION_TOKEN_EXPIRED"):
            await services.sessions.by_bearer(opened.bearer, late=late)
    with pytest.raises(ApplianceError, match="TOKEN_INVALID"):
        await tokens.verify(issued.token)
    services.clock.forward(1)
    issued = await tokens.issue(person, ("pwd", "otp"), services.clock.now())
    assert (await tokens.verify(issued.token)).person == person


async def test_invited_person_cannot_be_enabled(console: Console) -> None:
    """Enabling is no way around enrolment."""
    person = await console.person(enrolled=False)

    assert (await console.post(f"/admin/people/{person}/enable")).status == 409


@pytest.mark.parametrize("rest", ["", "/unlock", "/disable"])
async def test_person_that_is_not_there(console: Console, rest: str) -> None:
    """An unknown id is a page in words."""
    answer = await console.get(f"/admin/people/x{rest}")

    assert answer.status == 404
    assert "PERSON_NOT_FOUND" in answer.text


@pytest.mark.parametrize(
    ("typed", "field"),
    [({}, "cuil"), ({"cuil": "20-26756539-3"}, "email")],
)
async def test_somebody_who_is_there_is_led_to(
    console: Console, typed: dict[str, str], field: str
) -> None:
    """A CUIL or an address in use is said at its field, with the way to its owner."""
    await console.post("/admin/people", **invitation())
    (row,) = (await console.front.views.people(PeopleFilter())).rows

    answer = await console.post("/admin/people", **invitation(**typed))

    assert answer.fault_of(field).startswith("Ya hay una persona"), answer.text
    assert f'href="/admin/people/{row.id}">Ver Ana María Núñez</a>' in answer.text


async def test_lost_telephone_is_replaced_with_certificate_kept(
    console: Console,
) -> None:
    """After the officer's code; a new QR once, no secret in the audit."""
    person = await with_secret(console)
    here = f"/admin/people/{person}"
    assert (await console.post(f"{here}/totp", code="1")).fault_of("code")
    async with console.services.store.read() as transaction:
        before = await LoginSecretStore(transaction).secret(person)

    made = await console.post(f"{here}/totp", code=console.code())

    (seed,) = set(re.findall(r"secret=([A-Z2-7]{32})", made.text))
    assert seed in made.text.replace(" ", "")
    assert "data-language" not in made.text
    async with console.services.store.read() as transaction:
        after = await LoginSecretStore(transaction).secret(person)
    assert before is not None
    assert after is not None
    assert after.phc == before.phc
    assert after.totp_sealed != before.totp_sealed
    event = await audited(console, EventKind.PERSON_TOTP_SET)
    assert event.detail["person"] == person
    assert seed not in str(event)
    invited = await console.person("20267565393", "Luis", enrolled=False)
    wrong = await console.post(f"/admin/people/{invited}/totp", code=console.code())
    assert wrong.status == 409


async def test_help_asked_with_a_code_and_without_is_shown_apart(
    console: Console,
) -> None:
    """Each with its own proof and its own button; Inicio counts the person once."""
    person = await with_secret(console)
    acme = (await console.front.integrators.get("acme")).id
    ask = console.services.help_requests.ask_in_frame
    await ask(person, HelpTopic.PASSWORD, acme, proven=True)
    await ask(person, HelpTopic.PHONE, acme, proven=False)

    page = (await console.get(f"/admin/people/{person}")).text

    proven, other = re.findall(r"Pidió ayuda(.*?)</form>", page, re.DOTALL)
    assert "después de un código correcto" in proven
    assert "sin ninguna prueba" not in proven
    assert "sin ninguna prueba" in other
    assert "después de un código correcto" not in other
    ids = {re.search(r'name="request" value="([^"]+)"', one) for one in (proven, other)}
    assert {found.group(1) for found in ids if found} == {
        each.id for each in await console.front.help_desk.of_person(person)
    }
    home = (await console.get("/admin/")).text
    assert re.search(r"<b>1</b> <span>persona que pidió ayuda", home)
