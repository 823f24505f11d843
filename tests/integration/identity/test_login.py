"""Sign-in over real storage: passwords, codes, tries."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pyotp
import pytest
from argon2 import Parameters, PasswordHasher, extract_parameters

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.admission.login_throttle import Attempt, Throttle
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.people.login import AttemptKind
from appliance.domain.vocab import EventKind, PersonState
from appliance.identity.login import STEP_S
from appliance.web.server.client_address import counted
from tests.support.installation.api import CUIL, EMAIL, LOGIN_PASSWORD, ApiServices
from tests.support.installation.installation import Installation

pytestmark = pytest.mark.usefixtures("cheap_hashes")

PASSWORD = LOGIN_PASSWORD.encode()
HERE = "192.0.2.1"


@pytest.fixture
async def api_services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """Storage and services with wide limits."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        yield made


@pytest.fixture
async def strict(
    tmp_path: Path, each_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ApiServices]:
    """Storage and services with the limits of decisions."""
    # Running tries are waited for, however slow the machine is.
    monkeypatch.setattr("appliance.admission.login_throttle._WAIT_S", 600)
    limits = {"login_per_minute_address": 10, "login_per_minute_account": 5}
    async with Installation(
        tmp_path, auth=limits, database={"url": each_url}
    ).api() as made:
        yield made


async def code_of(
    api_services: ApiServices, user: str, password: bytes = PASSWORD
) -> ErrorCode:
    """The error that a sign-in ends with."""
    with pytest.raises(ApplianceError) as caught:
        await api_services.login.login(user, password, HERE)
    return caught.value.code


async def events(api_services: ApiServices) -> list[EventKind]:
    """What the audit says, in order."""
    async with api_services.store.read() as transaction:
        writers = await transaction.audit.writers()
        rows = [row for w in writers for row in await transaction.audit.of_writer(w)]
    return [row.event.event for row in rows]


@pytest.mark.parametrize("user", [CUIL, "20-26756539-3", EMAIL, " ANA@Example.com "])
async def test_login_succeeds_by_cuil_or_email(
    api_services: ApiServices, user: str
) -> None:
    """A person signs in by CUIL, with or without dashes, or by e-mail."""
    person, seed = await api_services.add_person()

    challenge = await api_services.login.login(user, PASSWORD, HERE)
    now = api_services.clock.now()
    issued = await api_services.login.otp(
        challenge.login_token, pyotp.TOTP(seed).at(now), HERE
    )
    signer = await api_services.tokens.verify(issued.token)

    assert (signer.person, signer.factors) == (person, ("pwd", "otp"))
    assert await events(api_services) == [
        EventKind.LOGIN_PASSWORD_RIGHT,
        EventKind.LOGIN_COMPLETED,
    ]


async def test_login_fails_alike_for_unknown_and_wrong(
    api_services: ApiServices,
) -> None:
    """Unknown users, wrong passwords and disabled people are told the same."""
    await api_services.add_person()
    await api_services.add_person(
        "27055361682", "off@example.com", PersonState.DISABLED
    )

    codes = [
        await code_of(api_services, "nadie@example.com"),
        await code_of(api_services, "20-05536168-2"),
        await code_of(api_services, CUIL, b"otra clave"),
        await code_of(api_services, "off@example.com"),
        await code_of(api_services, "no es nada"),
    ]

    assert codes == [ErrorCode.LOGIN_FAILED] * 5
    assert await events(api_services) == [EventKind.LOGIN_PASSWORD_WRONG] * 5


async def test_login_hashes_for_unknown_user(
    api_services: ApiServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown user costs one Argon2 check, as a known one does."""
    await api_services.add_person()
    checked: list[Parameters] = []
    verify = PasswordHasher.verify

    def noted(hasher: PasswordHasher, phc: str, password: bytes) -> bool:
        checked.append(extract_parameters(phc))
        return verify(hasher, phc, password)

    monkeypatch.setattr(PasswordHasher, "verify", noted)
    await code_of(api_services, CUIL, b"otra clave")
    await code_of(api_services, "nadie@example.com", b"otra clave")

    known, unknown = checked
    assert unknown == known


async def challenge(api_services: ApiServices) -> tuple[str, pyotp.TOTP, PersonId]:
    """A right password of a new person."""
    person, seed = await api_services.add_person()
    made = await api_services.login.login(CUIL, PASSWORD, HERE)
    return made.login_token, pyotp.TOTP(seed), person


async def test_sign_in_that_is_over_says_so(api_services: ApiServices) -> None:
    """Not that user or password were wrong, which were right before."""
    token, totp, _ = await challenge(api_services)
    code = totp.at(api_services.clock.now())
    await api_services.login.otp(token, code, HERE)

    for over in (token, "nunca hubo"):
        with pytest.raises(ApplianceError) as caught:
            await api_services.login.otp(over, code, HERE)
        assert caught.value.code is ErrorCode.LOGIN_FAILED
        assert "start again with user and password" in str(caught.value)


async def otp_code(api_services: ApiServices, token: str, code: str) -> ErrorCode:
    """The error that a code ends with."""
    with pytest.raises(ApplianceError) as caught:
        await api_services.login.otp(token, code, HERE)
    return caught.value.code


@pytest.mark.parametrize(("steps", "accepted"), [(-2, 0), (-1, 1), (1, 1), (2, 0)])
async def test_code_accepted_within_one_step(
    api_services: ApiServices, steps: int, accepted: int
) -> None:
    """The codes of the neighbouring steps are right, those beyond are not."""
    token, totp, _ = await challenge(api_services)
    code = totp.at(api_services.clock.now(), counter_offset=steps)

    if accepted:
        assert (await api_services.login.otp(token, code, HERE)).expires_in_s == 900
    else:
        assert await otp_code(api_services, token, code) is ErrorCode.OTP_INVALID


async def test_wrong_code_is_in_the_audit(api_services: ApiServices) -> None:
    """Of the person whose password was right; of nobody where the token is unknown."""
    token, _, person = await challenge(api_services)

    assert await otp_code(api_services, token, "none") is ErrorCode.OTP_INVALID
    assert await otp_code(api_services, "unknown", "none") is ErrorCode.LOGIN_FAILED

    async with api_services.store.read() as transaction:
        writers = await transaction.audit.writers()
        rows = [row for w in writers for row in await transaction.audit.of_writer(w)]
    known, unknown = [row.event for row in rows[1:]]
    assert {known.event, unknown.event} == {EventKind.LOGIN_OTP_WRONG}
    assert known.detail["person"] == person
    assert "person" not in unknown.detail


async def test_code_refused_when_used_before(api_services: ApiServices) -> None:
    """A code works once, for a second login token too."""
    token, totp, _ = await challenge(api_services)
    code = totp.at(api_services.clock.now())
    await api_services.login.otp(token, code, HERE)

    again = await api_services.login.login(CUIL, PASSWORD, HERE)

    assert (
        await otp_code(api_services, again.login_token, code) is ErrorCode.OTP_INVALID
    )


async def test_earlier_code_refused_after_later_one(api_services: ApiServices) -> None:
    """After the code of a step, those of earlier steps are over."""
    token, totp, _ = await challenge(api_services)
    now = api_services.clock.now()
    await api_services.login.otp(token, totp.at(now, counter_offset=1), HERE)

    again = await api_services.login.login(CUIL, PASSWORD, HERE)

    refused = await otp_code(api_services, again.login_token, totp.at(now))
    assert refused is ErrorCode.OTP_INVALID


@pytest.mark.parametrize(
    "shape", ["{0}1", "{1}", "abcdef", "", "fullwidth", "{0}\n", "1 2 3 4 5 6"]
)
async def test_code_refused_in_another_form(
    api_services: ApiServices, shape: str
) -> None:
    """Anything but six ASCII digits is a wrong code."""
    token, totp, _ = await challenge(api_services)
    code = totp.at(api_services.clock.now())
    wide = "".join(chr(ord(digit) + 0xFEE0) for digit in code)
    typed = wide if shape == "fullwidth" else shape.format(code, code[:5])

    assert await otp_code(api_services, token, typed) is ErrorCode.OTP_INVALID


async def test_code_accepted_with_spaces_around(api_services: ApiServices) -> None:
    """Spaces before and after a code do not count."""
    token, totp, _ = await challenge(api_services)

    issued = await api_services.login.otp(
        token, f" {totp.at(api_services.clock.now())} ", HERE
    )

    assert issued.expires_in_s == 900


async def test_code_of_another_person_refused(api_services: ApiServices) -> None:
    """A code of somebody else's seed is wrong."""
    token, totp, _ = await challenge(api_services)
    _, other = await api_services.add_person("20055361682", "otro@example.com")
    code = pyotp.TOTP(other).at(api_services.clock.now())
    assert code not in {
        totp.at(api_services.clock.now(), counter_offset=step) for step in (-1, 0, 1)
    }

    assert await otp_code(api_services, token, code) is ErrorCode.OTP_INVALID


async def test_login_token_ends_with_its_time(api_services: ApiServices) -> None:
    """A login token is good for 300 s sharp."""
    token, totp, _ = await challenge(api_services)

    api_services.clock.forward(300)

    code = totp.at(api_services.clock.now())
    assert await otp_code(api_services, token, code) is ErrorCode.LOGIN_FAILED


async def test_login_token_works_once(api_services: ApiServices) -> None:
    """A login token that was used is unknown."""
    token, totp, _ = await challenge(api_services)
    await api_services.login.otp(token, totp.at(api_services.clock.now()), HERE)
    api_services.clock.forward(STEP_S)

    code = totp.at(api_services.clock.now())
    assert await otp_code(api_services, token, code) is ErrorCode.LOGIN_FAILED


async def test_code_used_by_exactly_one_of_200(api_services: ApiServices) -> None:
    """Of 200 calls at the same time with one code exactly one signs in."""
    token, totp, _ = await challenge(api_services)
    second = await api_services.login.login(CUIL, PASSWORD, HERE)
    code = totp.at(api_services.clock.now())

    async def use(number: int) -> str:
        given = token if number % 2 else second.login_token
        try:
            await api_services.login.otp(given, code, HERE)
        except ApplianceError as exc:
            return exc.code
        return "won"

    ends = await asyncio.gather(*(use(number) for number in range(200)))

    assert ends.count("won") == 1
    refusals = {ErrorCode.OTP_INVALID, ErrorCode.LOGIN_FAILED, ErrorCode.RATE_LIMITED}
    assert set(ends) <= {"won", *refusals}
    assert (await events(api_services)).count(EventKind.LOGIN_COMPLETED) == 1


async def test_sixth_wrong_try_on_account_waits_there(strict: ApiServices) -> None:
    """Five wrong ones a minute on one account from one address; then it is told."""
    await strict.add_person()
    for _ in range(5):
        assert await code_of(strict, CUIL, b"otra clave") is ErrorCode.LOGIN_FAILED

    with pytest.raises(ApplianceError) as caught:
        await strict.login.login(CUIL, PASSWORD, HERE)

    assert caught.value.code is ErrorCode.RATE_LIMITED
    assert caught.value.extras == {"retryAfter": 60}


async def test_wrong_tries_elsewhere_delay_nobody(strict: ApiServices) -> None:
    """Who knows a CUIL does not lock its owner out, from however many addresses."""
    _, seed = await strict.add_person()
    await sign_in(strict, seed)
    refused = 0
    for number in range(60):
        strict.clock.forward(1)
        with pytest.raises(ApplianceError) as caught:
            await strict.login.login(CUIL, b"otra clave", f"203.0.113.{number}")
        refused += caught.value.code is ErrorCode.RATE_LIMITED

    assert refused == 30
    strict.clock.forward(STEP_S)
    await sign_in(strict, seed)
    assert await code_of(strict, CUIL, b"otra clave") is ErrorCode.LOGIN_FAILED


async def sign_in(api_services: ApiServices, seed: str, address: str = HERE) -> None:
    """Sign in by both factors."""
    made = await api_services.login.login(CUIL, PASSWORD, address)
    code = pyotp.TOTP(seed).at(api_services.clock.now())
    await api_services.login.otp(made.login_token, code, address)


async def test_ceiling_of_a_day_lets_known_addresses_through(
    strict: ApiServices,
) -> None:
    """A hundred wrong ones a day; what was signed in from is known for 30 days."""
    _, seed = await strict.add_person()
    await sign_in(strict, seed)
    codes = []
    for number in range(150):
        strict.clock.forward(300)
        with pytest.raises(ApplianceError) as caught:
            await strict.login.login(CUIL, b"otra clave", f"203.0.113.{number}")
        codes.append(caught.value.code)

    assert codes.count(ErrorCode.LOGIN_FAILED) == 100
    assert codes[-1] is ErrorCode.RATE_LIMITED
    await sign_in(strict, seed)
    with pytest.raises(ApplianceError, match="RATE_LIMITED"):
        await strict.login.login(CUIL, PASSWORD, "198.51.100.7")
    strict.clock.forward(86_400)
    await strict.login.login(CUIL, PASSWORD, "198.51.100.7")


async def test_known_address_is_forgotten(strict: ApiServices) -> None:
    """Thirty days after the last success an address is a stranger's."""
    _, seed = await strict.add_person()
    await sign_in(strict, seed)
    strict.clock.forward(30 * 86_400 + 1)
    for number in range(30):
        with pytest.raises(ApplianceError):
            await strict.login.login(CUIL, b"otra clave", f"203.0.113.{number}")

    assert await code_of(strict, CUIL) is ErrorCode.RATE_LIMITED


async def test_known_addresses_are_kept_as_hashes(strict: ApiServices) -> None:
    """The record has no address beyond the two days of its tries."""
    _, seed = await strict.add_person()
    await sign_in(strict, seed)

    async with strict.store.write() as transaction:
        assert (
            await LoginAttemptStore(transaction).sweep(
                strict.clock.now() + timedelta(days=1)
            )
            == 2
        )
        assert (
            await LoginAttemptStore(transaction).forget_known(strict.clock.now()) == 0
        )
        later = strict.clock.now() + timedelta(seconds=1)
        # Theirs, and anybody's.
        assert await LoginAttemptStore(transaction).forget_known(later) == 2


async def test_right_tries_are_not_counted(strict: ApiServices) -> None:
    """However often somebody signs in, nobody at their address waits."""
    _, seed = await strict.add_person()
    for _ in range(15):
        await sign_in(strict, seed)
        strict.clock.forward(STEP_S)
    for _ in range(15):
        await strict.login.login(CUIL, PASSWORD, HERE)

    assert await code_of(strict, "nadie@example.com") is ErrorCode.LOGIN_FAILED


async def test_right_tries_at_once_wait_for_one_another(strict: ApiServices) -> None:
    """Of many right passwords from one address at once none is refused."""
    await strict.add_person()

    made = await asyncio.gather(
        *(strict.login.login(CUIL, PASSWORD, HERE) for _ in range(8))
    )

    assert len({each.login_token for each in made}) == 8


async def test_so_many_tries_wait_for_running_ones(
    strict: ApiServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes beyond them is told at once."""
    monkeypatch.setattr("appliance.admission.login_throttle._LOOK_AGAIN_S", 60)
    throttle = Throttle(strict.store, strict.lookup, strict.clock, strict.settings.auth)

    async def begin() -> Attempt:
        return await throttle.begin(AttemptKind.PASSWORD, "account", None, HERE)

    for _ in range(5):
        await begin()
    trying = {asyncio.create_task(begin()) for _ in range(70)}
    refused: set[asyncio.Task[Attempt]] = set()
    while len(refused) < 6:
        some, _ = await asyncio.wait(
            trying - refused, return_when=asyncio.FIRST_COMPLETED
        )
        refused |= some
    codes = [task.exception() for task in refused]
    for task in trying:
        task.cancel()
    await asyncio.gather(*trying, return_exceptions=True)

    assert all(isinstance(fault, ApplianceError) for fault in codes)
    assert {fault.code for fault in codes if isinstance(fault, ApplianceError)} == {
        ErrorCode.RATE_LIMITED
    }


@pytest.mark.parametrize(
    ("known", "spelled"),
    [(CUIL, "20-26756539-3"), (EMAIL, " ANA@Example.com ")],
    ids=["cuil", "email"],
)
async def test_unknown_users_are_counted_as_known_ones(
    strict: ApiServices, known: str, spelled: str
) -> None:
    """However a user is spelled, the sixth try waits, known or not."""
    unknown = {CUIL: "20055361682", EMAIL: "otra@example.com"}[known]
    other = {CUIL: "20-05536168-2", EMAIL: " OTRA@Example.com "}[known]
    await strict.add_person()

    async def ends(first: str, then: str, address: str) -> list[ErrorCode]:
        codes = []
        for user in [first] * 5 + [then]:
            with pytest.raises(ApplianceError) as caught:
                await strict.login.login(user, b"otra clave", address)
            codes.append(caught.value.code)
        return codes

    assert await ends(known, spelled, HERE) == await ends(unknown, other, "192.0.2.2")
    assert await ends(spelled, known, HERE) == [ErrorCode.RATE_LIMITED] * 6


@pytest.mark.parametrize(
    ("width", "limit"), [(64, 10), (56, 20), (48, 40)], ids=["64", "56", "48"]
)
async def test_tries_are_counted_by_network(
    strict: ApiServices, width: int, limit: int
) -> None:
    """IPv6 is counted by /64, and by the /56 and /48 around it, with wider limits."""
    base = int(ipaddress.ip_address("2001:db8:1::"))
    codes = []
    for number in range(limit + 1):
        # Spread over the width's networks, so that no narrower one is full.
        net = number % {64: 1, 56: 256, 48: 65_536}[width]
        spread = net << {64: 64, 56: 64, 48: 72}[width]
        address = counted(str(ipaddress.ip_address(base + spread)))
        with pytest.raises(ApplianceError) as caught:
            await strict.login.login(f"n{number}@example.com", b"x" * 8, address)
        codes.append(caught.value.code)

    assert codes == [ErrorCode.LOGIN_FAILED] * limit + [ErrorCode.RATE_LIMITED]


async def test_right_password_after_the_wait(strict: ApiServices) -> None:
    """A wait ends; nothing is locked."""
    await strict.add_person()
    for _ in range(5):
        await code_of(strict, CUIL, b"otra clave")

    strict.clock.forward(61)

    assert (await strict.login.login(CUIL, PASSWORD, HERE)).expires_in_s == 300


async def test_waits_grow_with_wrong_tries(strict: ApiServices) -> None:
    """Every five wrong tries double the wait, up to a quarter of an hour."""
    await strict.add_person()
    waits = []
    for _ in range(30):
        while True:
            with pytest.raises(ApplianceError) as caught:
                await strict.login.login(CUIL, b"otra clave", HERE)
            if caught.value.code is ErrorCode.LOGIN_FAILED:
                break
            wait_s = caught.value.extras["retryAfter"]
            assert isinstance(wait_s, int)
            waits.append(wait_s)
            strict.clock.forward(wait_s)

    assert sorted(set(waits)) == [60, 120, 240, 480, 900]


async def test_eleventh_try_from_address_waits(strict: ApiServices) -> None:
    """Ten tries a minute from one address, whoever they are about."""
    for number in range(10):
        await code_of(strict, f"nadie{number}@example.com")

    assert await code_of(strict, "otro@example.com") is ErrorCode.RATE_LIMITED


@pytest.mark.parametrize("account", ["one address", "many addresses"])
async def test_refused_tries_wait_for_no_lock(
    strict: ApiServices, account: str
) -> None:
    """Guesses past a limit keep nobody from writing, and answer while others write."""
    _, seed = await strict.add_person()
    await sign_in(strict, seed)
    for number in range(31):
        at = HERE if account == "one address" else f"203.0.113.{number}"
        with pytest.raises(ApplianceError):
            await strict.login.login(CUIL, b"otra clave", at)

    async with strict.store.write() as transaction:
        await LoginAttemptStore(transaction).lock(at, f"{AttemptKind.PASSWORD}|{CUIL}")
        # One that waited for the lock would be refused for the database.
        with pytest.raises(ApplianceError) as caught:
            await strict.login.login(CUIL, PASSWORD, at)
    assert caught.value.code is ErrorCode.RATE_LIMITED


async def test_parallel_tries_stay_within_the_limit(strict: ApiServices) -> None:
    """Of 40 guesses at once on one account thirty are checked, five from one place."""
    await strict.add_person()

    async def guess(user: str, address: str) -> ErrorCode:
        with pytest.raises(ApplianceError) as caught:
            await strict.login.login(user, b"guess", address)
        return caught.value.code

    apart = await asyncio.gather(
        *(guess(CUIL, f"192.0.2.{number}") for number in range(40))
    )
    assert apart.count(ErrorCode.LOGIN_FAILED) == 30
    assert apart.count(ErrorCode.RATE_LIMITED) == 10
    together = await asyncio.gather(*(guess(EMAIL, "198.51.100.1") for _ in range(20)))
    assert together.count(ErrorCode.LOGIN_FAILED) == 5
    assert together.count(ErrorCode.RATE_LIMITED) == 15


async def test_wrong_codes_wait_and_never_lock(strict: ApiServices) -> None:
    """Wrong codes delay the next one; the right one works after the wait."""
    token, totp, _ = await challenge(strict)
    for _ in range(5):
        assert await otp_code(strict, token, "000000") is ErrorCode.OTP_INVALID
    assert await otp_code(strict, token, "000000") is ErrorCode.RATE_LIMITED

    strict.clock.forward(61)

    code = totp.at(strict.clock.now())
    assert (await strict.login.otp(token, code, HERE)).expires_in_s == 900


async def test_next_code_skips_used_ones(api_services: ApiServices) -> None:
    """The next code of a person is one that signs in, after its wait."""
    token, totp, person = await challenge(api_services)
    await api_services.login.otp(
        token, totp.at(api_services.clock.now(), counter_offset=1), HERE
    )
    again = await api_services.login.login(CUIL, PASSWORD, HERE)

    code, wait_s = await api_services.login.next_code(person)
    api_services.clock.forward(wait_s)

    assert 0 < wait_s <= STEP_S
    assert (
        await api_services.login.otp(again.login_token, code, HERE)
    ).expires_in_s == 900
