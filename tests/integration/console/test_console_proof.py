"""Steps that cannot be undone ask for a code, unless one was given of late."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from admin_ui import proof
from admin_ui.edits import FORMS
from appliance.domain.pki.trust_store import AnchorPurpose
from tests.integration.console.forms import (
    ANA,
    ANA_DIGITS,
    HERE,
    key_id,
    open_acme_console,
    proven,
    sha256,
)
from tests.support.faces.page_forms import FormReader, PageForm
from tests.support.factories.held_credential import hold
from tests.support.installation.console import PDF, Answer, Console
from tests.support.pki.outside_ca import OutsideCa, bundle

MINUTES_5 = 300


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


@dataclass(frozen=True)
class Step:
    """A step that cannot be undone: its path, and what is filled in."""

    path: str
    fields: dict[str, str]


async def steps(console: Console) -> dict[str, Step]:
    """Make something to be ended by each form of `RECENT`."""
    key, spare = await key_id(console, "a"), await key_id(console, "b")
    person = await console.person()
    held = await hold(console.services.store, person, ANA_DIGITS, console.clock.now())
    invited = await console.person("20267565393", "Luis", enrolled=False)
    outside = OutsideCa(console.clock.now(), "a")
    anchor = await console.front.trust.add(
        "operator", bundle(outside.root), AnchorPurpose.SIGNERS, sha256(outside)
    )
    domain = await console.front.integrators.add_domain(
        "operator", "acme", "https://app.example"
    )
    view = await console.front.integrators.get("acme")
    hooks = []
    for label in ("a", "b", "c"):
        made = await console.front.webhooks.create(
            "operator", view.id, "https://app.example/rubrica", label
        )
        hooks.append(f"{HERE}/webhooks/{made.endpoint.id}")
    await console.front.logos.show(b"picture", "operator", "acme")
    request = await console.request(ANA_DIGITS)
    here = f"/admin/people/{person}"
    return {
        "keys.rotate": Step(f"{HERE}/keys/{key}/rotate", {"overlap": "3600"}),
        "keys.revoke": Step(f"{HERE}/keys/{spare}/revoke", {}),
        "domains.remove": Step(f"{HERE}/domains/{domain.id}/remove", {}),
        "webhooks.rotate": Step(f"{hooks[0]}/rotate", {"how": "now"}),
        "webhooks.disable": Step(f"{hooks[1]}/disable", {}),
        "webhooks.remove": Step(f"{hooks[2]}/remove", {}),
        "stamp.drop_logo": Step(f"{HERE}/stamp/logo/remove", {}),
        "requests.cancel": Step(f"/admin/requests/{request}/cancel", {}),
        "credentials.revoke": Step(
            f"{here}/credentials/{held.id}/revoke", {"reason": "superseded"}
        ),
        "person.disable": Step(f"{here}/disable", {}),
        "person.renew": Step(f"/admin/people/{invited}/link", {}),
        "trust.remove": Step(f"/admin/trust/{anchor.id}/remove", {}),
        "integrators.set_vouch": Step(f"{HERE}/vouch", {"allow": "yes"}),
        "integrators.disable": Step(f"{HERE}/disable", {}),
    }


def form_of(answer: Answer, path: str) -> PageForm:
    """Return the form of a page that goes to a path."""
    (form,) = [f for f in FormReader(path, answer.text).forms if f.path == path]
    return form


async def test_each_irreversible_step_asks_for_a_code(console: Console) -> None:
    """Without one nothing is done; what was filled in goes on with the code."""
    wanted = await steps(console)
    assert wanted.keys() == proof.RECENT
    user = f"console:{console.name}"
    (signed_in,) = [u for u in await console.front.console.users() if u.name == "marta"]
    user = signed_in.actor

    for endpoint, step in wanted.items():
        console.clock.forward(MINUTES_5)
        before = await console.rows_of(user)
        asked = await console.post(step.path, **step.fields)
        assert asked.status == 422, (endpoint, asked.text)
        assert "Confirmá que sos vos" in asked.text, endpoint
        assert not asked.fault_of("code"), endpoint
        assert re.search(r'<input id="f-code"[^>]* autofocus', asked.text), endpoint
        assert await console.rows_of(user) == before, endpoint

        form = form_of(asked, step.path)
        assert form.shown == ["code"], endpoint
        for name, text in step.fields.items():
            assert form.hidden[name] == text, (endpoint, name)
        wrong = await console.post(step.path, **form.hidden, code="000000")
        assert wrong.fault_of("code"), endpoint
        form = form_of(wrong, step.path)
        done = await console.post(step.path, **form.hidden, code=console.code())
        assert done.status in {200, 303}, (endpoint, done.text)
        assert await console.rows_of(user) > before, endpoint


async def test_code_of_the_sign_in_counts(console: Console) -> None:
    """A step within five minutes of it asks for none, and its page says so."""
    key = await key_id(console)
    path = f"{HERE}/keys/{key}/revoke"

    page = await console.get(path)
    answer = await console.post(path)

    assert 'name="code"' not in page.text
    assert "Acabás de dar un código" in page.text
    assert answer.status == 303


async def test_code_counts_for_five_minutes_and_no_longer(console: Console) -> None:
    """To the second; the page has the field from then on."""
    key = await key_id(console)
    path = f"{HERE}/keys/{key}/revoke"
    await proven(console, f"/admin/people/{await console.person()}/tries")

    console.clock.forward(MINUTES_5 - 1)
    assert 'name="code"' not in (await console.get(path)).text
    console.clock.forward(1)
    page = await console.get(path)

    assert 'name="code"' in page.text
    assert (await console.post(path)).status == 422
    (kept,) = await console.front.integrators.keys("acme")
    assert kept.revoked is None


async def test_code_of_another_session_does_not_count(console: Console) -> None:
    """A second browser of the same administrator proves itself."""
    key = await key_id(console)
    console.clock.forward(MINUTES_5)
    old = dict(console.cookies)
    console.cookies.clear()
    await console.get("/admin/login")
    await console.sign_in()
    console.cookies = old
    await console.get("/admin/")

    answer = await console.post(f"{HERE}/keys/{key}/revoke")

    assert answer.status == 422
    assert "Confirmá que sos vos" in answer.text


async def test_what_always_asks_goes_on_asking(console: Console) -> None:
    """A code that was just given is not enough for a reset of somebody's factor."""
    person = await console.person()
    path = f"/admin/people/{person}/totp"

    page = await console.get(path)
    answer = await console.post(path)

    assert 'name="code"' in page.text
    assert answer.fault_of("code")


async def test_used_code_is_not_taken_again(console: Console) -> None:
    """The code of the sign-in proves nothing anew."""
    key = await key_id(console)
    used = console.totp.at(console.clock.now())
    console.clock.forward(MINUTES_5)

    answer = await console.post(f"{HERE}/keys/{key}/revoke", code=used)

    assert answer.status == 422
    assert answer.fault_of("code")


async def test_reversible_steps_ask_for_nothing(console: Console) -> None:
    """They are done at once, however old the code is."""
    console.clock.forward(MINUTES_5)

    renamed = await console.post(f"{HERE}/name", name="Otro")
    filled = {"integrator": "acme", "cuil": ANA, "days": ""}
    await console.person()
    asked = await console.upload("/admin/requests", PDF, "a.pdf", **filled)

    assert renamed.status == 303
    assert asked.status == 303


async def test_stale_form_costs_no_code(console: Console) -> None:
    """The version is looked at first: a code is used up by no form that is refused."""
    key = await key_id(console)
    path = f"{HERE}/keys/{key}/revoke"
    assert FORMS["keys.revoke"].page == "keys.ask_revoke"
    console.clock.forward(MINUTES_5)
    code = console.code()

    late = await console.post(path, version="old", code=code)
    done = await console.post(path, code=code)

    assert late.status == 412
    assert done.status == 303
