"""Administrators shut out, let in, given new secrets, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pyotp
import pytest

from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.integrators.integrators import NewConsoleSession
from appliance.domain.vocab import EventKind
from appliance.identity.console_login import SignIn, session_indexes
from appliance.people.console_user_store import ConsoleUserStore
from tests.support.installation.installation import Installation
from tests.support.installation.services import Services

PASSWORD, OTHER = "una clave de consola", "otra clave de consola"
HERE = "192.0.2.1"


@pytest.fixture
async def integrator_services(tmp_path: Path, each_url: str) -> AsyncIterator[Services]:
    """Services on a fresh database, whose limits nobody reaches."""
    auth = {"login_per_minute_address": 1000, "login_per_minute_account": 100}
    async with Installation(tmp_path, each_url, auth=auth).services() as made:
        yield made


def read_uri(uri: str) -> pyotp.TOTP:
    """What a telephone has after scanning."""
    totp = pyotp.parse_uri(uri)
    assert isinstance(totp, pyotp.TOTP)
    return totp


async def new_user(integrator_services: Services, name: str) -> pyotp.TOTP:
    """An administrator; gives what their telephone has."""
    made = await integrator_services.console.create_user("operator", name, PASSWORD)
    return read_uri(made.totp_uri)


def fresh(integrator_services: Services, totp: pyotp.TOTP) -> str:
    """A code that was not used yet; the clock goes on by a step."""
    integrator_services.clock.forward(30)
    return totp.at(integrator_services.clock.now())


async def enter(
    integrator_services: Services,
    totp: pyotp.TOTP,
    name: str = "marta",
    password: str = PASSWORD,
) -> NewConsoleSession:
    """Sign in."""
    return await integrator_services.console.sign_in(
        SignIn(name, password, fresh(integrator_services, totp)), HERE
    )


async def refusal(action: object) -> ErrorCode:
    """The code with which something is refused."""
    with pytest.raises(ApplianceError) as refused:
        await action  # type: ignore[misc]  # a coroutine of any result
    return refused.value.code


async def test_disabling_ends_sessions_at_once_and_lets_none_begin(
    integrator_services: Services,
) -> None:
    """Every face of the sign-in is closed until enabled again, and then open."""
    eva, marta = (
        await new_user(integrator_services, "eva"),
        await new_user(integrator_services, "marta"),
    )
    opened, watching = (
        await enter(integrator_services, marta),
        await enter(integrator_services, eva, "eva"),
    )

    await integrator_services.console_users.disable("console:eva", "marta")

    assert (
        await refusal(integrator_services.console.by_token(opened.token))
        is ErrorCode.TOKEN_INVALID
    )
    assert await refusal(enter(integrator_services, marta)) is ErrorCode.LOGIN_FAILED
    code = fresh(integrator_services, marta)
    confirmed = integrator_services.console.confirm(opened.session, code, HERE)
    assert await refusal(confirmed) is ErrorCode.OTP_INVALID
    typed = SignIn("marta", PASSWORD, fresh(integrator_services, marta))
    agreed = integrator_services.console.witness(watching.session, typed, HERE)
    assert await refusal(agreed) is ErrorCode.LOGIN_FAILED

    await integrator_services.console_users.enable("console:eva", "marta")

    await enter(integrator_services, marta)
    (off,) = await integrator_services.audited(EventKind.CONSOLE_USER_DISABLED)
    assert off.actor == "console:eva"
    assert off.detail["user"] == opened.session.user.id
    assert off.detail["sessionsEnded"] == 1
    assert off.detail["before"] == {"state": "active"}
    assert off.detail["after"] == {"state": "disabled"}
    assert len(await integrator_services.audited(EventKind.CONSOLE_USER_ENABLED)) == 1


async def test_state_is_looked_at_whatever_sessions_say(
    integrator_services: Services,
) -> None:
    """A session of somebody shut out opens nothing, even if its row were left."""
    await new_user(integrator_services, "eva")
    opened = await enter(
        integrator_services, await new_user(integrator_services, "marta")
    )
    async with integrator_services.store.write() as transaction:
        user = opened.session.user.id
        await ConsoleUserStore(transaction).set_disabled(
            user, integrator_services.clock.now()
        )

    assert (
        await refusal(integrator_services.console.by_token(opened.token))
        is ErrorCode.TOKEN_INVALID
    )


async def test_last_one_cannot_be_disabled(
    integrator_services: Services,
) -> None:
    """Somebody can always sign in, however many are disabled at the same time."""
    names = ("ana", "eva", "luis", "marta")
    for name in names:
        await new_user(integrator_services, name)

    done = await asyncio.gather(
        *(
            integrator_services.console_users.disable("operator", name)
            for name in names
        ),
        return_exceptions=True,
    )

    refused = [one for one in done if one is not None]
    assert len(refused) == 1
    assert isinstance(refused[0], ApplianceError)
    assert refused[0].code is ErrorCode.CONSOLE_USER_LAST
    views = await integrator_services.console_users.list()
    assert sum(view.user.disabled is None for view in views) == 1


async def test_what_is_so_already_is_refused(
    integrator_services: Services,
) -> None:
    """Disabled twice, enabled without need, and nobody by that name."""
    users = integrator_services.console_users
    for name in ("eva", "marta"):
        await new_user(integrator_services, name)
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


async def test_new_password_ends_sessions_and_the_old_one(
    integrator_services: Services,
) -> None:
    """What somebody else knew opens nothing; the session that changed it goes on."""
    totp = await new_user(integrator_services, "marta")
    mine, stolen = (
        await enter(integrator_services, totp),
        await enter(integrator_services, totp),
    )

    await integrator_services.console_users.set_password(
        mine.session.user.actor, "marta", OTHER, keep=mine.token
    )

    await integrator_services.console.by_token(mine.token)
    assert (
        await refusal(integrator_services.console.by_token(stolen.token))
        is ErrorCode.TOKEN_EXPIRED
    )
    assert await refusal(enter(integrator_services, totp)) is ErrorCode.LOGIN_FAILED
    await enter(integrator_services, totp, password=OTHER)
    (row,) = await integrator_services.audited(EventKind.CONSOLE_USER_PASSWORD_SET)
    assert row.detail == {"user": mine.session.user.id, "sessionsEnded": 1}
    with pytest.raises(FieldInvalidError):
        await integrator_services.console_users.set_password(
            "operator", "marta", "corta"
        )


async def test_reset_totp_counts_at_once(
    integrator_services: Services,
) -> None:
    """Codes of the lost telephone are wrong, sessions are over."""
    old = await new_user(integrator_services, "marta")
    opened = await enter(integrator_services, old)

    made = await integrator_services.console_users.reset_totp(
        "operator", "marta", witness="console:x"
    )

    assert (
        await refusal(integrator_services.console.by_token(opened.token))
        is ErrorCode.TOKEN_EXPIRED
    )
    assert await refusal(enter(integrator_services, old)) is ErrorCode.LOGIN_FAILED
    await enter(integrator_services, read_uri(made.totp_uri))
    (row,) = await integrator_services.audited(EventKind.CONSOLE_USER_TOTP_SET)
    assert row.detail["witness"] == "console:x"


async def test_own_new_totp_counts_after_a_code_of_it(
    integrator_services: Services,
) -> None:
    """Until then the old one goes on; after, the old one and other sessions end."""
    old = await new_user(integrator_services, "marta")
    mine, other = (
        await enter(integrator_services, old),
        await enter(integrator_services, old),
    )
    users, session = integrator_services.console_users, mine.session
    offer = users.offer_totp(session)
    new = read_uri(offer.totp_uri)
    wrong = users.take_totp(
        session, offer.sealed, fresh(integrator_services, old), mine.token
    )
    assert await refusal(wrong) is ErrorCode.OTP_INVALID
    await integrator_services.console.confirm(
        session, fresh(integrator_services, old), HERE
    )

    code = fresh(integrator_services, new)
    await users.take_totp(session, offer.sealed, code, mine.token)

    await integrator_services.console.by_token(mine.token)
    assert (
        await refusal(integrator_services.console.by_token(other.token))
        is ErrorCode.TOKEN_EXPIRED
    )
    confirmed = integrator_services.console.confirm(session, code, HERE)
    assert await refusal(confirmed) is ErrorCode.OTP_INVALID, "used up"
    assert await refusal(enter(integrator_services, old)) is ErrorCode.LOGIN_FAILED
    await enter(integrator_services, new)


async def test_offer_of_a_totp_is_of_one_session_and_short(
    integrator_services: Services,
) -> None:
    """Of another session, altered, or over: it is none."""
    totp = await new_user(integrator_services, "marta")
    mine, other = (
        await enter(integrator_services, totp),
        await enter(integrator_services, totp),
    )
    users = integrator_services.console_users
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
    integrator_services.clock.forward(601)
    with pytest.raises(ApplianceError):
        users.offered_totp(mine.session, sealed)


@pytest.mark.parametrize(
    ("password", "is_taken"),
    [
        ("ñ" * 7, False),
        ("n\u0303" * 11, False),
        ("a" * 11, False),
        ("ñandú-lejano", True),
        ("ñ" * 511 + "á", True),
        ("ñ" * 512 + "á", False),
    ],
)
async def test_password_is_counted_in_characters(
    integrator_services: Services, password: str, is_taken: bool
) -> None:
    """Twelve of them, as the sentence says; the most is in bytes."""
    users = integrator_services.console_users
    if is_taken:
        users.check_password(password, "marta")
        return
    with pytest.raises(FieldInvalidError):
        users.check_password(password, "marta")


async def test_secret_changed_while_somebody_signs_in_opens_nothing(
    integrator_services: Services,
) -> None:
    """What was right when it was read is looked at once more as the session opens."""
    await new_user(integrator_services, "eva")
    totp = await new_user(integrator_services, "marta")
    async with integrator_services.store.read() as transaction:
        before = await ConsoleUserStore(transaction).by_name("marta")
    assert before is not None
    await integrator_services.console_users.set_password("operator", "marta", OTHER)
    async with integrator_services.store.write() as transaction:
        assert not await ConsoleUserStore(transaction).advance_step(before, 2**40)
        now = await ConsoleUserStore(transaction).by_name("marta")
        assert now is not None
    await integrator_services.console_users.disable("operator", "marta")
    async with integrator_services.store.write() as transaction:
        assert not await ConsoleUserStore(transaction).advance_step(now, 2**40)
    assert totp.at(integrator_services.clock.now())


async def test_session_that_was_ended_is_not_prolonged(
    integrator_services: Services,
) -> None:
    """A request that read it before it was ended does not bring it back."""
    totp = await new_user(integrator_services, "marta")
    opened = await enter(integrator_services, totp)
    now = integrator_services.clock.now()
    index = session_indexes(
        integrator_services.lookup,
        integrator_services.settings.environment,
        opened.token,
    )
    async with integrator_services.store.write() as transaction:
        users = ConsoleUserStore(transaction)
        assert await users.close_sessions(opened.session.user.id, now) == 1
        await users.prolong_session(index, now, now + timedelta(hours=1))
        assert await users.close_sessions(opened.session.user.id, now) == 0

    ended = integrator_services.console.by_token(opened.token)
    assert await refusal(ended) is ErrorCode.TOKEN_EXPIRED
    former = await integrator_services.console.former_user(opened.token)
    assert former == opened.session.user.id


async def test_list_tells_sessions_and_the_last_sign_in(
    integrator_services: Services,
) -> None:
    """By name, with what is open now; ending sessions is recorded once."""
    await new_user(integrator_services, "eva")
    totp = await new_user(integrator_services, "marta")
    opened = [await enter(integrator_services, totp) for _ in range(3)]

    eva, marta = await integrator_services.console_users.list()
    assert (eva.sessions, eva.last_login) == (0, None)
    assert (marta.sessions, marta.last_login) == (3, integrator_services.clock.now())

    end = integrator_services.console_users.end_sessions
    assert await end("operator", "marta", opened[0].token) == 2
    assert await end("operator", "marta") == 1
    assert await end("operator", "marta") == 0
    assert (await integrator_services.console_users.get("marta")).sessions == 0
    assert (
        len(await integrator_services.audited(EventKind.CONSOLE_USER_SESSIONS_ENDED))
        == 2
    )
