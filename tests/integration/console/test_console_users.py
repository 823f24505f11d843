"""Administrators shut out, let in, given new secrets, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pyotp
import pytest

from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.integrators.integrators import NewConsoleSession
from appliance.domain.vocab import EventKind
from appliance.identity.console_login import SignIn
from appliance.people.console_user_store import ConsoleUserStore
from tests.support.factories.integrator_services import Desk, open_desk

PASSWORD, OTHER = "una clave de consola", "otra clave de consola"
HERE = "192.0.2.1"


@pytest.fixture
async def desk(tmp_path: Path, each_url: str) -> AsyncIterator[Desk]:
    """Services on a fresh database, whose limits nobody reaches."""
    auth = {"login_per_minute_address": 1000, "login_per_minute_account": 100}
    async with open_desk(tmp_path, each_url, auth=auth) as made:
        yield made


def read_uri(uri: str) -> pyotp.TOTP:
    """What a telephone has after scanning."""
    totp = pyotp.parse_uri(uri)
    assert isinstance(totp, pyotp.TOTP)
    return totp


async def new_user(desk: Desk, name: str) -> pyotp.TOTP:
    """An administrator; gives what their telephone has."""
    made = await desk.console.create_user("operator", name, PASSWORD)
    return read_uri(made.totp_uri)


def fresh(desk: Desk, totp: pyotp.TOTP) -> str:
    """A code that was not used yet; the clock goes on by a step."""
    desk.clock.forward(30)
    return totp.at(desk.clock.now())


async def enter(
    desk: Desk, totp: pyotp.TOTP, name: str = "marta", password: str = PASSWORD
) -> NewConsoleSession:
    """Sign in."""
    return await desk.console.sign_in(SignIn(name, password, fresh(desk, totp)), HERE)


async def refusal(action: object) -> ErrorCode:
    """The code with which something is refused."""
    with pytest.raises(ApplianceError) as refused:
        await action  # type: ignore[misc]  # a coroutine of any result
    return refused.value.code


async def test_disabling_ends_sessions_at_once_and_lets_none_begin(desk: Desk) -> None:
    """Every face of the sign-in is closed until enabled again, and then open."""
    eva, marta = await new_user(desk, "eva"), await new_user(desk, "marta")
    opened, watching = await enter(desk, marta), await enter(desk, eva, "eva")

    await desk.console_users.disable("console:eva", "marta")

    assert await refusal(desk.console.by_token(opened.token)) is ErrorCode.TOKEN_INVALID
    assert await refusal(enter(desk, marta)) is ErrorCode.LOGIN_FAILED
    code = fresh(desk, marta)
    confirmed = desk.console.confirm(opened.session, code, HERE)
    assert await refusal(confirmed) is ErrorCode.OTP_INVALID
    typed = SignIn("marta", PASSWORD, fresh(desk, marta))
    agreed = desk.console.witness(watching.session, typed, HERE)
    assert await refusal(agreed) is ErrorCode.LOGIN_FAILED

    await desk.console_users.enable("console:eva", "marta")

    await enter(desk, marta)
    (off,) = await desk.audited(EventKind.CONSOLE_USER_DISABLED)
    assert off.actor == "console:eva"
    assert off.detail["user"] == opened.session.user.id
    assert off.detail["sessionsEnded"] == 1
    assert off.detail["before"] == {"state": "active"}
    assert off.detail["after"] == {"state": "disabled"}
    assert len(await desk.audited(EventKind.CONSOLE_USER_ENABLED)) == 1


async def test_state_is_looked_at_whatever_sessions_say(desk: Desk) -> None:
    """A session of somebody shut out opens nothing, even if its row were left."""
    await new_user(desk, "eva")
    opened = await enter(desk, await new_user(desk, "marta"))
    async with desk.store.write() as transaction:
        user = opened.session.user.id
        await ConsoleUserStore(transaction).set_disabled(user, desk.clock.now())

    assert await refusal(desk.console.by_token(opened.token)) is ErrorCode.TOKEN_INVALID


async def test_last_one_cannot_be_disabled(desk: Desk) -> None:
    """Somebody can always sign in, however many are disabled at the same time."""
    names = ("ana", "eva", "luis", "marta")
    for name in names:
        await new_user(desk, name)

    done = await asyncio.gather(
        *(desk.console_users.disable("operator", name) for name in names),
        return_exceptions=True,
    )

    refused = [one for one in done if one is not None]
    assert len(refused) == 1
    assert isinstance(refused[0], ApplianceError)
    assert refused[0].code is ErrorCode.CONSOLE_USER_LAST
    views = await desk.console_users.list()
    assert sum(view.user.disabled is None for view in views) == 1


async def test_what_is_so_already_is_refused(desk: Desk) -> None:
    """Disabled twice, enabled without need, and nobody by that name."""
    users = desk.console_users
    for name in ("eva", "marta"):
        await new_user(desk, name)
    await users.disable("operator", "eva")

    again = await refusal(users.disable("operator", "eva"))
    assert again is ErrorCode.CONSOLE_USER_STATE
    needless = await refusal(users.enable("operator", "marta"))
    assert needless is ErrorCode.CONSOLE_USER_STATE
    for made in (
        users.get("nadie"),
        users.disable("operator", "nadie"),
        users.enable("operator", "nadie"),
        users.end_sessions("operator", "nadie"),
        users.reset_totp("operator", "nadie"),
        users.set_password("operator", "nadie", OTHER),
    ):
        assert await refusal(made) is ErrorCode.CONSOLE_USER_NOT_FOUND


async def test_new_password_ends_sessions_and_the_old_one(desk: Desk) -> None:
    """What somebody else knew opens nothing; the session that changed it goes on."""
    totp = await new_user(desk, "marta")
    mine, stolen = await enter(desk, totp), await enter(desk, totp)

    await desk.console_users.set_password(
        mine.session.user.actor, "marta", OTHER, keep=mine.token
    )

    await desk.console.by_token(mine.token)
    assert await refusal(desk.console.by_token(stolen.token)) is ErrorCode.TOKEN_INVALID
    assert await refusal(enter(desk, totp)) is ErrorCode.LOGIN_FAILED
    await enter(desk, totp, password=OTHER)
    (row,) = await desk.audited(EventKind.CONSOLE_USER_PASSWORD_SET)
    assert row.detail == {"user": mine.session.user.id, "sessionsEnded": 1}
    with pytest.raises(FieldInvalidError):
        await desk.console_users.set_password("operator", "marta", "corta")


async def test_reset_totp_counts_at_once(desk: Desk) -> None:
    """Codes of the lost telephone are wrong, sessions are over."""
    old = await new_user(desk, "marta")
    opened = await enter(desk, old)

    made = await desk.console_users.reset_totp("operator", "marta", witness="console:x")

    assert await refusal(desk.console.by_token(opened.token)) is ErrorCode.TOKEN_INVALID
    assert await refusal(enter(desk, old)) is ErrorCode.LOGIN_FAILED
    await enter(desk, read_uri(made.totp_uri))
    (row,) = await desk.audited(EventKind.CONSOLE_USER_TOTP_SET)
    assert row.detail["witness"] == "console:x"


async def test_own_new_totp_counts_after_a_code_of_it(desk: Desk) -> None:
    """Until then the old one goes on; after, the old one and other sessions end."""
    old = await new_user(desk, "marta")
    mine, other = await enter(desk, old), await enter(desk, old)
    users, session = desk.console_users, mine.session
    offer = users.offer_totp(session)
    new = read_uri(offer.totp_uri)
    wrong = users.take_totp(session, offer.sealed, fresh(desk, old), mine.token)
    assert await refusal(wrong) is ErrorCode.OTP_INVALID
    await desk.console.confirm(session, fresh(desk, old), HERE)

    code = fresh(desk, new)
    await users.take_totp(session, offer.sealed, code, mine.token)

    await desk.console.by_token(mine.token)
    assert await refusal(desk.console.by_token(other.token)) is ErrorCode.TOKEN_INVALID
    confirmed = desk.console.confirm(session, code, HERE)
    assert await refusal(confirmed) is ErrorCode.OTP_INVALID, "used up"
    assert await refusal(enter(desk, old)) is ErrorCode.LOGIN_FAILED
    await enter(desk, new)


async def test_offer_of_a_totp_is_of_one_session_and_short(desk: Desk) -> None:
    """Of another session, altered, or over: it is none."""
    totp = await new_user(desk, "marta")
    mine, other = await enter(desk, totp), await enter(desk, totp)
    users = desk.console_users
    sealed = users.offer_totp(mine.session).sealed

    for session, text in (
        (other.session, sealed),
        (mine.session, sealed[:-8]),
        (mine.session, ""),
        (mine.session, "ñ"),
    ):
        with pytest.raises(ApplianceError) as refused:
            users.offered_totp(session, text)
        assert refused.value.code is ErrorCode.CSRF_REFUSED
    desk.clock.forward(601)
    with pytest.raises(ApplianceError):
        users.offered_totp(mine.session, sealed)


async def test_secret_changed_while_somebody_signs_in_opens_nothing(
    desk: Desk,
) -> None:
    """What was right when it was read is looked at once more as the session opens."""
    await new_user(desk, "eva")
    totp = await new_user(desk, "marta")
    async with desk.store.read() as transaction:
        before = await ConsoleUserStore(transaction).by_name("marta")
    assert before is not None
    await desk.console_users.set_password("operator", "marta", OTHER)
    async with desk.store.write() as transaction:
        assert not await ConsoleUserStore(transaction).advance_step(before, 2**40)
        now = await ConsoleUserStore(transaction).by_name("marta")
        assert now is not None
    await desk.console_users.disable("operator", "marta")
    async with desk.store.write() as transaction:
        assert not await ConsoleUserStore(transaction).advance_step(now, 2**40)
    assert totp.at(desk.clock.now())


async def test_list_tells_sessions_and_the_last_sign_in(desk: Desk) -> None:
    """By name, with what is open now; ending sessions is recorded once."""
    await new_user(desk, "eva")
    totp = await new_user(desk, "marta")
    opened = [await enter(desk, totp) for _ in range(3)]

    eva, marta = await desk.console_users.list()
    assert (eva.sessions, eva.last_login) == (0, None)
    assert (marta.sessions, marta.last_login) == (3, desk.clock.now())

    end = desk.console_users.end_sessions
    assert await end("operator", "marta", opened[0].token) == 2
    assert await end("operator", "marta") == 1
    assert await end("operator", "marta") == 0
    assert (await desk.console_users.get("marta")).sessions == 0
    assert len(await desk.audited(EventKind.CONSOLE_USER_SESSIONS_ENDED)) == 2
