"""Who signs in from where they never did is told: once, and not the first time ever."""

from collections.abc import AsyncIterator
from pathlib import Path

import pyotp
import pytest
from sqlalchemy import select

from appliance.database.tables import audit_event, known_address, security_notice
from appliance.domain.vocab import EventKind
from tests.support.installation.api import CUIL, LOGIN_PASSWORD, ApiServices
from tests.support.installation.installation import Installation

HOME, OFFICE, AWAY = "192.0.2.1", "198.51.100.7", "2001:db8:1:2::/64"
DAY_S = 86_400


@pytest.fixture
async def services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """On each database."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        yield made


async def sign_in(services: ApiServices, seed: str, address: str) -> None:
    """The whole way, by a code that was not used yet."""
    services.clock.forward(60)
    password = LOGIN_PASSWORD.encode()
    challenge = await services.login.login(CUIL, password, address)
    code = pyotp.TOTP(seed).at(services.clock.now())
    await services.login.otp(challenge.login_token, code, address)


async def notices(services: ApiServices) -> int:
    """Mails that tell of it; there is a row of the audit for each."""
    async with services.store.read() as transaction:
        mails = (await transaction.connection.execute(select(security_notice))).all()
        rows = await transaction.connection.execute(
            select(audit_event.c.detail).where(
                audit_event.c.event == EventKind.LOGIN_ELSEWHERE.value
            )
        )
        # No address beyond the tries, which are kept for two days.
        assert [row.detail for row in rows] == [{}] * len(mails)
    assert {mail.kind for mail in mails} <= {"signed_in_elsewhere"}
    return len(mails)


async def test_an_address_is_told_once(services: ApiServices) -> None:
    """Not the first one of all, not a known one, and no other person's."""
    _, seed = await services.add_person()

    told = []
    for address in (HOME, HOME, OFFICE, OFFICE, HOME, AWAY, AWAY):
        await sign_in(services, seed, address)
        told.append(await notices(services))

    assert told == [0, 0, 1, 1, 1, 2, 2]


async def test_an_address_that_was_not_used_for_long_is_told_again(
    services: ApiServices,
) -> None:
    """Thirty days later; that somebody has signed in before is known for ever."""
    _, seed = await services.add_person()
    await sign_in(services, seed, HOME)
    services.clock.forward(29 * DAY_S)
    await sign_in(services, seed, HOME)
    assert await notices(services) == 0
    services.clock.forward(31 * DAY_S)
    await sign_in(services, seed, HOME)
    assert await notices(services) == 1


async def test_what_is_known_does_not_grow(services: ApiServices) -> None:
    """Two rows for each address, theirs and anybody's, and one of the first time."""
    _, seed = await services.add_person()
    for address in (HOME, OFFICE, HOME, OFFICE):
        await sign_in(services, seed, address)

    async with services.store.read() as transaction:
        rows = (await transaction.connection.execute(select(known_address))).all()
    assert len(rows) == 5


async def test_a_wrong_code_tells_nothing(services: ApiServices) -> None:
    """Nor makes it an address known."""
    _, seed = await services.add_person()
    await sign_in(services, seed, HOME)
    challenge = await services.login.login(CUIL, LOGIN_PASSWORD.encode(), OFFICE)
    with pytest.raises(Exception, match="OTP_INVALID"):
        await services.login.otp(challenge.login_token, "000000", OFFICE)
    assert await notices(services) == 0
    await sign_in(services, seed, OFFICE)
    assert await notices(services) == 1
