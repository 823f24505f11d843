"""Client of Rúbrica's API for an integrator's backend.

    from rubrica_client import RubricaClient

    with RubricaClient("https://api.example.com", api_key) as client:
        made = client.requests.create(Path("contrato.pdf"), [{"cuil": "20-26756539-3"}])

`AsyncRubricaClient` has the same calls, to be awaited.
"""

from rubrica_client.client import AsyncRubricaClient, RubricaClient
from rubrica_client.errors import (
    ApiError,
    AuthenticationError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    IntegrityError,
    InvalidRequestError,
    NotFoundError,
    RateLimitedError,
    RubricaError,
    UnavailableError,
    WebhookError,
)
from rubrica_client.webhooks import read_webhook

__all__ = [
    "ApiError",
    "AsyncRubricaClient",
    "AuthenticationError",
    "ConflictError",
    "ConnectionFailedError",
    "ForbiddenError",
    "IntegrityError",
    "InvalidRequestError",
    "NotFoundError",
    "RateLimitedError",
    "RubricaClient",
    "RubricaError",
    "UnavailableError",
    "WebhookError",
    "read_webhook",
]
