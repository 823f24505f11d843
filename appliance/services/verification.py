"""What anybody may know of a signature, by the code in its stamp.

Whoever has the code has seen the stamp, which shows who signed and when. So the page
behind it confirms that, and tells the hash by which a copy can be compared; it hands
out neither the document nor its name, nor any number of the signer. A copy may be older
than the newest version, which holds more proof or more signatures: it is told too.

Source: decisions "verification page".
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from appliance.domain.ids import RequestId
from appliance.domain.records import Records, Store
from appliance.domain.request import SignedVersion
from appliance.domain.stamp_details import CODE_CHARACTERS, CODE_LENGTH
from appliance.domain.stamp_words import mask_name

# What people and Crockford's base 32 hold for the same.
_SAME: Final = str.maketrans("OIL", "011")


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

    def __init__(self, store: Store) -> None:
        self._store = store

    async def look(self, code: str) -> KnownSignature | None:
        """What is known of the published signature with a code.

        Args:
            code: as it was scanned or typed.

        Returns:
            None for a code of nothing, or of nothing that was published.
        """
        asked = code.upper().translate(_SAME)
        if len(asked) != CODE_LENGTH or not set(asked) <= set(CODE_CHARACTERS):
            return None
        async with self._store.read() as records:
            found = await records.activations.by_code(asked)
            if found is None:
                return None
            person = await records.people.get(found.person)
            versions = await _versions(records, found.request)
        if person is None or not versions:
            return None
        newest, *earlier = reversed(versions)
        return KnownSignature(
            mask_name(person.name), found.signed_at, newest, tuple(earlier)
        )


async def _versions(records: Records, request: RequestId) -> list[SignedVersion]:
    """Every version of the document with a signature, oldest first.

    Those who sign after it append to the same document, and its stamp is on theirs.
    """
    view = await records.requests.get(request)
    if view is None:
        return []
    process = await records.requests.of_process(view.process)
    places = {each.id: each.seq for each in process if each.seq >= view.seq}
    found = await records.documents.versions(places)
    return sorted(found, key=lambda version: places[version.request])
