"""Proofs that a count of wrong signing passwords was cleared by who may.

The row of a signing secret says when its count was last set to nothing, with a keyed
hash. API, frame and console have the lookup key: an officer's unlocking and a right
password at another front are told from a row that somebody altered.

Source: docs/keys.md "What bounds guesses".
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.ids import PersonId
from appliance.domain.ports import LookupIndex

_PURPOSE: Final = "signing-count-cleared"
_SALT_DIGITS: Final = 32
_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Clearing:
    """One proven clearing of a person's count."""

    at: datetime
    salt_sha256: str
    """Of the password's salt at that time: the beginning of it, hex."""

    def is_of(self, salt: bytes) -> bool:
        """Return whether it was of the password that has this salt."""
        return self.salt_sha256 == _salt_sha256(salt)


class CountClearings:
    """Makes and checks such proofs.

    Args:
        lookup: with the key of `secrets.lookup_key_file`.
    """

    def __init__(self, lookup: LookupIndex) -> None:
        self._lookup = lookup

    def prove(self, person: PersonId, salt: bytes, at: datetime) -> str:
        """Prove that a person's count is cleared now, to be stored with it.

        Args:
            person: whose.
            salt: of their signing password as it stands.
            at: the time.
        """
        stated = f"{at.isoformat()}|{_salt_sha256(salt)}"
        return f"{stated}|{self._lookup.index(_PURPOSE, _value(person, stated))}"

    def proven(self, person: PersonId, proof: str | None) -> Clearing | None:
        """Read a stored proof; None for none, or one that is not of this person.

        Args:
            person: whose row has it.
            proof: as stored.
        """
        parts = (proof or "").split("|")
        if len(parts) != _PARTS:
            return None
        at, salt_sha256, index = parts
        indexes = self._lookup.indexes(_PURPOSE, _value(person, f"{at}|{salt_sha256}"))
        known = [hmac.compare_digest(index.encode(), each.encode()) for each in indexes]
        if not any(known):
            return None
        return Clearing(datetime.fromisoformat(at), salt_sha256)


def _salt_sha256(salt: bytes) -> str:
    return hashlib.sha256(salt).hexdigest()[:_SALT_DIGITS]


def _value(person: PersonId, stated: str) -> str:
    return f"{person}|{stated}"
