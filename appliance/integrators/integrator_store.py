"""Integrators, their API keys, and origins allowed and blocked, in SQL."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from appliance.database.tables import (
    api_key,
    blocked_origin,
    integrator,
    integrator_domain,
)
from appliance.database.upsert import insert_into
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId
from appliance.domain.integrators.api_keys import FIRST_SCOPES, ApiKeyScope
from appliance.domain.integrators.integrators import (
    BlockedView,
    DomainRow,
    DomainView,
    ExpiringKey,
    FlagReason,
    IntegratorView,
    KeyRow,
    KeyView,
)
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.vocab import SignatureLevel, TimestampPolicy
from appliance.record.unit_of_work import Store

_WHOSE = [column.label(f"i_{column.name}") for column in integrator.c]


class IntegratorStore(Store):
    """Integrators, their API keys, and origins allowed and blocked."""

    async def all(self) -> list[IntegratorView]:
        """Every integrator, by code."""
        rows = await self._connection.execute(integrator_views())
        return [integrator_view(row) for row in rows]

    async def get(self, code: str, *, lock: bool = False) -> IntegratorView | None:
        """An integrator by code; `lock` keeps others from changing it."""
        query = select(*_WHOSE).where(integrator.c.code == code)
        if lock:
            # Sessions and keys that refer to it can be added meanwhile.
            query = query.with_for_update(key_share=True)
        row = await self._one(query)
        return None if row is None else integrator_view(row)

    async def by_id(self, wanted: IntegratorId) -> IntegratorView | None:
        """An integrator by id."""
        row = await self._one(select(*_WHOSE).where(integrator.c.id == wanted))
        return None if row is None else integrator_view(row)

    async def add(self, new: IntegratorView) -> None:
        """Record an integrator.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a code in use.
        """
        await self._add(insert(integrator).values(**asdict(new)), "code", new.code)

    async def change(self, changed: IntegratorView) -> None:
        """Set all but code and creation."""
        await self._connection.execute(
            update(integrator)
            .where(integrator.c.id == changed.id)
            .values(
                name=changed.name,
                delivery_limit_bytes=changed.delivery_limit_bytes,
                may_vouch=changed.may_vouch,
                level=changed.level,
                timestamp_policy=changed.timestamp_policy,
                digest=changed.digest,
                disabled=changed.disabled,
                tsa=changed.tsa and list(changed.tsa),
                event_prefix=changed.event_prefix,
                mails_signers=changed.mails_signers,
                reminder_days=list(changed.reminder_days),
                sign_url=changed.sign_url,
            )
        )

    async def keys(self, whose: IntegratorId) -> list[KeyView]:
        """An integrator's API keys, newest first."""
        rows = await self._connection.execute(
            select(api_key)
            .where(api_key.c.integrator == whose)
            .order_by(api_key.c.created.desc(), api_key.c.id)
        )
        return [_key_view(row) for row in rows]

    async def key(self, key_id: str, *, lock: bool = False) -> KeyRow | None:
        """An API key by id; `lock` keeps others from changing it."""
        query = _with_integrator(api_key).where(api_key.c.id == key_id)
        if lock:
            query = query.with_for_update(of=api_key, key_share=True)
        return _key_row(await self._one(query))

    async def lock_keys(self, whose: IntegratorId) -> None:
        """Let no session of an integrator be opened until the commit."""
        await self._connection.execute(
            select(api_key.c.id)
            .where(api_key.c.integrator == whose)
            .order_by(api_key.c.id)
            .with_for_update(key_share=True)
        )

    async def key_by_index(self, indexes: Sequence[str]) -> KeyRow | None:
        """An API key by the HMAC of its text."""
        query = _with_integrator(api_key).where(api_key.c.key_index.in_(indexes))
        return _key_row(await self._one(query))

    async def add_key(self, whose: IntegratorId, key: KeyView, key_index: str) -> None:
        """Record an API key by the HMAC of its text."""
        reason = None if key.flag_reason is None else key.flag_reason.value
        await self._connection.execute(
            insert(api_key).values(
                **{
                    **asdict(key),
                    "flag_reason": reason,
                    "scopes": list(key.scopes),
                    "networks": list(key.networks) or None,
                },
                integrator=whose,
                key_index=key_index,
            )
        )

    async def end_key(self, key_id: str, ends: datetime) -> None:
        """Let a rotated key work until then and no longer."""
        await self._set_key(key_id, ends=ends)

    async def revoke_key(self, key_id: str, at: datetime) -> bool:
        """Revoke a key; False if it was."""
        result = await self._connection.execute(
            update(api_key)
            .where(api_key.c.id == key_id, api_key.c.revoked.is_(None))
            .values(revoked=at)
        )
        return result.rowcount == 1

    async def used_key(
        self, key_id: str, key_index: str, at: datetime, before: datetime
    ) -> None:
        """Say that a key was used, unless that was said after `before` already.

        From then on it stands under that HMAC.
        """
        column = api_key.c
        was_not_said = or_(column.last_used.is_(None), column.last_used <= before)
        await self._connection.execute(
            update(api_key)
            .where(
                column.id == key_id, or_(was_not_said, column.key_index != key_index)
            )
            .values(last_used=at, key_index=key_index)
        )

    async def flag_key(self, key_id: str, reason: FlagReason, at: datetime) -> None:
        """Say that a key was seen where it must never be."""
        await self._set_key(key_id, flagged=at, flag_reason=reason.value)

    async def _set_key(self, key_id: str, **values: object) -> None:
        await self._connection.execute(
            update(api_key).where(api_key.c.id == key_id).values(**values)
        )

    async def domains(self, whose: IntegratorId) -> list[DomainView]:
        """Origins whose pages may show the frame, in order."""
        rows = await self._connection.execute(
            select(integrator_domain)
            .where(integrator_domain.c.integrator == whose)
            .order_by(integrator_domain.c.origin)
        )
        return [DomainView(row.id, row.origin, row.seen) for row in rows]

    async def domain(self, domain_id: str) -> DomainRow | None:
        """A registered origin by id."""
        row = await self._one(
            _with_integrator(integrator_domain).where(
                integrator_domain.c.id == domain_id
            )
        )
        if row is None:
            return None
        view = DomainView(row.id, row.origin, row.seen)
        return DomainRow(integrator_view(row), view)

    async def add_domain(
        self, whose: IntegratorId, new: DomainView, at: datetime
    ) -> None:
        """Register an origin; it is no longer listed as blocked.

        Raises:
            ApplianceError: `ALREADY_EXISTS`.
        """
        await self._add(
            insert(integrator_domain).values(
                **asdict(new), integrator=whose, created=at
            ),
            "origin",
            new.origin,
        )
        await self._connection.execute(
            delete(blocked_origin).where(
                blocked_origin.c.integrator == whose,
                blocked_origin.c.origin == new.origin,
            )
        )

    async def remove_domain(self, domain_id: str) -> bool:
        """Take an origin back; False if it was gone."""
        result = await self._connection.execute(
            delete(integrator_domain).where(integrator_domain.c.id == domain_id)
        )
        return result.rowcount == 1

    async def seen_domain(self, whose: IntegratorId, origin: str, at: datetime) -> None:
        """Say that a page of a registered origin started a session."""
        await self._connection.execute(
            update(integrator_domain)
            .where(
                integrator_domain.c.integrator == whose,
                integrator_domain.c.origin == origin,
            )
            .values(seen=at)
        )

    async def blocked(self, whose: IntegratorId) -> list[BlockedView]:
        """Origins that tried and were not listed, last seen first."""
        rows = await self._connection.execute(
            select(blocked_origin)
            .where(blocked_origin.c.integrator == whose)
            .order_by(blocked_origin.c.last.desc(), blocked_origin.c.origin)
        )
        # By name of the column: a row is a tuple and has a `count` of its own.
        return [
            BlockedView(found["origin"], found["first"], found["last"], found["count"])
            for found in rows.mappings()
        ]

    async def note_blocked(
        self, whose: IntegratorId, origin: str, at: datetime, keep: int
    ) -> bool:
        """Count a try of an origin that is not listed; keep the latest `keep`.

        Returns:
            Whether it is a new one, and there was room for it: whoever invents origins
            comes to an end.
        """
        column = blocked_origin.c
        listed = set(
            await self._connection.scalars(
                select(column.origin).where(column.integrator == whose)
            )
        )
        await self._connection.execute(
            insert_into(self._connection, blocked_origin)
            .values(integrator=whose, origin=origin, first=at, last=at, count=1)
            .on_conflict_do_update(
                index_elements=[column.integrator, column.origin],
                set_={"last": at, "count": column.count + 1},
            )
        )
        newest = (
            select(column.origin)
            .where(column.integrator == whose)
            .order_by(column.last.desc(), column.first.desc(), column.origin)
            .limit(keep)
        )
        await self._connection.execute(
            delete(blocked_origin).where(
                column.integrator == whose, column.origin.not_in(newest)
            )
        )
        return origin not in listed and len(listed) < keep

    async def expiring_keys(self, until: datetime) -> list[ExpiringKey]:
        """Keys that work, or did, and whose time ends by then, one after another."""
        column = api_key.c
        rows = await self._connection.execute(
            select(
                column.id,
                column.integrator,
                column.created,
                column.expires,
                column.expiry_told,
            )
            .where(
                column.expires <= until,
                column.revoked.is_(None),
                column.ends.is_(None),
                or_(column.expiry_told.is_(None), column.expiry_told > 0),
            )
            .order_by(column.expires, column.id)
        )
        return [
            ExpiringKey(
                row.id,
                IntegratorId(row.integrator),
                row.created,
                row.expires,
                row.expiry_told,
            )
            for row in rows
        ]

    async def told_expiry(self, key_id: str, days: int) -> bool:
        """Note that a key's end is told; False if it was."""
        told = api_key.c.expiry_told
        result = await self._connection.execute(
            update(api_key)
            .where(api_key.c.id == key_id, or_(told.is_(None), told > days))
            .values(expiry_told=days)
        )
        return result.rowcount == 1

    async def _one(self, query: Select[Any]) -> Row[Any] | None:
        row: Row[Any] | None = (await self._connection.execute(query)).one_or_none()
        return row

    async def _add(self, statement: Any, field: str, value: str) -> None:
        """Insert a row.

        Raises:
            ApplianceError: `ALREADY_EXISTS`.
        """
        try:
            await self._connection.execute(statement)
        except IntegrityError as exc:
            raise ApplianceError(
                ErrorCode.ALREADY_EXISTS, params={"field": field, "value": value}
            ) from exc


def _with_integrator(table: Any) -> Select[Any]:
    """Rows of a table, each with its integrator in columns `i_…`."""
    return select(table, *_WHOSE).join(
        integrator, integrator.c.id == table.c.integrator
    )


def integrator_views() -> Select[Any]:
    """Select what `integrator_view` reads, by code."""
    return select(*_WHOSE).order_by(integrator.c.code)


def integrator_view(row: Row[Any]) -> IntegratorView:
    """The integrator of a row that has it in columns `i_…`.

    Args:
        row: of a query with those columns.
    """
    return IntegratorView(
        id=IntegratorId(row.i_id),
        code=row.i_code,
        name=row.i_name,
        delivery_limit_bytes=row.i_delivery_limit_bytes,
        may_vouch=row.i_may_vouch,
        created=row.i_created,
        level=row.i_level and SignatureLevel(row.i_level),
        timestamp_policy=(
            row.i_timestamp_policy and TimestampPolicy(row.i_timestamp_policy)
        ),
        digest=row.i_digest and DigestAlgorithm(row.i_digest),
        tsa=row.i_tsa and tuple(row.i_tsa),
        event_prefix=row.i_event_prefix,
        disabled=row.i_disabled,
        mails_signers=bool(row.i_mails_signers),
        reminder_days=tuple(row.i_reminder_days or ()),
        sign_url=row.i_sign_url,
    )


def _key_row(row: Row[Any] | None) -> KeyRow | None:
    return (
        None
        if row is None
        else KeyRow(integrator_view(row), _key_view(row), row.key_index)
    )


def _key_view(row: Row[Any]) -> KeyView:
    return KeyView(
        id=row.id,
        label=row.label,
        hint=row.hint,
        created=row.created,
        expires=row.expires,
        last_used=row.last_used,
        revoked=row.revoked,
        flagged=row.flagged,
        ends=row.ends,
        flag_reason=None if row.flag_reason is None else FlagReason(row.flag_reason),
        scopes=(
            FIRST_SCOPES
            if row.scopes is None
            # A later version's own are nothing that this one could let somebody do.
            else tuple(scope for scope in ApiKeyScope if scope in row.scopes)
        ),
        networks=tuple(row.networks or ()),
    )
