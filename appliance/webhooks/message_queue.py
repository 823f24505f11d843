"""The messages that wait for their receivers, in SQL.

Those about one request are sent in the order of what happened: one waits while an
earlier one to the same endpoint is pending.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    not_,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from appliance.database.tables import (
    integrator,
    webhook_attempt,
    webhook_endpoint,
    webhook_message,
)
from appliance.database.types import Instant
from appliance.domain.ids import IntegratorId
from appliance.domain.integrators.webhooks import WebhookAttempt
from appliance.domain.vocab import MessageState, WebhookDisabled
from appliance.record.leased_queue import LeasedQueue

_M: Final = webhook_message.c
_E: Final = webhook_endpoint.c
_PENDING: Final = _M.state == MessageState.PENDING.value
_IS_ON: Final = and_(
    _E.disabled.is_(None),
    _E.removed.is_(None),
    _E.integrator.in_(select(integrator.c.id).where(integrator.c.disabled.is_(None))),
)
_AT: Final[Any] = bindparam("at", type_=Instant())


@dataclass(frozen=True, slots=True)
class Full:
    """Who has had their share of the hands."""

    endpoints: Collection[str] = ()
    integrators: Collection[IntegratorId] = ()

    def given(self) -> dict[str, object]:
        """As the statements below have them."""
        return {
            "full_endpoints": [*self.endpoints],
            "full_integrators": [*self.integrators],
        }


NOBODY: Final = Full()


@dataclass(frozen=True, slots=True)
class MessageClaim:
    """A message in hand, and whom it is for."""

    id: str
    fence: int
    endpoint: str
    integrator: IntegratorId
    url: str
    body: str
    tries: int
    failing_since: datetime | None
    secret_sealed: bytes = field(repr=False)
    former_secret_sealed: bytes | None = field(repr=False)
    """Of the secret before, where it signs as well."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much is to be sent."""

    count: int
    oldest: datetime | None
    """When the first of it was made."""
    failing: int
    """Endpoints at which the last try failed."""


class MessageQueue(LeasedQueue):
    """Pending messages."""

    table, tries = webhook_message, _M.tries

    @classmethod
    def open(cls) -> ColumnElement[bool]:
        """See `LeasedQueue`."""
        return _PENDING

    async def any_due(self, at: datetime, full: Full = NOBODY) -> bool:
        """Whether `claim_next` would give one."""
        return await self._any(_looking(), {"at": at, **full.given()})

    async def claim_next(
        self, owner: str, at: datetime, lease: timedelta, full: Full = NOBODY
    ) -> MessageClaim | None:
        """Take a message that is due, of those whose turn it is.

        Args:
            owner: `<slot>/<process>`.
            at: the time.
            lease: how long it is held.
            full: who has had their share.
        """
        given = {"at": at, **full.given()}
        row = await self._claim(_claiming(), owner, at + lease, given)
        if row is None:
            return None
        found = await self._connection.execute(
            select(webhook_endpoint).where(_E.id == row.endpoint)
        )
        whose = found.one()
        signs = whose.former_until is not None and at < whose.former_until
        return MessageClaim(
            id=row.id,
            fence=row.fence,
            endpoint=row.endpoint,
            integrator=IntegratorId(whose.integrator),
            url=whose.url,
            body=row.body,
            tries=row.tries,
            failing_since=whose.failing_since,
            secret_sealed=whose.secret_sealed,
            former_secret_sealed=whose.former_secret_sealed if signs else None,
        )

    async def ended(
        self, claim: MessageClaim, state: MessageState, due: datetime
    ) -> bool:
        """Write what a try came to; False when another claim came since.

        Args:
            claim: of the caller.
            state: then.
            due: when it is tried again, if it is pending.
        """
        values = {
            "state": state.value,
            "tries": claim.tries + 1,
            "due": due,
            "lease_until": None,
        }
        return await self._fenced(claim, values)

    async def let_go(self, claim: MessageClaim) -> bool:
        """Give a message back as it was."""
        return await self._fenced(claim, {"lease_until": None})

    async def add_attempt(self, attempt: WebhookAttempt) -> None:
        """Record a try."""
        await self._connection.execute(
            insert(webhook_attempt).values(
                message=attempt.message,
                at=attempt.at,
                status=attempt.status,
                failure=attempt.failure,
                took_ms=attempt.took_ms,
                answer=attempt.answer,
            )
        )

    async def lock(self, endpoint: str) -> None:
        """Keep an endpoint from others until this transaction ends.

        Whoever changes one locks it first, and its messages then.
        """
        await self._connection.execute(
            select(_E.id).where(_E.id == endpoint).with_for_update(key_share=True)
        )

    async def succeeded(self, endpoint: str) -> None:
        """Note that an endpoint takes messages."""
        await self._connection.execute(
            update(webhook_endpoint)
            .where(_E.id == endpoint, _E.failing_since.is_not(None))
            .values(failing_since=None)
        )

    async def failed(self, endpoint: str, at: datetime) -> datetime:
        """Note that an endpoint took none; since when it takes none."""
        found = await self._connection.execute(
            update(webhook_endpoint)
            .where(_E.id == endpoint)
            .values(failing_since=func.coalesce(_E.failing_since, at))
            .returning(_E.failing_since)
        )
        since: datetime = found.scalar_one()
        return since

    async def disable(
        self, endpoint: str, reason: WebhookDisabled, at: datetime
    ) -> bool:
        """Have an endpoint get nothing any more; False: it got nothing already."""
        result = await self._connection.execute(
            update(webhook_endpoint)
            .where(_E.id == endpoint, _E.disabled.is_(None), _E.removed.is_(None))
            .values(disabled=at, disabled_reason=reason.value)
        )
        return result.rowcount == 1

    async def any_stranded(self) -> bool:
        """Whether a message is pending whose endpoint gets nothing any more."""
        return await self._any(select(_M.id).where(_stranded()).limit(1))

    async def withdraw(self) -> int:
        """Withdraw all such messages; how many."""
        result = await self._connection.execute(
            update(webhook_message)
            .where(_stranded())
            .values(
                state=MessageState.WITHDRAWN.value,
                fence=_M.fence + 1,
                lease_until=None,
            )
        )
        return result.rowcount

    async def forget(self, before: datetime, limit: int) -> int:
        """Delete messages of before a time that are not pending; how many."""
        found = await self._connection.scalars(
            select(_M.id)
            .join(webhook_endpoint, _E.id == _M.endpoint)
            .where(_M.created < before, not_(_PENDING))
            .limit(limit)
        )
        ids = [*found]
        if ids:
            await self._connection.execute(
                delete(webhook_attempt).where(webhook_attempt.c.message.in_(ids))
            )
            await self._connection.execute(
                delete(webhook_message).where(_M.id.in_(ids))
            )
        return len(ids)

    async def waiting(self) -> Waiting:
        """How much is to be sent."""
        found = await self._connection.execute(
            select(
                func.count().label("messages"),
                func.min(_M.created, type_=_M.created.type).label("oldest"),
            ).where(_PENDING)
        )
        row = found.one()
        failing = await self._connection.scalar(
            select(func.count()).where(_E.failing_since.is_not(None), _IS_ON)
        )
        return Waiting(row.messages, row.oldest, failing or 0)


def _stranded() -> ColumnElement[bool]:
    """Whether a message is pending whose endpoint is off, or its integrator."""
    return and_(_PENDING, not_(_of_endpoint(_IS_ON)))


def _of_endpoint(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether something holds of a message's endpoint.

    It is asked of each pending message: given a list of endpoints, SQLite would look
    through all that was ever sent to them and is kept.
    """
    return exists().where(_E.id == _M.endpoint, condition).correlate(webhook_message)


def _claimable() -> ColumnElement[bool]:
    """Which messages may be sent, with what changes as `at` and `Full`."""
    earlier = webhook_message.alias("earlier")
    return and_(
        _PENDING,
        _M.due <= _AT,
        MessageQueue.unheld(_AT),
        _M.endpoint.not_in(bindparam("full_endpoints", expanding=True)),
        _of_endpoint(
            _IS_ON & _E.integrator.not_in(bindparam("full_integrators", expanding=True))
        ),
        not_(
            exists().where(
                earlier.c.endpoint == _M.endpoint,
                earlier.c.request == _M.request,
                earlier.c.event < _M.event,
                earlier.c.state == MessageState.PENDING.value,
            )
        ),
    )


@cache
def _looking() -> Select[Any]:
    return MessageQueue.looking(_M.id, _claimable(), _M.due)


@cache
def _claiming() -> ReturningUpdate[Any]:
    return MessageQueue.claiming(_claimable(), _M.due)
