"""Which mails somebody got about their requests, in SQL."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Row, select

from appliance.database.tables import mail_message
from appliance.domain.ids import PersonId, RequestBatchId, RequestId
from appliance.domain.mail.mails import MailKind, MailState
from appliance.record.unit_of_work import Store

APART: Final = timedelta(hours=1)
"""How far the clocks may be apart of who asks for a signature and who hands it on."""
_HANDED_OVER: Final = frozenset({MailState.SENT, MailState.CAUGHT})


@dataclass(frozen=True, slots=True)
class RequestMail:
    """A mail to somebody about requests, or about a batch of them."""

    id: str
    kind: MailKind
    state: MailState
    made: datetime
    due: datetime
    ended: datetime | None
    detail: Mapping[str, Any]
    requests: frozenset[RequestId]
    batch: RequestBatchId | None

    def tells_of(self, request: RequestId, batch: RequestBatchId | None) -> bool:
        """Whether it is about a request, by itself or as one of a batch."""
        if self.batch is not None:
            return self.batch == batch
        return request in self.requests

    @property
    def is_open(self) -> bool:
        """Whether it is still to be sent."""
        return self.state is MailState.PENDING

    @property
    def handed_over(self) -> datetime | None:
        """When the server, or who reads a test signer's mails, got it."""
        return self.ended if self.state in _HANDED_OVER else None


class RequestMailStore(Store):
    """Mails about requests."""

    async def to(
        self, person: PersonId, since: datetime, kinds: Collection[MailKind]
    ) -> list[RequestMail]:
        """Mails to somebody, oldest first.

        Args:
            person: to whom.
            since: made then or later; when the first of the requests was made.
            kinds: which.
        """
        rows = await self._connection.execute(
            select(
                *(
                    mail_message.c[name]
                    for name in (
                        "id",
                        "kind",
                        "state",
                        "created",
                        "due",
                        "ended",
                        "detail",
                        "request",
                    )
                )
            )
            .where(
                mail_message.c.person == person,
                mail_message.c.created >= since - APART,
                mail_message.c.kind.in_([kind.value for kind in kinds]),
                mail_message.c.request.is_not(None),
            )
            .order_by(mail_message.c.created, mail_message.c.id)
        )
        return [mail for row in rows if (mail := request_mail(row)) is not None]


def requests_in(
    request: RequestId | None, detail: Mapping[str, object]
) -> list[RequestId]:
    """The requests that a mail names, in order; of a batch the first alone."""
    named = [] if request is None else [request]
    others = detail.get("also")
    if isinstance(others, Sequence):
        named += [RequestId(other) for other in others]
    return named


def batch_in(detail: Mapping[str, object]) -> RequestBatchId | None:
    """The batch that a mail is about."""
    found = detail.get("batch")
    return None if found is None else RequestBatchId(str(found))


def request_mail(row: Row[Any]) -> RequestMail | None:
    """Read a row of mails; None for one that is about no request."""
    if row.request is None:
        return None
    return RequestMail(
        row.id,
        MailKind(row.kind),
        MailState(row.state),
        row.created,
        row.due,
        row.ended,
        row.detail,
        frozenset(requests_in(RequestId(row.request), row.detail)),
        batch_in(row.detail),
    )
