"""A pytest plugin: appliances that functional and fault tests share.

One of each a process, whichever folder asks for it first.
"""

from collections.abc import Iterator

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.faults.fault_injection import harmed
from tests.support.processes.scratch import short_folder
from tests.support.services.outside_services import (
    OutsideServices,
    running_outside_services,
)
from tests.support.services.postgres import PostgresServer
from tests.support.services.redis import RedisServer


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
