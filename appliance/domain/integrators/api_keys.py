"""API keys: `rbk_{test|live}_{id}_{secret}`, checksum at the end.

The checksum keeps no secret; by it a scanner of leaks knows a key from a word
that looks like one, and a mistyped key is refused before anything is looked up.

Source: decisions "API keys".
"""

import re
import secrets
import string
import zlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from appliance.domain.vocab import Environment

_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID_ALPHABET: Final = string.digits + string.ascii_lowercase
_ID_LENGTH: Final = 12
_SECRET_LENGTH: Final = 43
"""Of 62 letters each: 256 bits."""
_CHECK_LENGTH: Final = 6
"""A CRC-32 in base 62."""
_KINDS: Final = {Environment.PREPROD: "test", Environment.PROD: "live"}
_FORM = re.compile(
    r"rbk_(?P<kind>test|live)_(?P<id>[0-9a-z]{12})_[0-9A-Za-z]{49}", re.ASCII
)
LOOKS_LIKE_ONE: Final = re.compile(r"rbk_(?:test|live)_", re.ASCII | re.IGNORECASE)
"""Found in whatever may be an API key, whole or not."""


class ApiKeyScope(StrEnum):
    """What a key may be used for; grammar `subject:read` or `subject:write`."""

    REQUESTS_READ = "requests:read"
    REQUESTS_WRITE = "requests:write"
    """Documents that are uploaded for them too."""
    PEOPLE_READ = "people:read"
    PEOPLE_WRITE = "people:write"
    SESSIONS_WRITE = "sessions:write"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"


FIRST_SCOPES: Final = (ApiKeyScope.SESSIONS_WRITE,)
"""Of keys that were made before there were scopes."""


@dataclass(frozen=True, slots=True)
class ApiKeyText:
    """An API key as text, and its parts that are no secret."""

    id: str
    text: str = field(repr=False)

    @property
    def hint(self) -> str:
        """How it is told from others: kind and last four characters."""
        return f"{self.text[:9]}…{self.text[-4:]}"


def new_api_key(environment: Environment) -> ApiKeyText:
    """Make a key.

    Args:
        environment: where it is to be valid.
    """
    key_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    body = f"rbk_{_KINDS[environment]}_{key_id}_{secret}"
    return ApiKeyText(key_id, body + checksum(body))


def read_api_key(text: str, environment: Environment) -> ApiKeyText | None:
    """Read a key; None for what no installation of this environment made.

    Args:
        text: as it came.
        environment: of this installation: a key of the other one is none.
    """
    match = _FORM.fullmatch(text)
    if match is None or match["kind"] != _KINDS[environment]:
        return None
    if checksum(text[:-_CHECK_LENGTH]) != text[-_CHECK_LENGTH:]:
        return None
    return ApiKeyText(match["id"], text)


def is_of_another(text: str, environment: Environment) -> bool:
    """Whether a text begins as keys of another environment do; that is no secret.

    Args:
        text: as it came.
        environment: of this installation.
    """
    return any(
        text.startswith(f"rbk_{kind}_")
        for other, kind in _KINDS.items()
        if other is not environment
    )


def checksum(body: str) -> str:
    """The six characters that follow a key's secret.

    Args:
        body: all before them, ASCII.
    """
    number = zlib.crc32(body.encode("ascii"))
    letters = []
    for _ in range(_CHECK_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(reversed(letters))
