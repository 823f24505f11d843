"""A document of 100 MB on its whole way: memory of each role, and time.

    python -m bench.large [--megabytes 100]

A whole appliance on SQLite in a folder of its own. The document comes in by the
frame, is signed by a call that sends it along, and is fetched by the link. Memory
is how much the role's resident pages grew at most; the worker's time is compared
with that of hashing the document and writing it to the same disk once.
"""

import argparse
import json
import re
import sys
from typing import Final

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.large_documents import Walk, walk_through
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

_MB: Final = 1_000_000
_LIMIT: Final = 104_857_600
_PAGES: Final = 100
_MOST: Final = 3.0
"""Sizes of the document that a signing worker may grow by."""
_STAGES: Final = re.compile(r"document\.signed .*?ms=(\{.*?\}) ")
_NUMBER: Final = re.compile(r"[\d.]+")


def run(size_bytes: int) -> tuple[dict[str, object], bool]:
    """All of it; whether the worker stayed within its bound."""
    pdf = pdfs.heavy(_PAGES, size_bytes)
    more = f"[documents]\nlimit_bytes = {_LIMIT}"
    with short_folder() as folder, Appliance.made(folder, more=more) as appliance:
        person = appliance.new_person()
        walk_through(appliance, person, pdfs.one_page())
        walk = walk_through(appliance, person, pdf)
        stages = _STAGES.findall(appliance.log.read_text())[-1]
    return _told(walk, stages), walk.most("signing") < _MOST * walk.size_bytes


def _told(walk: Walk, stages: str) -> dict[str, object]:
    """The figures: seconds, and sizes of the document."""
    return {
        "document_bytes": walk.size_bytes,
        "seconds": {name: round(took, 2) for name, took in walk.seconds.items()},
        "worker_stages_ms": stages,
        "worker_to_hash_and_copy": round(
            sum(map(float, _NUMBER.findall(stages)))
            / 1000
            / walk.seconds["hash and copy"],
            2,
        ),
        "grown_in_documents": {
            step: {
                role: round(grown / walk.size_bytes, 2) for role, grown in all_.items()
            }
            for step, all_ in walk.grown.items()
        },
    }


def main() -> int:
    """Print the figures as JSON; 1 when the worker's bound does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=100)
    figures, held = run(parser.parse_args().megabytes * _MB)
    print(json.dumps(figures, indent=2))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
