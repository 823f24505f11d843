"""What became of mails, for those who look after people and requests."""

from typing import Final

from appliance.domain.ids import PersonId
from appliance.domain.mail.mails import MailView
from appliance.domain.requests.request import RequestView
from appliance.mail.mail_store import MailStore
from appliance.mail.notice_store import NoticeStore
from appliance.record.unit_of_work import Database
from appliance.requests.request_batch_store import RequestBatchStore

_SHOWN: Final = 10


class MailViews:
    """Reads mails; no address and no link is among what it gives.

    Args:
        store: the record.
    """

    def __init__(self, store: Database) -> None:
        self._store = store

    async def of_person(self, person: PersonId) -> list[MailView]:
        """The newest mails and notices to a person, newest first."""
        async with self._store.read() as transaction:
            mails = await MailStore(transaction).of_person(person, _SHOWN)
            notices = await NoticeStore(transaction).of_person(person, _SHOWN)
        mails = sorted([*mails, *notices], key=lambda mail: mail.created)
        return mails[: -_SHOWN - 1 : -1]

    async def of_request(self, view: RequestView) -> list[MailView]:
        """Mails about a request, newest first; those about its batch among them."""
        async with self._store.read() as transaction:
            first = None
            if view.batch is not None:
                batches = RequestBatchStore(transaction)
                first = (await batches.firsts([view.batch])).get(view.batch)
            return (await MailStore(transaction).of_request(view, first))[::-1]
