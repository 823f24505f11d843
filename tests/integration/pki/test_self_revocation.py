"""Revoking by PIN: what it does, whom it tells nothing, how often it is tried."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from quart.typing import TestClientProtocol as Client

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId
from appliance.domain.vocab import (
    CredentialState,
    EventKind,
    PersonState,
    RevocationReason,
)
from appliance.keys.credential_store import CredentialStore
from appliance.people.person_store import PersonStore
from appliance.pki.validation.trust_store import RevocationPinStore
from tests.support.factories.held_credential import hold
from tests.support.installation.api import CUIL, ApiServices, create_api
from tests.support.installation.installation import Installation

COMPROMISE = RevocationReason.KEY_COMPROMISE
OTHER_CUIL = "20055361682"
FORM = {"cuil": CUIL, "motivo": "clave_comprometida", "confirmo": "si"}


@pytest.fixture
async def api_services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """Storage and services, on each database."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        yield made


@pytest.fixture
async def sqlite_api_services(tmp_path: Path) -> AsyncIterator[ApiServices]:
    """Storage and services, for what is not about the database."""
    async with Installation(tmp_path).api() as made:
        yield made


async def somebody(api_services: ApiServices) -> tuple[PersonId, str]:
    """A person with two credentials, one of them superseded, and their PIN."""
    person, _ = await api_services.add_person()
    for _ in range(2):
        await hold(api_services.store, person, CUIL, api_services.clock.now())
        api_services.clock.forward(1)
    return person, await api_services.revocation_pins.renew(person, f"person:{person}")


async def states(api_services: ApiServices, person: PersonId) -> list[CredentialState]:
    """How somebody's credentials stand."""
    async with api_services.store.read() as transaction:
        return [
            held.state for held in await CredentialStore(transaction).of_person(person)
        ]


async def kinds(api_services: ApiServices) -> list[EventKind]:
    """What was recorded."""
    async with api_services.store.read() as transaction:
        rows = [
            row
            for writer in await transaction.audit.writers()
            for row in await transaction.audit.of_writer(writer)
        ]
    return [row.event.event for row in rows]


async def test_pin_revokes_every_key_of_its_person(api_services: ApiServices) -> None:
    """The one in use and the one before it; another person's stay."""
    person, pin = await somebody(api_services)
    other, _ = await api_services.add_person(OTHER_CUIL, "otra@example.com")
    await hold(api_services.store, other, OTHER_CUIL, api_services.clock.now())

    revoked = await api_services.self_revocation.revoke(
        CUIL, pin, COMPROMISE, "192.0.2.1"
    )

    assert revoked == 2
    assert await states(api_services, person) == [CredentialState.REVOKING] * 2
    assert await states(api_services, other) == [CredentialState.ACTIVE]
    assert (await kinds(api_services)).count(EventKind.REVOCATION_ASKED) == 2


async def test_pin_again_finds_nothing_to_revoke(api_services: ApiServices) -> None:
    """A repeat is no fault and does nothing."""
    _, pin = await somebody(api_services)
    await api_services.self_revocation.revoke(CUIL, pin, COMPROMISE, "192.0.2.1")

    assert (
        await api_services.self_revocation.revoke(CUIL, pin, COMPROMISE, "192.0.2.1")
        == 0
    )
    assert (await kinds(api_services)).count(EventKind.REVOCATION_ASKED) == 2


async def refused(api_services: ApiServices, cuil: str, pin: str) -> ErrorCode:
    """How a try is refused."""
    with pytest.raises(ApplianceError) as caught:
        await api_services.self_revocation.revoke(cuil, pin, COMPROMISE, "192.0.2.1")
    return caught.value.code


async def test_whatever_is_wrong_is_one_answer(api_services: ApiServices) -> None:
    """A wrong PIN, an unknown CUIL and a person without PIN are told alike."""
    person, pin = await somebody(api_services)
    without, _ = await api_services.add_person(OTHER_CUIL, "otra@example.com")
    await hold(api_services.store, without, OTHER_CUIL, api_services.clock.now())
    wrong = ErrorCode.REVOCATION_PIN_WRONG

    assert await refused(api_services, CUIL, "0000-0000-0000") is wrong
    assert await refused(api_services, OTHER_CUIL, pin) is wrong
    assert await refused(api_services, "27314159263", pin) is wrong
    assert await refused(api_services, CUIL, "") is wrong
    assert await refused(api_services, CUIL, "x" * 100_000) is wrong
    assert await states(api_services, person) == [
        CredentialState.ACTIVE,
        CredentialState.SUPERSEDED,
    ]
    assert (await kinds(api_services)).count(EventKind.REVOCATION_PIN_WRONG) == 5


async def test_new_pin_ends_the_earlier_one(api_services: ApiServices) -> None:
    """One PIN a person; the renewal is recorded, and holds no secret."""
    person, first = await somebody(api_services)
    second = await api_services.revocation_pins.renew(person, "console:a")

    assert first != second
    assert await refused(api_services, CUIL, first) is ErrorCode.REVOCATION_PIN_WRONG
    assert await api_services.self_revocation.revoke(CUIL, second, COMPROMISE, "a") == 2
    assert (await kinds(api_services)).count(EventKind.REVOCATION_PIN_SET) == 2


async def test_pin_is_kept_as_a_hash(sqlite_api_services: ApiServices) -> None:
    """Neither record nor audit has the PIN."""
    person, pin = await somebody(sqlite_api_services)
    async with sqlite_api_services.store.read() as transaction:
        phc = await RevocationPinStore(transaction).get(person)

    assert phc is not None
    assert phc.startswith("$argon2id$")
    database_file = next(sqlite_api_services.settings.data_dir.glob("*.db*"))
    for path in sqlite_api_services.settings.data_dir.glob("*.db*"):
        assert pin.encode() not in path.read_bytes()
        assert pin.replace("-", "").encode() not in path.read_bytes()
    assert database_file.stat().st_size > 0


@pytest.mark.parametrize(
    "how",
    [
        str.lower,
        lambda pin: pin.replace("-", ""),
        lambda pin: "  " + pin.replace("-", " \u2013 ") + " ",
        lambda pin: pin.replace("0", "O").replace("1", "l"),
    ],
    ids=["lower", "bare", "dashes", "misread"],
)
async def test_pin_is_read_as_people_write_it(
    sqlite_api_services: ApiServices, how: Callable[[str], str]
) -> None:
    """Case, separators and letters that look like digits do not count."""
    _, pin = await somebody(sqlite_api_services)

    assert (
        await sqlite_api_services.self_revocation.revoke(
            CUIL, how(pin), COMPROMISE, "a"
        )
        == 2
    )


async def test_somebody_disabled_may_still_revoke(
    sqlite_api_services: ApiServices,
) -> None:
    """To stop one's key nobody has to be allowed anything."""
    person, pin = await somebody(sqlite_api_services)
    async with sqlite_api_services.store.write() as transaction:
        await PersonStore(transaction).move(
            person, PersonState.ACTIVE, PersonState.DISABLED
        )

    assert (
        await sqlite_api_services.self_revocation.revoke(CUIL, pin, COMPROMISE, "a")
        == 2
    )


async def test_pin_of_somebody_who_has_not_enrolled(
    sqlite_api_services: ApiServices,
) -> None:
    """Nobody has a PIN before there is anything to revoke."""
    person, _ = await sqlite_api_services.add_person(state=PersonState.INVITED)

    for who, code in (
        (person, ErrorCode.PERSON_STATE),
        (PersonId("nadie"), ErrorCode.PERSON_NOT_FOUND),
    ):
        with pytest.raises(ApplianceError) as caught:
            await sqlite_api_services.revocation_pins.renew(who, "operator")
        assert caught.value.code is code


async def test_tries_are_counted_by_address_alone(tmp_path: Path) -> None:
    """Ten wrong ones a minute from one address; a stranger's delay nobody else."""
    limits = {
        "login_per_minute_account": 5,
        "login_per_minute_address": 10,
        "wrong_per_hour_account": 10,
        "wrong_per_day_account": 20,
    }
    async with Installation(tmp_path, auth=limits).api() as api_services:
        _, pin = await somebody(api_services)

        async def attempt(cuil: str, pin: str, address: str) -> ErrorCode | int:
            try:
                return await api_services.self_revocation.revoke(
                    cuil, pin, COMPROMISE, address
                )
            except ApplianceError as error:
                return error.code

        known = [await attempt(CUIL, "x", "192.0.2.1") for _ in range(11)]
        unknown = [await attempt(OTHER_CUIL, "x", "192.0.2.2") for _ in range(11)]
        wrong, over = ErrorCode.REVOCATION_PIN_WRONG, ErrorCode.RATE_LIMITED
        assert known == unknown == [wrong] * 10 + [over]
        spread = [await attempt(CUIL, "x", f"198.51.100.{n}") for n in range(30)]
        assert spread == [wrong] * 30
        assert await attempt(CUIL, pin, "203.0.113.1") == 2


# -- the page ---------------------------------------------------------------------


def page(api_services: ApiServices) -> Client:
    """A browser without scripts."""
    return create_api(api_services).test_client(use_cookies=False)


async def test_page_revokes(sqlite_api_services: ApiServices) -> None:
    """From the form to the word that it is done; again, there is nothing left."""
    person, pin = await somebody(sqlite_api_services)
    client = page(sqlite_api_services)

    shown = await client.get("/revocar")
    done = await client.post("/revocar", form={**FORM, "pin": pin})
    again = await client.post("/revocar", form={**FORM, "pin": pin})

    assert shown.status_code == 200
    text = await done.get_data(as_text=True)
    assert (done.status_code, "tu certificado está revocado" in text) == (200, True)
    assert pin not in text
    assert "No queda nada por revocar" in await again.get_data(as_text=True)
    assert await states(sqlite_api_services, person) == [CredentialState.REVOKING] * 2


async def test_page_speaks_english(sqlite_api_services: ApiServices) -> None:
    """By the browser's choice."""
    answer = await page(sqlite_api_services).get(
        "/revocar", headers={"Accept-Language": "en-GB"}
    )

    text = await answer.get_data(as_text=True)
    assert '<html lang="en">' in text
    assert "Revoke your certificate" in text


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"cuil": "20-26756539-2"}, "cuil"),
        ({"pin": ""}, "pin"),
        ({"pin": "x" * 65}, "pin"),
        ({"motivo": "privilegeWithdrawn"}, "motivo"),
        ({"confirmo": ""}, "confirmo"),
    ],
)
async def test_page_says_what_is_missing(
    sqlite_api_services: ApiServices, fields: dict[str, str], fault: str
) -> None:
    """Each field that does not do is marked; nothing is tried."""
    await somebody(sqlite_api_services)

    answer = await page(sqlite_api_services).post(
        "/revocar", form={**FORM, "pin": "ABCD-EFGH-JKMN", **fields}
    )

    text = await answer.get_data(as_text=True)
    assert answer.status_code == 422
    assert f'id="{fault}-error"' in text
    assert f'href="#{fault}"' in text
    assert "ABCD-EFGH-JKMN" not in text
    assert EventKind.REVOCATION_PIN_WRONG not in await kinds(sqlite_api_services)


async def test_page_tells_known_and_unknown_alike(
    sqlite_api_services: ApiServices,
) -> None:
    """Byte for byte but for the CUIL that was typed."""
    await somebody(sqlite_api_services)
    client = page(sqlite_api_services)
    texts = []

    for cuil in (CUIL, OTHER_CUIL):
        fields = {**FORM, "cuil": cuil, "pin": "ABCD-EFGH-JKMN"}
        answer = await client.post("/revocar", form=fields)
        assert answer.status_code == 403
        texts.append((await answer.get_data(as_text=True)).replace(cuil, ""))

    assert texts[0] == texts[1]
    assert "El CUIL o el PIN de revocación no es correcto." in texts[0]


async def test_page_too_many_tries(tmp_path: Path) -> None:
    """429 with the time to wait, in words."""
    async with Installation(
        tmp_path, auth={"login_per_minute_address": 1}
    ).api() as api_services:
        client = page(api_services)
        form = {**FORM, "pin": "ABCD-EFGH-JKMN"}
        await client.post("/revocar", form=form)

        answer = await client.post("/revocar", form=form)

        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b"{}", "application/json", 415),
        (b"cuil=1&cuil=2", "application/x-www-form-urlencoded", 400),
        (b"pin=%ff", "application/x-www-form-urlencoded", 400),
        (b"pin=%00", "application/x-www-form-urlencoded", 400),
        (b"", "application/x-www-form-urlencoded", 422),
    ],
)
async def test_page_takes_nothing_but_its_form(
    sqlite_api_services: ApiServices, data: bytes, kind: str, status: int
) -> None:
    """Anything else is refused in words, and never a 500."""
    answer = await page(sqlite_api_services).post(
        "/revocar", data=data, headers={"Content-Type": kind}
    )

    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith("text/html")
