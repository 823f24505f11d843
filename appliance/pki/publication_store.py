"""CRLs and OCSP answers in SQL."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    delete,
    not_,
    or_,
    select,
    update,
)

from appliance.database.tables import certificate, crl, ocsp_response
from appliance.database.types import Instant
from appliance.database.upsert import insert_into
from appliance.domain.pki.certificates import (
    STATUS_KINDS,
    CertificateRecord,
    Crl,
    OcspAnswer,
)
from appliance.domain.vocab import CertificateState
from appliance.pki.certificate_store import record_of
from appliance.record.unit_of_work import Store


@dataclass(frozen=True, slots=True)
class PublishedStatus:
    """What is published of one certificate, and has not ended."""

    state: CertificateState | None
    """None: the certificate is not on the record."""
    is_answered: bool
    """Whether OCSP answers are made for it."""
    answer: bytes | None
    """DER of the newest one."""
    crl: bytes | None
    """DER of the newest of its issuer, where no OCSP answer is there or to come."""


class PublicationStore(Store):
    """CRLs and OCSP answers, the newest of each."""

    async def crl(self, issuer: str) -> Crl | None:
        """The CRL of a CA."""
        row = (
            await self._connection.execute(select(crl).where(crl.c.issuer == issuer))
        ).one_or_none()
        if row is None:
            return None
        return Crl(row.issuer, row.number, row.der, row.this_update, row.next_update)

    async def put_crl(self, new: Crl) -> bool:
        """Put a CRL in the place of the one before it, if it is the next one."""
        values = {
            "number": new.number,
            "der": new.der,
            "this_update": new.this_update,
            "next_update": new.next_update,
        }
        if new.number == 1:
            result = await self._connection.execute(
                insert_into(self._connection, crl)
                .values(issuer=new.issuer, **values)
                .on_conflict_do_nothing()
            )
        else:
            result = await self._connection.execute(
                update(crl)
                .where(crl.c.issuer == new.issuer, crl.c.number == new.number - 1)
                .values(**values)
            )
        return result.rowcount == 1

    async def answer(self, serial: str) -> OcspAnswer | None:
        """The answer for a certificate."""
        row = (
            await self._connection.execute(
                select(ocsp_response).where(ocsp_response.c.serial == serial)
            )
        ).one_or_none()
        return None if row is None else _answer_of(row)

    async def status(self, serial: str, issuer: str, at: datetime) -> PublishedStatus:
        """What is published of one certificate of a CA, and lasts at a time."""
        given = {"serial": serial, "issuer": issuer, "at": at}
        row = (await self._connection.execute(_status(), given)).one()
        return PublishedStatus(
            None if row.state is None else CertificateState(row.state),
            bool(row.is_answered),
            row.answer,
            row.crl,
        )

    async def put_answer(self, new: OcspAnswer) -> bool:
        """Put an answer in the place of the one before it, if it is still true."""
        # Locked, so that no revocation slips in between this look and the commit.
        query = select(certificate.c.state).where(certificate.c.serial == new.serial)
        state = await self._connection.scalar(query.with_for_update(read=True))
        if state != new.state.value:
            return False
        values = {
            "state": new.state.value,
            "der": new.der,
            "this_update": new.this_update,
            "next_update": new.next_update,
        }
        await self._connection.execute(
            insert_into(self._connection, ocsp_response)
            .values(serial=new.serial, **values)
            .on_conflict_do_update(index_elements=["serial"], set_=values)
        )
        return True

    async def due(
        self, issuer: str, now: datetime, horizon: datetime, limit: int
    ) -> list[CertificateRecord]:
        """Certificates that need an answer, the longest waiting first."""
        rows = await self._connection.execute(
            select(certificate)
            .outerjoin(ocsp_response)
            .where(_due(issuer, now, horizon))
            .order_by(
                ocsp_response.c.next_update.is_not(None),
                ocsp_response.c.next_update,
                certificate.c.serial,
            )
            .limit(limit)
        )
        return [record_of(row) for row in rows]

    async def any_due(self, issuer: str, now: datetime, horizon: datetime) -> bool:
        """Whether `due` would give one."""
        query = (
            select(certificate.c.serial)
            .outerjoin(ocsp_response)
            .where(_due(issuer, now, horizon))
            .limit(1)
        )
        return (await self._connection.execute(query)).first() is not None

    async def first_to_end(self, now: datetime) -> OcspAnswer | None:
        """The answer that ends first, of certificates that have not."""
        row = (
            await self._connection.execute(
                select(ocsp_response)
                .join(certificate)
                .where(certificate.c.not_after > now)
                .order_by(ocsp_response.c.next_update)
                .limit(1)
            )
        ).one_or_none()
        return None if row is None else _answer_of(row)

    async def sweep(self, before: datetime) -> int:
        """Delete answers that were out of date by then; how many."""
        result = await self._connection.execute(
            delete(ocsp_response).where(ocsp_response.c.next_update < before)
        )
        return result.rowcount


def _answer_of(row: Row[Any]) -> OcspAnswer:
    return OcspAnswer(
        row.serial,
        CertificateState(row.state),
        row.der,
        row.this_update,
        row.next_update,
    )


def _is_answered(at: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    """Whether OCSP answers are made for a certificate."""
    return and_(
        certificate.c.kind.in_([kind.value for kind in STATUS_KINDS]),
        certificate.c.not_after > at,
    )


def _due(issuer: str, now: datetime, horizon: datetime) -> ColumnElement[bool]:
    return and_(
        certificate.c.issuer == issuer,
        _is_answered(now),
        certificate.c.state != CertificateState.REVOKING.value,
        or_(
            ocsp_response.c.serial.is_(None),
            ocsp_response.c.next_update <= horizon,
            ocsp_response.c.state != certificate.c.state,
        ),
    )


@cache
def _status() -> Select[Any]:
    """What `PublicationStore.status` reads; made once, as each document asks."""
    at = bindparam("at", type_=Instant())
    one = select(bindparam("serial", type_=Text()).label("serial")).subquery()
    return (
        select(
            certificate.c.state,
            _is_answered(at).label("is_answered"),
            ocsp_response.c.der.label("answer"),
            crl.c.der.label("crl"),
        )
        .select_from(one)
        .outerjoin(certificate, certificate.c.serial == one.c.serial)
        .outerjoin(
            ocsp_response,
            and_(
                ocsp_response.c.serial == one.c.serial,
                ocsp_response.c.next_update > at,
            ),
        )
        # Not read in vain: it keeps every entry, and may be long.
        .outerjoin(
            crl,
            and_(
                crl.c.issuer == bindparam("issuer"),
                crl.c.next_update > at,
                ocsp_response.c.serial.is_(None),
                or_(certificate.c.serial.is_(None), not_(_is_answered(at))),
            ),
        )
    )
