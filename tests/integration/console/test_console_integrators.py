"""Integrators, keys and domains in the console: changes, refusals, audit rows."""

import re
from collections.abc import AsyncIterator
from html import escape, unescape
from pathlib import Path

import pytest

from appliance.cli.demo.setup import PEOPLE
from appliance.database import tables
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.integrators.api_keys import ApiKeyScope
from appliance.domain.vocab import EventKind
from tests.integration.console.forms import (
    HERE,
    KEY,
    audited,
    given_up,
    key_form,
    key_id,
    open_acme_console,
    shown_once,
)
from tests.support.installation.console import Console


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


# -- integrators ----------------------------------------------------------------


async def test_integrator_is_created_and_audited(console: Console) -> None:
    """The new integrator is there, and the row says who and what."""
    assert "ACME S.A." in (await console.get(HERE)).text
    event = await audited(console, EventKind.INTEGRATOR_CREATED)
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
    console: Console, code: str, name: str, field: str
) -> None:
    """What was typed stays, the fault stands at its field and in the summary."""
    answer = await console.post("/admin/integrators", code=code, name=name)

    assert answer.status == 422
    assert answer.fault_of(field)
    assert f'href="#f-{field}"' in answer.text
    assert f'value="{code}"' in answer.text
    assert "<title>Error: " in answer.text


@pytest.mark.parametrize(
    ("code", "name", "field", "told"),
    [
        ("", "A", "code", "Falta el código."),
        ("-", "A", "code", "que empiece con una letra o un dígito"),
        ("b", " ", "name", "Falta el nombre."),
        ("b", "a" * 121, "name", "hasta 120 caracteres"),
        ("b", "uno\ndos", "name", "en una sola línea"),
        ("b", "uno\u200bdos", "name", "sin caracteres invisibles"),
    ],
)
async def test_integrator_refused_is_told_the_rule(
    console: Console, code: str, name: str, field: str, told: str
) -> None:
    """What is missing is said to be missing; what is wrong, with its number."""
    answer = await console.post("/admin/integrators", code=code, name=name)

    assert told in answer.fault_of(field)
    assert (await console.get("/admin/integrators/b")).status == 404


async def test_markup_in_a_name_stays_text(console: Console) -> None:
    """What people type is never markup."""
    await console.post("/admin/integrators", code="x", name="<script>alert(1)</script>")

    for path in ("/admin/integrators", "/admin/integrators/x", "/admin/audit"):
        answer = await console.get(path)
        assert "<script>alert" not in answer.text
        assert answer.status == 200


async def test_integrator_that_is_not_there(console: Console) -> None:
    """An unknown code is a page in words."""
    for rest in ("", "/keys", "/domains", "/keys/x/revoke", "/domains/x/remove"):
        answer = await console.get(f"/admin/integrators/nadie{rest}")
        assert answer.status == 404
        assert "INTEGRATOR_NOT_FOUND" in answer.text


async def test_snippet_is_of_this_integrator(console: Console) -> None:
    """What is to be copied has the integrator's id and the appliance's addresses."""
    text = (await console.get(HERE)).text

    assert "session/new?id=acme" in text
    assert console.front.settings.web.iframe_url in text
    assert "svc.init" in text
    # A page without a session embeds nothing, and says so.
    assert "if (!answer.ok)" in text
    assert "No se pudo empezar la firma." in text


# -- keys ------------------------------------------------------------------------


async def test_key_is_shown_once(console: Console) -> None:
    """The key stands on one page, works, and is nowhere after it."""
    answer = await console.post(f"{HERE}/keys", **key_form())

    secret = shown_once(answer)
    await console.services.sessions.open("acme", secret)
    for path in (f"{HERE}/keys", HERE, "/admin/audit", "/admin/"):
        assert secret not in (await console.get(path)).text
    event = await audited(console, EventKind.API_KEY_CREATED)
    assert secret not in str(event)


async def test_key_page_sent_again_makes_no_second_key(console: Console) -> None:
    """Reloading the page that shows a key is refused by its label."""
    await console.post(f"{HERE}/keys", **key_form())

    answer = await console.post(f"{HERE}/keys", **key_form(label="Backend"))

    assert answer.status == 422
    assert answer.fault_of("label")
    assert not KEY.search(answer.text)


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"label": "", "life": "30"}, "label"), ({"label": "a", "life": "1"}, "life")],
)
async def test_key_refused(
    console: Console, fields: dict[str, str], field: str
) -> None:
    """A key needs a label and a life of the list."""
    answer = await console.post(f"{HERE}/keys", **key_form(**fields))

    assert answer.status == 422
    assert f'href="#f-{field}"' in answer.text


async def test_key_may_do_what_is_checked(console: Console) -> None:
    """From the networks that are typed; list, rotation and audit say so."""
    form = {"label": "x", "life": "never", "scope-requests:read": "yes"}

    made = await console.post(
        f"{HERE}/keys",
        **form,
        **{"scope-people:write": "yes"},
        networks=" 192.0.2.7\r\n2001:db8::/32, 10.0.0.0/8\r\n\r\n",
    )

    shown_once(made)
    # What is to be tried opens a session, which this key may not.
    assert "session/new" not in made.text
    (key,) = await console.front.integrators.keys("acme")
    assert key.scopes == (ApiKeyScope.REQUESTS_READ, ApiKeyScope.PEOPLE_WRITE)
    assert key.networks == ("192.0.2.7/32", "2001:db8::/32", "10.0.0.0/8")
    listed = await console.get(f"{HERE}/keys")
    rotating = await console.get(f"{HERE}/keys/{key.id}/rotate")
    for answer in (made, listed, rotating):
        shown = answer.text.replace("<wbr>", "")
        for text in ("Solicitudes: ver", "Personas: invitar", *key.networks):
            assert text in shown
        assert "Solicitudes: pedir" not in shown
    named = 'Solicitudes: ver <code class="id">requests:read</code>'
    for path in (f"{HERE}/keys", "/admin/audit"):
        assert named in (await console.get(path)).text


async def test_form_of_a_new_key_opens_sessions_from_anywhere(console: Console) -> None:
    """That alone is checked; each scope has its box."""
    text = (await console.get(f"{HERE}/keys")).text

    boxes = re.findall(r'name="scope-([a-z]+:[a-z]+)" value="yes"( checked)?', text)
    assert [name for name, _ in boxes] == [*ApiKeyScope]
    assert [name for name, checked in boxes if checked] == ["sessions:write"]
    assert re.search(r'<textarea id="f-networks"[^>]*>\s*</textarea>', text)


@pytest.mark.parametrize(
    ("fields", "field", "told"),
    [
        ({"scope-sessions:write": ""}, "scopes", "Elegí al menos un permiso."),
        ({"networks": "10.0.0"}, "networks", "10.0.0 no es una dirección IP ni una"),
        ({"networks": "<b>"}, "networks", "&lt;b&gt; no es una dirección IP"),
        ({"networks": "10.0.0.1/8"}, "networks", "10.0.0.0/8 para toda la red"),
        ({"networks": "10.0.0, 10.0.0.1/8"}, "networks", "10.0.0 no es una dirección"),
        ({"networks": "10.0.0, 10.0.0.1/8"}, "networks", "10.0.0.0/8 para toda la red"),
        ({"networks": "10.0.0.1 " * 21}, "networks", "Hay 21 redes; una clave admite"),
    ],
)
async def test_key_refused_by_what_it_may_do(
    console: Console, fields: dict[str, str], field: str, told: str
) -> None:
    """The sentence stands at its field; what was checked and typed stays."""
    fields = key_form(**{"scope-requests:read": "yes", **fields})
    if field == "scopes":
        del fields["scope-requests:read"]

    answer = await console.post(f"{HERE}/keys", **fields)

    assert answer.status == 422
    assert told in answer.fault_of(field)
    assert f'href="#f-{field}"' in answer.text
    checked = re.findall(r'name="scope-([a-z:]+)" value="yes" checked', answer.text)
    usual = ["requests:read", "sessions:write"]
    assert checked == ([] if field == "scopes" else usual)
    typed = fields.get("networks", "").strip()
    assert f"{escape(typed)}</textarea>" in answer.text
    assert await console.front.integrators.keys("acme") == []


async def test_rotated_key_works_beside_its_successor(console: Console) -> None:
    """Both open sessions within the overlap; the old one then no longer."""
    first = shown_once(await console.post(f"{HERE}/keys", **key_form(life="never")))
    (old,) = await console.front.integrators.keys("acme")

    answer = await console.post(f"{HERE}/keys/{old.id}/rotate", overlap="3600")

    second = shown_once(answer)
    assert first != second
    await console.services.sessions.open("acme", first)
    await console.services.sessions.open("acme", second)
    event = await audited(console, EventKind.API_KEY_ROTATED)
    assert {"before", "after", "successor"} <= event.detail.keys()
    assert "En reemplazo" in (await console.get(f"{HERE}/keys")).text
    console.clock.forward(3601)
    await console.sign_in()
    assert "Reemplazada" in (await console.get(f"{HERE}/keys")).text


@pytest.mark.parametrize("overlap", ["", "5", "-1", "999999999", "x"])
async def test_rotation_refused(console: Console, overlap: str) -> None:
    """Only the offered overlaps are taken."""
    key = await key_id(console)

    answer = await console.post(f"{HERE}/keys/{key}/rotate", overlap=overlap)

    assert answer.status == 422
    assert answer.fault_of("overlap")


async def test_key_is_rotated_once(console: Console) -> None:
    """A key with a successor gets no other; a page sent again makes none."""
    key = await key_id(console)
    await console.post(f"{HERE}/keys/{key}/rotate", overlap="86400")

    answer = await console.post(f"{HERE}/keys/{key}/rotate", overlap="86400")

    assert answer.status == 422
    assert not KEY.search(answer.text)
    assert len(await console.front.integrators.keys("acme")) == 2


async def test_revocation_tells_what_ends(console: Console) -> None:
    """The page before counts the open sessions; after it they are over."""
    secret = shown_once(await console.post(f"{HERE}/keys", **key_form(life="never")))
    (key,) = await console.front.integrators.keys("acme")
    for _ in range(2):
        await console.services.sessions.open("acme", secret)

    before = await console.get(f"{HERE}/keys/{key.id}/revoke")
    answer = await console.post(f"{HERE}/keys/{key.id}/revoke")

    assert "Van a terminar 2 sesiones abiertas" in before.text
    assert answer.location == f"{HERE}/keys"
    event = await audited(console, EventKind.API_KEY_REVOKED)
    assert event.detail["sessionsEnded"] == 2
    again = await console.post(f"{HERE}/keys/{key.id}/revoke")
    assert again.status == 303


async def test_key_of_another_integrator_is_not_there(console: Console) -> None:
    """A key is reached only by its own integrator's address."""
    await console.post("/admin/integrators", code="otro", name="Otro")
    key = await key_id(console)

    for act in ("rotate", "revoke"):
        path = f"/admin/integrators/otro/keys/{key}/{act}"
        assert (await console.get(path)).status == 404
        assert (await console.post(path, overlap="0")).status == 404
    (kept,) = await console.front.integrators.keys("acme")
    assert kept.revoked is None


# -- domains ---------------------------------------------------------------------


async def test_domain_is_allowed_and_removed(console: Console) -> None:
    """Both leave a row with what stood before and after."""
    await console.post(f"{HERE}/domains", origin=" HTTPS://App.Example:443/ ")
    (domain,) = await console.front.integrators.domains("acme")
    assert domain.origin == "https://app.example"
    added = await audited(console, EventKind.DOMAIN_ADDED)
    assert (added.detail["before"], added.detail["after"]) == ([], [domain.origin])

    path = f"{HERE}/domains/{domain.id}/remove"
    assert domain.origin in (await console.get(path)).text
    answer = await console.post(path)

    assert answer.location == f"{HERE}/domains"
    removed = await audited(console, EventKind.DOMAIN_REMOVED)
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
        ("https://ñandú_.example", "DNS"),
    ],
)
async def test_domain_refused_with_its_reason(
    console: Console, origin: str, word: str
) -> None:
    """The sentence at the field says what is wrong and what to write."""
    answer = await console.post(f"{HERE}/domains", origin=origin)

    assert answer.status == 422
    assert word.lower() in answer.fault_of("origin").lower()
    assert "{" not in answer.fault_of("origin")


async def test_domain_with_letters_beyond_ascii_is_shown_in_both_forms(
    console: Console,
) -> None:
    """Browsers send DNS's form of it, and people read the other one."""
    await console.post(f"{HERE}/domains", origin="https://Mañana.example")

    (domain,) = await console.front.integrators.domains("acme")
    assert domain.origin == "https://xn--maana-pta.example"
    for path in (f"{HERE}/domains", f"{HERE}/domains/{domain.id}/remove"):
        text = (await console.get(path)).text
        assert domain.origin in text, path
        assert "(mañana.example)" in text, path


async def test_prefix_of_messages_is_set(console: Console) -> None:
    """It stands in the code to copy; a wrong one is told at its field."""
    await console.post(f"{HERE}/prefix", event_prefix="firma-sur")
    assert "firma-sur.ready" in (await console.get(HERE)).text

    for typed in ("mal prefix", "9x", "é", "a" * 33):
        refused = await console.post(f"{HERE}/prefix", event_prefix=typed)
        assert "empiece con a-z" in refused.fault_of("event_prefix"), typed
    wrong = await console.post(f"{HERE}/prefix", event_prefix="Firma Sur")
    assert wrong.status == 422
    assert wrong.fault_of("event_prefix")

    await console.post(f"{HERE}/prefix", event_prefix="")
    assert "svc.ready" in (await console.get(HERE)).text


async def test_domain_twice_is_refused(console: Console) -> None:
    """An origin is listed once."""
    await console.post(f"{HERE}/domains", origin="https://app.example")

    answer = await console.post(f"{HERE}/domains", origin="https://APP.example")

    assert answer.status == 422
    assert answer.fault_of("origin")


async def test_blocked_origin_is_shown_and_allowed(console: Console) -> None:
    """An origin that tried shows on three pages, and is allowed after a question."""
    await console.services.sessions.note_blocked("acme", "https://otro.example")
    part = await console.get(f"{HERE}/domains", **{"HX-Request": "true"})

    assert "https://otro.example" in part.text
    assert "<html" not in part.text
    assert "Sin verificar" in part.text
    assert 'name="origin"' not in part.text
    asked = await console.get(f"{HERE}/domains/allow?origin=https://otro.example")
    assert "preguntale al integrador" in asked.text
    assert 'name="origin" value="https://otro.example"' in asked.text
    nobody = await console.get(f"{HERE}/domains/allow?origin=https://tercero.example")
    assert nobody.status == 303
    assert "https://otro.example" in (await console.get("/admin/")).text
    assert "acme" in (await console.get("/admin/integrators?only=blocked")).text
    await console.post(f"{HERE}/domains", origin="https://otro.example")
    assert await console.front.integrators.blocked_origins("acme") == []
    assert "acme" not in (await console.get("/admin/integrators?only=blocked")).text


async def test_code_in_use_leads_to_who_has_it(console: Console) -> None:
    """What there is already is said in words, beside the way to it."""
    answer = await console.post("/admin/integrators", code="acme", name="Otra")

    assert answer.fault_of("code") == (
        "Ya hay un integrador con este código: elegí otro."
    )
    assert 'href="/admin/integrators/acme">Ver ACME S.A.</a>' in answer.text


async def test_integrator_gets_another_name(console: Console) -> None:
    """The code stays; an empty one is refused at its field."""
    here = "/admin/integrators/acme"
    assert (await console.post(f"{here}/name", name=" ")).fault_of("name")

    done = await console.post(f"{here}/name", name="ACME y Cía.")

    assert done.location == here
    assert "ACME y Cía." in (await console.get(here)).text
    event = await audited(console, EventKind.INTEGRATOR_CHANGED)
    after = event.detail["after"]
    assert isinstance(after, dict)
    assert after["name"] == "ACME y Cía."


async def test_disabled_integrator_opens_no_session(console: Console) -> None:
    """Open ones end, a good key is told why, a bad one as ever; and back again."""
    here = "/admin/integrators/acme"
    made = await console.front.integrators.create_key("operator", "acme", "backend")
    other = "y" if made.secret.endswith("x") else "x"
    sessions = console.services.sessions
    await sessions.open("acme", made.secret)
    assert "terminan ahora" in (await console.get(f"{here}/disable")).text

    done = await console.post(f"{here}/disable")

    assert done.location == here
    assert "Deshabilitado" in (await console.get("/admin/integrators")).text
    told = "no abren sesiones hasta que lo habilites"
    assert told in (await console.get(here)).text
    assert len(await console.services.audited(EventKind.SESSION_ENDED)) == 1
    with pytest.raises(ApplianceError) as refused:
        await sessions.open("acme", made.secret)
    assert refused.value.code is ErrorCode.INTEGRATOR_DISABLED
    with pytest.raises(ApplianceError) as refused:
        await sessions.open("acme", made.secret[:-1] + other)
    assert refused.value.code is ErrorCode.API_KEY_INVALID
    await console.post(f"{here}/enable")
    await sessions.open("acme", made.secret)
    assert told not in (await console.get(here)).text


async def test_what_is_to_be_copied_works_as_it_is(console: Console) -> None:
    """The pair of the trial and of the guide, its whole policy, and an end."""
    await console.front.integrators.create("operator", "copia", "Copia S.A.")
    text = unescape((await console.get("/admin/integrators/copia")).text)
    guide = Path(__file__).parents[3] / "docs" / "embedding.md"
    pair = 'cuil: "20-26756539-3", email: "bruno@demo.example"'

    assert pair in text
    assert pair in guide.read_text("utf-8")
    assert ("20267565393", "bruno@demo.example") in [
        (cuil, email) for cuil, _, email in PEOPLE
    ]
    web = console.front.settings.web
    assert f"frame-src {web.iframe_url}; connect-src 'self' {web.base_url}" in text
    assert ".cancelled" in text
    assert "ana@example.com" not in text


async def test_webhooks_page_shows_words_of_a_later_version(console: Console) -> None:
    """A type, a failure and a reason that this one has no sentence for."""
    webhook, message = await given_up(console)
    async with console.front.core.store.write() as transaction:
        for changed in (
            tables.webhook_message.update().values(kind="solicitud.otra"),
            tables.webhook_attempt.update().values(failure="otra_falla"),
            tables.webhook_endpoint.update().values(
                disabled=console.clock.now(), disabled_reason="otra_causa"
            ),
        ):
            await transaction.connection.execute(changed)

    page = (await console.get(webhook)).text
    assert "solicitud.otra" in page
    assert "otra_causa" in page
    delivery = (await console.get(f"{webhook}/deliveries/{message}")).text
    assert "solicitud.otra" in delivery
    assert "otra_falla" in delivery
