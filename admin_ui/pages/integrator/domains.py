"""Origins whose pages may show an integrator's frame, and those that tried."""

from typing import Any

from quart import Blueprint, Response, request

from admin_ui import session
from admin_ui.core import core
from admin_ui.render import NONE, again, faults_of, go, page
from admin_ui.session import is_partial
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import is_id
from appliance.domain.integrators.integrators import DomainView

blueprint = Blueprint(
    "domains", __name__, url_prefix="/admin/integrators/<code>/domains"
)
_FIELDS = {"origin": "origin", "ALREADY_EXISTS": "origin"}


async def _listed(code: str) -> dict[str, Any]:
    return {
        "view": await core().integrators.get(code),
        "domains": await core().integrators.domains(code),
        "blocked": await core().integrators.blocked_origins(code),
    }


@blueprint.get("")
async def show(code: str) -> Response:
    """`GET …/domains`."""
    template = "parts/blocked.html" if is_partial() else "domains.html"
    return await page(template, faults=NONE, origin="", **await _listed(code))


@blueprint.post("")
async def add(code: str) -> Response:
    """`POST …/domains`: allow an origin, typed or one that was blocked."""
    origin = session.form().text("origin")
    try:
        await core().integrators.add_domain(session.actor(), code, origin)
    except ApplianceError as exc:
        return await again(
            "domains.html",
            faults_of(exc, _FIELDS),
            origin=origin,
            **await _listed(code),
        )
    return go("domains.show", code=code, done="domain-added")


@blueprint.get("/allow")
async def ask_allow(code: str) -> Response:
    """`GET …/domains/allow?origin=…`: what it means to allow one that tried."""
    wanted = request.args.get("origin", "")
    for row in await core().integrators.blocked_origins(code):
        if row.origin == wanted:
            view = await core().integrators.get(code)
            return await page("domain_allow.html", view=view, row=row)
    return go("domains.show", code=code)


async def _domain(code: str, domain_id: str) -> DomainView | None:
    """A registered origin of an integrator; None: it was removed, or is another's.

    Raises:
        ApplianceError: `INTEGRATOR_NOT_FOUND`; `NOT_FOUND`: no domain has such an id.
    """
    if not is_id(domain_id):
        raise ApplianceError(ErrorCode.NOT_FOUND)
    for domain in await core().integrators.domains(code):
        if domain.id == domain_id:
            return domain
    return None


@blueprint.get("/<domain_id>/remove")
async def ask_remove(code: str, domain_id: str) -> Response:
    """`GET …/domains/{id}/remove`: what it means."""
    view = await core().integrators.get(code)
    domain = await _domain(code, domain_id)
    if domain is None:
        return go("domains.show", code=code, done="domain-gone")
    return await page("domain_remove.html", view=view, domain=domain)


@blueprint.post("/<domain_id>/remove")
async def remove(code: str, domain_id: str) -> Response:
    """`POST …/domains/{id}/remove`."""
    if await _domain(code, domain_id) is None:
        return go("domains.show", code=code, done="domain-gone")
    await core().integrators.remove_domain(session.actor(), domain_id)
    return go("domains.show", code=code, done="domain-removed")
