"""HSM tasks: what fronts and operators ask of the HSM.

An `issue` makes a key, tries it, has it certified, has it sign a sample that the
verifier must call valid, and locks it with its owner's unlock key, which came sealed.
What a killed try leaves is nothing (wrapped), or a key that its host knows to be left,
for the sweep (resident).
"""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, HsmUnavailableError
from appliance.domain.keys.hsm_keys import KeyMode, ResidentKey, TokenRole, WrappedKey
from appliance.domain.people.identity import Credential, credential_aad
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import CertificateKind, CredentialState, TaskKind
from appliance.keys.hsm_tasks import ORPHAN_AGE, HsmTasks, IssueOrder
from appliance.keys.key_encryption import PERMIT_BYTES, lock_outer
from appliance.metrics import metrics
from worker.failpoints import CERTIFIED, ISSUED, KEY_MADE, crash_point
from worker.hsm.connection import HsmStatus
from worker.hsm.generation_check import GenerationCheck
from worker.hsm.session import HsmSession
from worker.leased_worker import FencedOffError, GiveBack
from worker.pades.sample import SampleIdentity
from worker.pki.certificate_authority import Authority, CertificateSubject
from worker.pki.certificate_signing import IssuedCertificate
from worker.pki.certificate_tasks import CertificateTasks
from worker.pki.csr import CsrTasks
from worker.pki.new_keys import NewKey, NewKeys
from worker.pki.sample_signature import AWAY, SAMPLED_KINDS, SampleSignatures
from worker.pki.tsa_tasks import TimestampTasks
from worker.signing.activation_keys import ActivationKeys
from worker.signing.consent_journal import ConsentJournal

_log = structlog.get_logger(__name__)
TASK_RENEW_S: Final = 10.0
"""Time between two renewals of a task's lease, in seconds."""
_KEY_VERSION: Final = 1
"""Of a new credential's key."""


TOKENS: Final[dict[TaskKind, frozenset[TokenRole]]] = {
    TaskKind.ISSUE: frozenset({TokenRole.FIRMA, TokenRole.PKI}),
    TaskKind.RENEW: frozenset({TokenRole.PKI}),
    TaskKind.REVOKE: frozenset({TokenRole.PKI}),
    TaskKind.CSR: frozenset({TokenRole.FIRMA}),
    TaskKind.PUBLISH: frozenset({TokenRole.PKI}),
    TaskKind.TIMESTAMP: frozenset({TokenRole.PKI}),
}
"""Whose keys each kind of task needs."""


@dataclass(frozen=True, slots=True)
class _MadeKey:
    """A key that was tested and certified, and is known to nobody yet."""

    issued: IssuedCertificate
    spki: bytes
    wrapped: WrappedKey | None = None
    resident: ResidentKey | None = None
    noted: NewKey | None = None
    """What this host knows of a resident one."""


@dataclass(frozen=True, slots=True)
class TaskRunner:
    """Runs HSM tasks in a signing worker.

    Args:
        tasks: this worker's transactions.
        authority: makes resident keys, and certifies all.
        session: the HSM.
        keys: opens what was sealed to this host.
        journal: of this host, by which a task that ended opens nothing again.
        clock: the time.
        mode: where a new user's key is kept.
        installation: the setting of that name.
        certificates: does the tasks about certificates that are there.
        requests: does the tasks of certificate signing requests.
        timestamps: does the tasks of the internal TSA.
        served: whether the HSM serves this record.
        samples: tries the certificates of new keys.
        new_keys: resident keys that this host is making.
    """

    tasks: HsmTasks
    authority: Authority
    session: HsmSession
    keys: ActivationKeys
    journal: ConsentJournal
    clock: Clock
    mode: KeyMode
    installation: str
    certificates: CertificateTasks
    requests: CsrTasks
    timestamps: TimestampTasks
    served: GenerationCheck
    samples: SampleSignatures
    new_keys: NewKeys

    async def claim_next(self) -> TaskClaim | None:
        """Take the oldest task that nobody has in hand and whose tokens are there.

        One whose token is away waits, and uses up none of its attempts; so do those
        that need the sandbox while it does not answer, and all while the HSM serves
        another record.
        """
        if not await self.served.look():
            return None
        ready = {
            role
            for role in TokenRole
            if self.session.status_of(role) is HsmStatus.READY
        }
        kinds = [kind for kind in TaskKind if TOKENS[kind] <= ready]
        if not kinds or not await self.tasks.any_claimable(kinds):
            return None
        sampled = SAMPLED_KINDS.intersection(kinds)
        # The sandbox is asked only when a task waits that needs it.
        if (
            sampled
            and await self.tasks.any_claimable(sampled)
            and not await self.samples.can_be_verified()
        ):
            kinds = [kind for kind in kinds if kind not in SAMPLED_KINDS]
        return await self.tasks.claim_next(kinds) if kinds else None

    async def renew(self, claim: TaskClaim) -> bool:
        """Prolong a task's lease; False when another worker has claimed since."""
        return await self.tasks.renew(claim)

    async def run(self, claim: TaskClaim) -> GiveBack | None:
        """Run a task; an HSM that is away leaves it for later.

        Returns:
            How to give it up, where it cannot be done.
        """
        try:
            await self._do(claim)
            metrics.TASKS.labels(claim.kind.value, "done").inc()
        except HsmUnavailableError as exc:
            metrics.TASKS.labels(claim.kind.value, "postponed").inc()
            _log.warning("task.postponed", task=claim.id, reason=exc.reason)
        except ApplianceError as exc:
            if exc.code in AWAY:
                # It says nothing of the certificate: the lease lapses, and the task
                # is claimed again once the sandbox answers.
                self.samples.was_away()
                metrics.TASKS.labels(claim.kind.value, "postponed").inc()
                _log.warning("task.postponed", task=claim.id, reason=exc.code.value)
                return None
            metrics.TASKS.labels(claim.kind.value, exc.code.value).inc()
            layer = getattr(exc, "layer", "")
            _log.warning(
                "task.failed",
                task=claim.id,
                code=exc.code.value,
                layer=layer,
                reason=getattr(exc, "reason", ""),
            )
            return partial(self._failed, claim, exc.code.value, layer)
        return None

    async def _failed(self, claim: TaskClaim, reason: str, layer: str) -> None:
        """Give a task up, on the record and then for this host."""
        if await self.tasks.failed(claim, reason, layer) and claim.seal is not None:
            self.journal.end(claim.id)

    async def _do(self, claim: TaskClaim) -> None:
        """What a kind of task asks for.

        Raises:
            ApplianceError: why it cannot be done.
        """
        if claim.kind is TaskKind.ISSUE:
            await self._issue(claim)
        elif claim.kind is TaskKind.CSR:
            await self.requests.run(claim)
        elif claim.kind is TaskKind.TIMESTAMP:
            await self.timestamps.run(claim)
        else:
            await self.certificates.run(claim)

    async def _issue(self, claim: TaskClaim) -> None:
        """Generate, self-test, certify, prove, commit: in this order and no other."""
        order = await self.tasks.issue_order(claim)
        # First of all: where it does not open, no key is made.
        begin = partial(self.journal.demand_not_ended, claim.id)
        unlock = self.keys.unlock(claim.seal, order.binding.info(), begin)
        subject = CertificateSubject(
            order.person.name, order.person.cuil, order.vouched_by
        )
        if self.mode is KeyMode.WRAPPED:
            made = await self._make_wrapped(order, subject)
        else:
            made = await self._make_resident(claim, order, subject)
        crash_point(CERTIFIED, claim.id)
        try:
            await self._prove(claim, order, made)
        except (ApplianceError, FencedOffError):
            await self._discard(made)
            raise
        credential = self._credential(order, made, unlock)
        if made.noted is not None:
            # From here on a credential may have it, whatever becomes of this commit.
            self.new_keys.keep(made.noted)
        record = self.authority.record(
            made.issued, CertificateKind.SIGNER, credential.id
        )
        if await self.tasks.issued(claim, credential, record):
            self.journal.end(claim.id)
            crash_point(ISSUED, claim.id)
            _log.info("task.issued", task=claim.id, credential=credential.id)
        else:
            # Another try has come since, with a key of its own.
            await self._discard(made)

    async def _prove(self, claim: TaskClaim, order: IssueOrder, made: _MadeKey) -> None:
        """Have the new key sign a sample, and the verifier call it valid.

        Raises:
            FencedOffError: another worker has claimed since.
            ApplianceError: see `SampleSignatures.prove`.
        """
        key = made.wrapped or made.resident
        if key is None:
            raise ApplianceError(ErrorCode.INTERNAL)
        issued = made.issued
        signer = SampleIdentity(order.person.name, issued.certificate, issued.chain)
        await self.samples.prove(claim, key, signer)

    async def _discard(self, made: _MadeKey) -> None:
        """Destroy a new key; one that cannot be reached now is left to the sweep."""
        if made.noted is not None:
            with suppress(HsmUnavailableError):
                await self._destroy(made.noted)

    async def _destroy(self, key: NewKey) -> int:
        """Destroy a key that this host made for nobody; how many objects.

        Raises:
            HsmUnavailableError: the HSM cannot be used now.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        count = await self.session.destroy(key.reference)
        self.new_keys.destroyed(key)
        return count

    async def _make_wrapped(
        self, order: IssueOrder, subject: CertificateSubject
    ) -> _MadeKey:
        """A key that leaves nothing in the HSM, tested by its wrapped form."""
        wrapped = await self.session.generate_wrapped(order.algorithm)
        crash_point(KEY_MADE, order.binding.task)
        issued = await self.authority.issue(subject, wrapped.spki, self.clock.now())
        return _MadeKey(issued, wrapped.spki, wrapped=wrapped)

    async def _make_resident(
        self, claim: TaskClaim, order: IssueOrder, subject: CertificateSubject
    ) -> _MadeKey:
        """A key on the token, under an id that no other key has."""
        noted = self.new_keys.begin(claim)
        try:
            issued = await self.authority.enrol(
                noted.reference, order.algorithm, subject, self.clock.now()
            )
        except HsmUnavailableError:
            # It may be there: the sweep looks.
            raise
        except ApplianceError:
            self.new_keys.destroyed(noted)
            raise
        crash_point(KEY_MADE, claim.id)
        spki = _spki(issued.certificate)
        resident = ResidentKey(noted.cka_id, spki)
        return _MadeKey(issued, spki, resident=resident, noted=noted)

    def _credential(
        self, order: IssueOrder, made: _MadeKey, unlock: bytes
    ) -> Credential:
        """The credential, its key locked so that its owner's password opens it."""
        binding, wrapped, resident = order.binding, made.wrapped, made.resident
        aad = credential_aad(
            self.installation,
            binding.person,
            binding.credential,
            _KEY_VERSION,
            made.spki,
        )
        # A resident key is never used but by who can open its permit.
        inner = secrets.token_bytes(PERMIT_BYTES) if not wrapped else wrapped.blob_k
        return Credential(
            id=binding.credential,
            person=binding.person,
            key_mode=self.mode,
            algorithm=binding.algorithm,
            key_version=_KEY_VERSION,
            spki=made.spki,
            outer=lock_outer(unlock, inner, aad),
            master=wrapped.master if wrapped else None,
            blob_w=wrapped.blob_w if wrapped else None,
            method_w=wrapped.method_w if wrapped else None,
            method_k=wrapped.method_k if wrapped else None,
            key_token=TokenRole.FIRMA.value,
            cka_id=resident.cka_id if resident else None,
            certificate=made.issued.certificate,
            chain=made.issued.chain,
            not_before=made.issued.not_before,
            not_after=made.issued.not_after,
            vouched_by=binding.vouched_by,
            state=CredentialState.ACTIVE,
        )

    async def sweep(self) -> int:
        """Destroy what killed tries left on the token; how many objects.

        Only keys that this host itself began to make are touched, an hour later. The
        record is not asked: it could name anybody's key.

        Raises:
            HsmUnavailableError: the HSM cannot be used now; nothing is lost. Or it
                serves another record.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        await self.served.demand()
        destroyed = 0
        for key in self.new_keys.left(ORPHAN_AGE):
            count = await self._destroy(key)
            if count:
                await self.tasks.orphan_destroyed(key.task, key.person, count)
            destroyed += count
        return destroyed


def _spki(certificate: bytes) -> bytes:
    """SubjectPublicKeyInfo of a certificate, DER."""
    key = x509.load_der_x509_certificate(certificate).public_key()
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
