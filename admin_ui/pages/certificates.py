"""Certificates that end soon: whose, when, and the way to each."""

from quart import Blueprint, Response

from admin_ui import lists, words
from admin_ui.core import core
from appliance.domain.console import Page
from appliance.domain.trust_store import Expiring

blueprint = Blueprint("certificates", __name__, url_prefix="/admin/certificates")


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/certificates`: those in use that end within 90 days; `?q=`: all."""
    asked = lists.asked("certificates.show", "q")
    found: Page[Expiring] = Page((), None)
    if not asked.wrong:
        found = await core().expiry.signers(lists.cursor(), asked.text("q"))
    return await lists.show(
        "certificates.html",
        asked,
        [("q", words.say("Search"), lists.plain)],
        found.following,
        found=found,
        now=core().clock.now(),
        renew_days=core().settings.pki.renew_days,
    )
