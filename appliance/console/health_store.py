"""What the health of an installation needs of the record, in SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Select, Table, and_, exists, func, select

from appliance.database.tables import (
    credential,
    integrator,
    mail_message,
    security_notice,
    signature_request,
    webhook_endpoint,
)
from appliance.domain.mail.mails import MailState
from appliance.domain.vocab import CredentialState, RequestState, WebhookDisabled
from appliance.record.unit_of_work import Store
from appliance.requests.process_store import only_revoked

_E: Final = webhook_endpoint.c
MAIL_TABLES: Final[Sequence[Table]] = (mail_message, security_notice)
_LOST: Final = (MailState.REFUSED.value, MailState.GIVEN_UP.value)
_STOPPED: Final = (WebhookDisabled.FAILING.value, WebhookDisabled.GONE.value)
_REVOKED: Final = (CredentialState.REVOKING.value, CredentialState.REVOKED.value)
_LEFT: Final = (RequestState.PENDING.value, RequestState.WAITING.value)


@dataclass(frozen=True, slots=True)
class WebhookFaults:
    """Webhook endpoints that get nothing, of enabled integrators."""

    failing: int
    """Endpoints at which the last try failed."""
    stopped: int
    """Endpoints disabled because every try failed, or by their server."""

    @property
    def count(self) -> int:
        """All of them."""
        return self.failing + self.stopped


@dataclass(frozen=True, slots=True)
class MailFaults:
    """Mails that reach nobody."""

    retried: int
    """Mails whose last try failed; they are tried again."""
    lost: int
    """Mails that the server refused, or that were given up, of late."""

    @property
    def count(self) -> int:
        """All of them."""
        return self.retried + self.lost


class ConsoleHealthStore(Store):
    """Counts of what does not work."""

    async def webhooks(self) -> WebhookFaults:
        """Count the endpoints that get nothing."""
        row = (
            await self._connection.execute(
                select(
                    func.count().filter(is_failing()).label("failing"),
                    func.count().filter(is_stopped()).label("stopped"),
                ).where(is_of_enabled())
            )
        ).one()
        return WebhookFaults(row.failing, row.stopped)

    async def mails(self, since: datetime) -> MailFaults:
        """Count the mails and notices that reach nobody.

        Args:
            since: end of what was refused or given up that is not counted any more.
        """
        retried = lost = 0
        for table in MAIL_TABLES:
            retried += await self._count(table, is_retried(table))
            lost += await self._count(table, is_lost(table, since))
        return MailFaults(retried, lost)

    async def revoked_signers(self) -> int:
        """Count signers who are asked to sign and have only revoked certificates."""
        query = select(func.count()).select_from(revoked_and_asked().subquery())
        found = await self._connection.execute(query)
        return int(found.scalar_one())

    async def _count(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(table).where(*conditions)
        return int((await self._connection.execute(query)).scalar_one())


def is_of_enabled() -> ColumnElement[bool]:
    """True of an endpoint that was not removed, of an enabled integrator."""
    enabled = select(integrator.c.id).where(integrator.c.disabled.is_(None))
    return and_(_E.removed.is_(None), _E.integrator.in_(enabled))


def is_failing() -> ColumnElement[bool]:
    """True of an endpoint at which the last try failed."""
    return and_(_E.disabled.is_(None), _E.failing_since.is_not(None))


def is_stopped() -> ColumnElement[bool]:
    """True of an endpoint that is off because of its server."""
    return _E.disabled_reason.in_(_STOPPED)


def is_retried(table: Table) -> ColumnElement[bool]:
    """True of a mail whose last try failed, and which is tried again.

    Args:
        table: one of `MAIL_TABLES`.
    """
    return and_(table.c.state == MailState.PENDING.value, table.c.tries > 0)


def is_lost(table: Table, since: datetime) -> ColumnElement[bool]:
    """True of a mail that was refused or given up after a time.

    Args:
        table: one of `MAIL_TABLES`.
        since: the time.
    """
    return and_(table.c.state.in_(_LOST), table.c.ended > since)


def revoked_and_asked() -> Select[tuple[str]]:
    """Ids of signers who are asked to sign and have only revoked certificates."""
    # From the certificates, which are few: thousands of requests may wait.
    whose = (
        select(credential.c.person)
        .where(credential.c.state.in_(_REVOKED))
        .distinct()
        .subquery()
    )
    is_asked = exists().where(
        signature_request.c.person == whose.c.person,
        signature_request.c.state.in_(_LEFT),
    )
    return select(whose.c.person).where(only_revoked(whose.c.person), is_asked)
