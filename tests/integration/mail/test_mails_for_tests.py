"""Test mode: mails to test signers are kept to be read, and handed to no server."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import update

from appliance.database.tables import signature_request
from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, RequestId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.mail.mails import MailKind, MailState
from appliance.domain.vocab import EventKind, RequestState
from appliance.integration.requests.reminders import BackendReminders
from appliance.integration.test_mode import mails
from appliance.integration.test_mode.mails import MailsForTests
from appliance.integrators.event_outbox import EventOutbox
from appliance.integrators.integrator_store import IntegratorStore
from appliance.mail.fan_out import MailFanOut
from appliance.mail.work import MailUpkeep
from appliance.requests.request_store import RequestStore
from tests.integration.mail.mail_desk import MailDesk, NoDocuments, mail_desk
from tests.support.installation.record import CoreFixture
from tests.support.services.mail_server import TestMailServer, mail_server

CAUGHT, SENT = MailState.CAUGHT, MailState.SENT


@pytest.fixture
def server() -> Iterator[TestMailServer]:
    """A server that takes everything."""
    with mail_server() as made:
        yield made


@pytest.fixture
def desk(core: CoreFixture, server: TestMailServer) -> MailDesk:
    """A record's mails, and that server."""
    return mail_desk(core, server)


async def happened(desk: MailDesk, event: EventKind, request: RequestId) -> None:
    """Have the audit say something of a request."""
    async with desk.core.store.write() as transaction:
        transaction.audit.add(AuditEvent(event, "operator", request=request))


async def become(desk: MailDesk, request: RequestId, state: RequestState) -> None:
    """Move a request."""
    async with desk.core.store.write() as transaction:
        await transaction.connection.execute(
            update(signature_request)
            .where(signature_request.c.id == request)
            .values(state=state.value)
        )


async def asking(desk: MailDesk) -> IntegratorCaller:
    """The record's integrator, as its backend asks."""
    async with desk.core.store.read() as transaction:
        found = await IntegratorStore(transaction).get("demo")
    assert found is not None
    return IntegratorCaller(found, "k" * 12)


def mails_of(desk: MailDesk) -> MailsForTests:
    """What gives test signers' mails; none of them brings a document."""
    documents: Any = NoDocuments()
    core = desk.core
    return MailsForTests(core.store, documents, desk.sealer, core.clock, desk.settings)


async def read(desk: MailDesk, who: PersonId) -> list[tuple[MailKind, str]]:
    """Kind and subject of what a test signer was written, newest first."""
    mails = mails_of(desk)
    return [(each.kind, each.parts.subject) for each in await mails.of(who)]


async def upkeep(desk: MailDesk, *, is_on: bool) -> None:
    """What chores do with mails beside sending them."""
    await MailUpkeep(desk.core.store, desk.core.clock, is_on=is_on).run()


async def states(desk: MailDesk, who: PersonId) -> list[str]:
    """Of the mails to somebody."""
    return [row.state for row in await desk.rows() if row.person == who]


async def test_server_is_handed_none(desk: MailDesk, server: TestMailServer) -> None:
    """Others' go out meanwhile; each is read as it would have been sent."""
    await desk.mails_signers(sign_url="https://acme.example/f?s={solicitudId}")
    made_up, person = await desk.add_test_signer(), await desk.add_person()
    own, other = [await desk.core.add_request(who) for who in (made_up, person)]
    for request in (own, other):
        await happened(desk, EventKind.REQUEST_CREATED, request)
    await desk.hand_on()

    assert await desk.send_all() == 1
    at_once = await read(desk, made_up)
    await upkeep(desk, is_on=True)
    assert await desk.send_all() == 0

    assert [mail.recipients for mail in server.caught] == [("ana@persona.example",)]
    assert (await states(desk, made_up), await states(desk, person)) == (
        [CAUGHT],
        [SENT],
    )
    subject = "Demo te pide que firmes contrato.pdf"
    assert at_once == await read(desk, made_up) == [(MailKind.REQUEST, subject)]
    await become(desk, own, RequestState.SIGNED)
    mails = mails_of(desk)
    # It was asked for, whatever became of it.
    (mail,) = await mails.of(made_up)
    assert mail.url == f"https://acme.example/f?s={own}"
    assert mail.url in mail.parts.text
    assert "contrato.pdf" in mail.parts.html
    async with desk.core.store.read() as transaction:
        view = await RequestStore(transaction).get(own)
    assert view is not None
    assert mail.process == view.process


async def test_without_a_server_they_are_made_as_well(desk: MailDesk) -> None:
    """For test signers alone; the rest is withdrawn."""
    await desk.mails_signers()
    made_up, person = await desk.add_test_signer(), await desk.add_person()
    for who in (made_up, person):
        request = await desk.core.add_request(who)
        await happened(desk, EventKind.REQUEST_CREATED, request)
    taker = MailFanOut(desk.core.clock, only_tests=True)
    await EventOutbox(desk.core.store, [taker]).run()
    await desk.add(made_up, MailKind.CERTIFIED)
    await desk.add(person, MailKind.CERTIFIED)
    await upkeep(desk, is_on=False)

    assert await states(desk, made_up) == [CAUGHT, CAUGHT]
    assert await states(desk, person) == [MailState.WITHDRAWN]
    assert {kind for kind, _ in await read(desk, made_up)} == {
        MailKind.REQUEST,
        MailKind.CERTIFIED,
    }


async def test_reminder_is_there_once_it_is_due(desk: MailDesk) -> None:
    """And not where the document was signed before."""
    await desk.mails_signers(reminder_days=[3, 7])
    made_up = await desk.add_test_signer()
    request = await desk.core.add_request(made_up)
    await happened(desk, EventKind.REQUEST_CREATED, request)
    await desk.hand_on()
    await upkeep(desk, is_on=True)
    before = [kind for kind, _ in await read(desk, made_up)]

    desk.core.clock.forward(3 * 86_400)
    await upkeep(desk, is_on=True)
    after = [kind for kind, _ in await read(desk, made_up)]
    await become(desk, request, RequestState.SIGNED)
    desk.core.clock.forward(4 * 86_400)
    await upkeep(desk, is_on=True)

    assert before == [MailKind.REQUEST]
    assert after == [MailKind.REMINDER, MailKind.REQUEST]
    assert [kind for kind, _ in await read(desk, made_up)] == after
    assert sorted(await states(desk, made_up)) == [
        CAUGHT,
        CAUGHT,
        MailState.WITHDRAWN,
    ]


async def test_newest_are_given_and_no_more(
    desk: MailDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are."""
    monkeypatch.setattr(mails, "MAILS_AT_MOST", 2)
    made_up = await desk.add_test_signer()
    for kind in (MailKind.CERTIFIED, MailKind.REVOKED, MailKind.CODES_SET):
        await desk.add(made_up, kind)
        desk.core.clock.forward(1)

    assert [kind for kind, _ in await read(desk, made_up)] == [
        MailKind.CODES_SET,
        MailKind.REVOKED,
    ]


async def test_backend_reminds_them_without_a_server(desk: MailDesk) -> None:
    """Of others it is told that mail is off."""
    await desk.mails_signers()
    made_up, person = await desk.add_test_signer(), await desk.add_person()
    reminders = BackendReminders(desk.core.store, desk.core.clock, is_on=False)
    views = []
    for who in (made_up, person):
        request = await desk.core.add_request(who)
        async with desk.core.store.read() as transaction:
            view = await RequestStore(transaction).get(request)
        assert view is not None
        views.append(view)

    (reminded,) = await reminders.remind(await asking(desk), views[0].process)
    with pytest.raises(ApplianceError) as caught:
        await reminders.remind(await asking(desk), views[1].process)

    assert reminded.person == made_up
    assert caught.value.code is ErrorCode.MAIL_OFF
