from typing import Any

from standardwebhooks import Webhook


def read_message(secret: str, body: bytes, headers: dict[str, str]) -> Any:
    """What a message says. Raises WebhookVerificationError where it is not ours.

    `body` as it came; names of headers in lower case.
    """
    return Webhook(secret).verify(body, headers)
