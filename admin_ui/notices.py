"""What was just done, told once, at the top of the page that follows.

A change sends the browser on; the word of what it did goes with it in a cookie,
which the next whole page takes. No address carries it: a link cannot make a page
say what was not done, and a page that is loaded anew does not say it again.
"""

from typing import Final

from quart import Response, g, request

from admin_ui.session import is_partial
from admin_ui.words import N_, say

_COOKIE: Final = "__Host-rubrica-notice"
_LIFE_S: Final = 60
"""Seconds in which a browser follows where it is sent."""
_DONE: Final = {
    "administrator-disabled": N_("The administrator is disabled."),
    "administrator-enabled": N_("The administrator is enabled again."),
    "chain-imported": N_("The chain is imported: the person signs with it now."),
    "disabled": N_("The person is disabled."),
    "domain-added": N_("The domain is allowed."),
    "domain-gone": N_("The domain had been removed already."),
    "domain-removed": N_("The domain is removed."),
    "enabled": N_("The person is enabled again."),
    "forgotten": N_("The failed tries are forgotten."),
    "help-closed": N_("The request for help is closed."),
    "help-over": N_("That request for help was closed or withdrawn already."),
    "integrator-created": N_("The integrator is created."),
    "integrator-disabled": N_("The integrator is disabled."),
    "integrator-enabled": N_("The integrator is enabled again."),
    "key-rotated-before": N_(
        "That key has a successor already: the newest key of the same label."
    ),
    "key-revoked": N_("The API key is revoked."),
    "logo-removed": N_("The integrator's own logo is no longer shown."),
    "logo-set": N_("The logo is set: new stamps show it."),
    "password-set": N_("The password is changed."),
    "phone-changed": N_("The codes of the new phone count from now on."),
    "renewal-asked": N_("The renewal was requested."),
    "request-asked-again": N_("This request takes the place of the one that failed."),
    "request-cancelled": N_("The request is cancelled."),
    "request-created": N_("The request is created."),
    "revocation-asked": N_("The revocation was requested."),
    "root-added": N_("The root is trusted."),
    "root-gone": N_("The root had been removed already."),
    "root-removed": N_("The root is no longer trusted."),
    "saved": N_("The change is saved."),
    "sessions-ended": N_("The sessions are closed."),
    "deliveries-again": N_("What was given up is being sent again."),
    "delivery-again": N_("It is being sent again."),
    "webhook-disabled": N_("The webhook is turned off."),
    "webhook-enabled": N_("The webhook is on again."),
    "webhook-gone": N_("The webhook had been removed already."),
    "webhook-removed": N_("The webhook is removed."),
    "webhook-tested": N_("The test event is on its way."),
    "unlocked": N_("The signing password is unlocked."),
}
"""What is told of each thing done."""


def tell(response: Response, done: str) -> None:
    """Have the next page tell what was done.

    Args:
        response: that sends the browser there; changed in place.
        done: a word of `_DONE`.

    Raises:
        KeyError: no such word.
    """
    if done not in _DONE:
        raise KeyError(done)
    response.set_cookie(
        _COOKIE,
        done,
        max_age=_LIFE_S,
        path="/",
        secure=True,
        httponly=True,
        samesite="Strict",
    )


def told() -> str:
    """What the present page tells; empty for nothing, and in a part of a page."""
    if is_partial() or g.get("console") is None:
        return ""
    word = request.cookies.get(_COOKIE, "")
    return say(_DONE[word]) if word in _DONE else ""


def forget(response: Response) -> None:
    """Have no later page tell it again.

    Args:
        response: of the page that told it; changed in place.
    """
    response.delete_cookie(
        _COOKIE, path="/", secure=True, httponly=True, samesite="Strict"
    )
