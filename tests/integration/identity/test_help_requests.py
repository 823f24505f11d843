"""People who cannot sign ask an officer for help; strangers learn nothing by asking."""

from collections.abc import AsyncIterator, Awaitable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import select

from appliance.database.engines import open_engines
from appliance.database.tables import help_request, mail_message
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import IntegratorId, PersonId
from appliance.domain.vocab import EventKind, HelpTopic
from appliance.identity.help_requests import HelpDesk
from appliance.mail.invitation_mail import LINK
from tests.support.installation.api import CUIL, EMAIL, ApiServices
from tests.support.installation.installation import Installation
from tests.support.installation.table_versions import migrate_to

_MAIL: Final = {"host": "mail.example", "from_address": "firma@rubrica.example"}
_DAY_S: Final = 86_400
_OFFICER: Final = "console:c1"
Said = tuple[HelpTopic, bool, str | None, int]
"""Topic, whether a code came before, whose frame it was, and seconds since then."""


@pytest.fixture
async def services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """On each database, with mail on."""
    installation = Installation(tmp_path, database={"url": each_url}, mail=_MAIL)
    async with installation.api() as made:
        yield made


@pytest.fixture
async def person(services: ApiServices) -> PersonId:
    """Somebody enrolled."""
    found, _ = await services.add_person()
    return found


@pytest.fixture
def desk(services: ApiServices) -> HelpDesk:
    """Where officers see requests."""
    return HelpDesk(services.store, services.clock)


@pytest.fixture
async def sqlite_services(tmp_path: Path) -> AsyncIterator[ApiServices]:
    """On SQLite, with mail on."""
    async with Installation(tmp_path, mail=_MAIL).api() as made:
        yield made


async def rows(services: ApiServices, table: Any) -> list[Any]:
    """All rows of a table."""
    async with services.store.read() as transaction:
        return list((await transaction.connection.execute(select(table))).all())


async def links(services: ApiServices) -> list[str]:
    """Codes of the links in the mails that wait, oldest first."""
    mails = sorted(await rows(services, mail_message), key=lambda row: row.created)
    return [
        services.sealer.open(
            row.link_sealed, table=LINK.table, row=row.id, column=LINK.column
        )
        .decode()
        .rpartition("/")[2]
        for row in mails
    ]


async def refused(call: Awaitable[object]) -> ErrorCode:
    """The code that a call is refused with."""
    with pytest.raises(ApplianceError) as caught:
        await call
    return caught.value.code


async def test_officer_sees_what_the_person_asked(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """The topic, and that nothing was proven; the person is written to."""
    await services.help_requests.ask(CUIL, EMAIL.upper(), HelpTopic.PASSWORD)

    (shown,) = await desk.newest(9)
    assert (shown.person, shown.topic, shown.proven) == (
        person,
        HelpTopic.PASSWORD,
        False,
    )
    assert await desk.of_person(person) == [shown]
    (mail,) = await rows(services, mail_message)
    assert (mail.person, mail.kind) == (person, "help_asked")
    (event,) = await services.audited(EventKind.HELP_ASKED)
    assert event.actor == "anonymous"
    assert event.detail == {"person": person, "topic": "password"}


@pytest.mark.parametrize(
    ("cuil", "email"),
    [
        (CUIL, "otra@example.com"),
        ("20055361682", EMAIL),
        ("20055361682", "x@b.example"),
    ],
)
async def test_data_that_do_not_fit_file_nothing(
    services: ApiServices, desk: HelpDesk, person: PersonId, cuil: str, email: str
) -> None:
    """Neither does one of the two alone; the call ends as for everybody."""
    await services.help_requests.ask(cuil, email, HelpTopic.PHONE)

    assert await desk.newest(9) == []
    assert await desk.of_person(person) == []
    assert await rows(services, mail_message) == []
    (event,) = await services.audited(EventKind.HELP_UNMATCHED)
    assert event.detail == {}


async def test_request_has_no_room_for_a_secret(
    services: ApiServices, person: PersonId
) -> None:
    """What a row and its mail say are words of ours, names of rows, and times."""
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.BOTH)

    (row,) = await rows(services, help_request)
    (code,) = await links(services)
    said = {value for value in row if isinstance(value, str)}
    assert said == {person, row.id, "both", row.code_index}
    assert code not in repr(row)
    (mail,) = await rows(services, mail_message)
    assert mail.detail == {"topic": "both"}
    assert code.encode() not in mail.link_sealed


def _ago_s(services: ApiServices, at: datetime) -> int:
    return round((services.clock.now() - at).total_seconds())


async def said(services: ApiServices, desk: HelpDesk, person: PersonId) -> list[Said]:
    """What an officer reads on a person's page; each is in the list as well."""
    shown = await desk.of_person(person)
    assert sorted(each.id for each in shown) == sorted(
        each.id for each in await desk.newest(9)
    )
    return [
        (each.topic, each.proven, each.integrator_name, _ago_s(services, each.asked))
        for each in shown
    ]


@pytest.mark.parametrize("second", HelpTopic)
@pytest.mark.parametrize("first", HelpTopic)
@pytest.mark.parametrize(
    ("before", "after"),
    [("page", "page"), ("page", "code"), ("code", "page"), ("code", "code")],
)
async def test_what_was_asked_with_a_proof_is_changed_by_a_proof_alone(
    sqlite_services: ApiServices,
    first: HelpTopic,
    second: HelpTopic,
    before: str,
    after: str,
) -> None:
    """Topic, place and time are of one statement; both are shown, beside each other."""
    services = sqlite_services
    desk = HelpDesk(services.store, services.clock)
    person, _ = await services.add_person()
    await services.add_requests(person, 1)
    asked: dict[bool, Said] = {}
    for way, topic in ((before, first), (after, second)):
        services.clock.forward(60)
        if way == "page":
            await services.help_requests.ask(CUIL, EMAIL, topic)
        else:
            await services.help_requests.ask_in_frame(
                person, topic, IntegratorId("i"), proven=True
            )
    services.clock.forward(60)
    if before == after:
        is_proven = before == "code"
        place = "Demo" if is_proven else None
        ago = 120 if first is second else 60
        asked[is_proven] = (second, is_proven, place, ago)
    else:
        order = {before: (first, 120), after: (second, 60)}
        topic, ago = order["code"]
        asked[True] = (topic, True, "Demo", ago)
        topic, ago = order["page"]
        # What was said with a code needs no saying without one.
        if after == "code" or first is not second:
            asked[False] = (topic, False, None, ago)

    assert await said(services, desk, person) == [
        asked[proven] for proven in (True, False) if proven in asked
    ]
    told = 1 if first is second and after in {before, "page"} else 2
    assert len(await rows(services, mail_message)) == told
    assert len(await services.audited(EventKind.HELP_ASKED)) == told


async def test_officer_closes_no_topic_that_was_not_shown(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """A page that says one topic closes neither what it became nor what is beside."""
    await services.add_requests(person, 1)
    ask = services.help_requests.ask_in_frame
    await ask(person, HelpTopic.PASSWORD, IntegratorId("i"), proven=True)
    (shown,) = await desk.newest(9)
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.OTHER)
    await ask(person, HelpTopic.BOTH, IntegratorId("i"), proven=True)

    assert not await desk.close(_OFFICER, person, shown.id)

    changed, beside = await desk.of_person(person)
    assert (changed.topic, beside.topic) == (HelpTopic.BOTH, HelpTopic.OTHER)
    assert await desk.close(_OFFICER, person, beside.id)
    assert await desk.of_person(person) == [changed]


async def test_link_withdraws_the_topic_that_its_mail_was_about(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """Not another one that was asked since, nor one with a proof."""
    await services.add_requests(person, 1)
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PHONE)
    services.clock.forward(1)
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.OTHER)
    services.clock.forward(1)
    await services.help_requests.ask_in_frame(
        person, HelpTopic.LOCKED, IntegratorId("i"), proven=True
    )
    phone, other, _ = await links(services)

    assert not await services.help_requests.withdraw(phone)
    assert await services.help_requests.withdraw(other)

    (left,) = await desk.of_person(person)
    assert (left.topic, left.proven) == (HelpTopic.LOCKED, True)


async def test_change_of_topic_counts_as_asking(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """Five a day of whoever asks without a proof; with one there are five more."""
    await services.add_requests(person, 1)
    topics = [HelpTopic.PHONE, HelpTopic.OTHER] * 4
    for topic in topics:
        await services.help_requests.ask(CUIL, EMAIL, topic)
    assert len(await rows(services, mail_message)) == 5

    ask, whose = services.help_requests.ask_in_frame, IntegratorId("i")
    for topic in topics[:5]:
        await ask(person, topic, whose, proven=True)

    call = ask(person, HelpTopic.BOTH, whose, proven=True)
    assert await refused(call) is ErrorCode.RATE_LIMITED
    # Of what is open already nothing more is asked.
    await ask(person, topics[4], whose, proven=True)
    assert [each.topic for each in await desk.of_person(person)] == [topics[4]] * 2
    assert len(await rows(services, mail_message)) == 10


async def test_link_of_the_mail_withdraws_once(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """What is withdrawn is gone for the officer; the link is of no further use."""
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PHONE)
    (code,) = await links(services)
    assert await services.help_requests.is_withdrawable(code)
    assert not await services.help_requests.withdraw("another")

    assert await services.help_requests.withdraw(code)

    assert await desk.newest(9) == []
    assert not await services.help_requests.is_withdrawable(code)
    assert not await services.help_requests.withdraw(code)
    (event,) = await services.audited(EventKind.HELP_WITHDRAWN)
    assert event.detail == {"person": person}


async def test_link_withdraws_no_later_request(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """Whoever reads an old mail stops nothing."""
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PHONE)
    (old,) = await links(services)
    await services.help_requests.withdraw(old)
    services.clock.forward(1)
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PASSWORD)

    assert not await services.help_requests.withdraw(old)
    assert len(await desk.newest(9)) == 1
    assert person


async def test_officer_closes_the_request_that_was_shown(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """Not one that was filed since, and each once."""
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PHONE)
    (shown,) = await desk.newest(9)
    assert await desk.close(_OFFICER, person, shown.id)
    assert not await desk.close(_OFFICER, person, shown.id)
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PASSWORD)

    assert not await desk.close(_OFFICER, person, shown.id)

    assert [each.topic for each in await desk.newest(9)] == [HelpTopic.PASSWORD]
    (event,) = await services.audited(EventKind.HELP_CLOSED)
    assert (event.actor, event.detail) == (_OFFICER, {"person": person})


async def test_person_is_bothered_five_times_a_day_at_most(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """Whoever asks in their name on; the next day it is possible again."""
    for _ in range(7):
        await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PHONE)
        for shown in await desk.newest(9):
            await desk.close(_OFFICER, person, shown.id)
    assert len(await rows(services, mail_message)) == 5
    assert len(await rows(services, help_request)) == 1

    services.clock.forward(_DAY_S)
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PHONE)

    assert len(await desk.newest(9)) == 1
    assert len(await rows(services, mail_message)) == 6


async def test_frame_files_for_its_signer_and_says_when_it_is_too_often(
    services: ApiServices, desk: HelpDesk, person: PersonId
) -> None:
    """The officer sees whose frame it was; a session of nobody files nothing."""
    await services.add_requests(person, 1)
    ask = services.help_requests.ask_in_frame
    whose = IntegratorId("i")
    assert (
        await refused(ask(None, HelpTopic.PHONE, whose, proven=False))
        is ErrorCode.IDENTITY_MISMATCH
    )
    for _ in range(5):
        await ask(person, HelpTopic.PASSWORD, whose, proven=True)
        (shown,) = await desk.newest(9)
        assert (shown.integrator_name, shown.proven) == ("Demo", True)
        await desk.close(_OFFICER, person, shown.id)

    assert (
        await refused(ask(person, HelpTopic.PASSWORD, whose, proven=True))
        is ErrorCode.RATE_LIMITED
    )


async def test_without_mail_the_request_is_filed_all_the_same(
    tmp_path: Path, each_url: str
) -> None:
    """Nothing waits for a server that is not there."""
    async with Installation(tmp_path, database={"url": each_url}).api() as services:
        await services.add_person()
        await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PHONE)

        assert len(await rows(services, help_request)) == 1
        assert await rows(services, mail_message) == []


@pytest.mark.parametrize("ended", [None, True, False])
async def test_version_before_keeps_one_request_of_a_person(
    services: ApiServices, desk: HelpDesk, person: PersonId, ended: bool | None
) -> None:
    """What is open, and of two such the one with a proof; back again it is as it was.

    `ended` says which was closed: the one with a proof, the other, or none.
    """
    await services.add_requests(person, 1)
    await services.help_requests.ask(CUIL, EMAIL, HelpTopic.PHONE)
    await services.help_requests.ask_in_frame(
        person, HelpTopic.PASSWORD, IntegratorId("i"), proven=True
    )
    proven, other = await desk.of_person(person)
    if ended is not None:
        await desk.close(_OFFICER, person, proven.id if ended else other.id)

    engines = open_engines(services.settings)
    try:
        for version, way in (("0015", "downgrade"), ("head", "upgrade")):
            async with engines.writer.begin() as connection:
                await connection.run_sync(migrate_to, version, way)
    finally:
        await engines.dispose()

    assert await desk.of_person(person) == [other if ended else proven]
    assert len(await rows(services, help_request)) == 1
