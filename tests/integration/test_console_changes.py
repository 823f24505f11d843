"""What administrators do in the console: each change, its refusals, its audit row."""

import hashlib
import re
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pyotp
import pytest
from cryptography.hazmat.primitives import hashes
from werkzeug.datastructures import FileStorage

from appliance.domain.audit import AuditEvent
from appliance.domain.console import PeopleFilter
from appliance.domain.ids import PersonId
from appliance.domain.trust import AnchorPurpose
from appliance.domain.vocab import EventKind, PersonState
from appliance.services.enrolment import Choice
from tests.parts.console import (
    BAD_PDF,
    DAMAGED_PDF,
    NAME,
    PASSWORD,
    PDF,
    Answer,
    Site,
    open_site,
)
from tests.parts.held import hold
from tests.parts.outside_ca import OutsideCa, bundle

HERE = "/admin/integrators/acme"
ANA = "20-05536168-2"
ANA_DIGITS = "20055361682"
LUIS = "20-26756539-3"
KEY = re.compile(r"rbk_test_[0-9a-z]{12}_[0-9A-Za-z]{49}")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A console with the integrator `acme`, signed in."""
    async with open_site(tmp_path) as made:
        await made.sign_in()
        await made.post("/admin/integrators", code="acme", name="ACME S.A.")
        yield made


async def audited(site: Site, kind: EventKind) -> AuditEvent:
    """The one row of a kind, by the administrator signed in."""
    (event,) = await site.desk.audited(kind)
    (user,) = [u for u in await site.front.console.users() if u.name == NAME]
    assert event.actor == user.actor
    return event


def sha256(ca: OutsideCa) -> str:
    """The fingerprint that a CA publishes of its root."""
    return ca.root.fingerprint(hashes.SHA256()).hex()


async def upload(site: Site, path: str, content: bytes, **fields: str) -> Answer:
    """Send a form with a file of certificates."""
    file = FileStorage(BytesIO(content), "a.pem", "file", "application/x-pem-file")
    return await site.send_form(path, {"csrf": site.csrf, **fields}, {"file": file})


async def enter(site: Site) -> Answer:
    """Sign in, with a code of the moment."""
    return await site.post(
        "/admin/login", name=NAME, password=PASSWORD, code=site.code()
    )


async def begin_anew(site: Site, here: str) -> Answer:
    """Revoke and invite anew, with a code of the moment."""
    return await site.post(f"{here}/credentials/reissue", code=site.code())


async def key_id(site: Site, label: str = "backend") -> str:
    """A new key's id."""
    made = await site.front.integrators.create_key("operator", "acme", label)
    return made.key.id


async def lock(site: Site, person: PersonId) -> None:
    """Lock somebody's signing password."""
    async with site.desk.store.write() as records:
        await records.people.set_counted(person, 10, site.clock.now())


def shown_once(answer: Answer) -> str:
    """The secret on a page, which has it once."""
    (secret,) = {str(found) for found in KEY.findall(answer.text)}
    return secret


async def test_every_change_leaves_a_row(site: Site) -> None:
    """Each route that takes a form is recorded; one alone changes no record."""
    person = await _with_secret(site)
    key, spare = await key_id(site, "a"), await key_id(site, "b")
    origin = "https://app.example"
    kept = await site.front.integrators.add_domain("operator", "acme", f"{origin}:8443")
    await lock(site, person)
    invited = await site.person("20267565393", "Luis", enrolled=False)
    file = {"integrator": "acme", "cuil": ANA, "days": ""}
    here = f"/admin/people/{person}"
    held = await hold(site.desk.store, person, ANA_DIGITS, site.clock.now())
    outside, later = (OutsideCa(site.clock.now(), name) for name in ("a", "b"))
    anchor = await site.front.trust.add(
        "operator", bundle(outside.root), AnchorPurpose.SIGNERS, sha256(outside)
    )
    chain = bundle(outside.certify(held.spki, ANA_DIGITS), outside.issuing)
    trusted = {"fingerprint": sha256(later), "purpose": "signers"}
    steps = {
        "integrators.create": site.post("/admin/integrators", code="b", name="B"),
        "keys.create": site.post(f"{HERE}/keys", label="c", life="30"),
        "keys.rotate": site.post(f"{HERE}/keys/{key}/rotate", overlap="0"),
        "keys.revoke": site.post(f"{HERE}/keys/{spare}/revoke"),
        "domains.add": site.post(f"{HERE}/domains", origin=origin),
        "domains.remove": site.post(f"{HERE}/domains/{kept.id}/remove"),
        "profile.change": site.post(
            f"{HERE}/profile", level="B-B", policy="", digest=""
        ),
        "stamp.show_logo": site.upload(f"{HERE}/stamp/logo", b"picture", "a.png"),
        "stamp.drop_logo": site.post(f"{HERE}/stamp/logo/remove"),
        "people.create": site.post(
            "/admin/people", **invitation(cuil="27301234568", email="eva@demo.example")
        ),
        "person.renew": site.post(f"/admin/people/{invited}/link"),
        "person.unlock": site.post(f"{here}/unlock", code=site.code()),
        "requests.create": site.upload("/admin/requests", PDF, "a.pdf", **file),
        "person.disable": site.post(f"{here}/disable"),
        "person.enable": site.post(f"{here}/enable"),
        "credentials.renew": site.post(f"{here}/credentials/{held.id}/renew"),
        "credentials.import_chain": upload(
            site, f"{here}/credentials/{held.id}/chain", chain
        ),
        "credentials.revoke": site.post(
            f"{here}/credentials/{held.id}/revoke", reason="superseded"
        ),
        "credentials.new_pin": site.post(f"{here}/credentials/pin"),
        "credentials.reissue": begin_anew(site, here),
        "trust.add": upload(site, "/admin/trust", bundle(later.root), **trusted),
        "trust.remove": site.post(f"/admin/trust/{anchor.id}/remove"),
        "login.leave": site.post("/admin/logout"),
        "login.enter": enter(site),
    }
    taking = {
        rule.endpoint
        for rule in site.app.url_map.iter_rules()
        if "POST" in (rule.methods or ())
    }
    (user,) = [u for u in await site.front.console.users() if u.name == NAME]

    for endpoint, step in steps.items():
        before = await site.rows_of(user.actor)
        answer = await step
        assert answer.status in {200, 303}, (endpoint, answer.text)
        assert await site.rows_of(user.actor) > before, endpoint

    assert taking - steps.keys() == {"login.choose_language"}


# -- integrators ----------------------------------------------------------------


async def test_integrator_is_created_and_audited(site: Site) -> None:
    """The new integrator is there, and the row says who and what."""
    assert "ACME S.A." in (await site.get(HERE)).text
    event = await audited(site, EventKind.INTEGRATOR_CREATED)
    assert event.detail["before"] is None
    assert event.detail["code"] == "acme"


@pytest.mark.parametrize(
    ("code", "name", "field"),
    [
        ("", "A", "code"),
        ("ACME", "A", "code"),
        ("acme", "A", "code"),
        ("b", "", "name"),
    ],
)
async def test_integrator_refused_shows_the_form_again(
    site: Site, code: str, name: str, field: str
) -> None:
    """What was typed stays, the fault stands at its field and in the summary."""
    answer = await site.post("/admin/integrators", code=code, name=name)

    assert answer.status == 422
    assert answer.fault_of(field)
    assert f'href="#f-{field}"' in answer.text
    assert f'value="{code}"' in answer.text
    assert "<title>Error: " in answer.text


async def test_markup_in_a_name_stays_text(site: Site) -> None:
    """What people type is never markup."""
    await site.post("/admin/integrators", code="x", name="<script>alert(1)</script>")

    for path in ("/admin/integrators", "/admin/integrators/x", "/admin/audit"):
        answer = await site.get(path)
        assert "<script>alert" not in answer.text
        assert answer.status == 200


async def test_integrator_that_is_not_there(site: Site) -> None:
    """An unknown code is a page in words."""
    for rest in ("", "/keys", "/domains", "/keys/x/revoke", "/domains/x/remove"):
        answer = await site.get(f"/admin/integrators/nadie{rest}")
        assert answer.status == 404
        assert "INTEGRATOR_NOT_FOUND" in answer.text


async def test_snippet_is_of_this_integrator(site: Site) -> None:
    """What is to be copied has the integrator's id and the appliance's addresses."""
    text = (await site.get(HERE)).text

    assert "session/new?id=acme" in text
    assert site.front.settings.web.iframe_url in text
    assert "svc.init" in text


# -- keys ------------------------------------------------------------------------


async def test_key_is_shown_once(site: Site) -> None:
    """The key stands on one page, works, and is nowhere after it."""
    answer = await site.post(f"{HERE}/keys", label="backend", life="365")

    secret = shown_once(answer)
    await site.desk.sessions.open("acme", secret)
    for path in (f"{HERE}/keys", HERE, "/admin/audit", "/admin/"):
        assert secret not in (await site.get(path)).text
    event = await audited(site, EventKind.API_KEY_CREATED)
    assert secret not in str(event)


async def test_key_page_sent_again_makes_no_second_key(site: Site) -> None:
    """Reloading the page that shows a key is refused by its label."""
    await site.post(f"{HERE}/keys", label="backend", life="365")

    answer = await site.post(f"{HERE}/keys", label="Backend", life="365")

    assert answer.status == 422
    assert answer.fault_of("label")
    assert not KEY.search(answer.text)


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"label": "", "life": "30"}, "label"), ({"label": "a", "life": "1"}, "life")],
)
async def test_key_refused(site: Site, fields: dict[str, str], field: str) -> None:
    """A key needs a label and a life of the list."""
    answer = await site.post(f"{HERE}/keys", **fields)

    assert answer.status == 422
    assert f'href="#f-{field}"' in answer.text


async def test_rotated_key_works_beside_its_successor(site: Site) -> None:
    """Both open sessions within the overlap; the old one then no longer."""
    first = shown_once(await site.post(f"{HERE}/keys", label="b", life="never"))
    (old,) = await site.front.integrators.keys("acme")

    answer = await site.post(f"{HERE}/keys/{old.id}/rotate", overlap="3600")

    second = shown_once(answer)
    assert first != second
    await site.desk.sessions.open("acme", first)
    await site.desk.sessions.open("acme", second)
    event = await audited(site, EventKind.API_KEY_ROTATED)
    assert {"before", "after", "successor"} <= event.detail.keys()
    assert "En reemplazo" in (await site.get(f"{HERE}/keys")).text
    site.clock.forward(3601)
    await site.sign_in()
    assert "Reemplazada" in (await site.get(f"{HERE}/keys")).text


@pytest.mark.parametrize("overlap", ["", "5", "-1", "999999999", "x"])
async def test_rotation_refused(site: Site, overlap: str) -> None:
    """Only the offered overlaps are taken."""
    key = await key_id(site)

    answer = await site.post(f"{HERE}/keys/{key}/rotate", overlap=overlap)

    assert answer.status == 422
    assert answer.fault_of("overlap")


async def test_key_is_rotated_once(site: Site) -> None:
    """A key with a successor gets no other; a page sent again makes none."""
    key = await key_id(site)
    await site.post(f"{HERE}/keys/{key}/rotate", overlap="86400")

    answer = await site.post(f"{HERE}/keys/{key}/rotate", overlap="86400")

    assert answer.status == 422
    assert not KEY.search(answer.text)
    assert len(await site.front.integrators.keys("acme")) == 2


async def test_revocation_tells_what_ends(site: Site) -> None:
    """The page before counts the open sessions; after it they are over."""
    secret = shown_once(await site.post(f"{HERE}/keys", label="b", life="never"))
    (key,) = await site.front.integrators.keys("acme")
    for _ in range(2):
        await site.desk.sessions.open("acme", secret)

    before = await site.get(f"{HERE}/keys/{key.id}/revoke")
    answer = await site.post(f"{HERE}/keys/{key.id}/revoke")

    assert "Van a terminar 2 sesiones abiertas" in before.text
    assert answer.location == f"{HERE}/keys"
    event = await audited(site, EventKind.API_KEY_REVOKED)
    assert event.detail["sessionsEnded"] == 2
    again = await site.post(f"{HERE}/keys/{key.id}/revoke")
    assert again.status == 303


async def test_key_of_another_integrator_is_not_there(site: Site) -> None:
    """A key is reached only by its own integrator's address."""
    await site.post("/admin/integrators", code="otro", name="Otro")
    key = await key_id(site)

    for act in ("rotate", "revoke"):
        path = f"/admin/integrators/otro/keys/{key}/{act}"
        assert (await site.get(path)).status == 404
        assert (await site.post(path, overlap="0")).status == 404
    (kept,) = await site.front.integrators.keys("acme")
    assert kept.revoked is None


# -- domains ---------------------------------------------------------------------


async def test_domain_is_allowed_and_removed(site: Site) -> None:
    """Both leave a row with what stood before and after."""
    await site.post(f"{HERE}/domains", origin=" HTTPS://App.Example:443/ ")
    (domain,) = await site.front.integrators.domains("acme")
    assert domain.origin == "https://app.example"
    added = await audited(site, EventKind.DOMAIN_ADDED)
    assert (added.detail["before"], added.detail["after"]) == ([], [domain.origin])

    path = f"{HERE}/domains/{domain.id}/remove"
    assert domain.origin in (await site.get(path)).text
    answer = await site.post(path)

    assert answer.location == f"{HERE}/domains"
    removed = await audited(site, EventKind.DOMAIN_REMOVED)
    assert removed.detail["after"] == []


@pytest.mark.parametrize(
    ("origin", "word"),
    [
        ("", "escribí"),
        ("app.example", "escribí"),
        ("http://app.example", "https://"),
        ("https://app.example/ruta", "escribí"),
        ("https://*.example", "comodines"),
        ("https://10.0.0.1", "direcciones IP"),
        ("https://ñandú.example", "xn--"),
    ],
)
async def test_domain_refused_with_its_reason(
    site: Site, origin: str, word: str
) -> None:
    """The sentence at the field says what is wrong and what to write."""
    answer = await site.post(f"{HERE}/domains", origin=origin)

    assert answer.status == 422
    assert word.lower() in answer.fault_of("origin").lower()
    assert "{" not in answer.fault_of("origin")


async def test_domain_twice_is_refused(site: Site) -> None:
    """An origin is listed once."""
    await site.post(f"{HERE}/domains", origin="https://app.example")

    answer = await site.post(f"{HERE}/domains", origin="https://APP.example")

    assert answer.status == 422
    assert answer.fault_of("origin")


async def test_blocked_origin_is_shown_and_allowed(site: Site) -> None:
    """An origin that tried shows on three pages, and one button allows it."""
    await site.desk.sessions.note_blocked("acme", "https://otro.example")
    part = await site.get(f"{HERE}/domains", **{"HX-Request": "true"})

    assert "https://otro.example" in part.text
    assert "<html" not in part.text
    assert "https://otro.example" in (await site.get("/admin/")).text
    assert "acme" in (await site.get("/admin/integrators?only=blocked")).text
    await site.post(f"{HERE}/domains", origin="https://otro.example")
    assert await site.front.integrators.blocked_origins("acme") == []
    assert "acme" not in (await site.get("/admin/integrators?only=blocked")).text


# -- people ----------------------------------------------------------------------


def invitation(**fields: str) -> dict[str, str]:
    """A form that is right, but for what is given."""
    return {
        "cuil": ANA,
        "name": "Ana María Núñez",
        "email": "ana@demo.example",
        "vouched_by": "officer",
        "locale": "es",
        "checked": "yes",
        **fields,
    }


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

    assert answer.status == 404
    assert "/alta/" not in answer.text


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
    async with site.desk.store.write() as records:
        await records.console_views.move_person(
            person, PersonState.INVITED, PersonState.ACTIVE
        )

    answer = await site.get(f"/admin/people/{person}")

    assert "El HSM está creando la clave" in answer.text
    assert "hx-get" in answer.text


async def test_lock_is_lifted_after_the_officers_code(site: Site) -> None:
    """A fresh code of the administrator lifts it, and stands in the audit."""
    person = await _with_secret(site)
    await lock(site, person)
    assert "Contraseña bloqueada" in (await site.get("/admin/people?locked=yes")).text

    answer = await site.post(f"/admin/people/{person}/unlock", code=site.code())

    assert answer.location == f"/admin/people/{person}"
    event = await audited(site, EventKind.PERSON_UNLOCKED)
    assert event.detail["before"] == {"counted": 10, "locked": True}
    assert event.detail["after"] == {"counted": 0, "locked": False}
    assert (await site.front.views.person(person)).row.locked_at is None


@pytest.mark.parametrize("code", ["", "000000", "abc"])
async def test_lock_stays_without_the_officers_code(site: Site, code: str) -> None:
    """A wrong code lifts nothing, and is recorded."""
    person = await _with_secret(site)
    await lock(site, person)

    answer = await site.post(f"/admin/people/{person}/unlock", code=code)

    assert answer.status == 422
    assert answer.fault_of("code")
    await audited(site, EventKind.CONSOLE_CODE_WRONG)
    assert (await site.front.views.person(person)).row.locked_at is not None


async def test_code_of_the_sign_in_lifts_no_lock(site: Site) -> None:
    """A code that was used is of no further use."""
    used = site.totp.at(site.clock.now())
    person = await _with_secret(site)
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


# -- requests --------------------------------------------------------------------


async def test_request_is_made_from_a_file(site: Site) -> None:
    """The page after it tells the document's findings and the request's story."""
    await site.person()

    answer = await site.upload(
        "/admin/requests",
        PDF,
        "Señal «uno».pdf",
        integrator="acme",
        cuil=ANA,
        days="30",
    )

    assert answer.location == "/admin/requests/1"
    page = (await site.get(answer.location)).text
    assert "Señal «uno».pdf" in page
    assert "El documento contiene JavaScript." in page
    assert "Solicitud creada" in page
    assert f"{NAME} (consola)" in page
    event = await audited(site, EventKind.REQUEST_CREATED)
    assert event.request == 1


async def test_request_of_a_damaged_file_tells_of_the_copy(site: Site) -> None:
    """The page names the file as it came, and what was wrong; so does the story."""
    await site.person()

    answer = await site.upload(
        "/admin/requests", DAMAGED_PDF, "a.pdf", integrator="acme", cuil=ANA, days=""
    )

    page = (await site.get(answer.location)).text
    original = hashlib.sha256(DAMAGED_PDF).hexdigest()
    assert page.count(original) == 2
    assert "El documento llegó dañado." in page
    assert "El largo de su contenido estaba mal." in page
    assert "Tenía bytes antes de su comienzo o después de su final." in page
    event = await audited(site, EventKind.REQUEST_CREATED)
    assert event.detail["damage"] == ["streams", "surroundings"]


async def test_request_of_several_signers(site: Site) -> None:
    """One request each, in the order typed; every page shows them all."""
    await site.person()
    await site.person(LUIS)

    answer = await site.upload(
        "/admin/requests", PDF, "a.pdf", integrator="acme", cuil=ANA, then=LUIS, days=""
    )

    assert answer.location == "/admin/requests/1"
    for number in (1, 2):
        page = (await site.get(f"/admin/requests/{number}")).text
        assert "Firmantes en orden" in page
        assert 'href="/admin/requests/1"' in page
        assert 'href="/admin/requests/2"' in page
        assert "En espera de otro firmante" in page
    events = await site.desk.audited(EventKind.REQUEST_CREATED)
    assert [event.request for event in events] == [1, 2]
    assert events[1].detail["predecessor"] == 1


@pytest.mark.parametrize(
    ("content", "name", "fields", "field"),
    [
        (PDF, "a.pdf", {"then": ANA}, "then"),
        (PDF, "a.pdf", {"then": LUIS}, "then"),
        (PDF, "a.pdf", {"then": "1, 2"}, "then"),
        (PDF, "a.pdf", {"cuil": "1"}, "cuil"),
        (PDF, "a.pdf", {"cuil": LUIS}, "cuil"),
        (PDF, "a.pdf", {"integrator": "nadie"}, "integrator"),
        (PDF, "a.pdf", {"days": "0"}, "days"),
        (PDF, "a.pdf", {"days": "4000"}, "days"),
        (PDF, "a.pdf", {"days": "٣"}, "days"),
        (PDF, "a.exe", {}, "file"),
        (BAD_PDF, "a.pdf", {}, "file"),
        (b"", "a.pdf", {}, "file"),
    ],
)
async def test_request_refused(
    site: Site, content: bytes, name: str, fields: dict[str, str], field: str
) -> None:
    """Each fault stands at its field, and nothing is recorded."""
    await site.person()
    typed = {"integrator": "acme", "cuil": ANA, "days": "", **fields}

    answer = await site.upload("/admin/requests", content, name, **typed)

    assert answer.status == 422
    assert answer.fault_of(field)
    assert await site.desk.audited(EventKind.REQUEST_CREATED) == []


async def test_request_needs_a_file(site: Site) -> None:
    """A form without a file is told so, multipart or not."""
    answer = await site.post("/admin/requests", integrator="acme", cuil=ANA, days="")

    assert answer.fault_of("file")


@pytest.mark.parametrize("number", ["7", "9" * 16, "9" * 400])
async def test_request_that_is_not_there(site: Site, number: str) -> None:
    """An unknown number is a page in words."""
    answer = await site.get(f"/admin/requests/{number}")

    assert answer.status == 404
    assert "SOLICITUD_NOT_FOUND" in answer.text


async def _with_secret(site: Site) -> PersonId:
    """Somebody who has chosen their passwords."""
    made = await site.post("/admin/people", **invitation(vouched_by="demo"))
    (code,) = set(re.findall(r"/alta/([A-Za-z0-9_-]{43})", made.text))
    view = await site.desk.enrolment.look(code)
    site.clock.forward(30)
    await site.desk.host.beat(site.desk.store, site.clock.now())
    choice = Choice(
        "contraseña de ingreso",
        "contraseña de firma",
        pyotp.TOTP(view.totp_secret).at(site.clock.now()),
    )
    await site.desk.enrolment.complete(code, choice)
    return view.person
