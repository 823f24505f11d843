"""A backend of an integrator of its own, and two people for it."""

from collections.abc import Iterator

import pytest

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.appliance.backends import TestBackend, backend_of


@pytest.fixture(scope="module")
def backend(appliance: Appliance) -> Iterator[TestBackend]:
    """A backend of an integrator of its own."""
    with backend_of(appliance) as made:
        yield made


@pytest.fixture(scope="module")
def people(appliance: Appliance) -> list[TestPerson]:
    """Two people who can sign."""
    return [appliance.new_person("Ana Ruiz"), appliance.new_person("Luis Paz")]
