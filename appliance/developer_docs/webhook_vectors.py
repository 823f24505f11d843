"""Messages with their signatures, for whoever writes a receiver to try it out.

The code that signs webhooks makes them, of a secret, ids, times and bodies that never
change; so what the page and the file tell is what is sent.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from appliance.domain.integrators.webhooks import signed_headers
from appliance.domain.vocab import WebhookEvent
from appliance.webhooks.bodies import body

SECRET: Final = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="  # noqa: S105 (known to all)
NEXT_SECRET: Final = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="  # noqa: S105 (known to all)
_HAPPENED: Final = datetime(2026, 11, 27, 12, 0, 0, tzinfo=UTC)
_SENT: Final = datetime(2026, 11, 27, 12, 0, 1, tzinfo=UTC)
_MESSAGE: Final = "019ac5f0-7c00-7000-8000-0000000000ff"
_TOLD: Final = {
    "procesoId": "019ac5f0-7c00-7000-8000-000000000001",
    "solicitudId": 4711,
    "referencia": "recibo-4711",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "nivel": "B-LT",
}


@dataclass(frozen=True, slots=True)
class WebhookVector:
    """A message, and whether a receiver that knows the secret takes it."""

    name: str
    secret: str
    headers: dict[str, str]
    body: str
    is_valid: bool


def vectors() -> list[WebhookVector]:
    """Good ones first: plain, other letters, two secrets; then what to refuse."""
    plain = _signed("simple", body(WebhookEvent.REQUEST_SIGNED, _HAPPENED, _TOLD))
    letters = {**_TOLD, "referencia": "año 2026 · «ñandú»"}
    return [
        plain,
        _signed("unicode", body(WebhookEvent.REQUEST_SIGNED, _HAPPENED, letters)),
        _signed("rotacion", plain.body, (NEXT_SECRET, SECRET)),
        replace(
            plain,
            name="cuerpo_alterado",
            body=plain.body.replace("4711", "4712"),
            is_valid=False,
        ),
        replace(
            plain,
            name="otro_momento",
            headers={**plain.headers, "webhook-timestamp": "1795780802"},
            is_valid=False,
        ),
        replace(plain, name="otro_secreto", secret=NEXT_SECRET, is_valid=False),
    ]


def vectors_file() -> bytes:
    """All of them as JSON, to be downloaded."""
    told = [
        {
            "nombre": each.name,
            "secreto": each.secret,
            "encabezados": each.headers,
            "cuerpo": each.body,
            "valido": each.is_valid,
        }
        for each in vectors()
    ]
    return (json.dumps(told, ensure_ascii=False, indent=2) + "\n").encode()


def as_message(vector: WebhookVector) -> str:
    """A vector as the page shows it: headers, an empty line, the body."""
    lines = [f"{name}: {value}" for name, value in vector.headers.items()]
    return "\n".join([*lines, "", vector.body])


def _signed(name: str, text: str, secrets: Sequence[str] = (SECRET,)) -> WebhookVector:
    headers = dict(signed_headers(_MESSAGE, text.encode(), _SENT, secrets))
    return WebhookVector(name, SECRET, headers, text, is_valid=True)
