"""What signs an endpoint's messages, as it is kept: sealed under the data key."""

from typing import Final

from appliance.database.tables import webhook_endpoint
from appliance.domain.ports import Sealer

PRESENT: Final = webhook_endpoint.c.secret_sealed.name
FORMER: Final = webhook_endpoint.c.former_secret_sealed.name


def sealed_secret(
    sealer: Sealer, endpoint: str, secret: str, column: str = PRESENT
) -> bytes:
    """Seal a secret for its place.

    Args:
        sealer: with the data key.
        endpoint: its id.
        secret: as `new_secret` made it.
        column: `PRESENT`, or `FORMER` for one that another takes over from.
    """
    return sealer.seal(
        secret.encode(), table=webhook_endpoint.name, row=endpoint, column=column
    )


def opened_secret(
    sealer: Sealer, endpoint: str, sealed: bytes, column: str = PRESENT
) -> str:
    """Undo `sealed_secret`.

    Raises:
        ApplianceError: `STORE_UNAVAILABLE`: it was sealed under another key, or for
            another place.
    """
    return sealer.open(
        sealed, table=webhook_endpoint.name, row=endpoint, column=column
    ).decode()
