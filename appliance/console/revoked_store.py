"""Revoked certificates of signers, in SQL that both databases take."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select

from appliance.database.tables import certificate, credential, person
from appliance.database.types import Instant
from appliance.domain.console.lists import RevokedRow
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.vocab import CredentialState, RevocationReason
from appliance.record.unit_of_work import Store

_OVER: Final = (CredentialState.REVOKING.value, CredentialState.REVOKED.value)


class RevokedStore(Store):
    """Credentials that are revoked, or about to be."""

    async def listed(
        self,
        limit: int,
        after: tuple[datetime, CredentialId] | None,
        whose: ColumnElement[bool] | None = None,
    ) -> list[RevokedRow]:
        """Revoked credentials, the latest revocation first.

        Args:
            limit: rows at most.
            after: time and id of the last row of the page before.
            whose: condition on the person; None: of everybody.
        """
        # A certificate of an outside CA has no row that says when it was revoked.
        told = (
            select(
                certificate.c.credential,
                func.max(
                    certificate.c.revoked_at, type_=certificate.c.revoked_at.type
                ).label("at"),
                func.max(certificate.c.reason).label("reason"),
            )
            .where(certificate.c.credential.is_not(None))
            .group_by(certificate.c.credential)
            .subquery()
        )
        at = func.coalesce(told.c.at, credential.c.created, type_=Instant())
        query: Select[Any] = (
            select(
                credential.c.id,
                credential.c.person,
                credential.c.state,
                credential.c.certificate,
                person.c.name,
                told.c.at,
                told.c.reason,
                at.label("place"),
            )
            .join(person, person.c.id == credential.c.person)
            .outerjoin(told, told.c.credential == credential.c.id)
            .where(credential.c.state.in_(_OVER))
            .order_by(at.desc(), credential.c.id.desc())
            .limit(limit)
        )
        if whose is not None:
            query = query.where(whose)
        if after is not None:
            last, ident = after
            query = query.where(
                or_(at < last, and_(at == last, credential.c.id < ident))
            )
        return [_revoked(row) for row in await self._connection.execute(query)]


def _revoked(row: Row[Any]) -> RevokedRow:
    return RevokedRow(
        credential=CredentialId(row.id),
        person=PersonId(row.person),
        name=row.name,
        state=CredentialState(row.state),
        certificate=row.certificate,
        revoked_at=row.at,
        reason=None if row.reason is None else RevocationReason(row.reason),
        place=row.place,
    )
