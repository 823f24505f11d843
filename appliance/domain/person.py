"""People of the installation and their tax number.

Source: facts "Argentina" (CUIL).
"""

import re
from dataclasses import dataclass
from datetime import datetime

from appliance.domain.errors import FieldInvalidError
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.vocab import CredentialState, PersonState, VouchedBy

_WEIGHTS = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
_PERSON_TYPES = frozenset({"20", "23", "24", "27"})
_CUIL = re.compile(r"(\d{2})-?(\d{8})-?(\d)", re.ASCII)


def parse_cuil(text: str, field: str = "cuil") -> str:
    """Read a person's CUIL, with or without dashes.

    Args:
        text: `XX-XXXXXXXX-X` or eleven digits.
        field: the name that an error gives to it.

    Returns:
        The eleven digits.

    Raises:
        FieldInvalidError: wrong form, not a person's type, or wrong check digit
            (a remainder of 1 has no digit).

    Source: facts "Argentina".
    """
    match = _CUIL.fullmatch(text)
    if match is None or match[1] not in _PERSON_TYPES:
        raise FieldInvalidError(field, "XX-XXXXXXXX-X")
    digits = match[1] + match[2]
    total = sum(w * int(d) for w, d in zip(_WEIGHTS, digits, strict=True))
    remainder = total % 11
    if remainder == 1 or int(match[3]) != (11 - remainder) % 11:
        raise FieldInvalidError(field, "XX-XXXXXXXX-X")
    return digits + match[3]


def format_cuil(cuil: str) -> str:
    """Eleven digits as people write them, `XX-XXXXXXXX-X`."""
    return f"{cuil[:2]}-{cuil[2:10]}-{cuil[10:]}"


@dataclass(frozen=True, slots=True)
class Person:
    """A natural person who signs; belongs to the installation."""

    id: PersonId
    cuil: str
    """Eleven digits."""
    name: str
    state: PersonState
    locale: str
    """`es` or `en`."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A person's key and certificate."""

    id: CredentialId
    person: PersonId
    key_mode: str
    """`resident` (wrapped keys come with password-bound keys)."""
    key_token: str
    """Label of the token that holds the key."""
    cka_id: bytes
    """CKA_ID of the key pair on that token."""
    certificate: bytes
    """DER."""
    chain: tuple[bytes, ...]
    """DER, issuer first, root last."""
    not_before: datetime
    not_after: datetime
    vouched_by: VouchedBy
    state: CredentialState

    def usable_at(self, at: datetime) -> bool:
        """Whether it may sign at a time: in force, and within its dates."""
        return (
            self.state is CredentialState.ACTIVE
            and self.not_before <= at < self.not_after
        )
