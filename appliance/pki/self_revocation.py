"""Revoking one's own certificates with the revocation PIN, without a sign-in.

Whoever lost the phone cannot sign in any more and still has the paper with the
PIN. An unknown CUIL, a wrong PIN and a person without a PIN are one answer, by
the same work. A PIN has 60 bits, so tries are limited by address alone: who knows
a CUIL keeps nobody from revoking.

Source: research "Login, OTP"; RFC 3647, 4.9.
"""

from typing import Final

from appliance.admission.login_throttle import Attempt, Throttle
from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import typed_cuil
from appliance.domain.people.login import AttemptKind
from appliance.domain.ports import LookupIndex
from appliance.domain.vocab import CredentialState, EventKind, RevocationReason
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.revocation import Revocations
from appliance.pki.revocation_pins import RevocationPins
from appliance.pki.validation.trust_store import RevocationPinStore
from appliance.record.unit_of_work import Database, Transaction

_ACCOUNT: Final = "revocation-account"
_NOBODY: Final = PersonId("")
_OVER: Final = frozenset({CredentialState.REVOKING, CredentialState.REVOKED})


class SelfRevocation:
    """The use case of the page that revokes by PIN.

    Args:
        store: the record.
        lookup: indexes accounts, as tries are counted by.
        throttle: counts tries.
        pins: checks them.
        revocations: revokes.
    """

    def __init__(
        self,
        store: Database,
        lookup: LookupIndex,
        throttle: Throttle,
        pins: RevocationPins,
        revocations: Revocations,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._throttle = throttle
        self._pins = pins
        self._revocations = revocations

    async def revoke(
        self, cuil: str, pin: str, reason: RevocationReason, address: str
    ) -> int:
        """Revoke every credential of a person.

        Args:
            cuil: as typed.
            pin: as typed.
            reason: told in CRL and OCSP answers.
            address: where the call came from, as tries are counted by.

        Returns:
            How many were revoked; 0 when all were before.

        Raises:
            FieldInvalidError: `cuil` is none.
            ApplianceError: `REVOCATION_PIN_WRONG`, whatever is not right;
                `RATE_LIMITED`.
        """
        digits = typed_cuil(cuil)
        async with self._store.read() as transaction:
            person = await PersonStore(transaction).by_cuil(digits)
            known = person.id if person else None
            phc = await RevocationPinStore(transaction).get(known or _NOBODY)
        attempt = await self._throttle.begin(
            AttemptKind.REVOCATION,
            self._lookup.index(_ACCOUNT, digits),
            known,
            address,
        )
        right = await self._pins.is_right(phc, pin)
        if known is None or not right:
            await self._wrong(attempt, known)
            raise ApplianceError(ErrorCode.REVOCATION_PIN_WRONG)
        async with self._store.write() as transaction:
            await self._throttle.right(transaction, attempt, proven=False)
            return await self._revoke_all(transaction, known, reason)

    async def _revoke_all(
        self, transaction: Transaction, person: PersonId, reason: RevocationReason
    ) -> int:
        """Revoke what is not yet, those that gave way to a later one too."""
        actor = f"person:{person}"
        revoked = 0
        for held in await CredentialStore(transaction).of_person(person):
            issued = await CertificateStore(transaction).of_credential(held.id)
            # Of the first version's credentials no certificate is on record.
            if held.state not in _OVER and issued:
                await self._revocations.submit(transaction, held.id, reason, actor)
                revoked += 1
        return revoked

    async def _wrong(self, attempt: Attempt, person: PersonId | None) -> None:
        detail: dict[str, object] = {} if person is None else {"person": person}
        async with self._store.write() as transaction:
            await self._throttle.wrong(transaction, attempt)
            transaction.audit.add(
                AuditEvent(EventKind.REVOCATION_PIN_WRONG, "anonymous", detail=detail)
            )
