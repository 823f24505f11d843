"""Addresses that a process knows, from the record of all of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pyotp
import pytest

from appliance.admission.known_addresses import KnownAddresses
from appliance.domain.errors import ApplianceError
from tests.support.installation.api import CUIL, LOGIN_PASSWORD, ApiServices
from tests.support.installation.installation import Installation

HOME, OFFICE, STRANGE = "192.0.2.1", "2001:db8:1:2::/64", "203.0.113.9"
DAYS = 30
DAY_S = 86_400


@pytest.fixture
async def services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """On each database."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        yield made


@pytest.fixture
def known(services: ApiServices) -> KnownAddresses:
    """What one process knows."""
    return KnownAddresses(services.store, services.lookup, services.clock, DAYS)


async def sign_in(
    services: ApiServices, seed: str, address: str, password: str
) -> None:
    """Password and code, by a code that was not used yet."""
    services.clock.forward(60)
    challenge = await services.login.login(CUIL, password.encode(), address)
    code = pyotp.TOTP(seed).at(services.clock.now())
    await services.login.otp(challenge.login_token, code, address)


async def test_address_is_known_once_somebody_proved_who_they_are(
    services: ApiServices, known: KnownAddresses
) -> None:
    """By password and code, for so many days after the last time."""
    _, seed = await services.add_person()
    await known.refresh()
    assert HOME not in known

    await sign_in(services, seed, HOME, LOGIN_PASSWORD)
    services.clock.forward(5 * DAY_S)
    await sign_in(services, seed, OFFICE, LOGIN_PASSWORD)
    await known.refresh()

    assert HOME in known
    assert OFFICE in known
    assert STRANGE not in known
    services.clock.forward(26 * DAY_S)
    assert HOME not in known
    assert OFFICE in known


async def test_wrong_password_makes_no_address_known(
    services: ApiServices, known: KnownAddresses
) -> None:
    """Nor does the right password alone, whose code is wrong."""
    _, seed = await services.add_person()
    with pytest.raises(ApplianceError):
        await sign_in(services, seed, STRANGE, "another password")
    challenge = await services.login.login(CUIL, LOGIN_PASSWORD.encode(), STRANGE)
    with pytest.raises(ApplianceError):
        await services.login.otp(challenge.login_token, "000000", STRANGE)

    await known.refresh()

    assert STRANGE not in known


async def test_process_that_starts_knows_what_was_recorded(
    services: ApiServices, known: KnownAddresses
) -> None:
    """While it follows the record, what others record as well; a look costs no row."""
    _, seed = await services.add_person()
    await sign_in(services, seed, HOME, LOGIN_PASSWORD)

    async with known.followed(every_s=3600):
        await known.refresh()
        assert HOME in known
        await sign_in(services, seed, OFFICE, LOGIN_PASSWORD)
        assert OFFICE not in known
        await known.refresh()
        assert OFFICE in known
