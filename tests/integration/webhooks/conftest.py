"""A receiver on this machine, and a worker that delivers to it."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.webhooks.webhooks import Webhooks
from tests.support.installation.record import CoreFixture
from tests.support.webhooks.receiver import WebhookReceiver, receiving


@pytest.fixture
def webhooks(core: CoreFixture) -> Webhooks:
    """Endpoints and events over the record, on each database."""
    return Webhooks(core)


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    """A backend."""
    async with receiving() as each:
        yield each
