"""A new revocation PIN, kept for some minutes by the browser that was shown it.

    sealed = kept_pins.seal(person, pin)    # into a cookie
    text = await kept_pins.open(person, sealed)    # "" once it is over

The server stores nothing of it. The browser has it sealed under the data key and cannot
open it; the sealed value names the person, a time and the hash that the PIN belongs to.
So it opens for that person alone, for `LIFE`, and only while the PIN is in force.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import PersonId
from appliance.domain.ports import Sealer
from appliance.pki.revocation_pins import NewPin
from appliance.pki.validation.trust_store import RevocationPinStore
from appliance.record.unit_of_work import Database

LIFE: Final = timedelta(minutes=10)
_LONGEST: Final = 1024
"""Characters of a sealed PIN that are looked at."""


class KeptPins:
    """Seals new PINs for the browser they are shown in, and opens them for a reload.

    Args:
        store: the record.
        sealer: with the data key.
        clock: the time.
    """

    def __init__(self, store: Database, sealer: Sealer, clock: Clock) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock

    def seal(self, person: PersonId, pin: NewPin) -> str:
        """Seal a PIN for `LIFE` from now; ASCII, fit for a cookie.

        Args:
            person: whose it is.
            pin: as `RevocationPins.make` makes it.
        """
        until = self._clock.now() + LIFE
        text = f"{pin.text} {until.isoformat()} {_digest(pin.phc)}"
        sealed = self._sealer.seal(
            text.encode(), table="revocation_pin", row=person, column="kept"
        )
        return urlsafe_b64encode(sealed).decode()

    async def open(self, person: PersonId, sealed: str) -> str:
        """Open what `seal` made.

        Args:
            person: whose page is shown.
            sealed: as the browser sent it.

        Returns:
            The PIN; empty for anything else than a PIN of this person that is in force
            and not over.
        """
        if not sealed:
            return ""
        try:
            opened = self._sealer.open(
                urlsafe_b64decode(sealed[:_LONGEST]),
                table="revocation_pin",
                row=person,
                column="kept",
            )
            pin, until, digest = opened.decode().split(" ")
            is_over = self._clock.now() >= datetime.fromisoformat(until)
        except (ValueError, ApplianceError):
            return ""
        if is_over:
            return ""
        async with self._store.read() as transaction:
            phc = await RevocationPinStore(transaction).get(person)
        # Another PIN may have been made since.
        return pin if phc is not None and _digest(phc) == digest else ""


def _digest(phc: str) -> str:
    return hashlib.sha256(phc.encode()).hexdigest()
