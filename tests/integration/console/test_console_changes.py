"""Every change that the console makes leaves a row of the audit."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.domain.trust_store import AnchorPurpose
from tests.support.faces.console import NAME, PASSWORD, PDF, Site
from tests.support.faces.console_forms import (
    ANA,
    ANA_DIGITS,
    HERE,
    begin_anew,
    change_telephone,
    enter,
    invitation,
    key_id,
    lock,
    open_acme_site,
    open_session,
    proven,
    sha256,
    upload,
    with_secret,
)
from tests.support.factories.held_credential import hold
from tests.support.pki.outside_ca import OutsideCa, bundle

OTHER = "otra clave muy larga"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_site(tmp_path) as made:
        yield made


async def test_every_change_leaves_a_row(site: Site) -> None:
    """Each route that takes a form is recorded, but for two that change no record."""
    person = await with_secret(site)
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
    await open_session(site, "eva")
    eva, chosen = "/admin/administrators/eva", {"password": OTHER, "again": OTHER}
    same = {"password": PASSWORD, "again": PASSWORD}
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
        "integrators.set_prefix": site.post(f"{HERE}/prefix", event_prefix="acme"),
        "integrators.rename": site.post(f"{HERE}/name", name="ACME"),
        "integrators.disable": site.post(f"{HERE}/disable"),
        "integrators.enable": site.post(f"{HERE}/enable"),
        "requests.cancel": site.post("/admin/requests/1/cancel"),
        "administrators.end_sessions": site.post(f"{eva}/sessions"),
        "administrators.disable": proven(site, f"{eva}/disable"),
        "administrators.enable": proven(site, f"{eva}/enable"),
        "administrators.reset_totp": proven(site, f"{eva}/totp"),
        "administrators.set_password": proven(site, f"{eva}/password", **chosen),
        "administrators.forget": proven(site, f"{eva}/tries"),
        "person.forget": proven(site, f"{here}/tries"),
        "person.reset_totp": proven(site, f"{here}/totp"),
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
        "account.set_password": proven(
            site, "/admin/account/password", present=PASSWORD, **same
        ),
        "account.take_totp": change_telephone(site),
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

    # An offer is kept nowhere: it counts once a code of it came.
    alone = {"login.choose_language", "account.offer_totp"}
    assert taking - steps.keys() == alone
