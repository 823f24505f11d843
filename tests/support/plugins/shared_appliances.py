"""A pytest plugin: appliances that functional and fault tests share.

One of each a process, whichever folder asks for it first. They are down while other
tests run: each needs a thirtieth of a core to do nothing.
"""

from collections.abc import Generator, Iterator
from typing import Final

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.faults.fault_injection import harmed
from tests.support.plugins.grouping import family_of, file_of
from tests.support.processes.scratch import short_folder
from tests.support.services.outside_services import (
    OutsideServices,
    running_outside_services,
)
from tests.support.services.postgres import PostgresServer
from tests.support.services.redis import RedisServer

_shared: Final[dict[str, Appliance]] = {}
"""Those of this process that live, by the name of their fixture."""


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object],
) -> Generator[None, object, object]:
    """Get to know an appliance that lives as long as this process."""
    made = yield
    if fixturedef.scope == "session" and isinstance(made, Appliance):
        _shared[fixturedef.argname] = made
    return made


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[object]) -> None:
    """Forget one that has ended."""
    if fixturedef.scope == "session":
        _shared.pop(fixturedef.argname, None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have them up for a test that may want one."""
    if _may_want_one(item):
        for appliance in _shared.values():
            if not appliance.is_started:
                appliance.start()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Have them down where the next test wants none."""
    if nextitem is not None and not _may_want_one(nextitem):
        for appliance in _shared.values():
            if appliance.is_started:
                appliance.stop()


def _may_want_one(item: pytest.Item) -> bool:
    """Whether a test names one, or is of those that may ask for any by whatever way."""
    if family_of(file_of(item.nodeid)) is not None:
        return True
    return not _shared.keys().isdisjoint(getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def appliance_redis() -> Iterator[RedisServer]:
    """The Redis of `sqlite_appliance`: stop it, start it, fill it with garbage."""
    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def world() -> Iterator[OutsideServices]:
    """TSAs and a CA outside, which `sqlite_appliance` may ask."""
    with running_outside_services() as opened:
        yield opened


@pytest.fixture(scope="session")
def sqlite_appliance(
    appliance_redis: RedisServer, world: OutsideServices
) -> Iterator[Appliance]:
    """On SQLite, with `appliance_redis` and the `world` outside."""
    redis = f'[redis]\nurl = "{appliance_redis.url}"\n\n'
    with harmed(more=redis + world.settings) as appliance:
        yield appliance


@pytest.fixture(scope="session")
def postgres_appliance(postgres_server: PostgresServer) -> Iterator[Appliance]:
    """On PostgreSQL, with a Redis of its own."""
    name = postgres_server.create_database()
    with harmed(database=postgres_server.url(name)) as appliance:
        yield appliance
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def people(sqlite_appliance: Appliance) -> list[TestPerson]:
    """A few people who can sign on `sqlite_appliance`."""
    return [sqlite_appliance.new_person(f"Persona {number}") for number in range(4)]
