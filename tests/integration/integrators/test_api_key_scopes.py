"""What API keys may be used for and from where, on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import event, update
from structlog.testing import capture_logs

from appliance.database import tables
from appliance.domain.errors import (
    NETWORK_HOST_BITS,
    ApplianceError,
    ErrorCode,
    FieldInvalidError,
)
from appliance.domain.integrators.api_keys import ApiKeyScope, new_api_key
from appliance.domain.integrators.integrators import FlagReason, NewKey
from appliance.domain.integrators.key_networks import LOCAL
from appliance.domain.vocab import Environment, EventKind
from tests.integration.integrators.acme import OPERATOR, open_acme, refused
from tests.support.installation.services import Services

pytestmark = pytest.mark.storage

READ, OPEN = ApiKeyScope.REQUESTS_READ, ApiKeyScope.SESSIONS_WRITE
HERE, ELSEWHERE = "192.0.2.7", "198.51.100.1"
NETWORKS = ("192.0.2.0/24", "2001:db8::/32")


@pytest.fixture
async def services(tmp_path: Path, each_url: str) -> AsyncIterator[Services]:
    """Services on a fresh database, with the integrator `acme`."""
    async with open_acme(tmp_path, each_url) as made:
        yield made


async def make(services: Services) -> NewKey:
    """A key that reads requests from `NETWORKS`, and does nothing else."""
    return await services.integrators.create_key(
        OPERATOR, "acme", "backend", scopes=[READ], networks=NETWORKS
    )


# -- made and rotated --------------------------------------------------------------


async def test_key_has_what_it_was_given(services: Services) -> None:
    """Each scope once, in the order of all; networks in one form; all in the audit."""
    made = await services.integrators.create_key(
        OPERATOR,
        "acme",
        "backend",
        scopes=[ApiKeyScope.WEBHOOKS_READ, READ, READ],
        networks=[" 192.0.2.0/24", "2001:0db8::/32"],
    )

    (listed,) = await services.integrators.keys("acme")
    assert listed == made.key
    assert listed.scopes == (READ, ApiKeyScope.WEBHOOKS_READ)
    assert listed.networks == NETWORKS
    (row,) = await services.audited(EventKind.API_KEY_CREATED)
    after = row.detail["after"]
    assert isinstance(after, dict)
    assert after["scopes"] == ["requests:read", "webhooks:read"]
    assert after["networks"] == [*NETWORKS]


async def test_key_opens_sessions_from_anywhere_unless_told(
    services: Services,
) -> None:
    """As keys always have, and nothing else."""
    made = await services.integrators.create_key(OPERATOR, "acme", "backend")

    assert (made.key.scopes, made.key.networks) == ((OPEN,), ())
    for address in (HERE, ELSEWHERE, LOCAL):
        await services.sessions.open("acme", made.secret, address)
    demanding = services.api_keys.demand(made.secret, READ, HERE)
    assert await refused(demanding) is ErrorCode.API_KEY_SCOPE


async def test_key_that_may_do_nothing_is_not_made(
    services: Services,
) -> None:
    """Nor one whose networks are none; of neither is anything recorded."""
    with pytest.raises(FieldInvalidError) as nothing:
        await services.integrators.create_key(OPERATOR, "acme", "x", scopes=[])
    with pytest.raises(FieldInvalidError) as inside:
        await services.integrators.create_key(
            OPERATOR, "acme", "x", networks=["10.0.0.1/8"]
        )

    assert (nothing.value.field, inside.value.field) == ("scopes", "networks")
    assert inside.value.sentence == NETWORK_HOST_BITS
    assert await services.integrators.keys("acme") == []
    assert await services.audited(EventKind.API_KEY_CREATED) == []


async def test_successor_may_do_what_the_key_may(services: Services) -> None:
    """Rotation keeps scopes and networks, and the audit shows so."""
    old = await make(services)

    new = await services.integrators.rotate_key(OPERATOR, old.key.id, 0)

    assert (new.key.scopes, new.key.networks) == ((READ,), NETWORKS)
    await services.api_keys.demand(new.secret, READ, HERE)
    demanding = services.api_keys.demand(new.secret, READ, ELSEWHERE)
    assert await refused(demanding) is ErrorCode.API_KEY_ADDRESS
    (row,) = await services.audited(EventKind.API_KEY_ROTATED)
    for side in (row.detail["before"], row.detail["after"]):
        assert isinstance(side, dict)
        assert (side["scopes"], side["networks"]) == (["requests:read"], [*NETWORKS])


# -- demanded ----------------------------------------------------------------------


@pytest.mark.parametrize("address", [HERE, "192.0.2.255", "2001:db8:1::9"])
async def test_good_key_is_taken(services: Services, address: str) -> None:
    """For its scope, from any of its networks."""
    made = await make(services)

    row = await services.api_keys.demand(made.secret, READ, address)

    assert (row.key.id, row.integrator.code) == (made.key.id, "acme")


@pytest.mark.parametrize("address", [ELSEWHERE, "2001:db9::1", LOCAL])
async def test_call_from_elsewhere_is_refused_and_logged(
    services: Services, address: str
) -> None:
    """The answer names the address alone, the log the key too, the audit nothing."""
    made = await make(services)
    before = await services.record.audited()

    with capture_logs() as logged, pytest.raises(ApplianceError) as caught:
        await services.api_keys.demand(made.secret, READ, address)

    assert caught.value.code is ErrorCode.API_KEY_ADDRESS
    assert (caught.value.params, caught.value.extras) == ({"address": address}, {})
    (line,) = [one for one in logged if one["event"] == "api_key.elsewhere"]
    assert (line["id"], line["integrator"]) == (made.key.id, "acme")
    assert line["address"] == address
    assert made.secret not in repr(logged)
    assert await services.record.audited() == before
    (kept,) = await services.integrators.keys("acme")
    assert (kept.last_used, kept.flagged) == (None, None)


async def test_other_scope_is_refused_by_its_name(services: Services) -> None:
    """The session endpoint demands one as all others do."""
    made = await make(services)

    for work, scope in (
        (services.api_keys.demand(made.secret, ApiKeyScope.PEOPLE_READ, HERE), None),
        (services.sessions.open("acme", made.secret, HERE), OPEN),
    ):
        with pytest.raises(ApplianceError) as caught:
            await work
        assert caught.value.code is ErrorCode.API_KEY_SCOPE
        wanted = scope or ApiKeyScope.PEOPLE_READ
        assert caught.value.params == {"scope": wanted.value}
    (kept,) = await services.integrators.keys("acme")
    assert kept.last_used is None


async def test_bad_key_is_refused_by_what_it_is(services: Services) -> None:
    """None, of another environment, unknown, of another integrator, and revoked."""
    made = await make(services)
    live = new_api_key(Environment.PROD).text
    unknown = new_api_key(Environment.PREPROD).text
    demand = services.api_keys.demand

    assert await refused(demand("", READ, HERE)) is ErrorCode.API_KEY_MISSING
    assert await refused(demand(live, READ, HERE)) is ErrorCode.API_KEY_ENVIRONMENT
    for text in (unknown, "x", made.secret + "x", "ñ" * 5_000):
        assert await refused(demand(text, READ, HERE)) is ErrorCode.API_KEY_INVALID
    other = demand(made.secret, READ, HERE, integrator="other")
    assert await refused(other) is ErrorCode.API_KEY_INVALID
    await services.integrators.revoke_key(OPERATOR, made.key.id)
    assert await refused(demand(made.secret, READ, HERE)) is ErrorCode.API_KEY_INVALID


async def test_key_from_a_browser_is_flagged_wherever_it_came_from(
    services: Services,
) -> None:
    """It is in strangers' hands, whatever it may do."""
    made = await make(services)

    demanding = services.api_keys.demand(
        made.secret, OPEN, ELSEWHERE, from_browser=True
    )

    assert await refused(demanding) is ErrorCode.API_KEY_IN_BROWSER
    (kept,) = await services.integrators.keys("acme")
    assert kept.flag_reason is FlagReason.BROWSER


async def test_only_who_is_in_its_networks_learns_of_a_key(
    services: Services,
) -> None:
    """A thief of a key hears of no scope, and of no disabled integrator."""
    made = await make(services)
    await services.integrators.disable(OPERATOR, "acme")
    demand = services.api_keys.demand

    away = demand(made.secret, OPEN, ELSEWHERE)
    assert await refused(away) is ErrorCode.API_KEY_ADDRESS
    here = demand(made.secret, OPEN, HERE)
    assert await refused(here) is ErrorCode.INTEGRATOR_DISABLED


# -- last used -----------------------------------------------------------------------


async def test_use_is_written_once_a_minute(services: Services) -> None:
    """Whatever for; between, a call writes nothing."""
    made = await services.integrators.create_key(
        OPERATOR, "acme", "x", scopes=[READ, OPEN]
    )
    first = services.clock.now()
    written: list[str] = []
    engine = services.store._engines.writer.sync_engine

    def keep(*call: object) -> None:
        if "UPDATE api_key" in str(call[2]):
            written.append(str(call[2]))

    event.listen(engine, "before_cursor_execute", keep)
    seen = []
    for seconds in (0, 1, 58, 1, 59):
        services.clock.forward(seconds)
        await services.api_keys.demand(made.secret, READ, HERE)
        (kept,) = await services.integrators.keys("acme")
        assert kept.last_used is not None
        seen.append((kept.last_used - first).total_seconds())
    await services.sessions.open("acme", made.secret, HERE)

    assert seen == [0, 0, 0, 60, 60]
    assert len(written) == 2


# -- of an earlier or a later version ------------------------------------------------


async def _set(services: Services, key_id: str, **values: object) -> None:
    """Have a key's row as another version left it."""
    async with services.store._engines.writer.begin() as connection:
        row = update(tables.api_key).where(tables.api_key.c.id == key_id)
        await connection.execute(row.values(**values))


async def test_key_of_before_there_were_scopes(services: Services) -> None:
    """It opens sessions, from anywhere, and does nothing else; nor its successor."""
    old = await services.integrators.create_key(OPERATOR, "acme", "x")
    await _set(services, old.key.id, scopes=None, networks=None)

    new = await services.integrators.rotate_key(OPERATOR, old.key.id, 60)

    for key in (old.secret, new.secret):
        for address in (HERE, LOCAL):
            await services.sessions.open("acme", key, address)
        for scope in set(ApiKeyScope) - {OPEN}:
            demanding = services.api_keys.demand(key, scope, HERE)
            assert await refused(demanding) is ErrorCode.API_KEY_SCOPE


async def test_scope_of_a_later_version_lets_nobody_do_anything(
    services: Services,
) -> None:
    """It is passed over, and is no fault."""
    made = await services.integrators.create_key(OPERATOR, "acme", "x")
    await _set(services, made.key.id, scopes=["stars:write", "sessions:write"])

    (listed,) = await services.integrators.keys("acme")
    assert listed.scopes == (OPEN,)
    await services.sessions.open("acme", made.secret)
