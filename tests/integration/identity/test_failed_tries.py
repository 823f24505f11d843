"""Accounts that strangers keep at their ceiling: who gets in, and what lifts it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pyotp
import pytest

from appliance.core.login_attempt_store import LoginAttemptStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.vocab import EventKind, VouchedBy
from appliance.identity.console_login import SignIn
from appliance.identity.enrolment import Choice
from appliance.identity.failed_logins import FailedTries
from tests.support.faces.api_services import (
    CUIL,
    EMAIL,
    LOGIN_PASSWORD,
    Parts,
    open_parts,
)
from tests.support.factories.integrator_services import Desk, open_desk

HERE = "192.0.2.1"
NAMED = "192.0.2.99"
ELSEWHERE = "198.51.100.7"
RIGHT = LOGIN_PASSWORD.encode()
CONSOLE_PASSWORD = "una clave de consola"


@pytest.fixture
async def parts(tmp_path: Path, each_url: str) -> AsyncIterator[Parts]:
    """Storage and services, on each database."""
    async with open_parts(tmp_path, database={"url": each_url}) as made:
        yield made


@pytest.fixture
async def desk(tmp_path: Path, each_url: str) -> AsyncIterator[Desk]:
    """Administrators, on each database."""
    async with open_desk(tmp_path, each_url) as made:
        yield made


async def attack(parts: Parts, user: str = CUIL, times: int = 31) -> None:
    """Try wrong passwords from many addresses."""
    for number in range(times):
        with pytest.raises(ApplianceError):
            await parts.login.login(user, b"otra clave", f"203.0.113.{number}")


async def audited(parts: Parts, kind: EventKind) -> list[dict[str, object]]:
    """Details of the rows of a kind."""
    async with parts.store.read() as transaction:
        writers = await transaction.audit.writers()
        rows = [row for w in writers for row in await transaction.audit.of_writer(w)]
    return [row.event.detail for row in rows if row.event.event is kind]


async def enrolled(parts: Parts) -> PersonId:
    """Somebody who chose their secrets at `HERE`."""
    link = await parts.invitations.invite(
        "operator", CUIL, "Ana Pérez", EMAIL, VouchedBy.OFFICER
    )
    view = await parts.enrolment.look(link.code)
    code = pyotp.TOTP(view.totp_secret).at(parts.clock.now())
    choice = Choice(LOGIN_PASSWORD, "una clave de firma", code, view.opening)
    await parts.enrolment.complete(link.code, choice, HERE)
    return link.person


def desk_of(parts: Parts) -> FailedTries:
    """The use cases over these parts."""
    return FailedTries(parts.store, parts.lookup, parts.sealer, parts.clock)


async def test_who_enrolled_gets_in_from_there(parts: Parts) -> None:
    """A first sign-in is not a stranger's to prevent."""
    await enrolled(parts)
    await attack(parts)

    await parts.login.login(CUIL, RIGHT, HERE)
    with pytest.raises(ApplianceError, match="RATE_LIMITED"):
        await parts.login.login(CUIL, RIGHT, ELSEWHERE)


@pytest.mark.parametrize("user", [CUIL, EMAIL])
async def test_tries_of_before_an_enrolment_do_not_count(
    parts: Parts, user: str
) -> None:
    """Whoever guessed at a name before it was somebody's delays nobody."""
    await attack(parts, user)
    await enrolled(parts)

    await parts.login.login(user, RIGHT, ELSEWHERE)


@pytest.mark.parametrize("user", [CUIL, EMAIL])
async def test_forgotten_tries_count_no_more(parts: Parts, user: str) -> None:
    """By CUIL or address: how many is told, and what was done is in the audit."""
    person = await enrolled(parts)
    await attack(parts, user)
    tries = desk_of(parts)
    assert (await tries.find(user)).id == person

    assert await tries.forget_person("operator", person) == 30
    await parts.login.login(user, RIGHT, ELSEWHERE)

    assert await tries.forget_person("operator", person) == 0
    assert await tries.attacked() == []
    told = await audited(parts, EventKind.PERSON_TRIES_FORGOTTEN)
    assert told == [{"person": person, "tries": n} for n in (30, 0)]


async def test_named_address_is_let_in_while_the_attack_goes_on(parts: Parts) -> None:
    """Forgetting alone helps until the next thirty guesses."""
    person = await enrolled(parts)
    await attack(parts)
    await desk_of(parts).forget_person("operator", person, NAMED)
    await attack(parts)

    await parts.login.login(CUIL, RIGHT, NAMED)

    (told,) = await audited(parts, EventKind.PERSON_TRIES_FORGOTTEN)
    assert told["knownAddress"] is True
    assert NAMED not in str(told)


async def test_ceiling_is_told_once_an_hour(parts: Parts) -> None:
    """One row of the audit for each account and hour, and a line for officers."""
    person = await enrolled(parts)
    await attack(parts, times=40)
    tries = desk_of(parts)

    assert await audited(parts, EventKind.LOGIN_CEILING_REACHED) == [{"person": person}]
    (seen,) = await tries.attacked()
    assert seen.person is not None
    assert (seen.person.id, seen.user) == (person, None)

    parts.clock.forward(3601)
    await attack(parts, times=40)
    assert len(await audited(parts, EventKind.LOGIN_CEILING_REACHED)) == 2
    parts.clock.forward(86_401)
    assert await tries.attacked() == []


async def test_nobodys_account_is_shown_to_nobody(parts: Parts) -> None:
    """Guesses at a made-up name are recorded, and no business of an officer's."""
    await attack(parts, "nadie@example.com")

    assert await audited(parts, EventKind.LOGIN_CEILING_REACHED) == [{}]
    assert await desk_of(parts).attacked() == []


async def test_addresses_go_on_being_counted(parts: Parts) -> None:
    """What an account forgets, the limit of an address does not."""
    person = await enrolled(parts)
    for _ in range(7):
        with pytest.raises(ApplianceError):
            await parts.login.login(CUIL, b"otra clave", ELSEWHERE)
    await desk_of(parts).forget_person("operator", person)

    async with parts.store.read() as transaction:
        from appliance.domain.login import AttemptKind, Counted  # noqa: PLC0415

        since = parts.clock.now().replace(year=2000)
        counted = Counted(AttemptKind.PASSWORD, network=ELSEWHERE)
        wrong = await LoginAttemptStore(transaction).wrong(
            counted, since, forgiving=False
        )
    assert wrong.count == 7


async def console_attack(desk: Desk, name: str = "marta") -> None:
    """Try wrong passwords at the console from many addresses."""
    for number in range(31):
        typed = SignIn(name, "otra clave larga", "123456")
        with pytest.raises(ApplianceError):
            await desk.console.sign_in(typed, f"203.0.113.{number}")


async def new_user(desk: Desk) -> pyotp.TOTP:
    """An administrator; gives what their telephone has."""
    made = await desk.console.create_user("operator", "marta", CONSOLE_PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    return totp


async def enter(desk: Desk, totp: pyotp.TOTP) -> ErrorCode | None:
    """Sign in; the error that it ends with."""
    desk.clock.forward(30)
    code = totp.at(desk.clock.now())
    try:
        await desk.console.sign_in(SignIn("marta", CONSOLE_PASSWORD, code), HERE)
    except ApplianceError as exc:
        return exc.code
    return None


async def test_new_administrator_begins_without_others_tries(desk: Desk) -> None:
    """A name that was guessed at before it was given is free."""
    await console_attack(desk)
    totp = await new_user(desk)

    assert await enter(desk, totp) is None


async def test_administrator_is_let_in_again(desk: Desk) -> None:
    """A stranger prevents the first sign-in until an operator lifts it."""
    totp = await new_user(desk)
    await console_attack(desk)
    assert await enter(desk, totp) is ErrorCode.RATE_LIMITED
    tries = FailedTries(desk.store, desk.lookup, desk.sealer, desk.clock)
    (seen,) = await tries.attacked()
    assert (seen.person, seen.user) == (None, "marta")

    assert await tries.forget_user("operator", "marta") == 30

    assert await enter(desk, totp) is None
    (told,) = await desk.audited(EventKind.LOGIN_CEILING_REACHED)
    assert set(told.detail) == {"user"}
    (done,) = await desk.audited(EventKind.CONSOLE_USER_TRIES_FORGOTTEN)
    assert done.detail["tries"] == 30
    with pytest.raises(ApplianceError, match="CONSOLE_USER_NOT_FOUND"):
        await tries.forget_user("operator", "nadie")
