"""The trust store, warnings of ends, and revocation PINs in SQL."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
)
from sqlalchemy.exc import IntegrityError

from appliance.database.tables import (
    credential,
    expiry_notice,
    former_certificate,
    person,
    revocation_pin,
    trust_anchor,
)
from appliance.database.upsert import insert_into
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import CredentialId, PersonId, new_id
from appliance.domain.people.identity import Credential
from appliance.domain.pki.trust_store import (
    Anchor,
    AnchorPurpose,
    Expiring,
    ExpiringKind,
)
from appliance.domain.vocab import CredentialState
from appliance.keys.credential_store import join
from appliance.record.unit_of_work import Store


class TrustStore(Store):
    """Roots of outside CAs."""

    async def add(self, new: Anchor) -> None:
        """Record a root.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for one that serves this purpose.
        """
        try:
            await self._connection.execute(
                insert(trust_anchor).values(
                    id=new.id,
                    certificate=new.certificate,
                    sha256=new.sha256,
                    purpose=new.purpose.value,
                    not_after=new.not_after,
                    added=new.added,
                )
            )
        except IntegrityError as exc:
            raise ApplianceError(
                ErrorCode.ALREADY_EXISTS, params={"field": new.sha256}
            ) from exc

    async def remove(self, anchor: str) -> Anchor | None:
        """Take a root out; what it was, or None where there is none."""
        row = (
            await self._connection.execute(
                delete(trust_anchor)
                .where(trust_anchor.c.id == anchor)
                .returning(trust_anchor)
            )
        ).one_or_none()
        return None if row is None else _anchor(row)

    async def all(self, purpose: AnchorPurpose | None = None) -> list[Anchor]:
        """Every root, of a purpose or of any, soonest end first."""
        query = select(trust_anchor).order_by(
            trust_anchor.c.not_after, trust_anchor.c.id
        )
        if purpose is not None:
            query = query.where(trust_anchor.c.purpose == purpose.value)
        return [_anchor(row) for row in await self._connection.execute(query)]


class ExpiryStore(Store):
    """What ends soon, and what was said of it."""

    async def signers(self, until: datetime, days: int, limit: int) -> list[Expiring]:
        """Credentials in use that end by then and were not told so yet."""
        told = (
            select(expiry_notice.c.subject)
            .where(
                expiry_notice.c.kind == ExpiringKind.SIGNER.value,
                expiry_notice.c.subject == credential.c.id,
                expiry_notice.c.not_after == credential.c.not_after,
                expiry_notice.c.days <= days,
            )
            .exists()
        )
        rows = await self._connection.execute(_ending(until).where(~told).limit(limit))
        return [_signer(row) for row in rows]

    async def listed(
        self,
        until: datetime | None,
        limit: int,
        after: tuple[datetime, str] | None,
        whose: ColumnElement[bool] | None = None,
    ) -> list[Expiring]:
        """Credentials in use that end by then, soonest first, told or not.

        Args:
            until: the time; None: whenever they end.
            limit: rows at most.
            after: end and id of the last row of the page before.
            whose: condition on the person; None: of everybody.
        """
        query = _ending(until)
        if whose is not None:
            query = query.where(whose)
        if after is not None:
            end, ident = after
            query = query.where(
                or_(
                    credential.c.not_after > end,
                    and_(credential.c.not_after == end, credential.c.id > ident),
                )
            )
        rows = await self._connection.execute(query.limit(limit))
        return [_signer(row) for row in rows]

    async def count(self, until: datetime) -> int:
        """How many credentials in use end by then."""
        query = select(func.count()).where(
            credential.c.state == CredentialState.ACTIVE.value,
            credential.c.not_after <= until,
        )
        return int((await self._connection.execute(query)).scalar_one())

    async def told(
        self, kind: ExpiringKind, ids: Collection[str]
    ) -> dict[tuple[str, datetime], int]:
        """The days of the last warning, by id and end."""
        rows = await self._connection.execute(
            select(expiry_notice).where(
                expiry_notice.c.kind == kind.value, expiry_notice.c.subject.in_(ids)
            )
        )
        return {(row.subject, row.not_after): row.days for row in rows}

    async def tell(self, what: Expiring, days: int, at: datetime) -> bool:
        """Note that a warning is given; False if another process gave it."""
        statement = insert_into(self._connection, expiry_notice).values(
            kind=what.kind.value,
            subject=what.id,
            not_after=what.not_after,
            days=days,
            at=at,
        )
        result = await self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=["kind", "subject"],
                set_={"not_after": what.not_after, "days": days, "at": at},
                where=or_(
                    expiry_notice.c.not_after != what.not_after,
                    expiry_notice.c.days > days,
                ),
            )
        )
        return result.rowcount == 1


class FormerCertificateStore(Store):
    """Certificates that credentials had before."""

    async def keep(self, former: Credential, at: datetime) -> None:
        """Record what a credential has, before it gets another."""
        await self._connection.execute(
            insert(former_certificate).values(
                id=new_id(),
                credential=former.id,
                certificate=former.certificate,
                chain=join(former.chain),
                not_before=former.not_before,
                not_after=former.not_after,
                replaced=at,
            )
        )

    async def of_credential(
        self, credential_id: CredentialId
    ) -> list[tuple[bytes, datetime]]:
        """Former certificates in DER with the time of their replacement."""
        rows = await self._connection.execute(
            select(former_certificate.c.certificate, former_certificate.c.replaced)
            .where(former_certificate.c.credential == credential_id)
            .order_by(former_certificate.c.replaced)
        )
        return [(row.certificate, row.replaced) for row in rows]


class RevocationPinStore(Store):
    """What proves a person who has lost everything else."""

    async def set(self, person_id: PersonId, phc: str, at: datetime) -> None:
        """Record the Argon2id hash of a person's PIN; an earlier one is over."""
        statement = insert_into(self._connection, revocation_pin).values(
            person=person_id, phc=phc, made=at
        )
        await self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=["person"], set_={"phc": phc, "made": at}
            )
        )

    async def get(self, person_id: PersonId) -> str | None:
        """The hash of a person's PIN."""
        query = select(revocation_pin.c.phc).where(revocation_pin.c.person == person_id)
        phc: str | None = (await self._connection.execute(query)).scalar_one_or_none()
        return phc


def _ending(until: datetime | None) -> Select[Any]:
    """Credentials in use that end by then, soonest first, with their holder."""
    query = (
        select(
            credential.c.id,
            credential.c.person,
            credential.c.not_before,
            credential.c.not_after,
            person.c.name,
        )
        .join(person, person.c.id == credential.c.person)
        .where(credential.c.state == CredentialState.ACTIVE.value)
        .order_by(credential.c.not_after, credential.c.id)
    )
    return query if until is None else query.where(credential.c.not_after <= until)


def _signer(row: Row[Any]) -> Expiring:
    return Expiring(
        ExpiringKind.SIGNER,
        row.id,
        row.name,
        row.not_before,
        row.not_after,
        PersonId(row.person),
    )


def _anchor(row: Row[Any]) -> Anchor:
    return Anchor(
        row.id,
        row.certificate,
        row.sha256,
        AnchorPurpose(row.purpose),
        row.not_after,
        row.added,
    )
