"""Sample signature of a new key, made before its certificate is published.

What our own verifier does not call valid is of no use to anybody: such a certificate
is refused, and its key destroyed.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.keys.hsm_keys import DigestAlgorithm, ResidentKey, WrappedKey
from appliance.domain.ports import PdfInspector
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import TaskKind
from appliance.keys.hsm_tasks import HsmTasks
from appliance.keys.key_facts import certified_key_facts
from appliance.pki.validation.sample_report import demand_valid, judging
from worker.failpoints import SAMPLED, crash_point
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.leased_worker import FencedOffError
from worker.pades.algorithms import method_for
from worker.pades.sample import SampleIdentity, complete_sample, prepare_sample

SAMPLED_KINDS: Final = frozenset({TaskKind.ISSUE, TaskKind.RENEW})
"""Kinds of tasks that need the sandbox."""
AWAY: Final = frozenset({ErrorCode.SANDBOX_UNAVAILABLE, ErrorCode.OVERLOADED})
"""Errors that say nothing of a certificate: its task waits."""
_PING_S: Final = 2.0
"""Time for which the claim of a task waits for an answer, in seconds."""
_BELIEVED_S: Final = 60.0
_PAUSE_S: Final = 5.0
"""Time for which a sandbox that did not answer is not asked again, in seconds."""


@dataclass(slots=True)
class SampleSignatures:
    """Tries certificates of new keys, in a signing worker.

    Args:
        tasks: this worker's transactions.
        session: the HSM.
        inspector: the sandbox, which verifies.
        root: certificate of the installation's root, DER.
        clock: time of signatures.
        served: checks that the HSM and this database belong together.
        prefer_pss: RSA keys sign by PSS (`hsm.signature_scheme`).
        digest: of RSA keys' signatures.
    """

    tasks: HsmTasks
    session: HsmSession
    inspector: PdfInspector
    root: bytes = field(repr=False)
    clock: Clock
    served: GenerationCheck
    prefer_pss: bool = False
    digest: DigestAlgorithm = DigestAlgorithm.SHA256
    _ask_again_at: float = field(init=False, default=0.0)
    """Monotonic time, in seconds, like the next one."""
    _believed_until: float = field(init=False, default=0.0)
    _ping: asyncio.Task[bool] | None = field(init=False, default=None)
    """Question to the sandbox that was not answered yet."""

    async def can_be_verified(self) -> bool:
        """Return whether the sandbox answers; after a failure it rests a while.

        A slow answer holds up nothing else: it counts when it is asked for again. An
        answer is believed for a minute, so that enrolments in a row cost one question.
        """
        now = time.monotonic()
        if now < self._believed_until:
            return True
        if now < self._ask_again_at:
            return False
        ping = self._ping = self._ping or asyncio.create_task(self._answers())
        await asyncio.wait({ping}, timeout=_PING_S)
        if not ping.done():
            return False
        self._ping = None
        if ping.result():
            self._believed_until = time.monotonic() + _BELIEVED_S
            return True
        self.was_away()
        return False

    def was_away(self) -> None:
        """Note that the sandbox did not answer: it is asked before it is used."""
        self._believed_until = 0.0
        self._ask_again_at = time.monotonic() + _PAUSE_S

    async def _answers(self) -> bool:
        try:
            await self.inspector.ping()
        except ApplianceError:
            return False
        return True

    async def prove(
        self, claim: TaskClaim, key: ResidentKey | WrappedKey, signer: SampleIdentity
    ) -> None:
        """Sign a sample with a new key, and have the verifier judge it.

        The digest is recorded and audited before the key is used.

        Args:
            claim: of the `issue` task.
            key: that no credential has yet.
            signer: with the key's new certificate.

        Raises:
            FencedOffError: another worker has claimed since; the key was not used.
            HsmUnavailableError: the HSM cannot be used now.
            CertificateUnverifiableError: the verifier does not call it valid.
            ApplianceError: `SANDBOX_UNAVAILABLE` or `OVERLOADED`: it could not be
                verified now; `SIGNING_FAILED`: the key is not the certificate's.
        """
        method = method_for(
            signer.certificate, prefer_pss=self.prefer_pss, digest=self.digest
        )
        prepared = prepare_sample(signer, method, self.clock.now())
        await self.served.demand()
        named = certified_key_facts(signer.certificate)
        digest = prepared.digest.hex()
        if not await self.tasks.sample_intended(claim, digest, named):
            raise FencedOffError
        value = await self.session.sign(
            key, prepared.digest, method.scheme, method.digest
        )
        pdf = complete_sample(prepared, value, signer, method)
        crash_point(SAMPLED, claim.id)
        with judging():
            report = await self.inspector.verify(pdf, [self.root])
        demand_valid(report)
