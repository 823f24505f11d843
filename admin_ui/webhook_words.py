"""What the console says of webhooks: words for events, states and failures."""

from collections.abc import Mapping
from itertools import groupby
from typing import Final

from admin_ui.words import N_
from appliance.domain.integrators.webhooks import WebhookEndpoint
from appliance.domain.vocab import (
    DeliveryFailure,
    MessageState,
    WebhookDisabled,
    WebhookEvent,
)

_REQUESTS: Final = N_("Signature requests")
_SESSIONS: Final = N_("Sessions")
_PEOPLE: Final = N_("People")
_REST: Final = N_("Keys and webhooks")
EVENTS: Final[dict[WebhookEvent, tuple[str, str]]] = {
    WebhookEvent.REQUEST_CREATED: (_REQUESTS, N_("Requested")),
    WebhookEvent.REQUEST_TURN: (_REQUESTS, N_("A signer's turn")),
    WebhookEvent.REQUEST_VIEWED: (_REQUESTS, N_("Seen by the signer")),
    WebhookEvent.REQUEST_CHANGED: (_REQUESTS, N_("Changed by the integrator")),
    WebhookEvent.REQUEST_REMINDED: (_REQUESTS, N_("Signer reminded")),
    WebhookEvent.REQUEST_SIGNED: (_REQUESTS, N_("Signed")),
    WebhookEvent.REQUEST_REJECTED: (_REQUESTS, N_("Rejected")),
    WebhookEvent.REQUEST_CANCELLED: (_REQUESTS, N_("Cancelled")),
    WebhookEvent.REQUEST_EXPIRED: (_REQUESTS, N_("Expired")),
    WebhookEvent.REQUEST_FAILED: (_REQUESTS, N_("Failed")),
    WebhookEvent.REQUEST_RETURNED: (_REQUESTS, N_("Not signed yet; can be retried")),
    WebhookEvent.REQUEST_COMPLETED: (_REQUESTS, N_("Signed by all")),
    WebhookEvent.BATCH_READY: (_REQUESTS, N_("Batch ready")),
    WebhookEvent.BATCH_REFUSED: (_REQUESTS, N_("Batch refused")),
    WebhookEvent.BATCH_ENDED: (_REQUESTS, N_("Batch over")),
    WebhookEvent.LEVEL_RAISED: (_REQUESTS, N_("Level raised")),
    WebhookEvent.SESSION_OPENED: (_SESSIONS, N_("Opened")),
    WebhookEvent.SESSION_COMPLETED: (_SESSIONS, N_("Completed")),
    WebhookEvent.SESSION_EXPIRED: (_SESSIONS, N_("Expired")),
    WebhookEvent.ORIGIN_BLOCKED: (_SESSIONS, N_("Page blocked")),
    WebhookEvent.SIGNER_READY: (_PEOPLE, N_("Ready to sign")),
    WebhookEvent.CERTIFICATE_EXPIRING: (_PEOPLE, N_("Certificate expiring soon")),
    WebhookEvent.KEY_FLAGGED: (_REST, N_("API key exposed")),
    WebhookEvent.KEY_EXPIRING: (_REST, N_("API key expiring soon")),
    WebhookEvent.WEBHOOK_TEST: (_REST, N_("Test event")),
    WebhookEvent.WEBHOOK_DISABLED: (_REST, N_("Another webhook turned off")),
}
"""Subject, and what happened to it."""

CHOICES: Final = [
    (subject, [*events])
    for subject, events in groupby(
        (event for event in EVENTS if event is not WebhookEvent.WEBHOOK_TEST),
        lambda event: EVENTS[event][0],
    )
]
"""Events by their subject, as forms have them: a test is sent whatever was chosen."""

MESSAGE_STATES: Final[dict[MessageState, tuple[str, str]]] = {
    MessageState.PENDING: (N_("To be sent"), "wait"),
    MessageState.DELIVERED: (N_("Delivered"), "good"),
    MessageState.GIVEN_UP: (N_("Given up"), "bad"),
    MessageState.WITHDRAWN: (N_("Withdrawn"), "quiet"),
}
"""Word and tone of each state."""

WHY_DISABLED: Final[Mapping[str, str]] = {
    WebhookDisabled.BY_INTEGRATOR: N_("It was turned off on purpose."),
    WebhookDisabled.GONE: N_("Its server answered 410: it wants nothing any more."),
    WebhookDisabled.FAILING: N_("No attempt succeeded for days, so it was turned off."),
}

FAILURES: Final[Mapping[str, str]] = {
    DeliveryFailure.TIMEOUT: N_("The answer took too long."),
    DeliveryFailure.CONNECTION: N_("No connection could be made, or it broke."),
    DeliveryFailure.NAME: N_("The name of its host is not known."),
    DeliveryFailure.TLS: N_("Its TLS certificate is not valid."),
    DeliveryFailure.REFUSED_ADDRESS: N_(
        "Its address is not public, and the settings do not allow it."
    ),
    DeliveryFailure.BAD_URL: N_("Its address is not one that can be called."),
    DeliveryFailure.REDIRECT: N_("It answered with a redirect, which is not followed."),
    DeliveryFailure.STATUS: N_("It answered with an error."),
    DeliveryFailure.GONE: N_("It answered that it wants nothing any more."),
    DeliveryFailure.BAD_ANSWER: N_("What it answered is not HTTP."),
    DeliveryFailure.SECRET: N_(
        "Its secret cannot be read: replace it, with only the new one signing."
    ),
}
"""Why an attempt failed."""


def event_word(kind: str) -> str:
    """What happened, of a message's type; that of a later version as it is.

    Args:
        kind: the type.
    """
    known = {each.value: word for each, (_, word) in EVENTS.items()}
    return known.get(kind, kind)


def standing(endpoint: WebhookEndpoint) -> tuple[str, str]:
    """Word and tone of how an endpoint stands.

    Args:
        endpoint: the endpoint.
    """
    if not endpoint.is_on:
        failed = endpoint.disabled_reason != WebhookDisabled.BY_INTEGRATOR
        return N_("Off"), "bad" if failed else "quiet"
    if endpoint.failing_since is not None:
        return N_("Failing"), "wait"
    return N_("On"), "good"
