"""Integrators and their domains, on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text

from appliance.database.engines import open_engines
from appliance.database.migrate import differences, migrate
from appliance.domain.errors import ErrorCode
from appliance.domain.vocab import EventKind
from appliance.integrators.integrator_store import IntegratorStore
from appliance.record.unit_of_work import Database
from tests.integration.integrators.acme import OPERATOR, open_acme, refused
from tests.support.factories.fakes import MovingClock
from tests.support.installation.services import Services
from tests.support.installation.settings import settings_in

ORIGIN = "https://app.example"


@pytest.fixture
async def integrator_services(tmp_path: Path, each_url: str) -> AsyncIterator[Services]:
    """Services on a fresh database, with the integrator `acme`."""
    async with open_acme(tmp_path, each_url) as made:
        yield made


# -- tables ---------------------------------------------------------------------


async def test_migrations_make_the_tables_and_keep_rows(
    integrator_services: Services,
) -> None:
    """Migrations end in exactly the tables of the code, on both databases."""
    engines = open_engines(integrator_services.settings)
    async with engines.reader.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engines.dispose()


async def test_row_without_them_gets_the_defaults(tmp_path: Path) -> None:
    """An integrator whose row says nothing else is delivered as decided."""
    settings = settings_in(tmp_path, trial=True)
    await migrate(settings)
    engines = open_engines(settings)
    async with engines.writer.begin() as connection:
        await connection.execute(
            text(
                "INSERT INTO integrator (id, code, name, created)"
                " VALUES ('i', 'old', 'Old', '2026-01-01 00:00:00.000000')"
            )
        )
    await engines.dispose()

    store = Database(open_engines(settings), MovingClock(), "test")
    async with store.read() as transaction:
        old = await IntegratorStore(transaction).get("old")
    await store.close()

    assert old is not None
    assert (old.delivery_limit_bytes, old.may_vouch) == (8_000_000, False)


# -- integrators ------------------------------------------------------------------


async def test_integrator_is_listed_and_changed_with_before_and_after(
    integrator_services: Services,
) -> None:
    """A change says in the audit what was and what is."""
    changed = await integrator_services.integrators.change(
        OPERATOR, "acme", may_vouch=True, delivery_limit_bytes=1000
    )

    assert await integrator_services.integrators.list() == [changed]
    (event,) = await integrator_services.audited(EventKind.INTEGRATOR_CHANGED)
    assert event.integrator == changed.id
    assert event.detail["before"] == {
        "name": "ACME S.A.",
        "deliveryLimitBytes": 8_000_000,
        "mayVouch": False,
    }
    assert event.detail["after"] == {
        "name": "ACME S.A.",
        "deliveryLimitBytes": 1000,
        "mayVouch": True,
    }


async def test_integrator_code_is_unique_and_checked(
    integrator_services: Services,
) -> None:
    """A code is taken once, and only of the decided form."""
    create = integrator_services.integrators.create
    assert await refused(create(OPERATOR, "acme", "x")) is ErrorCode.ALREADY_EXISTS
    for code in ("", "Acme", "a b", "-a", "a" * 41):
        assert await refused(create(OPERATOR, code, "x")) is ErrorCode.FIELD_INVALID
    assert await refused(create(OPERATOR, "b", "\n")) is ErrorCode.FIELD_INVALID


async def test_unknown_integrator_is_named_so(
    integrator_services: Services,
) -> None:
    """Every use case says that there is no such integrator."""
    integrators = integrator_services.integrators
    for work in (
        integrators.get("nobody"),
        integrators.keys("nobody"),
        integrators.domains("nobody"),
        integrators.blocked_origins("nobody"),
        integrators.create_key(OPERATOR, "nobody", "x"),
        integrators.add_domain(OPERATOR, "nobody", ORIGIN),
    ):
        assert await refused(work) is ErrorCode.INTEGRATOR_NOT_FOUND


# -- domains ---------------------------------------------------------------------


async def test_domain_is_kept_as_browsers_send_it(
    integrator_services: Services,
) -> None:
    """An origin is stored in its one form, once."""
    added = await integrator_services.integrators.add_domain(
        OPERATOR, "acme", "HTTPS://App.Example/"
    )

    assert await integrator_services.integrators.domains("acme") == [added]
    assert added.origin == ORIGIN
    again = integrator_services.integrators.add_domain(OPERATOR, "acme", ORIGIN)
    assert await refused(again) is ErrorCode.ALREADY_EXISTS
    (event,) = await integrator_services.audited(EventKind.DOMAIN_ADDED)
    assert (event.detail["before"], event.detail["after"]) == ([], [ORIGIN])


async def test_two_integrators_may_have_one_origin(
    integrator_services: Services,
) -> None:
    """An origin is no integrator's own; one's being seen is not the other's."""
    await integrator_services.integrators.create(OPERATOR, "other", "Other")
    for code in ("acme", "other"):
        await integrator_services.integrators.add_domain(OPERATOR, code, ORIGIN)

    await integrator_services.sessions.note_seen("acme", ORIGIN)

    (mine,) = await integrator_services.integrators.domains("acme")
    (theirs,) = await integrator_services.integrators.domains("other")
    assert (mine.seen, theirs.seen) == (integrator_services.clock.now(), None)


async def test_domain_is_removed_once(integrator_services: Services) -> None:
    """What was taken back is gone, and the audit says what is left."""
    added = await integrator_services.integrators.add_domain(OPERATOR, "acme", ORIGIN)
    await integrator_services.integrators.add_domain(
        OPERATOR, "acme", "https://b.example"
    )

    await integrator_services.integrators.remove_domain(OPERATOR, added.id)

    left = [
        domain.origin
        for domain in await integrator_services.integrators.domains("acme")
    ]
    assert left == ["https://b.example"]
    again = integrator_services.integrators.remove_domain(OPERATOR, added.id)
    assert await refused(again) is ErrorCode.NOT_FOUND
    (event,) = await integrator_services.audited(EventKind.DOMAIN_REMOVED)
    assert event.detail["after"] == left


async def test_prefix_is_the_integrators_or_the_installations(
    integrator_services: Services,
) -> None:
    """Two in one installation differ; empty goes back to the setting."""
    await integrator_services.integrators.create(OPERATOR, "otro", "Otro S.A.")
    await integrator_services.integrators.change(
        OPERATOR, "acme", event_prefix="firma-sur"
    )

    for code, prefix in (("acme", "firma-sur"), ("otro", "svc")):
        key = (
            await integrator_services.integrators.create_key(OPERATOR, code, "k")
        ).secret
        token = (await integrator_services.sessions.open(code, key)).token
        page = await integrator_services.sessions.page(token, None)
        assert page.event_prefix == prefix
    for wrong in ("Firma", "a.b", "1a", "x" * 33, "ñ"):
        change = integrator_services.integrators.change(
            OPERATOR, "acme", event_prefix=wrong
        )
        assert await refused(change) is ErrorCode.FIELD_INVALID
    view = await integrator_services.integrators.change(
        OPERATOR, "acme", event_prefix=""
    )
    assert view.event_prefix is None


async def test_blocked_origin_is_counted_until_it_is_allowed(
    integrator_services: Services,
) -> None:
    """Tries are counted with the first and the last; allowing ends that."""
    first = integrator_services.clock.now()
    await integrator_services.sessions.note_blocked("acme", "https://App.example")
    integrator_services.clock.forward(60)
    await integrator_services.sessions.note_blocked("acme", ORIGIN)

    (blocked,) = await integrator_services.integrators.blocked_origins("acme")
    assert (blocked.origin, blocked.count) == (ORIGIN, 2)
    # Its integrator is told of the first try, and not of each.
    (event,) = await integrator_services.audited(EventKind.ORIGIN_BLOCKED)
    assert event.detail == {"origin": ORIGIN}
    assert (blocked.first, blocked.last) == (first, integrator_services.clock.now())
    await integrator_services.integrators.add_domain(OPERATOR, "acme", ORIGIN)
    assert await integrator_services.integrators.blocked_origins("acme") == []
    await integrator_services.sessions.note_blocked("acme", ORIGIN)
    assert await integrator_services.integrators.blocked_origins("acme") == []


async def test_blocked_origins_keep_the_latest_hundred(
    integrator_services: Services,
) -> None:
    """Nobody fills the record with origins, and what is no origin is not kept."""
    for number in range(103):
        integrator_services.clock.forward(1)
        await integrator_services.sessions.note_blocked(
            "acme", f"https://h{number}.example"
        )
    for told in ("null", "", "x" * 300, "https://a.example/path", "https://a b"):
        await integrator_services.sessions.note_blocked("acme", told)
    await integrator_services.sessions.note_blocked("nobody", ORIGIN)

    blocked = await integrator_services.integrators.blocked_origins("acme")
    assert len(blocked) == 100
    assert len(await integrator_services.audited(EventKind.ORIGIN_BLOCKED)) == 100
    assert blocked[0].origin == "https://h102.example"
    assert blocked[-1].origin == "https://h3.example"
