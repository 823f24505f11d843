"""Mails that follow others: one for a batch, reminders after the request, the end."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from sqlalchemy import insert, update

from appliance.database.tables import enrolment, person, signature_request
from appliance.domain.audit.record import AuditEvent
from appliance.domain.ids import PersonId, RequestBatchId, RequestId, new_id
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.mail.mails import MailKind, MailState
from appliance.domain.requests.backend_batch import RequestBatch
from appliance.domain.requests.process import ProcessNote
from appliance.domain.vocab import EventKind, PersonState, RequestState
from appliance.integration.requests.reminders import BackendReminders
from appliance.integrators.integrator_store import IntegratorStore
from appliance.mail.mail_views import MailViews
from appliance.mail.work import MailUpkeep
from appliance.requests.history_store import HistoryStore
from appliance.requests.request_batch_store import RequestBatchStore
from appliance.requests.request_store import RequestStore
from tests.integration.mail.mail_desk import MailDesk, mail_desk
from tests.support.installation.record import CoreFixture
from tests.support.services.mail_server import TestMailServer, mail_server

REQUEST, REMINDER, SIGNED = MailKind.REQUEST, MailKind.REMINDER, MailKind.SIGNED
SENT, WITHDRAWN, PENDING = MailState.SENT, MailState.WITHDRAWN, MailState.PENDING
CREATED, TURN = EventKind.REQUEST_CREATED, EventKind.REQUEST_TURN
DAY_S = 86_400
_EVENTS = {
    RequestState.SIGNED: EventKind.REQUEST_SIGNED,
    RequestState.CANCELLED: EventKind.REQUEST_CANCELLED,
    RequestState.EXPIRED: EventKind.REQUEST_EXPIRED,
    RequestState.REJECTED: EventKind.REQUEST_REJECTED,
    RequestState.FAILED: EventKind.REQUEST_FAILED,
}


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


async def end(desk: MailDesk, state: RequestState, *requests: RequestId) -> None:
    """Have requests be over, with their events."""
    async with desk.core.store.write() as transaction:
        await transaction.connection.execute(
            update(signature_request)
            .where(signature_request.c.id.in_(requests))
            .values(state=state.value)
        )
    await happened(desk, _EVENTS[state], *requests)


async def batch_of(desk: MailDesk, who: PersonId, many: int) -> list[RequestId]:
    """A batch that was asked for."""
    core, batch = desk.core, RequestBatchId(new_id())
    note = ProcessNote(api_key="k" * 12)
    new = RequestBatch(batch, await core.integrator(), core.now, note)
    async with core.store.write() as transaction:
        await RequestBatchStore(transaction).add(new)
    made = [await core.add_request(who, batch=batch) for _ in range(many)]
    await happened(desk, CREATED, *made, batch=batch)
    return made


async def request_of(desk: MailDesk, who: PersonId) -> RequestId:
    """A request that was asked for."""
    made = await desk.core.add_request(who)
    await happened(desk, CREATED, made)
    return made


async def process_of(desk: MailDesk, *people: PersonId) -> list[RequestId]:
    """One that two sign, one after the other, and that was asked for."""
    first, second = await desk.core.add_process(people)
    await happened(desk, CREATED, first)
    await happened(desk, CREATED, second, predecessor=first)
    return [first, second]


async def told(desk: MailDesk) -> list[tuple[str, str]]:
    """Kind and state of every mail."""
    return [(row.kind, row.state) for row in await desk.rows()]


def texts(server: TestMailServer) -> list[tuple[str, str]]:
    """Subject and text of what the server took, in order."""
    found = []
    for mail in server.caught:
        text = mail.message.get_body(("plain",))
        assert text is not None
        found.append((str(mail.message["Subject"]), str(text.get_content())))
    return found


# -- batches ------------------------------------------------------------------------


async def test_a_batch_is_asked_for_by_one_mail(
    desk: MailDesk, server: TestMailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rounds its events are handed on in, and apart from all else."""
    monkeypatch.setattr("appliance.integrators.event_outbox._AT_ONCE", 7)
    await desk.mails_signers(
        reminder_days=[3], sign_url="https://acme.example/f?l={loteId}&s={solicitudId}"
    )
    who = await desk.add_person()
    batch = await batch_of(desk, who, 30)
    alone = await request_of(desk, who)
    await desk.hand_on()

    assert await desk.send_all() == 2
    subjects = [subject for subject, _ in texts(server)]
    assert sorted(subjects) == [
        "Demo te pide que firmes 30 documentos",
        "Demo te pide que firmes contrato.pdf",
    ]
    firsts = {row.request for row in await desk.rows() if row.kind == REQUEST}
    assert firsts == {batch[0], alone}
    async with desk.core.store.read() as transaction:
        view = await RequestStore(transaction).get(batch[0])
    assert view is not None
    told_of = "".join(text for _, text in texts(server))
    assert f"https://acme.example/f?l={view.batch}&s={batch[0]}\r\n" in told_of
    assert f"https://acme.example/f?l=&s={alone}\r\n" in told_of
    assert [row.kind for row in await desk.rows()].count(REMINDER) == 2


async def test_a_batch_ends_with_one_mail(
    desk: MailDesk, server: TestMailServer
) -> None:
    """Once all of it is over: how many are signed, which are not, and where."""
    await desk.mails_signers(sign_url="https://acme.example/f?s={solicitudId}")
    who = await desk.add_person()
    batch = await batch_of(desk, who, 30)
    await desk.hand_on()
    await desk.send_all()
    await end(desk, RequestState.SIGNED, *batch[:20])
    await end(desk, RequestState.CANCELLED, batch[29])
    await desk.hand_on()
    assert await desk.send_all() == 0

    await end(desk, RequestState.FAILED, batch[28])
    await end(desk, RequestState.SIGNED, *batch[20:28])
    await desk.hand_on()
    await desk.hand_on()

    assert await desk.send_all() == 1
    subject, text = texts(server)[-1]
    assert subject == "Firmaste 28 de 30 documentos"
    assert "contrato.pdf (cancelado)" in text
    assert "contrato.pdf (no se pudo firmar)" in text
    assert "y 18 más" in text
    assert f"https://acme.example/f?s={batch[0]}" in text
    assert await told(desk) == [(REQUEST, SENT), (SIGNED, SENT)]


async def test_mails_are_shown_with_each_request(desk: MailDesk) -> None:
    """Of a batch, or of several that one mail asks for: not with the first alone."""
    await desk.mails_signers(reminder_days=[3])
    who, other = await desk.add_person(), await desk.add_person()
    batch, later = await batch_of(desk, who, 3), await batch_of(desk, who, 1)
    together = [await request_of(desk, who) for _ in range(2)]
    alone = await request_of(desk, other)
    await desk.hand_on()
    await desk.send_all()
    await end(desk, RequestState.SIGNED, *batch)
    await desk.hand_on()
    views = MailViews(desk.core.store)

    async def shown(number: RequestId) -> list[MailKind]:
        async with desk.core.store.read() as transaction:
            view = await RequestStore(transaction).get(number)
        assert view is not None
        return sorted(mail.kind for mail in await views.of_request(view))

    for number in batch:
        assert await shown(number) == [REMINDER, REQUEST, SIGNED]
    for number in (*later, *together, alone):
        assert await shown(number) == [REMINDER, REQUEST]


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (RequestState.CANCELLED, MailKind.CANCELLED),
        (RequestState.EXPIRED, MailKind.EXPIRED),
    ],
)
async def test_a_batch_that_is_over_unsigned_is_one_mail(
    desk: MailDesk, server: TestMailServer, state: RequestState, kind: MailKind
) -> None:
    """That it need not be signed, or cannot be; of what they rejected, none."""
    await desk.mails_signers()
    batch = await batch_of(desk, await desk.add_person(), 3)
    await desk.hand_on()
    await desk.send_all()
    await end(desk, RequestState.REJECTED, batch[0])
    await end(desk, state, *batch[1:])
    await desk.hand_on()

    desk.core.clock.forward(60)
    assert await desk.send_all() == 1
    assert sorted(await told(desk)) == sorted([(REQUEST, SENT), (kind, SENT)])
    assert "2 documentos" in texts(server)[-1][0]


# -- what is over ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "subject"),
    [
        (RequestState.CANCELLED, "Ya no hace falta que firmes contrato.pdf"),
        (RequestState.EXPIRED, "Se venció el plazo para firmar contrato.pdf"),
    ],
)
async def test_who_was_asked_is_told_that_it_is_over(
    desk: MailDesk, server: TestMailServer, state: RequestState, subject: str
) -> None:
    """Who was never asked hears nothing of it."""
    await desk.mails_signers()
    asked, other = await desk.add_person(), await desk.add_person("o@persona.example")
    first, second = await process_of(desk, asked, other)
    await desk.hand_on()
    await desk.send_all()
    await end(desk, state, first, second)
    await desk.hand_on()
    await desk.send_all()

    assert [subject for subject, _ in texts(server)][1:] == [subject]
    assert len(await desk.rows()) == 2


async def test_what_is_over_before_it_was_asked_is_told_by_none(
    desk: MailDesk, server: TestMailServer
) -> None:
    """The request's mail waited, and is withdrawn with what would have followed it."""
    await desk.mails_signers()
    request = await request_of(desk, await desk.add_person())
    await desk.hand_on()
    await end(desk, RequestState.CANCELLED, request)
    await desk.hand_on()
    for _ in range(3):
        await desk.send_all()
        desk.core.clock.forward(120)

    assert server.caught == []
    assert await told(desk) == [
        (MailKind.CANCELLED, WITHDRAWN),
        (REQUEST, WITHDRAWN),
    ]


# -- reminders ------------------------------------------------------------------------


async def test_reminders_count_from_when_the_request_was_handed_over(
    desk: MailDesk, server: TestMailServer
) -> None:
    """After a server that took nothing for four days nobody is reminded at once."""
    await desk.mails_signers(reminder_days=[3])
    await request_of(desk, await desk.add_person())
    await desk.hand_on()
    server.at_data = "452 later"
    for _ in range(23):
        await desk.send_all()
        desk.core.clock.forward(4 * 3600)
    server.at_data = None
    await desk.send_all()
    (asked,) = [row for row in await desk.rows() if row.kind == REQUEST]
    assert asked.ended - asked.created > timedelta(days=3)

    for _ in range(3 * 24 + 1):
        await desk.send_all()
        desk.core.clock.forward(3600)

    subjects = [subject for subject, _ in texts(server)]
    assert [subject.startswith("Recordatorio") for subject in subjects] == [False, True]
    (reminded,) = [row for row in await desk.rows() if row.kind == REMINDER]
    late = reminded.ended - asked.ended - timedelta(days=3)
    assert timedelta(0) <= late <= timedelta(hours=1)


async def test_who_was_not_asked_is_not_reminded(
    desk: MailDesk, server: TestMailServer
) -> None:
    """Mail was off as it was asked for: the reminder of its days is withdrawn."""
    await desk.mails_signers(reminder_days=[3])
    await request_of(desk, await desk.add_person())
    await desk.hand_on()
    await MailUpkeep(desk.core.store, desk.core.clock, is_on=False).run()
    desk.core.clock.forward(3 * DAY_S)
    await desk.send_all()

    assert await told(desk) == [(REQUEST, WITHDRAWN), (REMINDER, WITHDRAWN)]
    assert server.caught == []


async def _remind(desk: MailDesk, request: RequestId) -> None:
    """As an integrator's backend asks for it."""
    async with desk.core.store.read() as transaction:
        integrator = await IntegratorStore(transaction).get("demo")
    assert integrator is not None
    reminders = BackendReminders(desk.core.store, desk.core.clock, is_on=True)
    process = (await desk.core.view(request)).process
    await reminders.remind(IntegratorCaller(integrator, "k" * 12), process)


async def test_a_reminder_of_what_was_never_asked_is_the_request(
    desk: MailDesk, server: TestMailServer
) -> None:
    """Of a request made while mail was off."""
    request = await request_of(desk, await desk.add_person())
    await desk.hand_on()
    await desk.mails_signers()
    await _remind(desk, request)
    await desk.send_all()
    desk.core.clock.forward(DAY_S)
    await _remind(desk, request)
    await desk.send_all()

    assert [subject for subject, _ in texts(server)] == [
        "Demo te pide que firmes contrato.pdf",
        "Recordatorio: contrato.pdf espera tu firma",
    ]


async def test_a_reminder_waits_a_day_where_the_request_waits(
    desk: MailDesk, server: TestMailServer
) -> None:
    """Both are never there at once."""
    await desk.mails_signers()
    request = await request_of(desk, await desk.add_person())
    await desk.hand_on()
    await _remind(desk, request)
    for _ in range(3):
        await desk.send_all()
        desk.core.clock.forward(120)
    assert len(server.caught) == 1

    desk.core.clock.forward(DAY_S)
    await desk.send_all()
    assert texts(server)[-1][0].startswith("Recordatorio")


async def test_a_turn_long_after_its_making_is_one_mail(
    desk: MailDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both events wait while it becomes this one's turn, and are handed on apart."""
    monkeypatch.setattr("appliance.integrators.event_outbox._AT_ONCE", 1)
    await desk.mails_signers()
    people = [await desk.add_person(f"p{n}@persona.example") for n in range(2)]
    first, second = await process_of(desk, *people)
    await end(desk, RequestState.SIGNED, first)
    async with desk.core.store.write() as transaction:
        await transaction.connection.execute(
            update(signature_request)
            .where(signature_request.c.id == second)
            .values(state=RequestState.PENDING.value)
        )
    await happened(desk, TURN, second, predecessor=first)
    await desk.hand_on()

    assert [(row.kind, row.request) for row in await desk.rows()] == [(REQUEST, second)]


async def test_history_has_each_reminder(desk: MailDesk) -> None:
    """Of the schedule once it was sent, of a backend as it asked; once each."""
    await desk.mails_signers(reminder_days=[3])
    request = await request_of(desk, await desk.add_person())
    await desk.hand_on()
    await desk.send_all()
    desk.core.clock.forward(3 * DAY_S)
    await desk.send_all()
    desk.core.clock.forward(2 * DAY_S)
    await _remind(desk, request)
    await desk.send_all()

    async with desk.core.store.read() as transaction:
        history = await HistoryStore(transaction).of_requests([request])
    assert [each.event for each in history] == [
        CREATED,
        EventKind.REQUEST_REMINDED,
        EventKind.REQUEST_REMINDED,
    ]
    kinds = [kind for kind, state in await told(desk) if state == SENT]
    assert kinds == [REQUEST, REMINDER, REMINDER]


# -- what a mail says of who it is to -------------------------------------------------


async def _invited(desk: MailDesk, links: Sequence[timedelta]) -> PersonId:
    """Somebody without secrets, and links that are good for so long."""
    who = await desk.add_person()
    async with desk.core.store.write() as transaction:
        await transaction.connection.execute(
            update(person)
            .where(person.c.id == who)
            .values(state=PersonState.INVITED.value)
        )
        for good in links:
            await transaction.connection.execute(
                insert(enrolment).values(
                    id=new_id(),
                    code_index=new_id(),
                    person=who,
                    totp_sealed=b"-",
                    created=desk.core.now,
                    until=desk.core.now + good,
                )
            )
    return who


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ([timedelta(hours=1)], "abrí el enlace de tu invitación, que vale hasta el"),
        ([timedelta(hours=-1)], "tu invitación ya no sirve: pedile otra a Demo"),
    ],
)
async def test_who_cannot_sign_yet_reads_what_to_do_first(
    desk: MailDesk, server: TestMailServer, links: list[timedelta], said: str
) -> None:
    """By the link of an invitation that is open, or by another one."""
    await desk.mails_signers()
    await request_of(desk, await _invited(desk, links))
    await request_of(desk, await desk.add_person("o@persona.example"))
    await desk.hand_on()
    await desk.send_all()

    told_to = {mail.recipients: n for n, mail in enumerate(server.caught)}
    bodies = [text for _, text in texts(server)]
    assert said in bodies[told_to["ana@persona.example",]]
    assert "darte de alta" not in bodies[told_to["o@persona.example",]]


async def test_a_sole_signer_is_not_told_of_all(
    desk: MailDesk, server: TestMailServer
) -> None:
    """They know that it was theirs alone."""
    await desk.mails_signers()
    request = await request_of(desk, await desk.add_person())
    await end(desk, RequestState.SIGNED, request)
    await desk.hand_on()
    await desk.send_all()

    text = texts(server)[-1][1]
    assert "Firmaste y no falta la firma de nadie más." in text
    assert "todas las personas" not in text
