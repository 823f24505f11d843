"""Appliances that tests may do harm to; they are whole again after each test."""

from collections.abc import Iterator

import pytest

from tests.parts.appliance import Appliance, TestPerson
from tests.parts.harm import harmed
from tests.parts.places import short_folder
from tests.parts.postgres import PostgresServer
from tests.parts.redis import RedisServer


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
def on_sqlite(doorbell: RedisServer) -> Iterator[Appliance]:
    """On SQLite, with `doorbell`; a key phase ends after 10 s, not 60."""
    redis = f'[redis]\nurl = "{doorbell.url}"'
    with harmed(signing="key_s = 10", more=redis) as appliance:
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
