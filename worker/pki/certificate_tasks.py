"""HSM tasks about certificates that are there: publish, revoke, renew."""

from dataclasses import dataclass, field
from typing import Final

import structlog

from appliance.domain.clock import Clock
from appliance.domain.errors import (
    ApplianceError,
    CredentialRefusedError,
    ErrorCode,
)
from appliance.domain.ports import PdfInspector
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import CertificateKind, StatementFault, TaskKind
from appliance.pki.publication import Publishing
from appliance.pki.renewal import Renewal
from appliance.pki.validation.sample_report import demand_valid, judging
from worker.failpoints import REVOCATION_SIGNED, REVOCATION_STORED, crash_point
from worker.pki.certificate_authority import Authority, CertificateSubject
from worker.pki.publisher import Publisher
from worker.signing.credential_statement import CredentialStatements

_log = structlog.get_logger(__name__)
_BATCH: Final = 50
"""Answers that one commit stores."""
_BATCHES: Final = 40
"""Commits of one task; what is left then is the next one's."""
_TRIES: Final = 5
"""Times that a revocation is signed when other CRLs come in between."""


@dataclass(frozen=True, slots=True)
class CertificateTasks:
    """Does those tasks in a signing worker.

    Args:
        publisher: signs CRLs and OCSP answers.
        publishing: this worker's transactions of them.
        renewal: this worker's transactions of renewals.
        authority: certifies.
        clock: the time.
        inspector: the sandbox, which tries certificates.
        root: certificate of the installation's root, DER.
        statements: whose key a credential is, by its certificate.
    """

    publisher: Publisher
    publishing: Publishing
    renewal: Renewal
    authority: Authority
    clock: Clock
    inspector: PdfInspector
    root: bytes = field(repr=False)
    statements: CredentialStatements

    async def run(self, claim: TaskClaim) -> None:
        """Do a task.

        Args:
            claim: of a `publish`, `revoke` or `renew`.

        Raises:
            HsmUnavailableError: leave it for later.
            ApplianceError: why it failed.
        """
        match claim.kind:
            case TaskKind.PUBLISH:
                await self._publish(claim)
            case TaskKind.REVOKE:
                await self._revoke(claim)
            case TaskKind.RENEW:
                await self._renew(claim)
            case _:
                raise ApplianceError(ErrorCode.INTERNAL)

    async def _publish(self, claim: TaskClaim) -> None:
        """Sign what is due and put it on the record."""
        due = await self.publishing.due_crls(self.publisher.issuers)
        crls = [await self.publisher.crl(draft) for draft in due]
        count = await self.publishing.published(crls, [])
        issuer = self.publisher.issuers[0]
        for _ in range(_BATCHES):
            drafts = await self.publishing.due_answers(issuer, _BATCH)
            answers = await self.publisher.answers(drafts)
            put = await self.publishing.published([], answers)
            if not put:
                break
            count += put
        if await self.publishing.done(claim):
            _log.info("task.published", task=claim.id, count=count)

    async def _revoke(self, claim: TaskClaim) -> None:
        """Sign first, then make all of it public at once.

        Raises:
            ApplianceError: `BUSY`: others publish faster.
        """
        for left in reversed(range(_TRIES)):
            going = await self.publishing.revoking(claim, self.publisher.issuers[0])
            crl = await self.publisher.crl(going.crl)
            answers = await self.publisher.answers(list(going.answers))
            crash_point(REVOCATION_SIGNED)
            try:
                done = await self.publishing.revoked(claim, going, crl, answers)
            except ApplianceError as exc:
                if exc.code is not ErrorCode.BUSY or not left:
                    raise
                continue
            crash_point(REVOCATION_STORED)
            if done:
                _log.info(
                    "task.revoked",
                    task=claim.id,
                    credential=going.credential,
                    crl=crl.number,
                )
            return

    async def _renew(self, claim: TaskClaim) -> None:
        """Certify again what the credential's own certificate states, and nothing else.

        Key, name, CUIL and the way of vouching are those that the CA signed before.

        Raises:
            CredentialRefusedError: the certificate in use is not of the pinned CA, or
                not of this credential and person.
            ApplianceError: why it failed.
        """
        order = await self.renewal.order(claim)
        held = order.credential
        before = await self.statements.demand(order.person, held)
        if before.is_outside:
            raise ApplianceError(ErrorCode.CERTIFICATE_ISSUED_OUTSIDE)
        if before.vouched_by is None:
            raise CredentialRefusedError(StatementFault.POLICY)
        issued = await self.authority.issue(
            CertificateSubject(before.name, before.cuil, before.vouched_by),
            held.spki,
            self.clock.now(),
        )
        # The key signs only by its owner's password, which a renewal does not ask for:
        # the certificate is tried with a stand-in of the key.
        with judging():
            report = await self.inspector.try_chain(
                [issued.certificate, *issued.chain, self.root]
            )
        demand_valid(report)
        record = self.authority.record(issued, CertificateKind.SIGNER, held.id)
        if await self.renewal.renewed(claim, record, issued.chain):
            _log.info("task.renewed", task=claim.id, credential=held.id)
