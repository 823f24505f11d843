"""Whom and what the functional tests share."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import ORIGIN
from tests.support.processes.scratch import short_folder

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
def other_signer(appliance: Appliance) -> TestPerson:
    """Somebody else who can sign."""
    return appliance.new_person("Juan Carlos Peña")


@pytest.fixture(scope="session")
def limited_appliance() -> Iterator[Appliance]:
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
def limited_signer(limited_appliance: Appliance) -> TestPerson:
    """Somebody who can sign there."""
    return limited_appliance.new_person()
