"""What workers write of the CA's publications: CRLs, OCSP answers, revocations.

Everything is signed first; one transaction then puts it on the record, or none
of it. What was signed meanwhile by another worker is never overwritten by what
is older: a CRL must be the next in number, an answer must tell the state that
its certificate has at the commit.

Source: design §3 "Chores", §6; RFC 5280, 5; RFC 6960; RFC 5019.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, TaskId, new_id
from appliance.domain.pki.certificates import (
    AnswerDraft,
    CertificateRecord,
    Crl,
    CrlDraft,
    OcspAnswer,
    Revoking,
    revoked_entry,
)
from appliance.domain.ports import WorkNotifier
from appliance.domain.signing.hsm_tasks import TaskClaim
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    CredentialState,
    EventKind,
    RevocationReason,
    TaskKind,
    TaskState,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_events import task_event
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.publication_store import PublicationStore
from appliance.pki.revocation_builder import RevocationBuilder
from appliance.pki.revocation_store import RevocationStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.settings import PkiSettings

_KEPT: Final = timedelta(days=1)
_REST: Final = timedelta(minutes=1)


class Publishing:
    """The use cases of a worker that signs for the CA.

    Args:
        store: the record.
        clock: the time.
        settings: how long publications are good.
        worker: the worker's slot, or the role that submits.
        work_notifier: wakes a worker for what is asked; without, one looks every few
            seconds.
    """

    def __init__(
        self,
        store: Database,
        clock: Clock,
        settings: PkiSettings,
        worker: str,
        work_notifier: WorkNotifier | None = None,
    ) -> None:
        self._work_notifier = work_notifier
        self._store = store
        self._clock = clock
        self._drafts = RevocationBuilder(clock, settings)
        self._actor = f"worker:{worker}"

    # -- what is due ------------------------------------------------------------

    async def submit_due(self, issuers: Sequence[str]) -> TaskId | None:
        """Ask for what is due to be signed, unless that is asked for already.

        Args:
            issuers: the CAs, the one that certifies signers first.
        """
        async with self._store.read() as transaction:
            if not await self._drafts.any_due(transaction, issuers):
                return None
        return await self.submit()

    async def submit(self) -> TaskId | None:
        """Ask for what is due to be signed, unless that is asked for already.

        After a failure that is no matter of waiting, not again for a minute:
        strangers may ask often.
        """
        async with self._store.read() as transaction:
            # Most questions end at this look, which takes no lock.
            if await self._is_asked_for(transaction):
                return None
        task = TaskId(new_id())
        async with self._store.write() as transaction:
            if await self._is_asked_for(transaction):
                return None
            await HsmTaskStore(transaction).add(
                task, TaskKind.PUBLISH, {}, self._clock.now()
            )
        if self._work_notifier is not None:
            await self._work_notifier.notify(task)
        return task

    async def _is_asked_for(self, transaction: Transaction) -> bool:
        since = self._clock.now() - _REST
        return await HsmTaskStore(transaction).any_open(
            TaskKind.PUBLISH
        ) or await HsmTaskStore(transaction).any_failed(TaskKind.PUBLISH, since)

    async def due_crls(self, issuers: Sequence[str]) -> list[CrlDraft]:
        """Drafts of the CRLs that are due.

        Args:
            issuers: the CAs.
        """
        async with self._store.read() as transaction:
            return [
                await self._drafts.crl(transaction, issuer)
                for issuer in issuers
                if self._drafts.is_due(await PublicationStore(transaction).crl(issuer))
            ]

    async def due_answers(self, issuer: str, limit: int) -> list[AnswerDraft]:
        """Drafts of the OCSP answers that are due, the longest waiting first.

        Args:
            issuer: the CA that certifies signers.
            limit: how many at most.
        """
        async with self._store.read() as transaction:
            due = await self._drafts.unanswered(transaction, issuer, limit)
        return [self._drafts.answer(each, each.state) for each in due]

    async def published(
        self, crls: Sequence[Crl], answers: Sequence[OcspAnswer]
    ) -> int:
        """Put on the record what was signed and still holds; how much of it.

        Args:
            crls: each is left out if another worker published meanwhile.
            answers: each is left out if its certificate's state has changed.
        """
        count = 0
        async with self._store.write() as transaction:
            for crl in crls:
                if await PublicationStore(transaction).put_crl(crl):
                    count += 1
                    self._audit_crl(transaction, crl)
            put = [
                answer.serial
                for answer in answers
                if await PublicationStore(transaction).put_answer(answer)
            ]
            if put:
                self._audit(
                    transaction, EventKind.OCSP_PUBLISHED, {"answers": len(put)}
                )
        return count + len(put)

    async def done(self, claim: TaskClaim) -> bool:
        """End a `publish` task; False when another claim came since."""
        async with self._store.write() as transaction:
            return await HsmTaskStore(transaction).close(claim, TaskState.DONE, {})

    async def forget(self) -> int:
        """Delete what is of no more use; how many rows.

        `publish` tasks that ended a day ago, and answers out of date as long:
        of certificates that have ended.
        """
        before = self._clock.now() - _KEPT
        async with self._store.write() as transaction:
            return await HsmTaskStore(transaction).sweep(
                TaskKind.PUBLISH, before
            ) + await PublicationStore(transaction).sweep(before)

    # -- revoking ---------------------------------------------------------------

    async def revoking(self, claim: TaskClaim, issuer: str) -> Revoking:
        """What has to be signed for a revocation.

        Args:
            claim: of a `revoke` task.
            issuer: the CA that certifies signers.

        Raises:
            ApplianceError: `TASK_FAILED`: a certificate is of another CA.
        """
        named = claim.input.get("credential")
        credential = None if named is None else CredentialId(str(named))
        async with self._store.read() as transaction:
            if credential is not None:
                found = await CertificateStore(transaction).of_credential(credential)
            else:
                found = await CertificateStore(transaction).of_kind(CertificateKind.TSA)
            going = [each for each in found if each.state is CertificateState.REVOKING]
            if any(each.issuer != issuer for each in going):
                raise ApplianceError(
                    ErrorCode.TASK_FAILED, params={"reason": "of another CA"}
                )
            entries = [revoked_entry(each) for each in going]
            crl = await self._drafts.crl(transaction, issuer, entries)
        answers = (
            self._drafts.answer(each, CertificateState.REVOKED) for each in going
        )
        return Revoking(credential, crl, tuple(answers))

    async def revoked(
        self,
        claim: TaskClaim,
        revoking: Revoking,
        crl: Crl,
        answers: Sequence[OcspAnswer],
    ) -> bool:
        """Make a revocation public: all of it, or nothing.

        Returns:
            False when another claim came since.

        Raises:
            ApplianceError: `BUSY`: another CRL was published meanwhile; draft
                and sign anew.
        """
        async with self._store.write() as transaction:
            output: dict[str, object] = {
                "credential": revoking.credential,
                "crlNumber": crl.number,
            }
            if not await HsmTaskStore(transaction).close(claim, TaskState.DONE, output):
                return False
            await RevocationStore(transaction).complete(
                [each.serial for each in answers]
            )
            if revoking.credential is not None:
                await CredentialStore(transaction).set_state(
                    revoking.credential, CredentialState.REVOKED
                )
            if not await PublicationStore(transaction).put_crl(crl):
                raise ApplianceError(ErrorCode.BUSY)
            for answer in answers:
                if not await PublicationStore(transaction).put_answer(answer):
                    raise ApplianceError(ErrorCode.BUSY)
            self._audit_crl(transaction, crl)
            transaction.audit.add(
                task_event(
                    EventKind.REVOCATION_PUBLISHED,
                    self._actor,
                    claim,
                    {
                        "credential": revoking.credential,
                        "serials": [each.serial for each in answers],
                        "crlNumber": crl.number,
                        "before": {"state": CredentialState.REVOKING.value},
                        "after": {"state": CredentialState.REVOKED.value},
                    },
                )
            )
            return True

    # -- the responder and the TSA ----------------------------------------------

    async def own(self, kind: CertificateKind, issuer: str) -> list[CertificateRecord]:
        """Certificates of the appliance's own keys, what ends last first.

        Args:
            kind: `ocsp` or `tsa`.
            issuer: the CA that it works for.
        """
        async with self._store.read() as transaction:
            return await CertificateStore(transaction).newest_first(kind, issuer)

    async def compromised(self, kind: CertificateKind) -> list[CertificateRecord]:
        """Certificates whose key somebody else may have."""
        async with self._store.read() as transaction:
            found = await CertificateStore(transaction).of_kind(kind)
        return [
            each for each in found if each.reason is RevocationReason.KEY_COMPROMISE
        ]

    async def own_issued(self, new: CertificateRecord) -> None:
        """Record a certificate of one of the appliance's own keys."""
        async with self._store.write() as transaction:
            await CertificateStore(transaction).add(new)
            self._audit(
                transaction,
                EventKind.CERTIFICATE_ISSUED,
                {
                    "kind": new.kind.value,
                    "serial": new.serial,
                    "until": new.not_after.isoformat(),
                },
            )

    def _audit_crl(self, transaction: Transaction, crl: Crl) -> None:
        self._audit(
            transaction,
            EventKind.CRL_PUBLISHED,
            {"issuer": crl.issuer, "crlNumber": crl.number},
        )

    def _audit(
        self, transaction: Transaction, kind: EventKind, detail: dict[str, object]
    ) -> None:
        transaction.audit.add(AuditEvent(kind, self._actor, detail=detail))
