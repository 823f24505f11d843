"""Revocation PINs: what a person who has lost everything else still has on paper.

    pins = RevocationPins(store, clock, passwords)
    pin = await pins.make()
    ...
    await pins.put(transaction, person, pin, actor)

A PIN does nothing but revoke. It is made here, shown once, and kept as a hash.
"""

import re
import secrets
from dataclasses import dataclass, field
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.vocab import EventKind, PersonState
from appliance.keys.password_hashing import Passwords
from appliance.people.person_store import PersonStore
from appliance.pki.validation.trust_store import RevocationPinStore
from appliance.record.unit_of_work import Database, Transaction

_LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Without I, L, O and U, which are read wrong. Source: Crockford's Base32."""
_LENGTH: Final = 12
_GROUP: Final = 4
_MISREAD: Final = str.maketrans("ILO", "110")
_SEPARATORS: Final = re.compile(r"[\s\-.\u2010-\u2015]+")
LONGEST_TYPED: Final = 64
"""Characters of what somebody may type for a PIN."""


@dataclass(frozen=True, slots=True)
class NewPin:
    """A PIN that was just made."""

    text: str = field(repr=False)
    """As it is shown, once: `XXXX-XXXX-XXXX`, 60 random bits."""
    phc: str = field(repr=False)
    """Its Argon2id hash."""


class RevocationPins:
    """Makes PINs and checks them.

    Args:
        store: the record.
        clock: the time.
        passwords: hashes them as login passwords are.
    """

    def __init__(self, store: Database, clock: Clock, passwords: Passwords) -> None:
        self._store = store
        self._clock = clock
        self._passwords = passwords

    async def make(self) -> NewPin:
        """Make a PIN, for `put`; hashing is slow and belongs in no transaction."""
        drawn = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
        groups = [drawn[at : at + _GROUP] for at in range(0, _LENGTH, _GROUP)]
        return NewPin("-".join(groups), await self._passwords.hash(drawn.encode()))

    async def put(
        self, transaction: Transaction, person: PersonId, pin: NewPin, actor: str
    ) -> None:
        """Make a PIN a person's, within the caller's transaction.

        Args:
            transaction: the caller's.
            person: whose; an earlier PIN is over.
            pin: of `make`.
            actor: for the audit.
        """
        await RevocationPinStore(transaction).set(person, pin.phc, self._clock.now())
        transaction.audit.add(
            AuditEvent(EventKind.REVOCATION_PIN_SET, actor, detail={"person": person})
        )

    async def renew(self, person: PersonId, actor: str) -> str:
        """Give a person a new PIN.

        Args:
            person: who has enrolled.
            actor: for the audit.

        Returns:
            The PIN, shown once.

        Raises:
            ApplianceError: `PERSON_NOT_FOUND`; `PERSON_STATE` for somebody who
                has not enrolled.
        """
        pin = await self.make()
        async with self._store.write() as transaction:
            found = await PersonStore(transaction).get(person)
            if found is None:
                raise ApplianceError(ErrorCode.PERSON_NOT_FOUND)
            if found.state is PersonState.INVITED:
                raise ApplianceError(
                    ErrorCode.PERSON_STATE, params={"state": found.state.value}
                )
            await self.put(transaction, person, pin, actor)
        return pin.text

    async def is_right(self, phc: str | None, typed: str) -> bool:
        """Check what was typed; takes as long without a PIN to compare with.

        Args:
            phc: what is kept, or None when there is nothing.
            typed: as typed: case, spaces and hyphens do not count.
        """
        return await self._passwords.verify(phc, plain(typed) or b"-")


def plain(typed: str) -> bytes:
    """What was typed as it was hashed; nothing of what cannot be a PIN.

    Args:
        typed: by a person.
    """
    if len(typed) > LONGEST_TYPED:
        return b""
    bare = _SEPARATORS.sub("", typed).upper().translate(_MISREAD)
    return bare.encode() if len(bare) == _LENGTH and bare.isascii() else b""
