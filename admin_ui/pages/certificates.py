"""Certificates that end soon: whose, when, and the way to each."""

from quart import Blueprint, Response

from admin_ui import lists, words
from admin_ui.core import core
from admin_ui.render import page

blueprint = Blueprint("certificates", __name__, url_prefix="/admin/certificates")


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/certificates`: those in use that end within 90 days; `?q=`: all."""
    asked = lists.asked("certificates.show", "q")
    found = await core().expiry.signers(lists.cursor(), asked.text("q"))
    return await page(
        "certificates.html",
        found=found,
        now=core().clock.now(),
        renew_days=core().settings.pki.renew_days,
        asked=asked,
        chips=asked.chips([("q", words.say("Search"), lists.plain)]),
        following=asked.after(found.following),
        paged=bool(lists.cursor()),
    )
