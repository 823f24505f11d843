"""Mails go from the record to a real server, once, and what it says is seen."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from appliance.database import tables
from appliance.domain.mail.mails import MailKind, MailState
from appliance.mail.mail_store import MailStore
from appliance.mail.message import mail_message
from appliance.mail.work import TRIES, MailUpkeep
from tests.integration.mail.mail_desk import ADDRESS, MailDesk, drain, mail_desk
from tests.support.installation.record import CoreFixture
from tests.support.services.mail_server import (
    PASSWORD,
    USER,
    TestMailServer,
    mail_server,
    server_tls,
)
from tests.support.services.server_certificates import Authority, make_authority

SENT, PENDING, REFUSED = MailState.SENT, MailState.PENDING, MailState.REFUSED


@pytest.fixture
def server() -> Iterator[TestMailServer]:
    """A server without TLS that takes everything."""
    with mail_server() as made:
        yield made


@pytest.fixture
def desk(core: CoreFixture, server: TestMailServer) -> MailDesk:
    """A record's mails, and that server."""
    return mail_desk(core, server)


async def test_a_mail_is_sent_once(desk: MailDesk, server: TestMailServer) -> None:
    """A running sender sends what is due and writes that it did."""
    mail = await desk.add(await desk.add_person())

    async def is_sent() -> bool:
        return [row.state for row in await desk.rows()] == [SENT]

    await drain(desk.sender, is_sent)

    (caught,) = server.caught
    assert caught.recipients == (ADDRESS,)
    assert caught.message["Message-ID"] == f"<{mail}@rubrica.example>"
    (row,) = await desk.rows()
    assert (row.tries, row.answer, row.ended) == (1, "taken", desk.core.now)


async def test_what_a_server_refuses_now_is_tried_later(
    desk: MailDesk, server: TestMailServer
) -> None:
    """A 4xx puts a mail off, each time for longer, until the server takes it."""
    await desk.add(await desk.add_person())
    server.at_data = f"452 no room for {ADDRESS}"

    assert await desk.send_all() == 1
    (row,) = await desk.rows()
    assert (row.state, row.answer) == (PENDING, "452 no room for …")
    assert row.due == desk.core.now + timedelta(minutes=1)

    desk.core.clock.forward(60)
    assert await desk.send_all() == 1
    (row,) = await desk.rows()
    assert row.due == desk.core.now + timedelta(minutes=2)

    server.at_data = None
    desk.core.clock.forward(120)
    assert await desk.send_all() == 1
    (row,) = await desk.rows()
    assert (row.state, row.tries) == (SENT, 3)


async def test_a_mail_of_a_later_version_holds_up_no_other(
    desk: MailDesk, server: TestMailServer
) -> None:
    """It waits for that version; the sender goes on."""
    who = await desk.add_person()
    unknown = await desk.add(who)
    async with desk.core.store.write() as transaction:
        await transaction.connection.execute(
            update(tables.mail_message).values(kind="other")
        )
    known = await desk.add(who)

    assert await desk.send_all() == 1

    states = {row.id: row.state for row in await desk.rows()}
    assert states == {unknown: PENDING, known: SENT}
    assert len(server.caught) == 1


async def test_a_mail_that_cannot_be_sent_for_days_is_given_up(
    desk: MailDesk, server: TestMailServer
) -> None:
    """After its last try a mail ends, and says why."""
    await desk.add(await desk.add_person())
    server.at_recipient = "450 greylisted"
    began = desk.core.now

    for _ in range(TRIES):
        assert await desk.send_all() == 1
        desk.core.clock.forward(4 * 3600)

    assert desk.core.now - began > timedelta(days=3)
    (row,) = await desk.rows()
    assert (row.state, row.answer) == (MailState.GIVEN_UP, "450 greylisted")


@pytest.mark.parametrize("at", ["at_recipient", "at_data"])
async def test_what_a_server_refuses_for_good_is_not_tried_again(
    desk: MailDesk, server: TestMailServer, at: str
) -> None:
    """A 5xx for recipient or content ends a mail as refused."""
    await desk.add(await desk.add_person())
    setattr(server, at, "550 5.1.1 no such user")

    assert await desk.send_all() == 1

    desk.core.clock.forward(86_400)
    assert await desk.send_all() == 0
    (row,) = await desk.rows()
    assert (row.state, row.answer) == (REFUSED, "550 5.1.1 no such user")


async def test_a_connection_that_breaks_off_in_a_mail_is_no_answer(
    desk: MailDesk, server: TestMailServer
) -> None:
    """A server that hangs up during DATA is asked again, with the same Message-ID."""
    mail = await desk.add(await desk.add_person())
    server.hangs_up = True
    assert await desk.send_all() == 1
    assert [row.state for row in await desk.rows()] == [PENDING]

    server.hangs_up = False
    desk.core.clock.forward(60)
    assert await desk.send_all() == 1

    assert server.tried == 2
    (caught,) = server.caught
    assert caught.message["Message-ID"] == f"<{mail}@rubrica.example>"


async def test_a_worker_that_dies_after_the_server_took_a_mail_repeats_it(
    desk: MailDesk, server: TestMailServer
) -> None:
    """What the record does not know as sent is sent again, recognisably."""
    await desk.add(await desk.add_person())
    claim = await desk.claim()
    content = await desk.sender.contents.of(claim)
    assert content is not None
    assert await desk.send_all() == 0, "somebody has it in hand"

    await desk.sender.server.send(
        mail_message(content, desk.settings, claim.id, claim.created)
    )
    desk.core.clock.forward(121)
    assert await desk.send_all() == 1

    first, second = [each.message for each in server.caught]
    assert first["Message-ID"] == second["Message-ID"]
    assert first["Date"] == second["Date"]
    assert not await desk.sender.work.end(claim, SENT), "the first is fenced off"


async def test_one_integrators_many_mails_hold_up_nobody_elses(
    core: CoreFixture, server: TestMailServer
) -> None:
    """Who had fewest of late comes first, and nobody has more than the hour's share."""
    desk = mail_desk(core, server, per_hour=3)
    who = await desk.add_person()
    many, few = await core.integrator(), await core.add_integrator("few")
    for _ in range(5):
        await desk.add(who, integrator=many)
    await desk.add(who, integrator=few)

    assert await desk.send_all() == 4
    order = [row.integrator for row in await desk.rows() if row.state == SENT]
    assert order.count(many) == 3
    assert order.count(few) == 1

    core.clock.forward(3600)
    assert await desk.send_all() == 2


async def test_the_wait_is_counted(desk: MailDesk, server: TestMailServer) -> None:
    """How many wait, since when, and how the others ended."""
    who = await desk.add_person()
    await desk.add(who)
    await desk.send_all()
    server.at_data = "451 later"
    began = desk.core.now
    await desk.add(who)
    await desk.send_all()
    desk.core.clock.forward(90)

    async with desk.core.store.read() as transaction:
        assert await MailStore(transaction).standing(desk.core.now) == (1, began)
        assert await MailStore(transaction).ended() == {SENT: 1}


async def test_without_a_server_nothing_waits(desk: MailDesk) -> None:
    """Where mail is off, what falls due is withdrawn, and its link is gone."""
    who = await desk.add_person()
    await desk.add(who, MailKind.INVITATION, link_sealed=b"x")
    await MailUpkeep(desk.core.store, desk.core.clock, is_on=False).run()

    (row,) = await desk.rows()
    assert (row.state, row.link_sealed) == (MailState.WITHDRAWN, None)

    desk.core.clock.forward(91 * 86_400)
    await MailUpkeep(desk.core.store, desk.core.clock, is_on=True).run()
    assert await desk.rows() == []


async def test_one_mail_that_cannot_be_made_stops_no_other(
    desk: MailDesk, server: TestMailServer
) -> None:
    """An address that does not open puts its own mail off alone."""
    await desk.add((await desk.core.add_signer()).person)
    await desk.add(await desk.add_person())
    tried = 0
    while tried < 2:
        tried += await desk.send_all()
        desk.core.clock.forward(121)
    assert [mail.recipients for mail in server.caught] == [(ADDRESS,)]


# -- the conversation itself --------------------------------------------------------


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A CA of tests."""
    return make_authority(tmp_path)


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "implicit"])
async def test_a_mail_goes_by_tls_and_a_password(
    sqlite_core: CoreFixture, tmp_path: Path, authority: Authority, *, implicit: bool
) -> None:
    """Both kinds of TLS, with sign-in; a wrong password is told and tried again."""
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n", encoding="utf-8")
    tls = server_tls(*authority.certify(tmp_path, "localhost"))
    with mail_server(tls, implicit=implicit, auth=True) as server:
        desk = mail_desk(
            sqlite_core,
            server,
            host="localhost",
            tls="implicit" if implicit else "starttls",
            root_certificate_file=authority.certificate,
            user=USER,
            password_file=password,
        )
        await desk.add(await desk.add_person())
        password.write_text("wrong", encoding="utf-8")
        assert (await desk.sender.server.reach() or "").startswith("535 ")
        assert await desk.send_all() == 1
        (row,) = await desk.rows()
        assert (row.state, row.answer[:4]) == (PENDING, "535 ")

        password.write_text(PASSWORD, encoding="utf-8")
        sqlite_core.clock.forward(60)
        assert await desk.sender.server.reach() is None
        assert await desk.send_all() == 1
        assert len(server.caught) == 1


async def test_a_server_whose_certificate_is_somebody_elses_gets_nothing(
    sqlite_core: CoreFixture, tmp_path: Path, authority: Authority
) -> None:
    """An unknown authority, another name, and a server without TLS: no mail."""
    tls = server_tls(*authority.certify(tmp_path, "other.example"))
    with mail_server(tls) as server:
        for ca in (authority.certificate, None):
            desk = mail_desk(
                sqlite_core,
                server,
                host="localhost",
                tls="starttls",
                root_certificate_file=ca,
            )
            assert "certificate" in (await desk.sender.server.reach() or "").lower()
    with mail_server() as plain:
        desk = mail_desk(sqlite_core, plain, host="localhost", tls="starttls")
        await desk.add(await desk.add_person())
        await desk.send_all()
        assert plain.tried == 0
        assert [row.state for row in await desk.rows()] == [PENDING]


async def test_a_server_that_is_away_is_asked_again(desk: MailDesk) -> None:
    """Nothing listens: the mail waits, and the answer names no address of anybody."""
    with mail_server() as gone:
        away = mail_desk(desk.core, gone)
    await away.add(await away.add_person())
    assert await away.send_all() == 1
    (row,) = await away.rows()
    assert row.state == PENDING
    assert "Connect" in row.answer
