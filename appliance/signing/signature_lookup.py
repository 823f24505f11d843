"""What anybody may know of a signature, by the code in its stamp.

Whoever has the code has seen the stamp, which shows who signed and when. So the page
behind it confirms that, and tells the hashes by which a copy can be compared: a
document has another one after each further signature and timestamp. It hands out
neither the document nor its name, nor any number of the signer.

Source: decisions "verification page".
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.core.unit_of_work import Database
from appliance.documents.document_store import DocumentStore
from appliance.domain.appearance.details import CODE_CHARACTERS, CODE_LENGTH
from appliance.domain.appearance.text import mask_name
from appliance.domain.requests.request import SignedVersion
from appliance.people.person_store import PersonStore
from appliance.signing.activations.activation_store import ActivationStore

# What people and Crockford's base 32 hold for the same.
_SAME: Final = str.maketrans("OIL", "011")
_BETWEEN: Final = re.compile(r"[\s\u200b\ufeff._\u00ad\u2010-\u2015\u2212-]+")
"""What people and their programs put between the characters of a code."""
_LONGEST_TYPED: Final = 200


def read_code(typed: str) -> str | None:
    """The code that somebody means.

    Args:
        typed: as it was scanned, copied or typed: in any case, with blanks and
            hyphens wherever they are.

    Returns:
        As it is kept; None for what cannot be a code.
    """
    if len(typed) > _LONGEST_TYPED:
        return None
    code = _BETWEEN.sub("", typed).upper().translate(_SAME)
    if len(code) != CODE_LENGTH or not set(code) <= set(CODE_CHARACTERS):
        return None
    return code


@dataclass(frozen=True, slots=True)
class KnownSignature:
    """What the page of a signature tells."""

    signer: str
    """The name, masked."""
    signed_at: datetime
    newest: SignedVersion
    """Of the document with this signature."""
    earlier: tuple[SignedVersion, ...]
    """What it was before something was appended to it, newest first."""


class Verification:
    """Looks signatures up.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store

    async def look(self, code: str) -> KnownSignature | None:
        """What is known of the published signature with a code.

        Args:
            code: as it was scanned or typed.

        Returns:
            None for a code of nothing, or of nothing that was published.
        """
        asked = read_code(code)
        if asked is None:
            return None
        async with self._store.read() as transaction:
            found = await ActivationStore(transaction).by_code(asked)
            if found is None:
                return None
            person = await PersonStore(transaction).get(found.person)
            holding = await DocumentStore(transaction).holding(found.request)
        if person is None or not holding:
            return None
        newest, *earlier = holding
        return KnownSignature(
            mask_name(person.name), found.signed_at, newest, tuple(earlier)
        )
