"""What a webhook's receiver does: verify, then read."""

from collections.abc import Mapping

from standardwebhooks import Webhook, WebhookVerificationError

from rubrica_client.errors import WebhookError
from rubrica_client.models import WebhookMessage


def read_webhook(
    secret: str, body: bytes, headers: Mapping[str, str]
) -> WebhookMessage:
    """Verify a message's signature and time, and read it.

    Args:
        secret: of the webhook, `whsec_…`.
        body: as it came, before anything reads it as JSON.
        headers: of the call, in whatever case.

    Raises:
        WebhookError: it is not the service's, or more than five minutes old.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        message: WebhookMessage = Webhook(secret).verify(body, lower)
    except (WebhookVerificationError, ValueError) as exc:
        raise WebhookError(str(exc)) from exc
    return message
