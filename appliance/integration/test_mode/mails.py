"""Test mode: what test signers were written, which no mail server is handed.

What a mail says is made as it is asked for, as it is made when one is sent.

Source: docs/integration.md "Test mode".
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from appliance.domain.clock import Clock
from appliance.domain.ids import PersonId, ProcessId
from appliance.domain.mail.mails import MailClaim, MailKind
from appliance.domain.ports import BlobStore, Sealer
from appliance.mail.mail_store import MailStore
from appliance.mail.notice_store import NoticeStore
from appliance.record.unit_of_work import Database, Transaction
from appliance.requests.request_store import RequestStore
from appliance.settings import Settings

if TYPE_CHECKING:
    from appliance.mail.message import MailParts

MAILS_AT_MOST: Final = 50
"""The newest to one test signer."""


@dataclass(frozen=True, slots=True)
class MailForTests:
    """A mail as its recipient would read it."""

    id: str
    kind: MailKind
    parts: "MailParts" = field(repr=False)
    created: datetime
    process: ProcessId | None
    url: str | None = field(repr=False)
    """Where it leads."""


class MailsForTests:
    """Gives what test signers were written.

    Args:
        store: the record.
        documents: bytes of what was signed.
        sealer: opens addresses and links.
        clock: the time.
        settings: of the installation.
    """

    def __init__(
        self,
        store: Database,
        documents: BlobStore,
        sealer: Sealer,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._store = store
        self._documents = documents
        self._sealer = sealer
        self._clock = clock
        self._settings = settings

    async def of(self, signer: PersonId) -> list[MailForTests]:
        """The newest to a test signer, newest first.

        Args:
            signer: who, and whose integrator asks.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        # Their words and templates: only who makes mails has those in memory.
        from appliance.mail.contents import MailContents  # noqa: PLC0415 (heavy)
        from appliance.mail.message import mail_parts  # noqa: PLC0415 (heavy)

        contents = MailContents(
            self._store, self._documents, self._sealer, self._clock, self._settings
        )
        async with self._store.read() as transaction:
            given = signer, self._clock.now(), MAILS_AT_MOST
            caught = [
                *await MailStore(transaction).caught(*given),
                *await NoticeStore(transaction).caught(*given),
            ]
            caught.sort(key=_newest, reverse=True)
            del caught[MAILS_AT_MOST:]
            processes = [await _process(transaction, each) for each in caught]
        found = []
        for each, process in zip(caught, processes, strict=True):
            content = await contents.of(each, is_past=True)
            if content is not None:
                parts = mail_parts(content, self._settings, each.id)
                found.append(
                    MailForTests(
                        each.id, each.kind, parts, each.created, process, content.url
                    )
                )
        return found


def _newest(mail: MailClaim) -> tuple[datetime, str]:
    """When a mail was to be sent; of two at once, one always comes first."""
    return mail.due or mail.created, mail.id


async def _process(transaction: Transaction, mail: MailClaim) -> ProcessId | None:
    if mail.request is None:
        return None
    view = await RequestStore(transaction).get(mail.request)
    return None if view is None else view.process
