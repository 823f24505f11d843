"""Revoking signers' certificates, as those who ask for it see it.

What is revoked is a key: every certificate of the credential goes. Asking is one
transaction, from which on the credential signs nothing; a worker then signs
CRL and OCSP answers and makes all of it public in one more (see
`appliance.pki.publication`). A revocation is for good.

Source: RFC 5280, 3.3 and 5.3.1; design §6.
"""

from cryptography import x509

from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, TaskId, new_id
from appliance.domain.pki.certificates import parse_serial, serial_text
from appliance.domain.vocab import (
    CertificateState,
    CredentialState,
    EventKind,
    RevocationReason,
    TaskKind,
)
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_events import task_created
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.revocation_store import RevocationStore
from appliance.pki.validation.certificate_rules import name_of
from appliance.record.unit_of_work import Database, Transaction

_BATCH = 100
_REASONS = {reason.value: reason for reason in RevocationReason}


class Revocations:
    """The use cases of whoever may revoke.

    Args:
        store: the record.
        clock: the time; a revocation holds from the whole second of its asking.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def ask(self, serial: str, reason: RevocationReason, actor: str) -> TaskId:
        """Have a certificate revoked, and every other one of its key.

        Args:
            serial: hexadecimal, as typed.
            reason: told in CRL and OCSP answers.
            actor: for the audit.

        Returns:
            The task to wait for; its output has `credential` and `crlNumber`.

        Raises:
            FieldInvalidError: no serial number.
            ApplianceError: `CERTIFICATE_NOT_FOUND`, `CERTIFICATE_STATE`.
        """
        wanted = parse_serial(serial)
        async with self._store.write() as transaction:
            # Locked by `submit`, after its key, as whoever revokes the key does.
            found = await CertificateStore(transaction).get(wanted)
            if found is None or found.credential is None:
                raise ApplianceError(ErrorCode.CERTIFICATE_NOT_FOUND)
            if found.state is not CertificateState.VALID:
                raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
            return await self.submit(transaction, found.credential, reason, actor)

    async def submit(
        self,
        transaction: Transaction,
        credential: CredentialId,
        reason: RevocationReason,
        actor: str,
    ) -> TaskId:
        """Ask for a credential's revocation, within the caller's transaction.

        Args:
            transaction: the caller's.
            credential: in any state but revoked.
            reason: told in CRL and OCSP answers.
            actor: for the audit.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_FOUND`, `CERTIFICATE_STATE`.
        """
        now = self._clock.now().replace(microsecond=0)
        held = await CredentialStore(transaction).get(credential, lock=True)
        if held is None:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_FOUND)
        task = TaskId(new_id())
        if not await RevocationStore(transaction).begin(credential, now, reason, task):
            raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
        await CredentialStore(transaction).set_state(
            credential, CredentialState.REVOKING
        )
        await HsmTaskStore(transaction).add(
            task, TaskKind.REVOKE, {"credential": credential}, self._clock.now()
        )
        transaction.audit.add(
            AuditEvent(
                EventKind.REVOCATION_ASKED,
                actor,
                detail={
                    "task": task,
                    "person": held.person,
                    "credential": credential,
                    "reason": reason.value,
                    "before": {"state": held.state.value},
                    "after": {"state": CredentialState.REVOKING.value},
                },
            )
        )
        return task

    async def submit_all(
        self,
        transaction: Transaction,
        person: PersonId,
        reason: RevocationReason,
        actor: str,
    ) -> list[str]:
        """Ask for the revocation of what a person signs with, in the transaction.

        A key that no certificate in force stands for is superseded instead: there
        is nothing to tell the world.

        Returns:
            The credentials that sign no more.
        """
        ended = []
        for held in await CredentialStore(transaction).of_person(person):
            if held.state is not CredentialState.ACTIVE:
                continue
            certificates = await CertificateStore(transaction).of_credential(held.id)
            if any(one.state is CertificateState.VALID for one in certificates):
                await self.submit(transaction, held.id, reason, actor)
            else:
                await CredentialStore(transaction).set_state(
                    held.id, CredentialState.SUPERSEDED
                )
            ended.append(str(held.id))
        return ended

    async def found(
        self, transaction: Transaction, certificate: bytes, reason: str
    ) -> None:
        """End the credential whose certificate an outside CA has revoked for good.

        Its key signs no more. Where the internal CA stands for the key as well, that
        is revoked too, and published by a worker.

        Args:
            transaction: the caller's.
            certificate: DER, as it stands in signatures.
            reason: as that CA told it; empty: it told none.
        """
        held = await CredentialStore(transaction).certified(certificate)
        if held is None:
            return
        certificates = await CertificateStore(transaction).of_credential(held.id)
        stands = any(one.state is CertificateState.VALID for one in certificates)
        then = CredentialState.REVOKING if stands else CredentialState.REVOKED
        made = x509.load_der_x509_certificate(certificate)
        transaction.audit.add(
            AuditEvent(
                EventKind.REVOCATION_FOUND,
                "system",
                detail={
                    "person": held.person,
                    "credential": held.id,
                    "serial": serial_text(made.serial_number),
                    "issuer": name_of(made.issuer),
                    "reason": reason,
                    "before": {"state": held.state.value},
                    "after": {"state": then.value},
                },
            )
        )
        if stands:
            ours = _REASONS.get(reason, RevocationReason.UNSPECIFIED)
            await self.submit(transaction, held.id, ours, "system")
        else:
            await CredentialStore(transaction).set_state(held.id, then)

    async def resume(self) -> int:
        """Give revocations whose task was given up a new one; how many.

        A revocation that was asked for must be published, however long the HSM
        is away.
        """
        async with self._store.read() as transaction:
            if not await RevocationStore(transaction).stalled(1):
                return 0
        async with self._store.write() as transaction:
            stalled = await RevocationStore(transaction).stalled(_BATCH)
            for credential in stalled:
                task = TaskId(new_id())
                await RevocationStore(transaction).retry(credential, task)
                given: dict[str, object] = {"credential": credential}
                await HsmTaskStore(transaction).add(
                    task, TaskKind.REVOKE, given, self._clock.now()
                )
                transaction.audit.add(
                    task_created(task, TaskKind.REVOKE, "system", given)
                )
        return len(stalled)
