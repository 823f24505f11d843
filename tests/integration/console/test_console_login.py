"""Sign-in to the console, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pyotp
import pytest

from appliance.database import tables
from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.integrators.integrators import NewConsoleSession
from appliance.domain.vocab import Environment, EventKind
from appliance.identity.console_login import ConsoleLogin, SignIn
from appliance.keys.password_hashing import HashSlots, Passwords
from tests.support.installation.installation import Installation
from tests.support.installation.services import Services

PASSWORD = "una clave de consola"
HERE = "192.0.2.1"


@pytest.fixture
async def integrator_services(tmp_path: Path, each_url: str) -> AsyncIterator[Services]:
    """Services on a fresh database."""
    async with Installation(tmp_path, each_url).services() as made:
        yield made


async def new_user(integrator_services: Services, name: str = "marta") -> pyotp.TOTP:
    """A user; gives what their telephone has."""
    made = await integrator_services.console.create_user("operator", name, PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    return totp


async def sign_in(
    integrator_services: Services,
    code: str,
    name: str = "marta",
    password: str = PASSWORD,
) -> NewConsoleSession:
    """Try to sign in."""
    return await integrator_services.console.sign_in(SignIn(name, password, code), HERE)


def code_now(integrator_services: Services, totp: pyotp.TOTP) -> str:
    """The code at the desk's time."""
    return totp.at(integrator_services.clock.now())


async def test_sign_in_opens_a_session_for_eight_hours(
    integrator_services: Services,
) -> None:
    """Name, password and code give a session that ends by itself."""
    totp = await new_user(integrator_services)

    opened = await sign_in(
        integrator_services, code_now(integrator_services, totp), name=" Marta "
    )

    found = await integrator_services.console.by_token(opened.token)
    assert found == opened.session
    assert found.user.name == "marta"
    for _ in range(24):
        integrator_services.clock.forward(20 * 60 - 1)
        await integrator_services.console.by_token(opened.token)
    integrator_services.clock.forward(24)
    with pytest.raises(ApplianceError) as over:
        await integrator_services.console.by_token(opened.token)
    assert over.value.code is ErrorCode.TOKEN_EXPIRED
    assert (
        len(await integrator_services.audited(EventKind.CONSOLE_LOGIN_COMPLETED)) == 1
    )


async def test_session_ends_after_half_an_hour_without_use(
    integrator_services: Services,
) -> None:
    """A page that renews itself is no use."""
    totp = await new_user(integrator_services)
    opened = await sign_in(integrator_services, code_now(integrator_services, totp))
    integrator_services.clock.forward(29 * 60)
    await integrator_services.console.by_token(opened.token)
    integrator_services.clock.forward(29 * 60)
    await integrator_services.console.by_token(opened.token, active=False)
    integrator_services.clock.forward(60)

    with pytest.raises(ApplianceError) as over:
        await integrator_services.console.by_token(opened.token)

    assert over.value.code is ErrorCode.TOKEN_EXPIRED


async def test_confirmation_takes_a_fresh_code(
    integrator_services: Services,
) -> None:
    """Neither a wrong code nor the one of the sign-in proves anybody again."""
    totp = await new_user(integrator_services)
    code = code_now(integrator_services, totp)
    opened = await sign_in(integrator_services, code)
    for wrong in (code, "", "12345", "abcdef"):
        with pytest.raises(ApplianceError) as refused:
            await integrator_services.console.confirm(
                opened.session, wrong, "192.0.2.1"
            )
        assert refused.value.code is ErrorCode.OTP_INVALID
        integrator_services.clock.forward(120)
    assert len(await integrator_services.audited(EventKind.CONSOLE_CODE_WRONG)) == 4

    fresh = code_now(integrator_services, totp)
    await integrator_services.console.confirm(opened.session, fresh, "192.0.2.1")

    with pytest.raises(ApplianceError):
        await integrator_services.console.confirm(opened.session, fresh, "192.0.2.1")


async def test_whatever_is_wrong_is_told_alike(
    integrator_services: Services,
) -> None:
    """Unknown name, wrong password, wrong code: one answer."""
    totp = await new_user(integrator_services)
    code = code_now(integrator_services, totp)
    for name, password, given in (
        ("nobody", PASSWORD, code),
        ("marta", "otra clave de consola", code),
        ("marta", "corta", code),
        ("marta", PASSWORD, "000000" if code != "000000" else "000001"),
    ):
        integrator_services.clock.forward(86_400 * 2)
        with pytest.raises(ApplianceError) as refused:
            await sign_in(integrator_services, given, name, password)
        assert refused.value.code is ErrorCode.LOGIN_FAILED
    assert len(await integrator_services.audited(EventKind.CONSOLE_LOGIN_WRONG)) == 4


async def test_code_works_once_however_many_try(
    integrator_services: Services,
) -> None:
    """Of several calls with one code, one opens a session."""
    totp = await new_user(integrator_services)
    code = code_now(integrator_services, totp)

    done = await asyncio.gather(
        *(sign_in(integrator_services, code) for _ in range(3)), return_exceptions=True
    )

    assert sum(isinstance(one, NewConsoleSession) for one in done) == 1


async def test_guessing_is_slowed_down(integrator_services: Services) -> None:
    """After five wrong tries in a minute the sixth has to wait."""
    await new_user(integrator_services)
    for _ in range(5):
        with pytest.raises(ApplianceError):
            await sign_in(integrator_services, "000000", password="no es esta clave")

    with pytest.raises(ApplianceError) as refused:
        await sign_in(integrator_services, "000000")

    assert refused.value.code is ErrorCode.RATE_LIMITED


async def test_sign_out_ends_the_session(
    integrator_services: Services,
) -> None:
    """After signing out the cookie opens nothing; doing it twice is no error."""
    opened = await sign_in(
        integrator_services,
        code_now(integrator_services, await new_user(integrator_services)),
    )

    await integrator_services.console.sign_out(opened.token)
    await integrator_services.console.sign_out(opened.token)

    with pytest.raises(ApplianceError) as over:
        await integrator_services.console.by_token(opened.token)
    assert over.value.code is ErrorCode.TOKEN_INVALID
    assert len(await integrator_services.audited(EventKind.CONSOLE_LOGOUT)) == 1


async def test_form_of_another_session_is_not_its_own(
    integrator_services: Services,
) -> None:
    """A form token is of one session, and of no other."""
    totp = await new_user(integrator_services)
    first = await sign_in(integrator_services, code_now(integrator_services, totp))
    integrator_services.clock.forward(60)
    second = await sign_in(integrator_services, code_now(integrator_services, totp))
    own = integrator_services.console.is_own_form

    assert own(first.session, first.session.csrf)
    assert not own(first.session, second.session.csrf)
    assert not own(first.session, "")
    assert not own(first.session, "ñ")


async def test_secrets_stand_nowhere_in_the_record(
    integrator_services: Services,
) -> None:
    """Token, seed and password are hashed or sealed, and in no repr."""
    made = await integrator_services.console.create_user("operator", "marta", PASSWORD)
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    opened = await sign_in(integrator_services, code_now(integrator_services, totp))

    async with integrator_services.store._engines.reader.connect() as connection:
        users = (await connection.execute(tables.console_user.select())).all()
        sessions = (await connection.execute(tables.console_session.select())).all()
    kept = repr([users, sessions, made, opened])
    for secret in (totp.secret, PASSWORD, opened.token, opened.session.csrf):
        assert secret not in kept


async def test_session_of_the_other_environment_is_none(
    integrator_services: Services,
) -> None:
    """A cookie of PREPROD opens nothing in PROD, on a copied record too."""
    opened = await sign_in(
        integrator_services,
        code_now(integrator_services, await new_user(integrator_services)),
    )
    prod = integrator_services.settings.model_copy(
        update={"environment": Environment.PROD, "trial": False}
    )
    there = ConsoleLogin(
        integrator_services.store,
        integrator_services.lookup,
        integrator_services.sealer,
        integrator_services.clock,
        Passwords(HashSlots()),
        prod,
    )

    with pytest.raises(ApplianceError) as refused:
        await there.by_token(opened.token)

    assert refused.value.code is ErrorCode.TOKEN_INVALID


async def test_user_is_checked_before_it_is_made(
    integrator_services: Services,
) -> None:
    """A short password, a strange name or a name in use is refused."""
    for name, password in (("marta", "corta once"), ("Marta!", PASSWORD)):
        with pytest.raises(FieldInvalidError):
            await integrator_services.console.create_user("operator", name, password)
    await new_user(integrator_services)
    with pytest.raises(ApplianceError) as taken:
        await new_user(integrator_services)
    assert taken.value.code is ErrorCode.ALREADY_EXISTS
    assert [user.name for user in await integrator_services.console.users()] == [
        "marta"
    ]
