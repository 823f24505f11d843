"""What every test of a batch in the frame has."""

from collections.abc import Iterator

import pytest

from tests.support.appliance.backends import TestBackend, backend_of
from tests.support.browsers.frame_host import FrameSite


@pytest.fixture
def backend(site: FrameSite) -> Iterator[TestBackend]:
    """The backend of the site's integrator."""
    with backend_of(site.appliance, code=site.code) as made:
        yield made
