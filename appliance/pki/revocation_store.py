"""Certificates of the internal CA on their way to be revoked, in SQL."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, select, update

from appliance.database.tables import certificate, hsm_task
from appliance.domain.ids import CredentialId, TaskId
from appliance.domain.pki.certificates import RevokedEntry
from appliance.domain.vocab import CertificateState, RevocationReason, TaskState
from appliance.record.unit_of_work import Store

_REVOKING = certificate.c.state == CertificateState.REVOKING.value
_OWN = certificate.c.credential.is_(None)


class RevocationStore(Store):
    """What is being revoked, by which task, and what is revoked."""

    async def begin(
        self,
        credential: CredentialId,
        at: datetime,
        reason: RevocationReason,
        task: TaskId,
    ) -> int:
        """Have a credential's valid certificates be revoked by a task; how many."""
        which = certificate.c.credential == credential
        return await self._begin(which, at, reason, task)

    async def begin_own(
        self,
        serials: Collection[str],
        at: datetime,
        reason: RevocationReason,
        task: TaskId,
    ) -> int:
        """Have valid certificates of the appliance's own be revoked; how many."""
        which = _OWN & certificate.c.serial.in_(serials)
        return await self._begin(which, at, reason, task)

    async def _begin(
        self,
        which: ColumnElement[bool],
        at: datetime,
        reason: RevocationReason,
        task: TaskId,
    ) -> int:
        result = await self._connection.execute(
            update(certificate)
            .where(which, certificate.c.state == CertificateState.VALID.value)
            .values(
                state=CertificateState.REVOKING.value,
                revoked_at=at,
                reason=reason.value,
                task=task,
            )
        )
        return result.rowcount

    async def retry(self, credential: CredentialId, task: TaskId) -> None:
        """Give what is being revoked another task."""
        await self._retry(certificate.c.credential == credential, task)

    async def retry_own(self, serials: Collection[str], task: TaskId) -> None:
        """Give those another task."""
        await self._retry(certificate.c.serial.in_(serials), task)

    async def _retry(self, which: ColumnElement[bool], task: TaskId) -> None:
        await self._connection.execute(
            update(certificate).where(which, _REVOKING).values(task=task)
        )

    async def complete(self, serials: Collection[str]) -> int:
        """What was being revoked is; how many."""
        result = await self._connection.execute(
            update(certificate)
            .where(certificate.c.serial.in_(serials), _REVOKING)
            .values(state=CertificateState.REVOKED.value, task=None)
        )
        return result.rowcount

    async def stalled(self, limit: int) -> list[CredentialId]:
        """Credentials being revoked by a task that was given up."""
        rows = await self._connection.execute(
            select(certificate.c.credential)
            .join(hsm_task, hsm_task.c.id == certificate.c.task)
            .where(~_OWN, _REVOKING, hsm_task.c.state == TaskState.FAILED.value)
            .limit(limit)
            # What another process is giving a task just now is not met again.
            .with_for_update(of=certificate, skip_locked=True)
        )
        return [*dict.fromkeys(CredentialId(row.credential) for row in rows)]

    async def stalled_own(self) -> list[str]:
        """Serials of the appliance's own, being revoked by a task given up."""
        rows = await self._connection.execute(
            select(certificate.c.serial)
            .join(hsm_task, hsm_task.c.id == certificate.c.task)
            .where(_OWN, _REVOKING, hsm_task.c.state == TaskState.FAILED.value)
            .with_for_update(of=certificate, skip_locked=True)
        )
        return list(rows.scalars())

    async def revoked(self, issuer: str) -> list[RevokedEntry]:
        """Every revoked certificate of a CA, by time."""
        rows = await self._connection.execute(
            select(certificate.c.serial, certificate.c.revoked_at, certificate.c.reason)
            .where(
                certificate.c.issuer == issuer,
                certificate.c.state == CertificateState.REVOKED.value,
            )
            .order_by(certificate.c.revoked_at, certificate.c.serial)
        )
        return [
            RevokedEntry(row.serial, row.revoked_at, RevocationReason(row.reason))
            for row in rows
        ]
