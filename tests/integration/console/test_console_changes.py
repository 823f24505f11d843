"""Every change that the console makes leaves a row of the audit."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.vocab import HelpTopic
from tests.integration.console.forms import (
    ANA,
    ANA_DIGITS,
    HERE,
    begin_anew,
    change_telephone,
    enter,
    failed_request,
    from_page,
    given_up,
    invitation,
    key_form,
    key_id,
    lock,
    new_pin,
    open_acme_console,
    open_session,
    proven,
    sha256,
    upload,
    with_secret,
)
from tests.support.factories.held_credential import hold
from tests.support.installation.console import NAME, PASSWORD, PDF, Console
from tests.support.pki.outside_ca import OutsideCa, bundle

OTHER = "otra clave muy larga"


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


async def test_every_change_leaves_a_row(console: Console) -> None:
    """Each route that takes a form is recorded, but for two that change no record."""
    person = await with_secret(console)
    key, spare = await key_id(console, "a"), await key_id(console, "b")
    origin = "https://app.example"
    kept = await console.front.integrators.add_domain(
        "operator", "acme", f"{origin}:8443"
    )
    await lock(console, person)
    invited = await console.person("20267565393", "Luis", enrolled=False)
    failed = await failed_request(console)
    file = {"integrator": "acme", "cuil": ANA, "days": ""}
    here = f"/admin/people/{person}"
    held = await hold(console.services.store, person, ANA_DIGITS, console.clock.now())
    outside, later = (OutsideCa(console.clock.now(), name) for name in ("a", "b"))
    anchor = await console.front.trust.add(
        "operator", bundle(outside.root), AnchorPurpose.SIGNERS, sha256(outside)
    )
    chain = bundle(outside.certify(held.spki, ANA_DIGITS), outside.issuing)
    trusted = {"fingerprint": sha256(later), "purpose": "signers"}
    await open_session(console, "eva")
    eva, chosen = "/admin/administrators/eva", {"password": OTHER, "again": OTHER}
    same = {"password": PASSWORD, "again": PASSWORD}
    webhook, sent = await given_up(console)
    acme = (await console.front.integrators.get("acme")).id
    ask = console.services.help_requests.ask_in_frame
    await ask(person, HelpTopic.PHONE, acme, proven=False)
    asked = (await console.front.help_desk.newest(1))[0].id
    steps = {
        "integrators.create": console.post("/admin/integrators", code="b", name="B"),
        "keys.create": console.post(f"{HERE}/keys", **key_form(label="c")),
        "keys.rotate": console.post(f"{HERE}/keys/{key}/rotate", overlap="0"),
        "keys.revoke": console.post(f"{HERE}/keys/{spare}/revoke"),
        "domains.add": console.post(f"{HERE}/domains", origin=origin),
        "domains.remove": console.post(f"{HERE}/domains/{kept.id}/remove"),
        "webhooks.create": console.post(
            f"{HERE}/webhooks", url="https://app.example/otro", label=""
        ),
        "webhooks.change": console.post(
            f"{webhook}/change", url="https://app.example/x", label="cobros"
        ),
        "webhooks.rotate": from_page(console, f"{webhook}/rotate", how="overlap"),
        "webhooks.test": console.post(f"{webhook}/test"),
        "webhooks.replay_given_up": console.post(f"{webhook}/replay"),
        "webhooks.replay": console.post(f"{webhook}/deliveries/{sent}/replay"),
        "webhooks.disable": console.post(f"{webhook}/disable"),
        "webhooks.enable": console.post(f"{webhook}/enable"),
        "webhooks.remove": console.post(f"{webhook}/remove"),
        "profile.change": console.post(
            f"{HERE}/profile", level="B-B", policy="", digest=""
        ),
        "integrators.set_mail": console.post(
            f"{HERE}/mail", mails_signers="yes", reminder_days="3, 7", sign_url=""
        ),
        "stamp.show_logo": console.upload(f"{HERE}/stamp/logo", b"picture", "a.png"),
        "stamp.drop_logo": console.post(f"{HERE}/stamp/logo/remove"),
        "people.create": console.post(
            "/admin/people", **invitation(cuil="27301234568", email="eva@demo.example")
        ),
        "person.renew": from_page(console, f"/admin/people/{invited}/link"),
        "person.close_help": console.post(f"{here}/help", request=asked),
        "person.unlock": console.post(f"{here}/unlock", code=console.code()),
        "requests.create": console.upload("/admin/requests", PDF, "a.pdf", **file),
        "integrators.set_prefix": console.post(f"{HERE}/prefix", event_prefix="acme"),
        "integrators.rename": console.post(f"{HERE}/name", name="ACME"),
        "integrators.set_vouch": console.post(f"{HERE}/vouch", allow="yes"),
        "integrators.disable": console.post(f"{HERE}/disable"),
        "integrators.enable": console.post(f"{HERE}/enable"),
        "requests.ask_again": console.post(f"/admin/requests/{failed}/again"),
        "requests.cancel": console.post("/admin/requests/2/cancel"),
        "administrators.end_sessions": proven(console, f"{eva}/sessions"),
        "administrators.disable": proven(console, f"{eva}/disable"),
        "administrators.enable": proven(console, f"{eva}/enable"),
        "administrators.reset_totp": proven(console, f"{eva}/totp"),
        "administrators.set_password": proven(console, f"{eva}/password", **chosen),
        "administrators.forget": proven(console, f"{eva}/tries"),
        "person.forget": proven(console, f"{here}/tries"),
        "person.reset_totp": proven(console, f"{here}/totp"),
        "person.disable": console.post(f"{here}/disable"),
        "person.enable": console.post(f"{here}/enable"),
        "credentials.renew": console.post(f"{here}/credentials/{held.id}/renew"),
        "credentials.import_chain": upload(
            console, f"{here}/credentials/{held.id}/chain", chain
        ),
        "credentials.revoke": console.post(
            f"{here}/credentials/{held.id}/revoke", reason="superseded"
        ),
        "credentials.new_pin": new_pin(console, here),
        "credentials.reissue": begin_anew(console, here),
        "trust.add": upload(console, "/admin/trust", bundle(later.root), **trusted),
        "trust.remove": console.post(f"/admin/trust/{anchor.id}/remove"),
        "account.set_password": proven(
            console, "/admin/account/password", present=PASSWORD, **same
        ),
        "account.take_totp": change_telephone(console),
        "login.leave": console.post("/admin/logout"),
        "login.enter": enter(console),
    }
    taking = {
        rule.endpoint
        for rule in console.app.url_map.iter_rules()
        if "POST" in (rule.methods or ())
    }
    (user,) = [u for u in await console.front.console.users() if u.name == NAME]

    for endpoint, step in steps.items():
        before = await console.rows_of(user.actor)
        answer = await step
        assert answer.status in {200, 303}, (endpoint, answer.text)
        assert await console.rows_of(user.actor) > before, endpoint

    # An offer is kept nowhere: it counts once a code of it came.
    alone = {"login.choose_language", "account.offer_totp"}
    assert taking - steps.keys() == alone
