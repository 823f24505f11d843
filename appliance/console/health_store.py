"""What the health of an installation needs of the record, in SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Table, and_, exists, func, select

from appliance.core.database.tables import (
    credential,
    integrator,
    mail_message,
    security_notice,
    signature_request,
    webhook_endpoint,
)
from appliance.core.unit_of_work import Store
from appliance.domain.mail.mails import MailState
from appliance.domain.vocab import CredentialState, RequestState, WebhookDisabled
from appliance.requests.process_store import only_revoked

_E: Final = webhook_endpoint.c
_MAILS: Final[Sequence[Table]] = (mail_message, security_notice)
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
        is_enabled = _E.integrator.in_(
            select(integrator.c.id).where(integrator.c.disabled.is_(None))
        )
        is_failing = and_(_E.disabled.is_(None), _E.failing_since.is_not(None))
        row = (
            await self._connection.execute(
                select(
                    func.count().filter(is_failing).label("failing"),
                    func.count()
                    .filter(_E.disabled_reason.in_(_STOPPED))
                    .label("stopped"),
                ).where(_E.removed.is_(None), is_enabled)
            )
        ).one()
        return WebhookFaults(row.failing, row.stopped)

    async def mails(self, since: datetime) -> MailFaults:
        """Count the mails and notices that reach nobody.

        Args:
            since: end of what was refused or given up that is not counted any more.
        """
        retried = lost = 0
        for table in _MAILS:
            c = table.c
            retried += await self._count(
                table, c.state == MailState.PENDING.value, c.tries > 0
            )
            lost += await self._count(table, c.state.in_(_LOST), c.ended > since)
        return MailFaults(retried, lost)

    async def revoked_signers(self) -> int:
        """Count signers who are asked to sign and have only revoked certificates."""
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
        query = select(func.count()).where(only_revoked(whose.c.person), is_asked)
        found = await self._connection.execute(query)
        return int(found.scalar_one())

    async def _count(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        query = select(func.count()).select_from(table).where(*conditions)
        return int((await self._connection.execute(query)).scalar_one())
