"""People's signing keys and certificates in SQL."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from sqlalchemy import Row, Select, bindparam, insert, select, update

from appliance.database.tables import credential, outside_status
from appliance.database.types import Instant
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.keys.hsm_keys import KeyAlgorithm, KeyMode, WrapMethod
from appliance.domain.people.identity import Credential
from appliance.domain.pki.certificates import StatusKind
from appliance.domain.vocab import CredentialState, VouchedBy
from appliance.record.unit_of_work import Store

OVER: Final = (
    CredentialState.SUPERSEDED.value,
    CredentialState.REVOKING.value,
    CredentialState.REVOKED.value,
)
"""States of credentials that never sign again."""


def _locked(query: Select[Any]) -> Select[Any]:
    # Of the kind that lets rows that refer to this one be added.
    return query.with_for_update(key_share=True)


# Made once: each signature executes them, several times.
_BY_ID: Final = select(credential).where(credential.c.id == bindparam("credential"))
_BY_ID_LOCKED: Final = _locked(_BY_ID)
_USABLE: Final = select(credential).where(
    credential.c.person == bindparam("of"),
    credential.c.state == CredentialState.ACTIVE.value,
    credential.c.not_before <= bindparam("then", type_=Instant()),
    credential.c.not_after > bindparam("then", type_=Instant()),
)
_REVOKED: Final = (
    select(outside_status.c.subject)
    .where(
        outside_status.c.kind == StatusKind.REVOKED.value,
        outside_status.c.subject.in_(bindparam("subjects", expanding=True)),
    )
    .limit(1)
)


class CredentialStore(Store):
    """Keys and certificates."""

    async def add(self, new: Credential) -> None:
        """Record a credential; the person's earlier active ones give way."""
        await self._connection.execute(
            update(credential)
            .where(
                credential.c.person == new.person,
                credential.c.state == CredentialState.ACTIVE.value,
            )
            .values(state=CredentialState.SUPERSEDED.value)
        )
        await self._connection.execute(
            insert(credential).values(
                id=new.id,
                person=new.person,
                key_mode=new.key_mode.value,
                algorithm=new.algorithm.value,
                key_version=new.key_version,
                key_token=new.key_token,
                cka_id=new.cka_id,
                master=new.master,
                blob_w=new.blob_w,
                method_w=None if new.method_w is None else new.method_w.value,
                method_k=None if new.method_k is None else new.method_k.value,
                outer=new.outer,
                spki=new.spki,
                spki_sha256=hashlib.sha256(new.spki).hexdigest(),
                certificate=new.certificate,
                chain=join(new.chain),
                not_before=new.not_before,
                not_after=new.not_after,
                vouched_by=new.vouched_by.value,
                state=new.state.value,
                created=self._clock.now(),
            )
        )

    async def get(
        self, credential_id: CredentialId, *, lock: bool = False
    ) -> Credential | None:
        """A credential by id; `lock` keeps others from changing it."""
        query = _BY_ID_LOCKED if lock else _BY_ID
        return await self._found(query, {"credential": credential_id})

    async def set_state(
        self, credential_id: CredentialId, state: CredentialState
    ) -> None:
        """Move a credential to a state."""
        await self._connection.execute(
            update(credential)
            .where(credential.c.id == credential_id)
            .values(state=state.value)
        )

    async def renewed(self, renewed: Credential) -> None:
        """Record the certificate, chain and dates that a credential now has."""
        await self._connection.execute(
            update(credential)
            .where(credential.c.id == renewed.id)
            .values(
                certificate=renewed.certificate,
                chain=join(renewed.chain),
                not_before=renewed.not_before,
                not_after=renewed.not_after,
            )
        )

    async def active(self, person_id: PersonId) -> Credential | None:
        """The credential a person signs with."""
        return await self._one(
            (credential.c.person == person_id)
            & (credential.c.state == CredentialState.ACTIVE.value)
        )

    async def usable(self, person_id: PersonId, at: datetime) -> Credential | None:
        """What a person can sign with at a time: in force, and not found revoked."""
        found = await self._found(_USABLE, {"of": person_id, "then": at})
        if found is None or await self.found_revoked((found.certificate, *found.chain)):
            return None
        return found

    async def found_revoked(self, path: Sequence[bytes]) -> bool:
        """Whether an outside CA has revoked one of these certificates, or holds it.

        Args:
            path: what a credential signs with, and its issuers; DER.
        """
        subjects = [hashlib.sha256(der).hexdigest() for der in path]
        found = await self._connection.execute(_REVOKED, {"subjects": subjects})
        return found.first() is not None

    async def certified(self, certificate: bytes) -> Credential | None:
        """The one that signs with a certificate, DER, locked; None: nobody does."""
        ends = x509.load_der_x509_certificate(certificate).not_valid_after_utc
        return await self._one(
            (credential.c.state == CredentialState.ACTIVE.value)
            # Which has an index, as the bytes have not.
            & (credential.c.not_after == ends)
            & (credential.c.certificate == certificate),
            lock=True,
        )

    async def in_use(self, after: str, limit: int) -> list[Credential]:
        """Credentials that people sign with, by id.

        Args:
            after: id of the last one seen; empty for the first ones.
            limit: how many at most.
        """
        rows = await self._connection.execute(
            select(credential)
            .where(
                credential.c.state == CredentialState.ACTIVE.value,
                credential.c.id > after,
            )
            .order_by(credential.c.id)
            .limit(limit)
        )
        return [credential_of(row) for row in rows]

    async def of_person(self, person_id: PersonId) -> list[Credential]:
        """Every credential of a person, newest first."""
        rows = await self._connection.execute(
            select(credential)
            .where(credential.c.person == person_id)
            .order_by(credential.c.created.desc(), credential.c.id)
        )
        return [credential_of(row) for row in rows]

    async def locked(self, person_id: PersonId) -> list[Credential]:
        """Those of a person that may sign, now or later, by id."""
        rows = await self._connection.execute(
            select(credential)
            .where(credential.c.person == person_id, credential.c.state.not_in(OVER))
            .order_by(credential.c.id)
        )
        return [credential_of(row) for row in rows]

    async def relock(self, credential_id: CredentialId, outer: bytes) -> None:
        """Keep what is in `outer` under another unlock key."""
        await self._connection.execute(
            update(credential)
            .where(credential.c.id == credential_id)
            .values(outer=outer)
        )

    async def _one(self, condition: Any, *, lock: bool = False) -> Credential | None:
        query = select(credential).where(condition)
        return await self._found(_locked(query) if lock else query)

    async def _found(
        self, query: Select[Any], given: Mapping[str, object] | None = None
    ) -> Credential | None:
        row = (await self._connection.execute(query, given)).one_or_none()
        return None if row is None else credential_of(row)


def credential_of(row: Row[Any]) -> Credential:
    """Read a row of the table."""
    return Credential(
        id=CredentialId(row.id),
        person=PersonId(row.person),
        key_mode=KeyMode(row.key_mode),
        algorithm=KeyAlgorithm(row.algorithm),
        key_version=row.key_version,
        spki=row.spki,
        outer=row.outer,
        master=row.master,
        blob_w=row.blob_w,
        method_w=None if row.method_w is None else WrapMethod(row.method_w),
        method_k=None if row.method_k is None else WrapMethod(row.method_k),
        key_token=row.key_token,
        cka_id=row.cka_id,
        certificate=row.certificate,
        chain=split(row.chain),
        not_before=row.not_before,
        not_after=row.not_after,
        vouched_by=VouchedBy(row.vouched_by),
        state=CredentialState(row.state),
    )


def join(parts: tuple[bytes, ...]) -> bytes:
    """Put parts into one column, with their length in four bytes before each."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def split(joined: bytes) -> tuple[bytes, ...]:
    """Undo `join`."""
    parts = []
    at = 0
    while at < len(joined):
        size = int.from_bytes(joined[at : at + 4], "big")
        parts.append(joined[at + 4 : at + 4 + size])
        at += 4 + size
    return tuple(parts)
