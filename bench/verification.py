"""Processor time of verifying a PDF, by the number of its signatures.

    python -m bench.verification [--rounds 20]

Prints one JSON object: milliseconds for one small signature, and for files with 10, 25
and 50 signatures the same, to that of one, and to half of `sandbox.cpu_s`. Every second
signature has a stamp on the one page; validation data follows each. Each file is
checked to be valid. Run it in two trees by turns to compare them: only `verify` has to
be there.
"""

import argparse
import json
import logging
import statistics
import time
from pathlib import Path
from typing import Any, Final

from tests.support.documents.many_signatures import signed_many_times
from tests.support.documents.software_signer import software_signer
from worker.pades.appearance.fonts import load_fonts
from worker.sandbox.verify.verify import verify

_FONTS: Final = Path("/usr/share/fonts/truetype/liberation2")
_COUNTS: Final = (1, 10, 25, 50)
_CPU_S: Final = 10
"""Default of `sandbox.cpu_s`."""


def measure(pdf: bytes, rounds: int) -> float:
    """Median processor time of one verification, in milliseconds.

    Raises:
        SystemExit: a signature is not valid.
    """
    root, spent = [software_signer().root], []
    for _ in range(rounds + 1):
        began = time.process_time()
        report = verify(pdf, root)
        spent.append((time.process_time() - began) * 1000)
        if not report.valid:
            raise SystemExit("\n".join(each.reason for each in report.signatures))
    return statistics.median(spent[1:])  # the first one imports


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    logging.disable(logging.CRITICAL)
    files = signed_many_times(load_fonts(_FONTS), _COUNTS)
    times = {n: measure(pdf, max(3, rounds // n)) for n, pdf in files.items()}
    found: dict[str, Any] = {
        str(n): {
            "bytes": len(files[n]),
            "ms": round(ms, 1),
            "to_one": round(ms / times[1], 1),
            "to_half_of_cpu_s": round(ms / (_CPU_S * 500), 3),
        }
        for n, ms in times.items()
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
