"""Integrators' webhooks: endpoints, what is sent to them, and how it is signed.

Source: Standard Webhooks 1.0.0 (https://www.standardwebhooks.com), "Webhook metadata"
and "Signature scheme".
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.vocab import MessageState, WebhookEvent

_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """Where an integrator wants to be told of what happens."""

    id: str
    integrator: IntegratorId
    url: str
    label: str
    events: tuple[str, ...]
    """Each a `WebhookEvent`, or one that an earlier version does not know: what it
    wants to be told of; none: everything."""
    created: datetime
    disabled: datetime | None = None
    disabled_reason: str | None = None
    """A `WebhookDisabled`, or a word of a later version."""
    failing_since: datetime | None = None
    """Since when no try has succeeded; None: the last one has, or there was none."""
    former_until: datetime | None = None
    """Until when the secret before the present one signs as well."""
    removed: datetime | None = None
    """Since when it is as absent as one that never was."""

    @property
    def is_on(self) -> bool:
        """Whether anything is sent to it."""
        return self.disabled is None and self.removed is None

    def wants(self, event: WebhookEvent) -> bool:
        """Whether it is to be told of an event.

        Args:
            event: its type.
        """
        return self.is_on and (not self.events or event in self.events)


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """What is sent to an endpoint until it takes it."""

    id: str
    """The header `webhook-id`, the same in all tries; by time."""
    endpoint: str
    event: int | None
    """`integrator_event.id`; None: it tells of nothing there."""
    kind: str
    """A `WebhookEvent`, or a word of a later version."""
    request: RequestId | None
    body: str
    """JSON, as it is signed and sent."""
    created: datetime
    state: MessageState
    tries: int
    due: datetime
    """When it is tried next, if it is pending."""


@dataclass(frozen=True, slots=True)
class WebhookAttempt:
    """One try to deliver a message."""

    message: str
    at: datetime
    status: int | None
    """HTTP status of the answer, if there was one."""
    failure: str | None
    """A `DeliveryFailure`; None: it was delivered."""
    took_ms: int
    answer: str = field(repr=False)
    """How the answer's body begins: up to 1,000 printable characters."""


def new_secret() -> str:
    """Make what signs messages: `whsec_` and 32 random bytes in Base64."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signed_headers(
    message: str, body: bytes, at: datetime, keys: Sequence[str]
) -> Mapping[str, str]:
    """The headers by which a receiver knows whose a message is.

    Args:
        message: its id.
        body: as it is sent.
        at: of this try.
        keys: secrets as `new_secret` makes them; two while one takes over.
    """
    timestamp = str(int(at.timestamp()))
    signed = b".".join((message.encode(), timestamp.encode(), body))
    return {
        "webhook-id": message,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(_signature(key, signed) for key in keys),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    mac = hmac.digest(key, signed, hashlib.sha256)
    return "v1," + base64.b64encode(mac).decode()
