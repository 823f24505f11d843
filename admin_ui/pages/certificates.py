"""Certificates that end soon or were revoked: whose, when, and the way to each."""

from quart import Blueprint, Response

from admin_ui import lists, words
from admin_ui.core import core
from appliance.domain.console import Page, RevokedRow
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.trust_store import Expiring
from appliance.domain.vocab import CredentialState

blueprint = Blueprint("certificates", __name__, url_prefix="/admin/certificates")


@blueprint.get("")
async def show() -> Response:
    """`GET /admin/certificates`: those in use that end within 90 days; `?q=`: all.

    `?state=revoked`: those that were revoked instead.

    Raises:
        ApplianceError: `QUERY_INVALID` for another state.
    """
    asked = lists.asked("certificates.show", "q", "state")
    state = asked.word("state", CredentialState)
    if state not in {None, CredentialState.REVOKED}:
        raise ApplianceError(ErrorCode.QUERY_INVALID, params={"field": "state"})
    text, is_revoked = asked.text("q"), state is CredentialState.REVOKED
    found: Page[Expiring] = Page((), None)
    revoked: Page[RevokedRow] = Page((), None)
    if not asked.wrong and is_revoked:
        revoked = await core().views.revoked(text, lists.cursor())
    elif not asked.wrong:
        found = await core().expiry.signers(lists.cursor(), text)
    named = [
        ("q", words.say("Search"), lists.plain),
        ("state", words.say("State"), lambda _: words.say("Revoked certificates")),
    ]
    return await lists.show(
        "certificates.html",
        asked,
        named,
        revoked.following or found.following,
        found=found,
        revoked=revoked if is_revoked else None,
        now=core().clock.now(),
        renew_days=core().settings.pki.renew_days,
    )
