"""Signers' certificates as those who look after them see them.

Source: design §6.
"""

from datetime import datetime, timedelta

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, TaskId, new_id
from appliance.domain.people.identity import Credential
from appliance.domain.pki.certificates import CertificateView, parse_serial
from appliance.domain.vocab import CredentialState, TaskKind
from appliance.keys.credential_store import CredentialStore
from appliance.keys.hsm_task_events import task_created
from appliance.keys.hsm_task_store import HsmTaskStore
from appliance.pki.certificate_store import CertificateStore
from appliance.record.unit_of_work import Database, Transaction

_Views = list[CertificateView]


class Certificates:
    """The use cases of lists, and of renewing.

    Args:
        store: the record.
        clock: the time.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list(self, limit: int, before: str | None = None) -> _Views:
        """Signers' certificates, newest first.

        Args:
            limit: how many at most.
            before: serial of the last one seen; those issued earlier.
        """
        async with self._store.read() as transaction:
            return await CertificateStore(transaction).views(limit, before)

    async def get(self, serial: str) -> CertificateView:
        """One of them.

        Args:
            serial: hexadecimal, as typed.

        Raises:
            FieldInvalidError: no serial number.
            ApplianceError: `CERTIFICATE_NOT_FOUND`.
        """
        wanted = parse_serial(serial)
        async with self._store.read() as transaction:
            found = await CertificateStore(transaction).view(wanted)
        if found is None:
            raise ApplianceError(ErrorCode.CERTIFICATE_NOT_FOUND)
        return found

    async def expiring(self, within: timedelta, limit: int) -> _Views:
        """Certificates in use that end within a time from now, soonest first.

        Args:
            within: how far ahead to look.
            limit: how many at most.
        """
        now = self._clock.now()
        async with self._store.read() as transaction:
            return await CertificateStore(transaction).expiring(
                now, now + within, limit
            )

    async def renew(self, credential: CredentialId, actor: str) -> TaskId:
        """Ask for a new certificate on a credential's key.

        The person stays vouched for as before, and needs no password for it. The
        one before it stays valid until its end.

        Args:
            credential: active; one that is revoked is replaced, never renewed.
            actor: for the audit.

        Returns:
            The task to wait for; its output has `credential` and `serial`. It
            fails as `BUSY` while an activation of it is open.

        Raises:
            ApplianceError: `CERTIFICATE_NOT_FOUND`, `CERTIFICATE_STATE`;
                `CERTIFICATE_ISSUED_OUTSIDE` for what an outside CA certified.
        """
        async with self._store.write() as transaction:
            held = await CredentialStore(transaction).get(credential, lock=True)
            if held is None:
                raise ApplianceError(ErrorCode.CERTIFICATE_NOT_FOUND)
            if held.state is not CredentialState.ACTIVE:
                raise ApplianceError(ErrorCode.CERTIFICATE_STATE)
            await CertificateStore(transaction).check_ours(held)
            return await self._ask_renewal(transaction, held, actor)

    async def renew_due(
        self, credential: CredentialId, until: datetime, actor: str
    ) -> bool:
        """Ask for a new certificate if that is due and nobody has asked yet.

        Any number of processes may ask at once: one certificate comes of it.

        Args:
            credential: any.
            until: a certificate that ends later is not due.
            actor: for the audit.

        Returns:
            Whether this call asked for it.
        """
        async with self._store.write() as transaction:
            # The others wait for this lock, and see the task that was made under it.
            held = await CredentialStore(transaction).get(credential, lock=True)
            if held is None or held.state is not CredentialState.ACTIVE:
                return False
            is_asked = await HsmTaskStore(transaction).any_open(
                TaskKind.RENEW, _given(credential)
            )
            if held.not_after > until or is_asked:
                return False
            await self._ask_renewal(transaction, held, actor)
            return True

    async def _ask_renewal(
        self, transaction: Transaction, held: Credential, actor: str
    ) -> TaskId:
        task = TaskId(new_id())
        given = _given(held.id)
        await HsmTaskStore(transaction).add(
            task, TaskKind.RENEW, given, self._clock.now(), person=held.person
        )
        told = {"person": held.person, **given}
        transaction.audit.add(task_created(task, TaskKind.RENEW, actor, told))
        return task


def _given(credential: CredentialId) -> dict[str, object]:
    """What a task to renew is told."""
    return {"credential": credential}
