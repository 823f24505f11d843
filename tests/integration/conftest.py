"""Parts of the core that tests of several modules drive."""

from collections.abc import AsyncIterator

import pytest

from tests.core_parts import CoreParts
from tests.parts.signing_front import Front, open_front


@pytest.fixture
async def front(core: CoreParts) -> AsyncIterator[Front]:
    """A face that signs, on each database."""
    async with open_front(core) as opened:
        yield opened


@pytest.fixture
async def sqlite_front(sqlite_core: CoreParts) -> AsyncIterator[Front]:
    """A face that signs, on SQLite."""
    async with open_front(sqlite_core) as opened:
        yield opened
