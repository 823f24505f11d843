"""Certificates of the internal CA in SQL."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, and_, insert, or_, select

from appliance.database.tables import certificate, credential, person
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.people.identity import Credential
from appliance.domain.pki.certificates import (
    CertificateRecord,
    CertificateView,
    is_outside,
)
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    CredentialState,
    PersonState,
    RevocationReason,
)
from appliance.record.unit_of_work import Store

_REVOKING = CertificateState.REVOKING.value


class CertificateStore(Store):
    """What the internal CA certified."""

    async def add(self, new: CertificateRecord) -> None:
        """Record a certificate."""
        await self._connection.execute(
            insert(certificate).values(
                serial=new.serial,
                kind=new.kind.value,
                issuer=new.issuer,
                credential=new.credential,
                der=new.der,
                not_before=new.not_before,
                not_after=new.not_after,
                state=new.state.value,
                issued=self._clock.now(),
            )
        )

    async def get(self, serial: str) -> CertificateRecord | None:
        """A certificate by its serial."""
        query = select(certificate).where(certificate.c.serial == serial)
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else record_of(row)

    async def newest_first(
        self, kind: CertificateKind, issuer: str
    ) -> list[CertificateRecord]:
        """Those of a kind and CA that are not revoked; what ends last comes first."""
        rows = await self._connection.execute(
            select(certificate)
            .where(
                certificate.c.kind == kind.value,
                certificate.c.issuer == issuer,
                certificate.c.state == CertificateState.VALID.value,
            )
            .order_by(certificate.c.not_after.desc(), certificate.c.issued.desc())
        )
        return [record_of(row) for row in rows]

    async def in_force(self, kind: CertificateKind) -> list[CertificateRecord]:
        """The one of a kind that ends last, of each CA; none that is revoked."""
        rows = await self._connection.execute(
            select(certificate)
            .where(
                certificate.c.kind == kind.value,
                certificate.c.state == CertificateState.VALID.value,
            )
            .order_by(certificate.c.not_after, certificate.c.issued)
        )
        newest = {row.issuer: record_of(row) for row in rows}
        return list(newest.values())

    async def of_kind(self, kind: CertificateKind) -> list[CertificateRecord]:
        """Every certificate of one of the appliance's own kinds, newest first."""
        rows = await self._connection.execute(
            select(certificate)
            .where(certificate.c.kind == kind.value)
            .order_by(certificate.c.issued.desc(), certificate.c.serial)
        )
        return [record_of(row) for row in rows]

    async def of_credential(
        self, credential_id: CredentialId
    ) -> list[CertificateRecord]:
        """A credential's certificates, newest first."""
        rows = await self._connection.execute(
            select(certificate)
            .where(certificate.c.credential == credential_id)
            .order_by(certificate.c.issued.desc(), certificate.c.serial)
        )
        return [record_of(row) for row in rows]

    async def check_ours(self, held: Credential) -> None:
        """Refuse a credential that an outside CA certified: ours takes no place of it.

        Raises:
            ApplianceError: `CERTIFICATE_ISSUED_OUTSIDE`.
        """
        if is_outside(held.certificate, await self.of_credential(held.id)):
            raise ApplianceError(ErrorCode.CERTIFICATE_ISSUED_OUTSIDE)

    async def views(self, limit: int, before: str | None) -> list[CertificateView]:
        """Signers' certificates, newest first."""
        query = _views().order_by(
            certificate.c.issued.desc(), certificate.c.serial.desc()
        )
        if before is not None:
            last = certificate.alias("last")
            query = query.join(last, last.c.serial == before).where(
                certificate.c.issued <= last.c.issued,
                or_(
                    certificate.c.issued < last.c.issued,
                    and_(
                        certificate.c.issued == last.c.issued,
                        certificate.c.serial < last.c.serial,
                    ),
                ),
            )
        rows = await self._connection.execute(query.limit(limit))
        return [_view(row) for row in rows]

    async def view(self, serial: str) -> CertificateView | None:
        """A signer's certificate by its serial."""
        query = _views().where(certificate.c.serial == serial)
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else _view(row)

    async def expiring(
        self, after: datetime, until: datetime, limit: int
    ) -> list[CertificateView]:
        """Certificates that somebody signs with and that end in that time."""
        rows = await self._connection.execute(
            _views()
            .where(
                certificate.c.not_after > after,
                certificate.c.not_after <= until,
                certificate.c.state == CertificateState.VALID.value,
                credential.c.state == CredentialState.ACTIVE.value,
                credential.c.certificate == certificate.c.der,
            )
            .order_by(certificate.c.not_after, certificate.c.serial)
            .limit(limit)
        )
        return [_view(row) for row in rows]

    async def renewable(
        self,
        after: datetime,
        until: datetime,
        limit: int,
        without: Collection[str] = (),
    ) -> list[CredentialId]:
        """Credentials in use by active people whose certificate ends in that time.

        Args:
            after: end that is too early.
            until: latest end.
            limit: most that are returned.
            without: credentials that are left out.
        """
        rows = await self._connection.execute(
            select(credential.c.id)
            .join(certificate, certificate.c.credential == credential.c.id)
            .join(person, person.c.id == credential.c.person)
            .where(
                credential.c.state == CredentialState.ACTIVE.value,
                credential.c.not_after > after,
                credential.c.not_after <= until,
                credential.c.id.not_in(without),
                certificate.c.state == CertificateState.VALID.value,
                certificate.c.der == credential.c.certificate,
                person.c.state == PersonState.ACTIVE.value,
            )
            .order_by(credential.c.not_after, credential.c.id)
            .limit(limit)
        )
        return [CredentialId(row.id) for row in rows]


def _views() -> Select[Any]:
    """Signers' certificates with whose they are."""
    return (
        select(
            certificate,
            person.c.id.label("person_id"),
            person.c.name.label("person_name"),
            person.c.cuil,
            credential.c.state.label("credential_state"),
            (credential.c.certificate == certificate.c.der).label("is_current"),
        )
        .join(credential, credential.c.id == certificate.c.credential)
        .join(person, person.c.id == credential.c.person)
    )


def _view(row: Row[Any]) -> CertificateView:
    return CertificateView(
        certificate=record_of(row),
        person=PersonId(row.person_id),
        name=row.person_name,
        cuil=row.cuil,
        credential_state=CredentialState(row.credential_state),
        is_current=bool(row.is_current),
    )


def record_of(row: Row[Any]) -> CertificateRecord:
    """A certificate from its row.

    Args:
        row: with all columns of `certificate`.
    """
    return CertificateRecord(
        serial=row.serial,
        kind=CertificateKind(row.kind),
        issuer=row.issuer,
        credential=None if row.credential is None else CredentialId(row.credential),
        der=row.der,
        not_before=row.not_before,
        not_after=row.not_after,
        state=CertificateState(row.state),
        revoked_at=row.revoked_at,
        reason=None if row.reason is None else RevocationReason(row.reason),
    )
