"""Activations that wait for longer than a private half is kept are sealed again.

The last parts of a large batch may be claimed minutes after its owner's consent. Before
the private half goes that their unlock keys are sealed to, this host opens the seals,
with the checks of a signature, and seals to its newest key. Nothing is sealed again
past the end of the time that the consent names: `claim_by`, to which the seal is bound,
and a key phase. So a row that says otherwise keeps no unlock key alive.

Source: docs/keys.md "From the password to the key".
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError
from appliance.domain.signing.activation import Claim, Seal
from appliance.domain.vocab import ActivationState
from appliance.record.unit_of_work import Database
from appliance.signing.activations.aging_seal_store import AgingSealStore
from appliance.signing.claims import Claims
from worker.signing.activation_keys import ActivationKeys
from worker.signing.document_signer import DocumentSigner

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SealRenewal:
    """Keeps what waits openable for this host, for as long as it may wait.

    Args:
        store: the record.
        claims: reads what stands beside an activation.
        signer: knows what a seal is bound to.
        keys: of this host.
        clock: the time.
        host: its name.
        key_phase: time for the key phase after a claim; a second a document is added.
    """

    store: Database
    claims: Claims
    signer: DocumentSigner
    keys: ActivationKeys
    clock: Clock
    host: str
    key_phase: timedelta

    async def run(self) -> int:
        """Seal again what is sealed to the private half that goes next.

        Returns:
            How many seals were replaced.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`: the record, or the folder.
        """
        now = self.clock.now()
        async with self.store.read() as transaction:
            found = await AgingSealStore(transaction).due(
                self.host, self.keys.goes_next, now
            )
        renewed = [
            (claim.id, claim.seal, seal)
            for claim in found
            if claim.seal is not None
            and now < self._end(claim)
            and (seal := await self._renewed(claim)) is not None
        ]
        if not renewed:
            return 0
        async with self.store.write() as transaction:
            count = await AgingSealStore(transaction).replace(renewed)
        _log.info("activation.sealed_again", count=count, host=self.host)
        return count

    def _end(self, claim: Claim) -> datetime:
        """Return the end of the time that the consent names, whatever other rows say.

        The seal is bound to `claim_by` and to the documents: where they were altered,
        it does not open.
        """
        if claim.state is ActivationState.WAITING:
            return claim.claim_by
        phase = self.key_phase + timedelta(seconds=len(claim.documents))
        return claim.claim_by + phase

    async def _renewed(self, claim: Claim) -> Seal | None:
        """Return a new seal; None where the old one opens for nobody."""
        work = await self.claims.read_again(claim)
        try:
            return await self.signer.seal_again(work)
        except ApplianceError as exc:
            # Whoever claims it says so to its signer; here nothing is kept alive.
            _log.warning(
                "activation.not_sealed_again", activation=claim.id, code=exc.code.value
            )
            return None
