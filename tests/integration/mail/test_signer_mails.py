"""Which mails follow from what becomes of requests and people, and when they do not."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import update

from appliance.database.tables import signature_request
from appliance.domain.audit.record import AuditEvent
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.mail.mails import MailKind, MailState
from appliance.domain.vocab import EventKind, RequestState
from appliance.integration.requests.reminders import BackendReminders
from appliance.integrators.integrator_store import IntegratorStore
from appliance.requests.request_store import RequestStore
from tests.integration.mail.mail_desk import ADDRESS, MailDesk, mail_desk
from tests.support.installation.record import CoreFixture
from tests.support.services.mail_server import TestMailServer, mail_server

REQUEST, REMINDER, SIGNED = MailKind.REQUEST, MailKind.REMINDER, MailKind.SIGNED


@pytest.fixture
def server() -> Iterator[TestMailServer]:
    """A server that takes everything."""
    with mail_server() as made:
        yield made


@pytest.fixture
def desk(core: CoreFixture, server: TestMailServer) -> MailDesk:
    """A record's mails, and that server."""
    return mail_desk(core, server)


async def happened(
    desk: MailDesk, event: EventKind, *requests: RequestId, **detail: object
) -> None:
    """Have the audit say something of requests, as who did it does."""
    async with desk.core.store.write() as transaction:
        for request in requests:
            transaction.audit.add(
                AuditEvent(event, "operator", request=request, detail=dict(detail))
            )


async def become(desk: MailDesk, request: RequestId, state: RequestState) -> None:
    """Move a request."""
    async with desk.core.store.write() as transaction:
        await transaction.connection.execute(
            update(signature_request)
            .where(signature_request.c.id == request)
            .values(state=state.value)
        )


async def told(desk: MailDesk) -> list[tuple[str, str]]:
    """Kind and state of every mail."""
    return [(row.kind, row.state) for row in await desk.rows()]


async def test_a_signer_is_asked_once_and_reminded(
    desk: MailDesk, server: TestMailServer
) -> None:
    """Asked at once, reminded on the days that the integrator chose."""
    await desk.mails_signers(
        reminder_days=[3, 7], sign_url="https://acme.example/f?s={solicitudId}"
    )
    request = await desk.core.add_request(await desk.add_person())
    await happened(desk, EventKind.REQUEST_CREATED, request)
    await desk.hand_on()
    await desk.hand_on()
    assert await desk.send_all() == 1

    desk.core.clock.forward(3 * 86_400)
    assert await desk.send_all() == 1
    await become(desk, request, RequestState.REJECTED)
    desk.core.clock.forward(4 * 86_400)
    assert await desk.send_all() == 1

    assert await told(desk) == [
        (REQUEST, MailState.SENT),
        (REMINDER, MailState.SENT),
        (REMINDER, MailState.WITHDRAWN),
    ]
    first, second = [mail.message for mail in server.caught]
    assert first["Subject"] == "Demo te pide que firmes contrato.pdf"
    assert second["Subject"] == "Recordatorio: contrato.pdf espera tu firma"
    text = first.get_body(("plain",))
    assert text is not None
    assert f"https://acme.example/f?s={request}" in text.get_content()


_ENDINGS = [
    (RequestState.SIGNED, EventKind.REQUEST_SIGNED),
    (RequestState.REJECTED, EventKind.REQUEST_REJECTED),
    (RequestState.CANCELLED, EventKind.REQUEST_CANCELLED),
    (RequestState.EXPIRED, EventKind.REQUEST_EXPIRED),
    (RequestState.FAILED, EventKind.REQUEST_FAILED),
]


async def reminders(desk: MailDesk) -> list[str]:
    """State of every reminder."""
    return [state for kind, state in await told(desk) if kind == REMINDER]


@pytest.mark.parametrize(("state", "event"), _ENDINGS)
async def test_reminders_end_with_their_request(
    desk: MailDesk, state: RequestState, event: EventKind
) -> None:
    """At once, and not on the day that they were due."""
    await desk.mails_signers(reminder_days=[3, 7])
    request = await desk.core.add_request(await desk.add_person())
    await happened(desk, EventKind.REQUEST_CREATED, request)
    await desk.hand_on()
    await desk.send_all()
    assert await reminders(desk) == [MailState.PENDING] * 2

    await become(desk, request, state)
    await happened(desk, event, request)
    await desk.hand_on()

    assert await reminders(desk) == [MailState.WITHDRAWN] * 2


async def test_reminder_of_several_requests_ends_with_the_last(desk: MailDesk) -> None:
    """It still reminds of those that wait; another signer's stay as they are."""
    await desk.mails_signers(reminder_days=[3])
    who, other = await desk.add_person(), await desk.add_person("b@persona.example")
    requests = [await desk.core.add_request(who) for _ in range(3)]
    others = await desk.core.add_request(other)
    await happened(desk, EventKind.REQUEST_CREATED, *requests, others)
    await desk.hand_on()
    for request in (requests[2], requests[0], requests[1]):
        assert await reminders(desk) == [MailState.PENDING] * 2
        await become(desk, request, RequestState.SIGNED)
        await happened(desk, EventKind.REQUEST_SIGNED, request)
        await desk.hand_on()

    assert sorted(await reminders(desk)) == [MailState.PENDING, MailState.WITHDRAWN]


async def test_without_the_switch_nobody_is_written_to(desk: MailDesk) -> None:
    """An integrator is silent unless it was said that it is not."""
    request = await desk.core.add_request(await desk.add_person())
    await happened(desk, EventKind.REQUEST_CREATED, request)
    await happened(desk, EventKind.REQUEST_SIGNED, request)
    await desk.hand_on()
    assert await desk.rows() == []


async def test_many_documents_at_once_are_one_mail(
    desk: MailDesk, server: TestMailServer
) -> None:
    """What is asked of a person together is told together, without what is over."""
    await desk.mails_signers()
    who = await desk.add_person()
    requests = [await desk.core.add_request(who) for _ in range(13)]
    await happened(desk, EventKind.REQUEST_CREATED, *requests)
    await desk.hand_on()
    await become(desk, requests[0], RequestState.CANCELLED)
    assert await desk.send_all() == 1
    (mail,) = server.caught
    assert mail.message["Subject"] == "Demo te pide que firmes 12 documentos"
    text = mail.message.get_body(("plain",))
    assert text is not None
    assert text.get_content().count("contrato.pdf") == 10
    assert "y 2 más" in text.get_content()


@pytest.mark.parametrize(
    "state", [RequestState.CANCELLED, RequestState.EXPIRED, RequestState.SIGNED]
)
async def test_what_is_over_before_it_is_sent_is_withdrawn(
    desk: MailDesk, server: TestMailServer, state: RequestState
) -> None:
    """Nobody is asked for what they cannot sign any more."""
    await desk.mails_signers()
    request = await desk.core.add_request(await desk.add_person())
    await happened(desk, EventKind.REQUEST_CREATED, request)
    await desk.hand_on()
    await become(desk, request, state)
    await desk.send_all()
    assert await told(desk) == [(REQUEST, MailState.WITHDRAWN)]
    assert server.caught == []


async def test_all_signers_are_told_once_all_have_signed(
    desk: MailDesk, server: TestMailServer
) -> None:
    """Not before, and once each, however many of them signed at the end."""
    await desk.mails_signers()
    people = [await desk.add_person(f"p{n}@persona.example") for n in range(2)]
    requests = await desk.core.add_process(people)
    await become(desk, requests[0], RequestState.SIGNED)
    await happened(desk, EventKind.REQUEST_SIGNED, requests[0])
    await desk.hand_on()
    assert await desk.rows() == []

    await become(desk, requests[1], RequestState.SIGNED)
    await happened(desk, EventKind.REQUEST_SIGNED, requests[1])
    await happened(desk, EventKind.REQUEST_SIGNED, requests[0])
    await desk.hand_on()
    assert await told(desk) == [(SIGNED, MailState.PENDING)] * 2
    await desk.send_all()
    assert {mail.recipients for mail in server.caught} == {
        ("p0@persona.example",),
        ("p1@persona.example",),
    }


# -- what an integrator's backend asks for ------------------------------------------


async def asking(desk: MailDesk) -> IntegratorCaller:
    """The record's integrator, as its backend calls."""
    async with desk.core.store.read() as transaction:
        view = await IntegratorStore(transaction).get("demo")
    assert view is not None
    return IntegratorCaller(view, "k" * 12)


async def process_of(desk: MailDesk, request: RequestId) -> object:
    """The process of a request."""
    async with desk.core.store.read() as transaction:
        view = await RequestStore(transaction).get(request)
    assert view is not None
    return view.process


async def test_a_backend_reminds_once_a_day(
    desk: MailDesk, server: TestMailServer
) -> None:
    """Whose turn it is gets a mail; a second one within a day is refused."""
    await desk.mails_signers()
    request = await desk.core.add_request(await desk.add_person())
    process = (await process_of(desk, request),)
    reminders = BackendReminders(desk.core.store, desk.core.clock, is_on=True)

    (view,) = await reminders.remind(await asking(desk), *process)  # type: ignore[arg-type]
    assert view.id == request
    desk.core.clock.forward(3600)
    with pytest.raises(ApplianceError) as refused:
        await reminders.remind(await asking(desk), *process)  # type: ignore[arg-type]
    assert refused.value.code is ErrorCode.RATE_LIMITED
    assert refused.value.extras["retryAfter"] == 23 * 3600

    assert await desk.send_all() == 1
    desk.core.clock.forward(23 * 3600)
    await reminders.remind(await asking(desk), *process)  # type: ignore[arg-type]
    assert [mail.recipients for mail in server.caught] == [(ADDRESS,)]

    await become(desk, request, RequestState.CANCELLED)
    with pytest.raises(ApplianceError) as over:
        await reminders.remind(await asking(desk), *process)  # type: ignore[arg-type]
    assert over.value.code is ErrorCode.STATE


async def test_nobody_is_reminded_where_mail_is_off(desk: MailDesk) -> None:
    """Without a server, or where the integrator's signers are not written to."""
    request = await desk.core.add_request(await desk.add_person())
    process = await process_of(desk, request)
    for is_on in (True, False):
        reminders = BackendReminders(desk.core.store, desk.core.clock, is_on=is_on)
        with pytest.raises(ApplianceError) as refused:
            await reminders.remind(await asking(desk), process)  # type: ignore[arg-type]
        assert refused.value.code is ErrorCode.MAIL_OFF
        await desk.mails_signers()
    assert await desk.rows() == []


# -- what happens to people ---------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (EventKind.PERSON_ENROLLED, MailKind.ENROLLED),
        (EventKind.PERSON_TOTP_SET, MailKind.CODES_SET),
        (EventKind.SIGN_PASSWORD_CHANGED, MailKind.PASSWORD_CHANGED),
        (EventKind.SIGN_LOCKED, MailKind.PASSWORD_LOCKED),
        (EventKind.CREDENTIAL_ISSUED, MailKind.CERTIFIED),
        (EventKind.REVOCATION_ASKED, MailKind.REVOKED),
    ],
)
async def test_people_are_told_what_happened_to_them(
    desk: MailDesk, server: TestMailServer, event: EventKind, kind: MailKind
) -> None:
    """In the transaction of what happened: rolled back with it, sent after it."""
    who = await desk.add_person()
    by_themselves = event in {EventKind.SIGN_PASSWORD_CHANGED, EventKind.SIGN_LOCKED}
    said = AuditEvent(
        event,
        f"person:{who}" if by_themselves else "operator",
        detail={} if by_themselves else {"person": who},
    )

    async def fail() -> None:
        async with desk.core.store.write() as transaction:
            transaction.audit.add(said)
            await transaction.audit.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await desk.rows() == []

    async with desk.core.store.write() as transaction:
        transaction.audit.add(said)
    assert await told(desk) == [(kind, MailState.PENDING)]
    desk.core.clock.forward(timedelta(minutes=1).total_seconds())
    await desk.send_all()
    (mail,) = server.caught
    assert mail.recipients == (ADDRESS,)
