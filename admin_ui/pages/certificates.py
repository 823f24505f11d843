"""Certificates that end soon or were revoked: whose, when, and the way to each."""

from typing import Final

from quart import Blueprint, Response

from admin_ui import lists, words
from admin_ui.core import core
from appliance.domain.console.lists import Page, RevokedRow
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.pki.trust_store import Expiring
from appliance.domain.vocab import CredentialState

blueprint = Blueprint("certificates", __name__, url_prefix="/admin/certificates")
_WITHIN: Final = {
    "30": words.N_("30 days"),
    "7": words.N_("7 days"),
    "1": words.N_("1 day"),
}
"""Values of `?days=`, with their labels."""


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/certificates`: those in use that end within 90 days; `?q=`: all.

    `?days=`: those that end within so many. `?state=revoked`: those that were revoked
    instead, whatever `days` is.

    Raises:
        ApplianceError: `QUERY_INVALID` for another state or number of days.
    """
    asked = lists.asked("certificates.show", "q", "state", "days")
    state = asked.word("state", CredentialState)
    if state not in {None, CredentialState.REVOKED}:
        raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": "state"})
    text, is_revoked = asked.text("q"), state is CredentialState.REVOKED
    if is_revoked:
        asked.given.pop("days", None)
    days = asked.text("days")
    if days and days not in _WITHIN:
        raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": "days"})
    found: Page[Expiring] = Page((), None)
    revoked: Page[RevokedRow] = Page((), None)
    if not asked.wrong and is_revoked:
        revoked = await core().views.revoked(text, lists.cursor())
    elif not asked.wrong:
        within = int(days) if days else None
        found = await core().expiry.signers(lists.cursor(), text, within)
    named = [
        ("q", words.say("Search"), lists.plain),
        ("state", words.say("State"), lambda _: words.say("Revoked certificates")),
        ("days", words.say("Expire within"), lambda value: words.say(_WITHIN[value])),
    ]
    return await lists.show(
        "certificates.html",
        asked,
        named,
        revoked.following or found.following,
        found=found,
        revoked=revoked if is_revoked else None,
        within=_WITHIN,
        now=core().clock.now(),
        renew_days=core().settings.pki.renew_days,
    )
