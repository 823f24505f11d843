"""Check of a credential before its key is used: is it the person's, by its certificate.

Each worker believes the CAs of files on its own host. The installation's CA counts
always. A root of an outside CA counts if the host's operator pinned it; in an upgraded
installation that is not closed yet, roots of the record count, too.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from appliance.domain.errors import CredentialRefusedError
from appliance.domain.people.identity import Credential, Person
from appliance.domain.signing.activation import ActivationFormat
from appliance.domain.vocab import StatementFault
from appliance.keys.activation_format import PinnedFormat
from appliance.pki.validation.credential_statement import (
    Authorities,
    Statement,
    read_statement,
)
from appliance.pki.validation.pinned_anchors import PinnedAnchors

_KEPT: Final = 4096
"""Results that are kept, about 2 MB."""
_Result = Statement | tuple[StatementFault, str]


class CredentialStatements:
    """Checks credentials, each combination of certificate, chain and person once.

    Args:
        own: the installation's root and CA, DER, of files.
        pinned: roots of outside CAs that this host believes.
        formats: tells whether what an earlier version believed still counts.
        recorded: reads the roots of the record that are trusted for signers, DER.
    """

    def __init__(
        self,
        own: tuple[bytes, ...],
        pinned: PinnedAnchors,
        formats: PinnedFormat,
        recorded: Callable[[], Awaitable[Sequence[bytes]]],
    ) -> None:
        self._own = own
        self._pinned = pinned
        self._formats = formats
        self._recorded = recorded
        self._results: OrderedDict[bytes, _Result] = OrderedDict()

    async def demand(
        self, person: Person, credential: Credential, at: datetime | None = None
    ) -> Statement:
        """Refuse a credential that is not the person's by its certificate.

        Args:
            person: as recorded; the credential's.
            credential: as recorded.
            at: time at which the certificate has to be valid, aware; None: any.

        Returns:
            Contents of the certificate.

        Raises:
            CredentialRefusedError: the first check that failed.
            ApplianceError: `STORE_UNAVAILABLE`: the pinned or recorded roots of
                outside CAs, which this chain needs, cannot be read.
        """
        try:
            found = self._read(person, credential, Authorities(self._own))
        except CredentialRefusedError as exc:
            if exc.fault is not StatementFault.ISSUER:
                raise
            outside = self._pinned.certificates()
            if self._formats.oldest < ActivationFormat.WHOLE:
                outside = (*outside, *await self._recorded())
            if not outside:
                raise
            authorities = Authorities(self._own, outside)
            found = self._read(person, credential, authorities)
        if at is not None:
            found.demand_at(at)
        return found

    def _read(
        self, person: Person, credential: Credential, authorities: Authorities
    ) -> Statement:
        """`read_statement`, once for the same bytes.

        Raises:
            CredentialRefusedError: the check that failed.
        """
        key = _digest(person, credential, authorities)
        result = self._results.get(key)
        if result is None:
            try:
                result = read_statement(person, credential, authorities)
            except CredentialRefusedError as exc:
                result = exc.fault, exc.reason
            self._results[key] = result
            if len(self._results) > _KEPT:
                self._results.popitem(last=False)
        else:
            self._results.move_to_end(key)
        if isinstance(result, Statement):
            return result
        raise CredentialRefusedError(*result)


def _digest(person: Person, credential: Credential, authorities: Authorities) -> bytes:
    """SHA-256 of all that a result depends on."""
    counted = hashlib.sha256()
    names = person.name.encode(), person.cuil.encode()
    one = credential.certificate, credential.spki
    several = credential.chain, authorities.own, authorities.outside
    for part in (*names, *one):
        counted.update(len(part).to_bytes(4, "big") + part)
    for parts in several:
        counted.update(len(parts).to_bytes(4, "big"))
        for part in parts:
            counted.update(len(part).to_bytes(4, "big") + part)
    return counted.digest()
