"""Mail over a record of tests: who is written to, and one round of sending."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update

from appliance.database.tables import integrator, mail_message, person, security_notice
from appliance.domain.errors import ApplianceError
from appliance.domain.ids import PersonId, RequestId, new_id
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.mail.mails import MailClaim, MailKind, NewMail
from appliance.domain.ports import BlobStore
from appliance.domain.vocab import VouchedBy
from appliance.integrators.event_outbox import EventOutbox, EventTaker
from appliance.mail.contents import MailContents
from appliance.mail.fan_out import MailFanOut
from appliance.mail.mail_store import MailStore
from appliance.mail.smtp import MailServer
from appliance.mail.work import MailWork
from appliance.people.signer_for_tests_store import SignerForTestsStore
from appliance.requests.endings import Endings
from appliance.secrets.sealed_box import SecretBox
from appliance.settings import MailSettings, Settings
from tests.support.installation.record import CoreFixture
from tests.support.services.mail_server import TestMailServer
from worker.leased_worker import hold
from worker.mail.sender import MailSender

ADDRESS = "ana@persona.example"
SLOT = "chores/h/1"


class NoDocuments:
    """A document store that has every document, with the same few bytes."""

    async def get(self, owner: str, sha256: str) -> bytes:
        del owner, sha256
        return b"%PDF-1.7 signed"


@dataclass
class MailDesk:
    """What sends a record's mails to a server."""

    core: CoreFixture
    settings: Settings
    sealer: SecretBox
    sender: MailSender

    async def add_person(self, address: str = ADDRESS) -> PersonId:
        """Somebody who can sign, with an address."""
        who = (await self.core.add_signer()).person
        sealed = self.sealer.seal(
            address.encode(), table="person", row=who, column="email_sealed"
        )
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                update(person).where(person.c.id == who).values(email_sealed=sealed)
            )
        return who

    async def add_test_signer(self) -> PersonId:
        """Somebody whom the record's integrator made up."""
        who = await self.add_person(f"p{new_id()}@prueba.invalid")
        whose = await self.core.integrator()
        async with self.core.store.write() as transaction:
            await SignerForTestsStore(transaction).add(who, whose, b"-", b"-")
            await transaction.connection.execute(
                update(person)
                .where(person.c.id == who)
                .values(vouched_by=VouchedBy.TEST.value)
            )
        return who

    async def mails_signers(self, **values: Any) -> None:
        """Have the record's integrator write to its signers."""
        whose = await self.core.integrator()
        async with self.core.store.write() as transaction:
            await transaction.connection.execute(
                update(integrator)
                .where(integrator.c.id == whose)
                .values(mails_signers=True, **values)
            )

    async def add(
        self,
        who: PersonId,
        kind: MailKind = MailKind.ENROLLED,
        request: RequestId | None = None,
        **values: Any,
    ) -> str:
        """A mail that is due now; its id."""
        new = NewMail(who, kind, self.core.now, request=request, **values)
        async with self.core.store.write() as transaction:
            await MailStore(transaction).add(new)
        return new.id

    async def hand_on(self) -> None:
        """What the events of requests come to, once."""
        takers: list[EventTaker] = [Endings(), MailFanOut(self.core.clock)]
        await EventOutbox(self.core.store, takers).run()

    async def send_all(self) -> int:
        """Send what is due now, one after the other; how many were tried."""
        tried = 0
        work = self.sender._mails
        while (claim := await self.sender.work.claim_next()) is not None:
            work.in_hand.append(claim)
            with suppress(ApplianceError):
                await hold(work, claim)
            work.in_hand.clear()
            tried += 1
        return tried

    async def claim(self) -> MailClaim:
        """Take a mail, as a worker does that dies with it."""
        claim = await self.sender.work.claim_next()
        assert claim is not None
        return claim

    async def rows(self) -> Sequence[Any]:
        """Every row of a mail or a notice, oldest first."""
        async with self.core.store.read() as transaction:
            found = [
                row
                for table in (mail_message, security_notice)
                for row in await transaction.connection.execute(select(table))
            ]
        return sorted(found, key=lambda row: (row.created, row.due, row.kind))


def mail_settings(server: TestMailServer, **values: Any) -> dict[str, Any]:
    """Settings of mail to a server of tests."""
    return {
        "host": "127.0.0.1",
        "port": server.port,
        "tls": "none",
        "from_address": "firma@rubrica.example",
        "timeout_s": 60,
        **values,
    }


def mail_desk(
    core: CoreFixture,
    server: TestMailServer,
    documents: BlobStore | None = None,
    **values: Any,
) -> MailDesk:
    """What sends the mails of a record to a server.

    Args:
        core: the record.
        server: that takes them.
        documents: the files; None: any.
        values: of the settings of mail.
    """
    mail = MailSettings.model_validate(mail_settings(server, **values))
    settings = core.settings.model_copy(
        update={"mail": mail, "installation": "Firma de Prueba"}
    )
    sealer = SecretBox(KeyRing.of(bytes(32)))
    files: Any = documents or NoDocuments()
    sender = MailSender(
        MailWork(core.store, core.clock, SLOT, mail.per_hour),
        MailContents(core.store, files, sealer, core.clock, settings),
        MailServer(mail),
        settings,
    )
    return MailDesk(core, settings, sealer, sender)


async def drain(sender: MailSender, until: Any) -> None:
    """Run a sender as chores do, until something is so."""
    stop = asyncio.Event()
    running = asyncio.create_task(sender.run(stop))
    async with asyncio.timeout(60):
        while not await until():  # noqa: ASYNC110 (the record tells nobody)
            await asyncio.sleep(0.02)
    stop.set()
    await running
