"""Whom and what the functional tests share."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.http_calls import ORIGIN
from tests.support.installation.installation import Installation
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
        Installation(
            folder,
            web={"cors_origins": [ORIGIN], "body_timeout_s": 2},
            signing={"wait_s": 0.5, "workers": 1},
            documents={
                "limit_bytes": 65_536,
                "reserve_bytes": 1_048_576,
                "intake_room_bytes": 0,
            },
            timestamps={"public": True},
        ).whole() as running,
    ):
        yield running


@pytest.fixture(scope="session")
def limited_signer(limited_appliance: Appliance) -> TestPerson:
    """Somebody who can sign there."""
    return limited_appliance.new_person()
