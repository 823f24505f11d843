"""Every page of the console in a real browser: axe, policy, pictures, widths."""

from dataclasses import dataclass

import pytest
from playwright.async_api import Page

from tests.parts.administrators import (
    Administrator,
    Town,
    build_town,
    new_administrator,
)
from tests.parts.appliance import Appliance
from tests.parts.browsers import LOOKS, Opener, axe


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


def tour(town: Town) -> list[Stop]:
    """Every page, with something on it, and those with nothing."""
    here = f"/admin/integrators/{town.code}"
    key, _ = town.keys
    locked = f"/admin/people/{town.locked.id}"
    return [
        Stop("home", "/admin/"),
        Stop("integrators", "/admin/integrators"),
        Stop("integrators-none", "/admin/integrators?only=flagged&x=1"),
        Stop("integrator-new", "/admin/integrators/new"),
        Stop("integrator", here),
        Stop("keys", f"{here}/keys"),
        Stop("key-rotate", f"{here}/keys/{key}/rotate"),
        Stop("key-revoke", f"{here}/keys/{key}/revoke"),
        Stop("domains", f"{here}/domains"),
        Stop("domain-remove", f"{here}/domains/{town.domain}/remove"),
        Stop("people", "/admin/people"),
        Stop("people-filtered", "/admin/people?q=fernandez&locked=yes"),
        Stop("people-nothing", "/admin/people?q=nadie"),
        Stop("person-new", "/admin/people/new"),
        Stop("person-locked", locked),
        Stop("person-unlock", f"{locked}/unlock"),
        Stop("person-disable", f"{locked}/disable"),
        Stop("person-invited", f"/admin/people/{town.invited}"),
        Stop("requests", "/admin/requests"),
        Stop("requests-filtered", "/admin/requests?state=firmada&q=contrato"),
        Stop("request-new", "/admin/requests/new"),
        Stop("request-pending", f"/admin/requests/{town.pending}"),
        Stop("request-signed", f"/admin/requests/{town.signed}"),
        Stop("audit", "/admin/audit"),
        Stop("audit-filtered", "/admin/audit?event=domain.added"),
        Stop("health", "/admin/health"),
        Stop("gallery", "/admin/_ui"),
        Stop("not-found", "/admin/nada"),
    ]


async def _fits(page: Page) -> bool:
    """Whether nothing has to be scrolled sideways."""
    fits: bool = await page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    return fits


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
async def test_every_page_is_sound(
    size: str,
    scheme: str,
    open_page: Opener,
    administrator: Administrator,
    town: Town,
) -> None:
    """No fault of accessibility, nothing blocked by the policy, nothing cut off."""
    page = await open_page(size, scheme)
    await page.goto(administrator.url("/admin/login"))
    faults = [f"login: {fault}" for fault in await axe(page)]
    await open_page.picture(page, f"console-login-{size}-{scheme}", full=True)
    await administrator.sign_in(page)

    for stop in tour(town):
        await page.goto(administrator.url(stop.path))
        faults += [f"{stop.name}: {fault}" for fault in await axe(page)]
        if not await _fits(page):
            faults.append(f"{stop.name}: wider than the window")
        await open_page.picture(page, f"console-{stop.name}-{size}-{scheme}", full=True)

    assert faults == []
