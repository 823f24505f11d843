"""Certificates of the internal TSA: which there are, and revoking them.

What is revoked is a key: every certificate of it goes. From the asking on no worker
stamps by one of them; CRL and OCSP tell it as soon as a worker has signed them. What
was stamped before stays valid, but where the key itself was lost (RFC 3161, 4).

Source: RFC 5280, 3.3 and 5.3.1; RFC 3161, 4.
"""

import hashlib
from collections.abc import AsyncIterator
from typing import Final

from cryptography import x509

from appliance.documents.document_store import DocumentStore
from appliance.domain.audit.record import AuditEvent
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import TaskId, new_id
from appliance.domain.pki.certificates import (
    TSA_REASONS,
    CertificateRecord,
    parse_serial,
)
from appliance.domain.pki.timestamps import RevokedTsa
from appliance.domain.requests.request import SignedDocumentView
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    EventKind,
    RevocationReason,
    TaskKind,
)
from appliance.keys.hsm_task_events import task_created
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.certificate_store import CertificateStore
from appliance.pki.revocation_store import RevocationStore
from appliance.pki.validation.external_status_store import ExternalStatusStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.signing.level_maintenance_store import LevelMaintenanceStore

_PAGE: Final = 500
_REVOKED_MOST: Final = 2000
_TSA: Final = CertificateKind.TSA


class TsaCertificates:
    """The use cases of whoever keeps the internal TSA.

    Args:
        store: the record.
        clock: the time; a revocation holds from the whole second of its asking.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def all(self) -> list[CertificateRecord]:
        """Every one, newest first."""
        async with self._store.read() as transaction:
            return await CertificateStore(transaction).of_kind(_TSA)

    async def revoked(self) -> list[RevokedTsa]:
        """What is known of revocations, of own TSAs and of those outside.

        Of what outside CAs revoked signers' certificates are among it, too, and the
        newest alone.
        """
        async with self._store.read() as transaction:
            own = await CertificateStore(transaction).of_kind(_TSA)
            outside = await ExternalStatusStore(transaction).revoked(_REVOKED_MOST)
        return [
            RevokedTsa(
                hashlib.sha256(each.der).hexdigest(),
                each.revoked_at,
                "" if each.reason is None else each.reason.value,
            )
            for each in own
            if each.revoked_at is not None
        ] + [
            RevokedTsa(each.subject, each.revoked_at or each.this_update, each.reason)
            for each in outside
        ]

    async def revoke(self, serial: str, reason: RevocationReason, actor: str) -> TaskId:
        """Have a certificate revoked, and every other one of its key.

        Documents that are stamped anew in time are so at once.

        Args:
            serial: hexadecimal, as typed.
            reason: one of `TSA_REASONS`, told in CRL and OCSP answers.
            actor: for the audit.

        Returns:
            The task to wait for.

        Raises:
            FieldInvalidError: no serial number, or a reason that would void all
                timestamps without saying so.
            ApplianceError: `CERTIFICATE_NOT_FOUND`, `CERTIFICATE_STATE`.
        """
        if reason not in TSA_REASONS:
            raise FieldInvalidError("reason", ", ".join(TSA_REASONS))
        wanted, task = parse_serial(serial), TaskId(new_id())
        now = self._clock.now()
        async with self._store.write() as transaction:
            serials = await self._of_its_key(transaction, wanted)
            at = now.replace(microsecond=0)
            if not await RevocationStore(transaction).begin_own(
                serials, at, reason, task
            ):
                raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
            await HsmTaskStore(transaction).add(
                task, TaskKind.REVOKE, {"serials": serials}, now
            )
            hastened = await LevelMaintenanceStore(transaction).hasten(now)
            transaction.audit.add(
                AuditEvent(
                    EventKind.REVOCATION_ASKED,
                    actor,
                    detail={
                        "task": task,
                        "kind": _TSA.value,
                        "serials": serials,
                        "reason": reason.value,
                        "documents": hastened,
                        "before": {"state": CertificateState.VALID.value},
                        "after": {"state": CertificateState.REVOKING.value},
                    },
                )
            )
        return task

    async def key_created(self, generation: int, actor: str) -> None:
        """Say, before it is certified, that there is a new key."""
        await self._say(EventKind.TSA_CREATED, generation, actor)

    async def key_retired(self, generation: int, actor: str) -> None:
        """Say that an old key was destroyed."""
        await self._say(EventKind.TSA_RETIRED, generation, actor)

    async def _say(self, kind: EventKind, generation: int, actor: str) -> None:
        async with self._store.write() as transaction:
            transaction.audit.add(
                AuditEvent(kind, actor, detail={"generation": generation})
            )

    async def _of_its_key(self, transaction: Transaction, serial: str) -> list[str]:
        """Serials of all valid certificates of a certificate's key.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_FOUND`, `CERTIFICATE_STATE`.
        """
        found = await CertificateStore(transaction).of_kind(_TSA)
        named = next((each for each in found if each.serial == serial), None)
        if named is None:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_FOUND)
        if named.state is not CertificateState.VALID:
            raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
        key = _key_of(named)
        return [
            each.serial
            for each in found
            if each.state is CertificateState.VALID and _key_of(each) == key
        ]

    async def resume(self) -> int:
        """Give a revocation whose task was given up a new one; how many."""
        async with self._store.read() as transaction:
            if not await RevocationStore(transaction).stalled_own():
                return 0
        async with self._store.write() as transaction:
            serials = await RevocationStore(transaction).stalled_own()
            if not serials:
                return 0  # another process has given it one
            task = TaskId(new_id())
            given: dict[str, object] = {"serials": serials}
            await RevocationStore(transaction).retry_own(serials, task)
            await HsmTaskStore(transaction).add(
                task, TaskKind.REVOKE, given, self._clock.now()
            )
            transaction.audit.add(task_created(task, TaskKind.REVOKE, "system", given))
        return len(serials)

    async def stamped(self, serial: str) -> AsyncIterator[SignedDocumentView]:
        """Versions of documents that may bear a timestamp by a certificate.

        All with a timestamp that were made from its issue on: the record does not
        say by what each one was stamped.

        Raises:
            FieldInvalidError: no serial number.
            ApplianceError: `CERTIFICATE_NOT_FOUND`.
        """
        wanted = parse_serial(serial)
        async with self._store.read() as transaction:
            held = await CertificateStore(transaction).get(wanted)
        if held is None or held.kind is not _TSA:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_FOUND)
        until, after = self._clock.now(), (0, 0)
        while True:
            async with self._store.read() as transaction:
                page = await DocumentStore(transaction).stamped_between(
                    held.not_before, until, after, _PAGE
                )
            for each in page:
                yield each
            if len(page) < _PAGE:
                return
            after = (page[-1].request, page[-1].version)


def _key_of(held: CertificateRecord) -> object:
    return x509.load_der_x509_certificate(held.der).public_key()
