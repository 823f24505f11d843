"""Whom and what the functional tests share."""

from collections.abc import Iterator

import httpx
import pytest

from tests.functional.calls import ORIGIN
from tests.parts.abroad import Abroad, abroad
from tests.parts.appliance import Appliance, TestPerson
from tests.parts.harm import harmed
from tests.parts.places import short_folder
from tests.parts.postgres import PostgresServer
from tests.parts.redis import RedisServer

_LAST = "test_the_whole_run"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what looks back on the whole run after all that it looks back on."""
    items.sort(key=lambda item: item.path.stem == _LAST)


@pytest.fixture(scope="module")
def client(appliance: Appliance, signer: TestPerson) -> Iterator[httpx.Client]:
    """The signer's client."""
    with appliance.client(signer) as opened:
        yield opened


@pytest.fixture(scope="session")
def other(appliance: Appliance) -> TestPerson:
    """Somebody else who can sign."""
    return appliance.new_person("Juan Carlos Peña")


@pytest.fixture(scope="session")
def tight() -> Iterator[Appliance]:
    """A second appliance: open to other origins' pages, stamps; limits are low."""
    with (
        short_folder() as folder,
        Appliance.made(
            folder,
            web=f'cors_origins = ["{ORIGIN}"]\nbody_timeout_s = 0.5',
            signing="wait_s = 0.5\nworkers = 1",
            more="[documents]\nlimit_bytes = 65536\nreserve_bytes = 1048576\n"
            "intake_room_bytes = 0\n\n"
            "[timestamps]\npublic = true",
        ) as running,
    ):
        yield running


@pytest.fixture(scope="session")
def tight_signer(tight: Appliance) -> TestPerson:
    """Somebody who can sign there."""
    return tight.new_person()


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
