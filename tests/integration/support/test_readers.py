"""Whatever reads bytes from outside takes twice as long for twice as much, no more.

Source: research "bad inputs".
"""

import pytest

from tests.support.documents.body_readers import BODY_READERS
from tests.support.documents.growth import MOST, growth
from tests.support.documents.readers import READERS

pytestmark = pytest.mark.full

ALL = {**READERS, **BODY_READERS}


@pytest.mark.parametrize("name", ALL)
def test_reader_is_linear(name: str) -> None:
    """Twice the worst that is known takes about twice the time."""
    reader = ALL[name]
    given = {n: reader.make(n) for n in (reader.n, 2 * reader.n)}

    assert growth(lambda n: reader.read(given[n]), reader.n) < MOST
