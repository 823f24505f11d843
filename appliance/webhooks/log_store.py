"""What was sent to integrators' webhooks, and each try, in SQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, func, or_, select, update

from appliance.database.tables import (
    signature_request,
    webhook_attempt,
    webhook_message,
)
from appliance.domain.ids import ProcessId, RequestId
from appliance.domain.integrators.webhook_log import DeliveryFilter, LoggedMessage
from appliance.domain.integrators.webhooks import WebhookAttempt, WebhookMessage
from appliance.domain.vocab import MessageState
from appliance.record.unit_of_work import Store

ATTEMPTS_SHOWN: Final = 100
"""Newest tries of one message."""
_MESSAGES: Final[Select[Any]] = select(
    webhook_message, signature_request.c.process
).outerjoin(signature_request, signature_request.c.id == webhook_message.c.request)


class MessageLogStore(Store):
    """Messages of one endpoint."""

    async def matching(
        self, endpoint: str, asked: DeliveryFilter
    ) -> list[LoggedMessage]:
        """Messages, newest first, each with its last try alone."""
        rows = await self._connection.execute(
            _MESSAGES.where(webhook_message.c.endpoint == endpoint, *_conditions(asked))
            .order_by(webhook_message.c.created.desc(), webhook_message.c.id.desc())
            .limit(asked.limit)
        )
        found = [*rows]
        last = await self._last([row.id for row in found])
        return [_logged(row, last.get(row.id, ())) for row in found]

    async def get(self, endpoint: str, message: str) -> LoggedMessage | None:
        """One message, with its tries, oldest first."""
        found = await self._connection.execute(
            _MESSAGES.where(
                webhook_message.c.endpoint == endpoint, webhook_message.c.id == message
            )
        )
        row = found.first()
        if row is None:
            return None
        tries = await self._connection.execute(
            select(webhook_attempt)
            .where(webhook_attempt.c.message == message)
            .order_by(webhook_attempt.c.id.desc())
            .limit(ATTEMPTS_SHOWN)
        )
        return _logged(row, [_attempt(each) for each in tries][::-1])

    async def _last(
        self, messages: Collection[str]
    ) -> Mapping[str, Sequence[WebhookAttempt]]:
        newest = (
            select(func.max(webhook_attempt.c.id))
            .where(webhook_attempt.c.message.in_(messages))
            .group_by(webhook_attempt.c.message)
        )
        rows = await self._connection.execute(
            select(webhook_attempt).where(webhook_attempt.c.id.in_(newest))
        )
        return {row.message: (_attempt(row),) for row in rows}

    async def settled(
        self, endpoint: str, asked: DeliveryFilter
    ) -> list[tuple[str, datetime]]:
        """Messages that are not pending, oldest first: id, and when each was made."""
        rows = await self._connection.execute(
            select(webhook_message.c.id, webhook_message.c.created)
            .where(
                webhook_message.c.endpoint == endpoint,
                webhook_message.c.state != MessageState.PENDING,
                *_conditions(asked),
            )
            .order_by(webhook_message.c.created, webhook_message.c.id)
            .limit(asked.limit)
        )
        return [(row.id, row.created) for row in rows]

    async def send_again(self, messages: Collection[str], at: datetime) -> None:
        """Have messages sent from now on, with all tries of a new one."""
        await self._connection.execute(
            update(webhook_message)
            .where(webhook_message.c.id.in_(messages))
            .values(state=MessageState.PENDING, tries=0, due=at)
        )

    async def first_due(self, endpoint: str, but: str) -> datetime | None:
        """When the first of an endpoint's other pending messages is due; None: none is.

        Args:
            endpoint: its id.
            but: id of the message that is left out.
        """
        due = webhook_message.c.due
        found = await self._connection.execute(
            select(func.min(due, type_=due.type)).where(
                webhook_message.c.endpoint == endpoint,
                webhook_message.c.id != but,
                webhook_message.c.state == MessageState.PENDING.value,
            )
        )
        first: datetime | None = found.scalar_one()
        return first

    async def hasten(self, message: str, at: datetime) -> None:
        """Have a pending message tried next at a time."""
        await self._connection.execute(
            update(webhook_message)
            .where(webhook_message.c.id == message)
            .values(due=at)
        )


def _conditions(asked: DeliveryFilter) -> list[ColumnElement[bool]]:
    given: list[ColumnElement[bool]] = []
    if asked.state is not None:
        given.append(webhook_message.c.state == asked.state)
    if asked.kind is not None:
        given.append(webhook_message.c.kind == asked.kind)
    if asked.process is not None:
        of_process = select(signature_request.c.id).where(
            signature_request.c.process == asked.process
        )
        given.append(webhook_message.c.request.in_(of_process))
    if asked.since is not None:
        given.append(webhook_message.c.created >= asked.since)
    if asked.until is not None:
        given.append(webhook_message.c.created < asked.until)
    if asked.before is not None:
        at, ident = asked.before
        created = webhook_message.c.created
        given.append(
            or_(created < at, (created == at) & (webhook_message.c.id < ident))
        )
    return given


def _logged(row: Row[Any], tries: Sequence[WebhookAttempt]) -> LoggedMessage:
    return LoggedMessage(
        message=WebhookMessage(
            id=row.id,
            endpoint=row.endpoint,
            event=row.event,
            kind=row.kind,
            request=None if row.request is None else RequestId(row.request),
            body=row.body,
            created=row.created,
            state=MessageState(row.state),
            tries=row.tries,
            due=row.due,
        ),
        process=None if row.process is None else ProcessId(row.process),
        attempts=tuple(tries),
    )


def _attempt(row: Row[Any]) -> WebhookAttempt:
    return WebhookAttempt(
        message=row.message,
        at=row.at,
        status=row.status,
        failure=row.failure,
        took_ms=row.took_ms,
        answer=row.answer,
    )
