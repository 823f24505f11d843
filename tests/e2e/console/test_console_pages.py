"""Every page of the console in a real browser: axe, policy, pictures, widths."""

from dataclasses import dataclass
from typing import Final

import pytest
from quart import Quart

from admin_ui.app import page_blueprints
from appliance.web.app import Digits
from tests.support.appliance.administrators import (
    Administrator,
    Town,
    build_town,
    new_administrator,
)
from tests.support.appliance.appliance import Appliance
from tests.support.browsers.browsers import Opener
from tests.support.browsers.page_appearance import LOADED_AT, PageAppearance

NO_PAGES: Final = frozenset({"health.mark", "integrators.options", "login.show"})
"""A part of all pages, what a field offers, and what only strangers see."""


@pytest.fixture(scope="module")
def town(appliance: Appliance) -> Town:
    """A console with something on every page."""
    return build_town(appliance)


@pytest.fixture
def administrator(appliance: Appliance) -> Administrator:
    """Somebody new."""
    return new_administrator(appliance)


@dataclass(frozen=True)
class Stop:
    """A page to be looked at."""

    name: str
    path: str


def plain_pages() -> list[Stop]:
    """Every page whose address names nothing, by the map of addresses."""
    app = Quart("tour", static_folder=None)
    app.url_map.converters["digits"] = Digits
    for blueprint in page_blueprints():
        app.register_blueprint(blueprint)
    return [
        Stop(rule.endpoint, rule.rule)
        for rule in app.url_map.iter_rules()
        if "GET" in (rule.methods or ())
        and not rule.arguments
        and rule.endpoint not in NO_PAGES
    ]


def other_pages(town: Town) -> list[Stop]:
    """Those about something, with something on them, and those with nothing."""
    here = f"/admin/integrators/{town.code}"
    key, _ = town.keys
    webhook = f"{here}/webhooks/{town.webhook[0]}"
    locked = f"/admin/people/{town.locked.id}"
    signer = f"/admin/people/{town.signer}"
    credential = f"{signer}/credentials/{town.credential}"
    other = f"/admin/administrators/{town.administrator}"
    return [
        Stop("integrators-none", "/admin/integrators?only=flagged&x=1"),
        Stop("integrator", here),
        Stop("integrator-name", f"{here}/name"),
        Stop("integrator-disable", f"{here}/disable"),
        Stop("keys", f"{here}/keys"),
        Stop("key-rotate", f"{here}/keys/{key}/rotate"),
        Stop("key-revoke", f"{here}/keys/{key}/revoke"),
        Stop("domains", f"{here}/domains"),
        Stop("domain-allow", f"{here}/domains/allow?origin={town.blocked}"),
        Stop("domain-remove", f"{here}/domains/{town.domain}/remove"),
        Stop("webhooks", f"{here}/webhooks"),
        Stop("webhook", webhook),
        Stop("webhook-given-up", f"{webhook}?state=given_up"),
        Stop("webhook-nothing", f"{webhook}?state=pending&cursor=20000101T000000.0~x"),
        Stop("webhook-change", f"{webhook}/change"),
        Stop("webhook-rotate", f"{webhook}/rotate"),
        Stop("webhook-disable", f"{webhook}/disable"),
        Stop("webhook-remove", f"{webhook}/remove"),
        Stop("webhook-delivery", f"{webhook}/deliveries/{town.webhook[1]}"),
        Stop("profile", f"{here}/profile"),
        Stop("integrator-mail", f"{here}/mail"),
        Stop("stamp", f"{here}/stamp?fontColor=BLUE&motivo=Conforme&qr=yes"),
        Stop("stamp-wrong", f"{here}/stamp?fontColor=azul&fontSize=99"),
        Stop("people-filtered", "/admin/people?q=fernandez&locked=yes"),
        Stop("people-asking-help", "/admin/people?help=yes"),
        Stop("people-nothing", "/admin/people?q=nadie"),
        Stop("person-locked", locked),
        Stop("person-unlock", f"{locked}/unlock"),
        Stop("person-tries", f"{locked}/tries"),
        Stop("person-disable", f"{locked}/disable"),
        Stop("person-invited", f"/admin/people/{town.invited}"),
        Stop("person-certified", signer),
        Stop("person-totp", f"{signer}/totp"),
        Stop("credential-revoke", f"{credential}/revoke"),
        Stop("credential-chain", f"{credential}/chain"),
        Stop("person-reissue", f"{signer}/credentials/reissue"),
        Stop("trust-remove", f"/admin/trust/{town.anchor}/remove"),
        Stop("requests-filtered", "/admin/requests?state=firmada&q=contrato"),
        Stop("request-pending", f"/admin/requests/{town.pending}"),
        Stop("request-signed", f"/admin/requests/{town.signed}"),
        Stop("audit-filtered", "/admin/audit?event=domain.added"),
        Stop("audit-wrong", "/admin/audit?q=ana&request=abc"),
        Stop("person-link", f"/admin/people/{town.invited}/link"),
        Stop("pin-new", f"{signer}/credentials/pin"),
        Stop("credential-renew", f"{credential}/renew"),
        Stop("administrator", other),
        Stop("administrator-disable", f"{other}/disable"),
        Stop("administrator-enable", f"{other}/enable"),
        Stop("administrator-sessions", f"{other}/sessions"),
        Stop("administrator-tries", f"{other}/tries"),
        Stop("administrator-totp", f"{other}/totp"),
        Stop("administrator-password", f"{other}/password"),
        Stop("not-found", "/admin/nada"),
    ]


async def send(look: PageAppearance, name: str, /, **fields: str) -> None:
    """Fill fields, send the form, and look at what comes."""
    for field_name, value in fields.items():
        await look.page.locator(f"#f-{field_name}").fill(value)
    async with look.page.expect_navigation():
        await look.page.locator("main form button").first.click()
    await look.at(name)


async def test_every_page_is_sound(
    open_page: Opener, administrator: Administrator, town: Town
) -> None:
    """No fault of accessibility, nothing blocked by the policy, nothing cut off."""
    page = await open_page(LOADED_AT)
    look = PageAppearance(page, open_page, "console")
    await page.goto(administrator.url("/admin/login"))
    await look.at("login")
    await send(look, "login-wrong", name="nadie", password="x", code="1")
    await administrator.sign_in(page)

    for stop in plain_pages() + other_pages(town):
        await page.goto(administrator.url(stop.path))
        await look.at(stop.name)

    assert look.faults == []


async def test_every_answer_to_a_form_is_sound(
    open_page: Opener, administrator: Administrator, town: Town
) -> None:
    """The same of what is shown once, and of forms with something wrong in them."""
    page = await open_page(LOADED_AT)
    look = PageAppearance(page, open_page, "console")
    here = f"/admin/integrators/{town.code}"
    await administrator.sign_in(page)
    signer = f"/admin/people/{town.signer}"
    credential = f"{signer}/credentials/{town.credential}"
    other = f"/admin/administrators/{town.administrator}"
    forms = [
        ("integrator-wrong", "/admin/integrators/new", {"code": "Ñ", "name": ""}),
        ("integrator-name-wrong", f"{here}/name", {"name": ""}),
        ("key-created", f"{here}/keys", {"label": administrator.name}),
        ("key-wrong", f"{here}/keys", {"label": administrator.name}),
        ("webhook-wrong", f"{here}/webhooks", {"url": "ftp://x", "label": "x" * 61}),
        ("webhook-created", f"{here}/webhooks", {"url": "https://x.example/"}),
        ("domain-wrong", f"{here}/domains", {"origin": "http://*.example/x"}),
        ("person-wrong", "/admin/people/new", {"cuil": "1", "email": "x"}),
        ("unlock-wrong", f"/admin/people/{town.locked.id}/unlock", {"code": "1"}),
        ("request-wrong", "/admin/requests/new", {"cuil": "1", "days": "x"}),
        ("invited-again", f"/admin/people/{town.invited}/link", {}),
        ("trust-wrong", "/admin/trust/new", {"fingerprint": "x"}),
        ("chain-wrong", f"{credential}/chain", {}),
        ("revoke-wrong", f"{credential}/revoke", {}),
        ("disable-wrong", f"{other}/disable", {"code": "1"}),
        ("password-wrong", f"{other}/password", {"password": "x", "again": "y"}),
        ("person-totp-wrong", f"{signer}/totp", {"code": "1"}),
        ("own-totp-wrong", "/admin/account/totp", {"present": "x", "code": "1"}),
        ("reissue-wrong", f"{signer}/credentials/reissue", {"code": "1"}),
    ]

    for name, path, fields in forms:
        await page.goto(administrator.url(path))
        await send(look, name, **fields)
    await page.goto(administrator.url(f"{signer}/credentials/pin"))
    await send(look, "pin-created", code=administrator.code())
    await page.goto(administrator.url("/admin/account/totp"))
    code = administrator.code()
    await send(look, "own-totp-new", present=administrator.password, code=code)
    await page.goto(administrator.url(f"{other}/totp"))
    await send(look, "administrator-totp-made", code=administrator.code())
    await page.goto(administrator.url(f"{signer}/totp"))
    await send(look, "person-totp-made", code=administrator.code())
    await page.goto(administrator.url(f"{here}/disable"))
    await send(look, "integrator-disabled")
    async with page.expect_navigation():
        await page.get_by_role("button", name="Habilitar").click()

    assert look.faults == []
