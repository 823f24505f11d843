"""Write which files of tests take longest: `python -m tests.tools.slowest FILE…`.

The files are what `--durations-to` wrote, those of `./check` in `.check/durations`.
`tests/slowest.toml` gets the files that take over ten seconds; they are started in
that order (`tests.support.plugins.grouping`), or the longest might begin as the others
end.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.support.plugins.durations import read_durations
from tests.support.plugins.grouping import SLOWEST, file_of

_AT_LEAST_S: Final = 10.0
_HEAD: Final = "# Seconds of files of tests; `python -m tests.tools.slowest`.\n"


def slowest(durations: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Seconds of each file that takes long, the longest first.

    Args:
        durations: a test's id and its seconds.
    """
    files: defaultdict[str, float] = defaultdict(float)
    for test, seconds in durations:
        files[file_of(test)] += seconds
    ordered = sorted(files.items(), key=lambda entry: -entry[1])
    return {file: seconds for file, seconds in ordered if seconds >= _AT_LEAST_S}


def main(argv: Sequence[str] | None = None) -> int:
    """Read runs and write the file."""
    parser = argparse.ArgumentParser(prog="slowest", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    durations = [
        entry
        for file in parser.parse_args(argv).files
        for entry in read_durations(file).items()
    ]
    lines = (
        f'"{file}" = {seconds:.0f}\n' for file, seconds in slowest(durations).items()
    )
    SLOWEST.write_text(_HEAD + "".join(lines), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
