"""Print how the time of each reader of outside bytes grows: reader, n, 2n, ratio.

python -m tests.tools.reader_growth
"""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.support.documents.body_readers import BODY_READERS
from tests.support.documents.growth import MOST, times
from tests.support.documents.readers import READERS, Reader

_MS = 1000


def main() -> int:
    """Print the table; the exit status is 1 where one grows faster than it may."""
    worst = 0.0
    sys.stdout.write(
        f"{'reader':32} {'n':>7} {'n, ms':>9} {'2n, ms':>9} {'ratio':>6}\n"
    )
    for name, reader in {**READERS, **BODY_READERS}.items():
        given = {n: reader.make(n) for n in (reader.n, 2 * reader.n)}
        once, twice = times(partial(_read, reader, given), reader.n)
        ratio = twice / once
        worst = max(worst, ratio)
        cells = f"{once * _MS:9.3f} {twice * _MS:9.3f} {ratio:6.2f}"
        sys.stdout.write(f"{name:32} {reader.n:7} {cells}\n")
    return int(worst >= MOST)


def _read(reader: Reader, given: Mapping[int, Any], n: int) -> object:
    return reader.read(given[n])


if __name__ == "__main__":
    sys.exit(main())
