"""HSM tasks: what fronts and operators ask of the HSM.

An `issue` makes a key under an id that follows from the task, so that a task
that is run again first destroys what a killed run left behind.
"""

import asyncio
import contextlib
import hashlib
from dataclasses import dataclass
from typing import Final

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, HsmUnavailableError
from appliance.domain.hsm import KeyAlgorithm, KeyReference, TokenRole
from appliance.domain.ids import CredentialId
from appliance.domain.person import Credential
from appliance.domain.records.tasks import TaskClaim
from appliance.domain.vocab import CredentialState, TaskKind
from appliance.services.hsm_tasks import HsmTasks
from worker.authority import Authority, CertificateSubject
from worker.certificate_tasks import CertificateTasks

_log = structlog.get_logger(__name__)
_RENEW_S: Final = 10.0
_CKA_ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class TaskRunner:
    """Runs HSM tasks in a signing worker.

    Args:
        tasks: this worker's transactions.
        authority: makes keys and certifies them.
        clock: the time.
        algorithm: kind of a new user's key.
        certificates: does the tasks about certificates that are there.
    """

    tasks: HsmTasks
    authority: Authority
    clock: Clock
    algorithm: KeyAlgorithm
    certificates: CertificateTasks

    async def claim_next(self) -> TaskClaim | None:
        """Take the oldest task that nobody has in hand."""
        return await self.tasks.claim_next()

    async def run(self, claim: TaskClaim) -> None:
        """Run a task to its end; an HSM that is away leaves it for later."""
        holding = asyncio.create_task(self._hold(claim))
        try:
            if claim.kind is TaskKind.ISSUE:
                await self._issue(claim)
            else:
                await self.certificates.run(claim)
        except HsmUnavailableError as exc:
            _log.warning("task.postponed", task=claim.id, reason=exc.reason)
        except ApplianceError as exc:
            _log.warning("task.failed", task=claim.id, code=exc.code.value)
            await self.tasks.failed(claim, exc.code.value)
        finally:
            holding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await holding

    async def _hold(self, claim: TaskClaim) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            with contextlib.suppress(ApplianceError):
                await self.tasks.renew(claim)

    async def _issue(self, claim: TaskClaim) -> None:
        """Generate, self-test, certify, commit: in this order and no other."""
        order = await self.tasks.issue_order(claim)
        cka_id = hashlib.sha256(claim.id.encode()).digest()[:_CKA_ID_BYTES]
        reference = KeyReference(TokenRole.FIRMA, cka_id)
        issued = await self.authority.enrol(
            reference,
            self.algorithm,
            CertificateSubject(order.person.name, order.person.cuil, order.vouched_by),
            self.clock.now(),
        )
        credential = Credential(
            id=CredentialId(claim.id),
            person=order.person.id,
            key_mode="resident",
            key_token=TokenRole.FIRMA.value,
            cka_id=cka_id,
            certificate=issued.certificate,
            chain=issued.chain,
            not_before=issued.not_before,
            not_after=issued.not_after,
            vouched_by=order.vouched_by,
            state=CredentialState.ACTIVE,
        )
        record = self.authority.record(issued, credential.id)
        spki_sha256 = _spki_sha256(issued.certificate)
        if await self.tasks.issued(claim, credential, spki_sha256, record):
            _log.info("task.issued", task=claim.id, credential=credential.id)


def _spki_sha256(certificate: bytes) -> str:
    """SHA-256, in hex, of the SubjectPublicKeyInfo of a certificate."""
    key = x509.load_der_x509_certificate(certificate).public_key()
    spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(spki).hexdigest()
