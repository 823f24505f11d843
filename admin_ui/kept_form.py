"""A form whose session had ended when it was sent: shown again after the next sign-in.

Its text fields go into a cookie, sealed, and come back on the page that the form stands
on, once and for whoever had typed them. The form keeps the version that it was sent
with, so that it undoes no change that somebody made meanwhile. Nothing is sent by
itself. Secrets and files are not kept. A form that is too large for a cookie is not
kept either, and both the sign-in and its page say so.

The same goes for a form of a session before the present one: its author signed in again
in another tab.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

from quart import Response, g, redirect, request

from admin_ui import edits, session
from admin_ui.core import core
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web import forms

_COOKIE: Final = "__Host-rubrica-form"
_MOST: Final = 3_800
"""Characters of the cookie; browsers take 4,096 with name and attributes."""
_LIFE: Final = timedelta(minutes=30)
_PLACE: Final = {"table": "console_session", "row": "form", "column": "typed"}
_TOO_LARGE: Final = frozenset({ErrorCode.BODY_TOO_LARGE, ErrorCode.DOCUMENT_TOO_LARGE})


class Outcome(StrEnum):
    """Fate of a form that was sent too late."""

    KEPT = "kept"
    LOST = "lost"
    """It was too large."""


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
        sent: Mapping[str, str] | None = await forms.read_texts()
    except ApplianceError as exc:
        if exc.code not in _TOO_LARGE:
            # It is no form of ours, and would be refused after signing in.
            return
        sent = None
    _put(answer, user, page, sent)


def back() -> Response | None:
    """Keep the form of the present request, which is of a session before this one.

    Returns:
        What sends the browser back to its page; None if there is nothing to keep, or
        the page is not known.
    """
    page = session.asked_page()
    if not page:
        return None
    answer: Any = redirect(page, HTTPStatus.SEE_OTHER)
    if session.is_partial():
        # A script follows redirects silently.
        answer = Response(b"", status=HTTPStatus.CONFLICT)
        answer.headers["HX-Redirect"] = page
    user = session.current().user.id
    return answer if _put(answer, user, page, session.form().fields) else None


def _put(
    answer: Response, user: str, page: str, sent: Mapping[str, str] | None
) -> bool:
    """Have the browser keep a form, or that it was too large to be kept.

    Args:
        answer: changed in place.
        user: id of its author.
        page: that it stands on.
        sent: its fields; None: there were too many bytes of them.

    Returns:
        False if nothing is kept: it had nothing that could be filled in again.
    """
    endpoint = request.endpoint or ""
    typed = None if sent is None else edits.without_secrets(sent)
    if not typed and typed is not None and endpoint not in edits.FORMS:
        return False
    about = {
        "user": user,
        "page": page,
        "until": (core().clock.now() + _LIFE).timestamp(),
        "endpoint": endpoint,
        "version": (sent or {}).get(edits.VERSION, ""),
    }
    value = _sealed({**about, "typed": typed})
    if len(value) > _MOST:
        value = _sealed({**about, "version": "", "typed": None})
    if len(value) > _MOST:
        # The address of its page is that long.
        return False
    answer.set_cookie(
        _COOKIE,
        value,
        max_age=int(_LIFE.total_seconds()),
        path="/",
        secure=True,
        httponly=True,
        samesite="Strict",
    )
    return True


def _sealed(kept: Mapping[str, object]) -> str:
    sealed = core().sealer.seal(json.dumps(kept).encode(), **_PLACE)
    return urlsafe_b64encode(sealed).decode()


def _opened() -> dict[str, Any] | None:
    """Form that the browser keeps; None: it cannot be opened, or is out of date."""
    value = request.cookies.get(_COOKIE, "")
    try:
        opened = core().sealer.open(urlsafe_b64decode(value[:_MOST]), **_PLACE)
    except (ValueError, ApplianceError):
        return None
    kept: dict[str, Any] = json.loads(opened)
    is_over = core().clock.now().timestamp() >= kept["until"]
    # An earlier release kept no version.
    return None if is_over or "version" not in kept else kept


def outcome() -> Outcome | None:
    """Fate of the form that this browser sent too late; None: it sent none."""
    kept = _opened()
    if kept is None:
        return None
    return Outcome.LOST if kept["typed"] is None else Outcome.KEPT


def restore() -> None:
    """Have the present page show the form that was kept for it, if there is one.

    After `edits.begin`, whose version of that form it replaces.
    """
    value = request.cookies.get(_COOKIE, "")
    if not value or request.method != "GET" or session.is_partial():
        return
    kept = _opened()
    if kept is None or kept["user"] != session.current().user.id:
        g.form_is_over = True
    elif kept["page"] == request.full_path.rstrip("?"):
        g.form_is_over = True
        is_lost = kept["typed"] is None
        g.restored = Outcome.LOST if is_lost else Outcome.KEPT
        # Boxes of other forms on the page are as stored where nothing was typed.
        g.typed = kept["typed"] or None
        if kept["endpoint"] in g.versions and not is_lost:
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
