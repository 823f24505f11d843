"""A form whose session had ended when it was sent: shown again after the next sign-in.

Its text fields go into a cookie, sealed, and come back on the page that the form stands
on, once and for whoever had typed them. The form keeps the version that it was sent
with, so that it undoes no change that somebody made meanwhile. Nothing is sent by
itself. Secrets and files are not kept, nor is a form that is too large for a cookie.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import timedelta
from typing import Final

from quart import Response, g, request

from admin_ui import edits, session
from admin_ui.core import core
from appliance.domain.errors import ApplianceError
from appliance.web import forms

_COOKIE: Final = "__Host-rubrica-form"
_MOST: Final = 3_800
"""Characters of the cookie; browsers take 4,096 with name and attributes."""
_LIFE: Final = timedelta(minutes=30)
_PLACE: Final = {"table": "console_session", "row": "form", "column": "typed"}


async def keep(answer: Response) -> None:
    """Keep the form of the present request, whose session is over.

    Args:
        answer: that sends the browser to the sign-in; changed in place.
    """
    user = await core().console.former_user(session.token())
    page = session.asked_page()
    if user is None or not page:
        return
    try:
        sent = await forms.read_texts()
    except ApplianceError:
        # It is no form of ours, and would be refused after signing in.
        return
    endpoint = request.endpoint or ""
    typed = edits.without_secrets(sent)
    kept = {
        "user": user,
        "page": page,
        "until": (core().clock.now() + _LIFE).timestamp(),
        "endpoint": endpoint,
        "version": sent.get(edits.VERSION, ""),
        "typed": typed,
    }
    sealed = core().sealer.seal(json.dumps(kept).encode(), **_PLACE)
    value = urlsafe_b64encode(sealed).decode()
    if (typed or endpoint in edits.FORMS) and len(value) <= _MOST:
        answer.set_cookie(
            _COOKIE,
            value,
            max_age=int(_LIFE.total_seconds()),
            path="/",
            secure=True,
            httponly=True,
            samesite="Strict",
        )


def restore() -> None:
    """Have the present page show the form that was kept for it, if there is one.

    After `edits.begin`, whose version of that form it replaces.
    """
    value = request.cookies.get(_COOKIE, "")
    if not value or request.method != "GET" or session.is_partial():
        return
    try:
        opened = core().sealer.open(urlsafe_b64decode(value[:_MOST]), **_PLACE)
    except (ValueError, ApplianceError):
        g.form_is_over = True
        return
    kept = json.loads(opened)
    is_over = core().clock.now().timestamp() >= kept["until"]
    # An earlier release kept no version.
    is_whole = "version" in kept
    if is_over or not is_whole or kept["user"] != session.current().user.id:
        g.form_is_over = True
    elif kept["page"] == request.full_path.rstrip("?"):
        g.form_is_over = True
        # Boxes of other forms on the page are as stored where nothing was typed.
        g.typed = kept["typed"] or None
        g.restored = True
        if kept["endpoint"] in g.versions:
            g.versions[kept["endpoint"]] = kept["version"]


def forget(response: Response) -> None:
    """Take a form that was shown, or is nobody's any more, from the browser.

    Args:
        response: of a page; changed in place.
    """
    if g.get("form_is_over"):
        response.delete_cookie(
            _COOKIE, path="/", secure=True, httponly=True, samesite="Strict"
        )
