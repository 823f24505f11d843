"""The page behind an enrolment link, over HTTP and real storage."""

import re
from base64 import urlsafe_b64decode
from dataclasses import replace
from pathlib import Path

import pyotp
import pytest
from quart import Response
from quart.typing import TestClientProtocol as HttpClient

from appliance.api import enrolment
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.integrators.integrators import Invitation
from appliance.domain.vocab import EventKind, PersonState, TaskKind, VouchedBy
from appliance.identity.enrolment import Choice
from appliance.integrators.integrator_store import IntegratorStore
from appliance.keys.count_clearings import CountClearings
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.keys.hsm_tasks import HsmTasks
from appliance.people.person_store import PersonStore
from appliance.pki.revocation_pins import RevocationPins
from appliance.requests.waiting_documents import Waiting
from appliance.web import i18n
from tests.support.faces.enrolment_page import opening_of, pin_of, seed_of
from tests.support.installation.api import (
    BASE_URL,
    CUIL,
    EMAIL,
    ApiServices,
    create_api,
)

LOGIN, SIGNING = "una clave de ingreso", "una clave de firma"
_HERE = Path(__file__).resolve().parents[3] / "appliance" / "api"
_SAID = re.compile(r"\bt\(\s*[\"']([^\"']+)[\"']\s*\)")


@pytest.fixture
def client(api_services: ApiServices) -> HttpClient:
    """A browser's calls."""
    return create_api(api_services).test_client()


async def invite(api_services: ApiServices, name: str = "Ana <Núñez>") -> Invitation:
    """A person invited by an officer."""
    return await api_services.invitations.invite(
        "console:c1", CUIL, name, EMAIL, VouchedBy.OFFICER
    )


async def fields(
    api_services: ApiServices, link: Invitation, **other: str
) -> dict[str, str]:
    """The form, filled in well but for what is given."""
    view = await api_services.enrolment.look(link.code)
    return {
        "login_password": LOGIN,
        "login_password_again": LOGIN,
        "signing_password": SIGNING,
        "signing_password_again": SIGNING,
        "totp_code": pyotp.TOTP(view.totp_secret).at(api_services.clock.now()),
        "opening": view.opening,
        **other,
    }


async def test_link_leads_to_the_api_and_shows_once(api_services: ApiServices) -> None:
    """The link is 256 bits on the address of the API, kept as a hash."""
    link = await invite(api_services)

    assert link.url == f"{BASE_URL}/alta/{link.code}"
    assert len(link.code) == 43
    assert link.code not in repr(link)
    assert (link.until - api_services.clock.now()).days == 3


async def test_page_shows_person_qr_and_key(
    api_services: ApiServices, client: HttpClient
) -> None:
    """The form shows whose it is, escaped, and the seed as QR and as text."""
    link = await invite(api_services)

    answer = await client.get(f"/alta/{link.code}")
    page = await answer.get_data(as_text=True)

    assert answer.status_code == 200
    assert "Ana &lt;Núñez&gt;" in page
    assert "20-26756539-3" in page
    assert "<svg" in page
    opened = await api_services.enrolment.look(link.code, opening_of(page))
    assert opened.totp_secret == seed_of(page)
    assert "PREPROD" in page


async def test_each_browser_is_shown_its_own_seed(api_services: ApiServices) -> None:
    """Who opened the link before has a seed that is worth nothing afterwards."""
    link = await invite(api_services)
    thief, owner = (create_api(api_services).test_client() for _ in range(2))

    async def opened(browser: HttpClient) -> str:
        answer = await browser.get(f"/alta/{link.code}")
        return str(await answer.get_data(as_text=True))

    known = seed_of(await opened(thief))
    page = await opened(owner)
    assert seed_of(page) != known
    assert seed_of(
        await opened(create_api(api_services).test_client(use_cookies=False))
    ) not in {
        known,
        seed_of(page),
    }

    now = api_services.clock.now()
    form = await fields(api_services, link, opening=opening_of(page))
    stolen = await owner.post(
        f"/alta/{link.code}", form={**form, "totp_code": pyotp.TOTP(known).at(now)}
    )
    assert stolen.status_code == 422
    mine = pyotp.TOTP(seed_of(page))
    done = await owner.post(
        f"/alta/{link.code}", form={**form, "totp_code": mine.at(now)}
    )
    assert done.status_code == 200

    api_services.clock.forward(60)
    later = api_services.clock.now()
    challenge = await api_services.login.login(CUIL, LOGIN.encode(), "192.0.2.1")
    code = pyotp.TOTP(known).at(later)
    with pytest.raises(ApplianceError, match="OTP_INVALID"):
        await api_services.login.otp(challenge.login_token, code, "192.0.2.1")
    await api_services.login.otp(challenge.login_token, mine.at(later), "192.0.2.1")


async def test_same_browser_need_not_scan_again(api_services: ApiServices) -> None:
    """A reload and another language by its cookie; a mistake even without one."""
    link = await invite(api_services)
    address = f"https://localhost/alta/{link.code}"
    browser = create_api(api_services).test_client()
    bare = create_api(api_services).test_client(use_cookies=False)
    first = await (await browser.get(address)).get_data(as_text=True)
    form = await fields(api_services, link, opening=opening_of(first), totp_code="12")

    for answer in (
        await browser.get(address),
        await browser.get(f"{address}?lang=en"),
        await browser.post(address, form=form),
        await bare.post(address, form=form),
        await browser.get(address),
    ):
        page = await answer.get_data(as_text=True)
        assert (seed_of(page), opening_of(page)) == (seed_of(first), opening_of(first))


@pytest.mark.parametrize("opening", ["", "x", "x" * 44, "ñ" * 43])
async def test_opening_that_is_none_opens_nothing(
    api_services: ApiServices, client: HttpClient, opening: str
) -> None:
    """The form comes back with a seed that the server made."""
    link = await invite(api_services)
    form = await fields(api_services, link)

    answer = await client.post(f"/alta/{link.code}", form=form | {"opening": opening})
    page = await answer.get_data(as_text=True)

    assert answer.status_code == 422
    assert opening_of(page) not in {opening, form["opening"]}


async def test_page_is_under_a_strict_policy(
    api_services: ApiServices, client: HttpClient
) -> None:
    """Nothing inline, nothing from elsewhere, no frame, no cache."""
    link = await invite(api_services)

    answer = await client.get(f"/alta/{link.code}")

    policy = answer.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    (cookie,) = answer.headers.getlist("Set-Cookie")
    name, *attributes = cookie.split("; ")
    assert name.startswith("__Host-")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(attributes)
    page = await answer.get_data(as_text=True)
    assert "style=" not in page
    assert not re.search(r"<script(?![^>]* src=)", page)
    assert not re.search(r"\son[a-z]+=", page)


async def test_style_is_served_and_nothing_else(client: HttpClient) -> None:
    """The static route serves the files that pages load, by name."""
    style = await client.get("/static/alta.css")

    assert style.status_code == 200
    assert style.headers["Content-Type"].startswith("text/css")
    for name in ("alta.html", "..%2Fenrolment.py", "%2e%2e"):
        assert (await client.get(f"/static/{name}")).status_code == 404


async def test_page_speaks_the_readers_language(
    api_services: ApiServices, client: HttpClient
) -> None:
    """Spanish by default, English on request; `lang` says so."""
    link = await invite(api_services)
    for wanted, lang, words in (
        ("", "es-AR", "Elegí cómo ingresás"),
        ("en", "en", "Choose how you sign in"),
    ):
        answer = await client.get(
            f"/alta/{link.code}", headers={"Accept-Language": wanted}
        )
        page = await answer.get_data(as_text=True)
        assert f'<html lang="{lang}">' in page
        assert words in page


def test_every_sentence_of_the_page_is_there_in_spanish() -> None:
    """No template says what the catalogue does not have."""
    said = {
        sentence
        for template in (_HERE / "templates").glob("*.html")
        for sentence in _SAID.findall(template.read_text(encoding="utf-8"))
    }
    said |= {enrolment._DIFFER, *enrolment._BY_FAULT.values()}

    assert len(said) > 30
    assert [s for s in said if i18n.translate("es", s) == s] == []


async def test_enrolment_gives_secrets_and_asks_for_a_certificate(
    api_services: ApiServices, client: HttpClient
) -> None:
    """Both passwords work, the code is used, and the HSM has a task."""
    link = await invite(api_services)
    form = await fields(api_services, link)

    answer = await client.post(f"/alta/{link.code}", form=form)

    assert answer.status_code == 200
    assert "ya podés firmar" in await answer.get_data(as_text=True)
    async with api_services.store.read() as transaction:
        person = await PersonStore(transaction).get(link.person)
        secret = await PersonStore(transaction).signing_secret(link.person)
    assert person is not None
    assert person.state is PersonState.ACTIVE
    assert secret is not None
    cleared = CountClearings(api_services.lookup).proven(link.person, secret.cleared)
    assert cleared is not None
    assert cleared.is_of(secret.salt)
    challenge = await api_services.login.login(CUIL, LOGIN.encode(), "192.0.2.1")
    with pytest.raises(ApplianceError) as used:
        await api_services.login.otp(
            challenge.login_token, form["totp_code"], "192.0.2.1"
        )
    assert used.value.code is ErrorCode.OTP_INVALID
    assert await events(api_services) == [
        (EventKind.PERSON_INVITED, "console:c1"),
        (EventKind.PERSON_ENROLLED, f"person:{link.person}"),
        (EventKind.TASK_CREATED, f"person:{link.person}"),
    ]


async def events(api_services: ApiServices) -> list[tuple[EventKind, str]]:
    """What was recorded of enrolment, in order."""
    async with api_services.store.read() as transaction:
        writers = await transaction.audit.writers()
        rows = [row for w in writers for row in await transaction.audit.of_writer(w)]
    kinds = {
        EventKind.PERSON_INVITED,
        EventKind.PERSON_ENROLLED,
        EventKind.TASK_CREATED,
    }
    return [(r.event.event, r.event.actor) for r in rows if r.event.event in kinds]


async def test_invited_person_cannot_sign_in(api_services: ApiServices) -> None:
    """Before the enrolment there is nothing to sign in with."""
    await invite(api_services)

    with pytest.raises(ApplianceError) as refused:
        await api_services.login.login(CUIL, LOGIN.encode(), "192.0.2.1")

    assert refused.value.code is ErrorCode.LOGIN_FAILED


async def test_link_works_once(api_services: ApiServices, client: HttpClient) -> None:
    """Opened or sent again, it changes nothing and says how far the key is."""
    link = await invite(api_services)
    form = await fields(api_services, link)
    await client.post(f"/alta/{link.code}", form=form)

    other = create_api(api_services).test_client()
    for answer in (
        await other.get(f"/alta/{link.code}"),
        await other.post(f"/alta/{link.code}", form=form),
    ):
        page = await answer.get_data(as_text=True)
        assert answer.status_code == 200
        assert "se está generando" in page
        assert "data-waits" in page
        assert 'http-equiv="refresh"' in page
        assert 'id="pin"' not in page
        assert "pedile uno nuevo a quien te mandó el enlace" in page
    assert len(await events(api_services)) == 3


async def shown(answer: Response) -> str:
    """A page that was shown."""
    assert answer.status_code == 200
    return str(await answer.get_data(as_text=True))


async def test_pin_stays_in_its_browser_until_it_is_kept(
    api_services: ApiServices,
) -> None:
    """A reload and another language show it again; another browser never does."""
    link = await invite(api_services)
    address = f"https://localhost/alta/{link.code}"
    browser, other = (create_api(api_services).test_client() for _ in range(2))
    answer = await browser.post(address, form=await fields(api_services, link))
    first = await shown(answer)
    pin = pin_of(first)

    assert len(pin) == 14
    assert pin not in str(answer.headers)
    for again in (
        await browser.get(address),
        await browser.get(f"{address}?lang=en"),
        await browser.post(address, form={}),
    ):
        assert pin_of(await shown(again)) == pin
    assert pin_of(await shown(await other.get(address))) == ""

    english = await shown(await browser.get(f"{address}?lang=en"))
    assert f'action="/alta/{link.code}/guardado?lang=en"' in english
    kept = await browser.post(f"{address}/guardado?lang=en")
    assert (kept.status_code, kept.headers["Location"]) == (
        303,
        f"/alta/{link.code}?lang=en",
    )
    assert pin_of(await shown(await browser.get(address))) == ""


async def test_kept_pin_is_over_soon_and_with_another_pin(
    api_services: ApiServices,
) -> None:
    """It opens for its person, for ten minutes, while it is in force."""
    link = await invite(api_services)
    kept, pins = api_services.kept_pins, api_services.revocation_pins
    form = await fields(api_services, link)
    choice = Choice(LOGIN, SIGNING, form["totp_code"], form["opening"])
    done = await api_services.enrolment.complete(link.code, choice)
    sealed = done.kept_pin

    assert await kept.open(link.person, sealed) == done.revocation_pin
    assert done.revocation_pin not in urlsafe_b64decode(sealed).decode("latin-1")
    altered = sealed[:-4] + ("AAAA" if sealed[-4:] != "AAAA" else "BBBB")
    for wrong in ("", "ñ", "x", "A" * 5000, sealed[:-1], altered):
        assert await kept.open(link.person, wrong) == ""
    assert await kept.open(PersonId("another"), sealed) == ""

    api_services.clock.forward(599)
    assert await kept.open(link.person, sealed) == done.revocation_pin
    api_services.clock.forward(1)
    assert await kept.open(link.person, sealed) == ""

    api_services.clock.forward(-300)
    assert await kept.open(link.person, sealed) == done.revocation_pin
    await pins.renew(link.person, "console:c1")
    assert await kept.open(link.person, sealed) == ""


async def test_end_leads_to_what_waits(
    api_services: ApiServices, client: HttpClient
) -> None:
    """Who asks for a signature is named, with its page, and no document is."""
    link = await invite(api_services)
    await api_services.add_requests(link.person, 1, 2)
    waiting = api_services.waiting_documents
    assert await waiting.of(link.person) == [Waiting("Demo", 2, None)]
    await change_integrator(
        api_services, sign_url="https://app.example/firmar?s={solicitudId}"
    )

    form = await fields(api_services, link)
    told = await shown(await client.post(f"/alta/{link.code}", form=form))
    assert "Demo te pide que firmes 2 documentos." in told
    assert 'href="https://app.example/firmar?s=1">Ir a firmar en Demo<' in told
    assert "a.pdf" not in told

    await change_integrator(api_services, disabled=api_services.clock.now())
    assert await waiting.of(link.person) == []


async def change_integrator(api_services: ApiServices, **changes: object) -> None:
    """Change the integrator that the requests are of."""
    async with api_services.store.write() as transaction:
        integrators = IntegratorStore(transaction)
        found = await integrators.by_id(IntegratorId("i"))
        assert found is not None
        await integrators.change(replace(found, **changes))  # type: ignore[arg-type]  # of any field


async def test_end_says_what_happens_next(
    api_services: ApiServices, client: HttpClient
) -> None:
    """Where nothing waits, the page says who sends the first document."""
    link = await invite(api_services)
    form = await fields(api_services, link)

    told = await shown(await client.post(f"/alta/{link.code}", form=form))

    assert "Qué sigue ahora" in told
    assert "te va a mandar un enlace" in told


async def test_expired_link_says_so(
    api_services: ApiServices, client: HttpClient
) -> None:
    """After its three days a link opens nothing, and says why."""
    link = await invite(api_services)
    api_services.clock.forward(259_200)

    answer = await client.get(f"/alta/{link.code}")

    assert answer.status_code == 409
    assert "venció" in await answer.get_data(as_text=True)


async def test_unknown_link_says_so(client: HttpClient) -> None:
    """What is no link of ours is not known, whatever it is."""
    for code in ("x", "x" * 43, "x" * 5000, "%C3%A1"):
        answer = await client.get(f"/alta/{code}")
        assert answer.status_code == 404
        assert "no existe" in await answer.get_data(as_text=True)


async def test_new_link_ends_the_earlier_one(api_services: ApiServices) -> None:
    """A renewed invitation leaves one link that works, with another seed."""
    first = await invite(api_services)
    seed = (await api_services.enrolment.look(first.code)).totp_secret

    second = await api_services.invitations.renew("console:c1", CUIL)

    with pytest.raises(ApplianceError) as over:
        await api_services.enrolment.look(first.code)
    assert over.value.code is ErrorCode.ENROLMENT_EXPIRED
    assert (await api_services.enrolment.look(second.code)).totp_secret != seed
    assert second.person == first.person


@pytest.mark.parametrize("state", [PersonState.INVITED, PersonState.DISABLED])
async def test_change_of_an_officer_as_a_link_is_used_enrols_nobody(
    api_services: ApiServices,
    client: HttpClient,
    monkeypatch: pytest.MonkeyPatch,
    state: PersonState,
) -> None:
    """The link is replaced, or the person disabled, as passwords are hashed."""
    link = await invite(api_services)
    form = await fields(api_services, link)
    make = RevocationPins.make

    async def meanwhile(pins: RevocationPins) -> object:
        if state is PersonState.INVITED:
            await api_services.invitations.renew("console:c1", CUIL)
        async with api_services.store.write() as transaction:
            await PersonStore(transaction).move(link.person, PersonState.INVITED, state)
        return await make(pins)

    monkeypatch.setattr(RevocationPins, "make", meanwhile)
    answer = await client.post(f"/alta/{link.code}", form=form)

    assert answer.status_code == 409
    async with api_services.store.read() as transaction:
        person = await PersonStore(transaction).get(link.person)
        secret = await PersonStore(transaction).signing_secret(link.person)
        is_issued = await HsmTaskStore(transaction).open_for(
            link.person, TaskKind.ISSUE
        )
    assert person is not None
    assert person.state is state
    assert secret is None
    assert not is_issued


async def test_person_who_enrolled_gets_no_new_link(
    api_services: ApiServices, client: HttpClient
) -> None:
    """A link must not give somebody else's account new secrets."""
    link = await invite(api_services)
    await client.post(f"/alta/{link.code}", form=await fields(api_services, link))

    with pytest.raises(ApplianceError) as refused:
        await api_services.invitations.renew("console:c1", CUIL)
    assert refused.value.code is ErrorCode.PERSON_STATE
    assert "active" in str(refused.value)
    with pytest.raises(ApplianceError) as refused:
        await invite(api_services)
    assert refused.value.code is ErrorCode.ALREADY_EXISTS


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"login_password_again": "otra cosa"}, "login_password_again"),
        ({"signing_password_again": "otra cosa"}, "signing_password_again"),
        (
            {"login_password": "corta", "login_password_again": "corta"},
            "login_password",
        ),
        (
            {"signing_password": LOGIN, "signing_password_again": LOGIN},
            "signing_password",
        ),
        ({"totp_code": "12345"}, "totp_code"),
        ({"totp_code": "abcdef"}, "totp_code"),
    ],
)
async def test_mistake_is_shown_at_its_field_and_changes_nothing(
    api_services: ApiServices, client: HttpClient, wrong: dict[str, str], field: str
) -> None:
    """The form comes back with the mistake named, without what was typed."""
    link = await invite(api_services)
    form = await fields(api_services, link, **wrong)

    answer = await client.post(f"/alta/{link.code}", form=form)
    page = await answer.get_data(as_text=True)

    assert answer.status_code == 422
    assert f'id="{field}-error"' in page
    assert f'href="#{field}"' in page
    typed = {name: value for name, value in form.items() if name != "opening"}
    assert not any(value in page for value in typed.values() if len(value) > 5)
    await api_services.enrolment.look(link.code)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"totp_code": ""}, "El código tiene 6 dígitos."),
        ({"totp_code": "12345"}, "El código tiene 6 dígitos."),
        (
            {"totp_code": "000000"},
            "El código no es correcto o ya se usó: revisalo o esperá el próximo.",
        ),
        (
            {"signing_password": LOGIN, "signing_password_again": LOGIN},
            "Es la misma que la de ingreso: elegí otra para firmar.",
        ),
        (
            {"signing_password": "corta", "signing_password_again": "corta"},
            "Usá 8 caracteres o más.",
        ),
        (
            {
                "signing_password": "Contraseña1",
                "signing_password_again": "Contraseña1",
            },
            "Esta contraseña la usa mucha gente: elegí otra.",
        ),
        (
            {"login_password": CUIL, "login_password_again": CUIL},
            "Tu nombre, tu CUIL o tu correo se adivinan fácil: elegí otra.",
        ),
        (
            {"login_password": "ñ" * 600, "login_password_again": "ñ" * 600},
            "Esa contraseña es demasiado larga.",
        ),
    ],
)
async def test_mistake_is_said_as_it_is(
    api_services: ApiServices, client: HttpClient, wrong: dict[str, str], told: str
) -> None:
    """What is missing is not called wrong, nor what is equal short."""
    link = await invite(api_services)
    answer = await client.post(
        f"/alta/{link.code}", form=await fields(api_services, link, **wrong)
    )

    said = re.findall(
        r'class="error"[^>]*>([^<]+)<', await answer.get_data(as_text=True)
    )
    assert said == [told]


async def test_form_that_is_none_is_refused_in_words(
    api_services: ApiServices, client: HttpClient
) -> None:
    """Missing, unknown and doubled fields are no 500 and no half enrolment."""
    link = await invite(api_services)
    whole = "&".join(f"{k}={v}" for k, v in (await fields(api_services, link)).items())
    urlencoded = {"Content-Type": "application/x-www-form-urlencoded"}
    for body, headers in (
        ("", urlencoded),
        ("login_password=%FF", urlencoded),
        (whole + "&role=admin", urlencoded),
        (whole + "&totp_code=1", urlencoded),
        ("{}", {"Content-Type": "application/json"}),
    ):
        answer = await client.post(f"/alta/{link.code}", data=body, headers=headers)
        assert answer.status_code in {400, 415}
        assert answer.headers["Content-Type"].startswith("text/html")
    await api_services.enrolment.look(link.code)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ErrorCode.HSM_UNAVAILABLE, "se está generando"),
        (ErrorCode.TASK_FAILED, "No se pudo generar"),
    ],
)
async def test_result_says_when_there_is_no_certificate_yet(
    api_services: ApiServices, client: HttpClient, code: ErrorCode, words: str
) -> None:
    """A slow or failed HSM is told as it is: the enrolment itself is done."""
    link = await invite(api_services)
    api_services.tasks.failure = ApplianceError(code)

    answer = await client.post(
        f"/alta/{link.code}", form=await fields(api_services, link)
    )

    assert answer.status_code == 200
    assert words in await answer.get_data(as_text=True)


async def fail_task(api_services: ApiServices) -> None:
    """A worker takes the task that there is, and cannot make the key."""
    worker = HsmTasks(api_services.store, api_services.clock, "signing/h/1", "p")
    claim = await worker.claim_next()
    assert claim is not None
    await worker.failed(claim, "ACTIVATION_EXPIRED")


async def test_key_that_could_not_be_made_is_asked_for_again(
    api_services: ApiServices, client: HttpClient
) -> None:
    """The same link asks for the signing password alone, and makes a new task."""
    link = await invite(api_services)
    await client.post(f"/alta/{link.code}", form=await fields(api_services, link))
    await fail_task(api_services)

    page = await client.get(f"/alta/{link.code}")
    wrong = await client.post(
        f"/alta/{link.code}", form={"signing_password": "no es la mía"}
    )
    again = await client.post(f"/alta/{link.code}", form={"signing_password": SIGNING})
    twice = await client.get(f"/alta/{link.code}")

    text = await page.get_data(as_text=True)
    assert page.status_code == 200
    assert 'name="signing_password"' in text
    assert 'name="login_password"' not in text
    assert "Ana &lt;Núñez&gt;" in text
    assert wrong.status_code == 422
    assert "no es correcta" in await wrong.get_data(as_text=True)
    assert again.status_code == 200
    assert twice.status_code == 200
    assert "se está generando" in await twice.get_data(as_text=True)
    async with api_services.store.read() as transaction:
        secret = await PersonStore(transaction).signing_secret(link.person)
        assert await HsmTaskStore(transaction).open_for(link.person, TaskKind.ISSUE)
    assert secret is not None
    assert secret.counted == 0


async def test_asking_again_counts_wrong_passwords(
    api_services: ApiServices, client: HttpClient
) -> None:
    """The link is no way around the lock."""
    link = await invite(api_services)
    await client.post(f"/alta/{link.code}", form=await fields(api_services, link))
    await fail_task(api_services)

    statuses = [
        (
            await client.post(
                f"/alta/{link.code}", form={"signing_password": f"clave {n} mala"}
            )
        ).status_code
        for n in range(11)
    ]

    assert statuses == [422] * 9 + [423] * 2


async def test_link_that_is_over_asks_for_nothing(
    api_services: ApiServices, client: HttpClient
) -> None:
    """After its time a failed key is an officer's matter."""
    link = await invite(api_services)
    await client.post(f"/alta/{link.code}", form=await fields(api_services, link))
    await fail_task(api_services)
    api_services.clock.forward(259_200)

    answer = await client.get(f"/alta/{link.code}")

    assert answer.status_code == 409


async def test_enrolment_waits_for_a_host(
    api_services: ApiServices, client: HttpClient
) -> None:
    """Nobody can make a key now: 503 in words, and the link is as good as before."""
    link = await invite(api_services)
    api_services.clock.forward(16)

    answer = await client.post(
        f"/alta/{link.code}", form=await fields(api_services, link)
    )

    assert answer.status_code == 503
    assert answer.headers["Content-Type"].startswith("text/html")
    await api_services.host.beat(api_services.store, api_services.clock.now())
    done = await client.post(
        f"/alta/{link.code}", form=await fields(api_services, link)
    )
    assert done.status_code == 200


async def test_demo_is_refused_outside_a_trial(api_services: ApiServices) -> None:
    """Nobody vouches for a person as `demo` where certificates count."""
    with pytest.raises(ApplianceError) as refused:
        await api_services.invitations.invite(
            "operator", CUIL, "A", EMAIL, VouchedBy.DEMO
        )

    assert refused.value.code is ErrorCode.NOT_A_TRIAL


async def test_seed_and_code_stand_nowhere_in_the_record(
    api_services: ApiServices,
) -> None:
    """The link is hashed and the seed sealed, in tables and in the audit."""
    link = await invite(api_services)
    view = await api_services.enrolment.look(link.code)

    kept = (api_services.settings.data_dir / "rubrica.db").read_bytes()
    kept += (api_services.settings.data_dir / "rubrica.db-wal").read_bytes()
    for secret in (link.code, view.totp_secret, view.opening, EMAIL):
        assert secret.encode() not in kept
    assert view.totp_secret not in repr(view)
