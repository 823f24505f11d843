"""Webhooks, mails and signers behind the counts of *Salud*, one by one, in SQL."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, func, select

from appliance.console.health_store import (
    MAIL_TABLES,
    is_failing,
    is_lost,
    is_of_enabled,
    is_retried,
    is_stopped,
    revoked_and_asked,
)
from appliance.database.tables import integrator, person, webhook_endpoint
from appliance.domain.ids import PersonId
from appliance.domain.mail.mails import MailKind, MailState
from appliance.record.unit_of_work import Store

_E: Final = webhook_endpoint.c


@dataclass(frozen=True, slots=True)
class UndeliveredWebhook:
    """An endpoint that gets nothing."""

    endpoint: str
    """Its id."""
    label: str
    integrator_code: str
    integrator_name: str
    is_off: bool
    """It was turned off, because every try failed or by its server."""
    since: datetime


@dataclass(frozen=True, slots=True)
class UndeliveredMail:
    """A mail to a person that did not reach the mail server, or was refused there."""

    person: PersonId
    name: str
    kind: MailKind
    state: MailState
    """`PENDING`: it is tried again."""
    answer: str
    """Answer of the mail server, without addresses; empty if there was none."""
    at: datetime
    """Time of its end, or of the next try."""


@dataclass(frozen=True, slots=True)
class RevokedSigner:
    """Somebody who is asked to sign and whose certificate is revoked."""

    person: PersonId
    name: str


@dataclass(frozen=True, slots=True)
class Undelivered:
    """The newest of each kind."""

    webhooks: tuple[UndeliveredWebhook, ...]
    mails: tuple[UndeliveredMail, ...]
    signers: tuple[RevokedSigner, ...]
    """By name."""


class UndeliveredStore(Store):
    """Reads what `ConsoleHealthStore` counts."""

    async def webhooks(self, limit: int) -> list[UndeliveredWebhook]:
        """Endpoints that get nothing, the newest trouble first."""
        since = func.coalesce(_E.failing_since, _E.disabled, type_=_E.disabled.type)
        rows = await self._connection.execute(
            select(
                _E.id,
                _E.label,
                _E.url,
                _E.disabled,
                since.label("since"),
                integrator.c.code,
                integrator.c.name,
            )
            .join(integrator, integrator.c.id == _E.integrator)
            .where(is_of_enabled(), is_failing() | is_stopped())
            .order_by(since.desc(), _E.id)
            .limit(limit)
        )
        return [
            UndeliveredWebhook(
                row.id,
                row.label or row.url,
                row.code,
                row.name,
                row.disabled is not None,
                row.since,
            )
            for row in rows
        ]

    async def mails(self, since: datetime, limit: int) -> list[UndeliveredMail]:
        """Mails and notices that reach nobody, the newest first.

        Args:
            since: end of what was refused or given up that is not told any more.
            limit: rows at most.
        """
        found: list[UndeliveredMail] = []
        for table in MAIL_TABLES:
            mail = table.c
            at = func.coalesce(mail.ended, mail.due, type_=mail.due.type)
            query: Select[Any] = (
                select(
                    mail.person,
                    person.c.name,
                    mail.kind,
                    mail.state,
                    mail.answer,
                    at.label("at"),
                )
                .join(person, person.c.id == mail.person)
                .where(is_retried(table) | is_lost(table, since))
                .order_by(at.desc(), mail.id)
                .limit(limit)
            )
            found += [
                UndeliveredMail(
                    PersonId(row.person),
                    row.name,
                    MailKind(row.kind),
                    MailState(row.state),
                    row.answer,
                    row.at,
                )
                for row in await self._connection.execute(query)
            ]
        return sorted(found, key=lambda each: each.at, reverse=True)[:limit]

    async def signers(self, limit: int) -> list[RevokedSigner]:
        """Signers who are asked to sign and have only revoked certificates."""
        rows = await self._connection.execute(
            select(person.c.id, person.c.name)
            .where(person.c.id.in_(revoked_and_asked()))
            .order_by(person.c.name, person.c.id)
            .limit(limit)
        )
        return [RevokedSigner(PersonId(row.id), row.name) for row in rows]
