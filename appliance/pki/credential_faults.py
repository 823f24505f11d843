"""Credentials that signing workers refuse, as the console shows them beforehand."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.domain.errors import (
    ApplianceError,
    CredentialRefusedError,
    ErrorCode,
)
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.keys.hsm_keys import KeyMode, KeyReference, TokenRole
from appliance.domain.people.identity import Credential, Person
from appliance.domain.pki.trust_store import AnchorPurpose
from appliance.domain.vocab import CredentialState, StatementFault
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.pki.validation.credential_statement import Authorities, read_statement
from appliance.pki.validation.trust_anchors import Trust
from appliance.record.unit_of_work import Database, Transaction

OwnFiles = Callable[[], tuple[bytes | None, bytes | None]]
"""Reads the installation's root and CA, DER; None for one that is not made yet."""


_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class FaultyCredential:
    """A credential that signing workers refuse."""

    credential: CredentialId
    cuil: str
    """Eleven digits of its person."""
    fault: StatementFault


class CredentialFaults:
    """Finds faults without the HSM and without the files of signing hosts.

    So it does not see that a key on the token is another person's, nor that a signing
    host does not pin a root of the trust store.

    Args:
        store: the record.
        trust: roots of outside CAs, as recorded.
        own: the installation's certificates.
    """

    def __init__(self, store: Database, trust: Trust, own: OwnFiles) -> None:
        self._store = store
        self._trust = trust
        self._own = own

    async def of(self, person: PersonId) -> dict[CredentialId, StatementFault]:
        """Faults of a person's credentials in use; none where the CA is not known.

        Args:
            person: whose.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        authorities = await self._authorities()
        if authorities is None:
            return {}
        async with self._store.read() as transaction:
            held = await CredentialStore(transaction).of_person(person)
            in_use = [one for one in held if one.state is CredentialState.ACTIVE]
            found = await _faults(transaction, in_use, authorities)
        return {one.credential: one.fault for one in found}

    async def all(self) -> AsyncIterator[FaultyCredential]:
        """Faults of everybody's credentials in use, by id.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`, also where the CA is not known.
        """
        authorities = await self._authorities()
        if authorities is None:
            raise ApplianceError(ErrorCode.STORE_UNAVAILABLE)
        last = ""
        while True:
            async with self._store.read() as transaction:
                held = await CredentialStore(transaction).in_use(last, _BATCH)
                found = await _faults(transaction, held, authorities)
            for one in found:
                yield one
            if not held:
                return
            last = held[-1].id

    async def _authorities(self) -> Authorities | None:
        """CAs that count, those of the record included; None before `hsm init`."""
        root, ca = self._own()
        if root is None or ca is None:
            return None
        outside = await self._trust.roots(AnchorPurpose.SIGNERS)
        return Authorities((root, ca), tuple(outside))


async def _faults(
    transaction: Transaction, held: Sequence[Credential], authorities: Authorities
) -> list[FaultyCredential]:
    """Those of some credentials that have a fault."""
    found = []
    for one in held:
        person = await PersonStore(transaction).get(one.person)
        fault = None if person is None else _fault(person, one, authorities)
        if person is not None and fault is not None:
            found.append(FaultyCredential(one.id, person.cuil, fault))
    return found


def _fault(
    person: Person, credential: Credential, authorities: Authorities
) -> StatementFault | None:
    """The check that a credential fails; None: each that can be made here holds."""
    try:
        read_statement(person, credential, authorities)
    except CredentialRefusedError as exc:
        return exc.fault
    if credential.key_mode is KeyMode.RESIDENT:
        cka_id = credential.cka_id or b""
        is_elsewhere = credential.key_token != TokenRole.FIRMA.value
        if is_elsewhere or KeyReference(TokenRole.FIRMA, cka_id).is_own:
            return StatementFault.RESIDENT
    return None
