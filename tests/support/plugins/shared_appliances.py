"""A pytest plugin: appliances that functional and fault tests share.

One of each a process, whichever folder asks for it first.
"""

from collections.abc import Iterator

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.faults.fault_injection import harmed
from tests.support.processes.scratch import short_folder
from tests.support.services.outside_services import Abroad, abroad
from tests.support.services.postgres import PostgresServer
from tests.support.services.redis import RedisServer


@pytest.fixture(scope="session")
def doorbell() -> Iterator[RedisServer]:
    """The Redis of `on_sqlite`: stop it, start it, fill it with garbage."""
    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def world() -> Iterator[Abroad]:
    """TSAs and a CA outside, which `on_sqlite` may ask."""
    with abroad() as opened:
        yield opened


@pytest.fixture(scope="session")
def on_sqlite(doorbell: RedisServer, world: Abroad) -> Iterator[Appliance]:
    """On SQLite, with `doorbell` and the `world` outside."""
    redis = f'[redis]\nurl = "{doorbell.url}"\n\n'
    with harmed(more=redis + world.settings) as appliance:
        yield appliance


@pytest.fixture(scope="session")
def on_postgres(postgres_server: PostgresServer) -> Iterator[Appliance]:
    """On PostgreSQL, with a Redis of its own."""
    name = postgres_server.create_database()
    with harmed(database=postgres_server.url(name)) as appliance:
        yield appliance
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def people(on_sqlite: Appliance) -> list[TestPerson]:
    """A few people who can sign on `on_sqlite`."""
    return [on_sqlite.new_person(f"Persona {number}") for number in range(4)]
