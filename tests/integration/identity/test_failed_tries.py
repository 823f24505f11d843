"""Accounts that strangers keep at their ceiling: who gets in, and what lifts it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pyotp
import pytest

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.vocab import EventKind, VouchedBy
from appliance.identity.console_login import SignIn
from appliance.identity.enrolment import Choice
from appliance.identity.failed_logins import FailedTries
from tests.support.factories.fakes import error_code
from tests.support.installation.api import CUIL, EMAIL, LOGIN_PASSWORD, ApiServices
from tests.support.installation.installation import Installation
from tests.support.installation.services import Services

pytestmark = pytest.mark.usefixtures("cheap_hashes")

HERE = "192.0.2.1"
NAMED = "192.0.2.99"
ELSEWHERE = "198.51.100.7"
RIGHT = LOGIN_PASSWORD.encode()
CONSOLE_PASSWORD = "una clave de consola"


@pytest.fixture
async def api_services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """Storage and services, on each database."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        yield made


@pytest.fixture
async def integrator_services(tmp_path: Path, each_url: str) -> AsyncIterator[Services]:
    """Administrators, on each database."""
    async with Installation(tmp_path, each_url).services() as made:
        yield made


async def attack(api_services: ApiServices, user: str = CUIL, times: int = 31) -> None:
    """Try wrong passwords from many addresses."""
    for number in range(times):
        with pytest.raises(ApplianceError):
            await api_services.login.login(user, b"otra clave", f"203.0.113.{number}")


async def audited(
    api_services: ApiServices, kind: EventKind
) -> list[dict[str, object]]:
    """Details of the rows of a kind."""
    async with api_services.store.read() as transaction:
        writers = await transaction.audit.writers()
        rows = [row for w in writers for row in await transaction.audit.of_writer(w)]
    return [row.event.detail for row in rows if row.event.event is kind]


async def enrolled(api_services: ApiServices) -> PersonId:
    """Somebody who chose their secrets at `HERE`."""
    link = await api_services.invitations.invite(
        "operator", CUIL, "Ana Pérez", EMAIL, VouchedBy.OFFICER
    )
    view = await api_services.enrolment.look(link.code)
    code = pyotp.TOTP(view.totp_secret).at(api_services.clock.now())
    choice = Choice(LOGIN_PASSWORD, "una clave de firma", code, view.opening)
    await api_services.enrolment.complete(link.code, choice, HERE)
    return link.person


def failed_tries_of(api_services: ApiServices) -> FailedTries:
    """The use cases over these parts."""
    return api_services.failed_tries


async def test_who_enrolled_gets_in_from_there(api_services: ApiServices) -> None:
    """A first sign-in is not a stranger's to prevent."""
    await enrolled(api_services)
    await attack(api_services)

    await api_services.login.login(CUIL, RIGHT, HERE)
    with pytest.raises(ApplianceError, match="RATE_LIMITED"):
        await api_services.login.login(CUIL, RIGHT, ELSEWHERE)


@pytest.mark.parametrize("user", [CUIL, EMAIL])
async def test_tries_of_before_an_enrolment_do_not_count(
    api_services: ApiServices, user: str
) -> None:
    """Whoever guessed at a name before it was somebody's delays nobody."""
    await attack(api_services, user)
    await enrolled(api_services)

    await api_services.login.login(user, RIGHT, ELSEWHERE)


@pytest.mark.parametrize("user", [CUIL, EMAIL])
async def test_forgotten_tries_count_no_more(
    api_services: ApiServices, user: str
) -> None:
    """By CUIL or address: how many is told, and what was done is in the audit."""
    person = await enrolled(api_services)
    await attack(api_services, user)
    tries = failed_tries_of(api_services)
    assert (await tries.find(user)).id == person

    assert await tries.forget_person("operator", person) == 30
    await api_services.login.login(user, RIGHT, ELSEWHERE)

    assert await tries.forget_person("operator", person) == 0
    assert await tries.attacked() == []
    told = await audited(api_services, EventKind.PERSON_TRIES_FORGOTTEN)
    assert told == [{"person": person, "tries": n} for n in (30, 0)]


async def test_named_address_is_let_in_while_the_attack_goes_on(
    api_services: ApiServices,
) -> None:
    """Forgetting alone helps until the next thirty guesses."""
    person = await enrolled(api_services)
    await attack(api_services)
    await failed_tries_of(api_services).forget_person("operator", person, NAMED)
    await attack(api_services)

    await api_services.login.login(CUIL, RIGHT, NAMED)

    (told,) = await audited(api_services, EventKind.PERSON_TRIES_FORGOTTEN)
    assert told["knownAddress"] is True
    assert NAMED not in str(told)


async def test_ceiling_is_told_once_an_hour(api_services: ApiServices) -> None:
    """One row of the audit for each account and hour, and a line for officers."""
    person = await enrolled(api_services)
    await attack(api_services, times=40)
    tries = failed_tries_of(api_services)

    assert await audited(api_services, EventKind.LOGIN_CEILING_REACHED) == [
        {"person": person}
    ]
    (seen,) = await tries.attacked()
    assert seen.person is not None
    assert (seen.person.id, seen.user) == (person, None)

    api_services.clock.forward(3601)
    await attack(api_services, times=40)
    assert len(await audited(api_services, EventKind.LOGIN_CEILING_REACHED)) == 2
    api_services.clock.forward(86_401)
    assert await tries.attacked() == []


async def test_nobodys_account_is_shown_to_nobody(api_services: ApiServices) -> None:
    """Guesses at a made-up name are recorded, and no business of an officer's."""
    await attack(api_services, "nadie@example.com")

    assert await audited(api_services, EventKind.LOGIN_CEILING_REACHED) == [{}]
    assert await failed_tries_of(api_services).attacked() == []


async def test_addresses_go_on_being_counted(api_services: ApiServices) -> None:
    """What an account forgets, the limit of an address does not."""
    person = await enrolled(api_services)
    for _ in range(7):
        with pytest.raises(ApplianceError):
            await api_services.login.login(CUIL, b"otra clave", ELSEWHERE)
    await failed_tries_of(api_services).forget_person("operator", person)

    async with api_services.store.read() as transaction:
        from appliance.domain.people.login import AttemptKind, Counted  # noqa: PLC0415

        since = api_services.clock.now().replace(year=2000)
        counted = Counted(AttemptKind.PASSWORD, network=ELSEWHERE)
        wrong = await LoginAttemptStore(transaction).wrong(
            counted, since, forgiving=False
        )
    assert wrong.count == 7


async def console_attack(integrator_services: Services, name: str = "marta") -> None:
    """Try wrong passwords at the console from many addresses."""
    for number in range(31):
        typed = SignIn(name, "otra clave larga", "123456")
        with pytest.raises(ApplianceError):
            await integrator_services.console.sign_in(typed, f"203.0.113.{number}")


async def new_user(integrator_services: Services) -> pyotp.TOTP:
    """An administrator; gives what their telephone has."""
    made = await integrator_services.console.create_user(
        "operator", "marta", CONSOLE_PASSWORD
    )
    totp = pyotp.parse_uri(made.totp_uri)
    assert isinstance(totp, pyotp.TOTP)
    return totp


async def enter(integrator_services: Services, totp: pyotp.TOTP) -> ErrorCode | None:
    """Sign in; the error that it ends with."""
    integrator_services.clock.forward(30)
    code = totp.at(integrator_services.clock.now())
    given = SignIn("marta", CONSOLE_PASSWORD, code)
    return await error_code(integrator_services.console.sign_in(given, HERE))


async def test_new_administrator_begins_without_others_tries(
    integrator_services: Services,
) -> None:
    """A name that was guessed at before it was given is free."""
    await console_attack(integrator_services)
    totp = await new_user(integrator_services)

    assert await enter(integrator_services, totp) is None


async def test_administrator_is_let_in_again(
    integrator_services: Services,
) -> None:
    """A stranger prevents the first sign-in until an operator lifts it."""
    totp = await new_user(integrator_services)
    await console_attack(integrator_services)
    assert await enter(integrator_services, totp) is ErrorCode.RATE_LIMITED
    tries = integrator_services.failed_tries
    (seen,) = await tries.attacked()
    assert (seen.person, seen.user) == (None, "marta")

    assert await tries.forget_user("operator", "marta") == 30

    assert await enter(integrator_services, totp) is None
    (told,) = await integrator_services.audited(EventKind.LOGIN_CEILING_REACHED)
    assert set(told.detail) == {"user"}
    (done,) = await integrator_services.audited(EventKind.CONSOLE_USER_TRIES_FORGOTTEN)
    assert done.detail["tries"] == 30
    with pytest.raises(ApplianceError, match="CONSOLE_USER_NOT_FOUND"):
        await tries.forget_user("operator", "nadie")
