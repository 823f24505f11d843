"""What the engine needs for a large file: memory and time.

    python -m bench.big_file [--mb 101] [--runs 3] [--json FILE]

The file is read, signed and checked, and its parts are written; against that, it is
read, hashed by SHA-256 and its copy written. Each runs in a process of its own, a
few times; memory is the most that was resident above what was before the file.
"""

import argparse
import hashlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from bench.engine import faults_of
from bench.engine_place import EnginePlace, engine_place, stamp
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

_STATUS: Final = Path("/proc/self/status")
_RESET_PEAK: Final = "5"
"""For clear_refs. Source: proc(5)."""
_MB: Final = 1_000_000
_MEMORY, _TIME = 3.0, 4.0
"""Most that is good: memory by the file's size, time by that of hash and copy."""

Numbers = dict[str, float]


def measured(work: Callable[[], object]) -> Numbers:
    """Do some work: seconds of the CPU and of the clock, and MB on top."""
    Path("/proc/self/clear_refs").write_text(_RESET_PEAK, "ascii")
    before = _resident_mb("VmRSS")
    cpu, begun = time.process_time(), time.perf_counter()
    work()
    return {
        "cpu_s": round(time.process_time() - cpu, 3),
        "s": round(time.perf_counter() - begun, 3),
        "memory_mb": round(_resident_mb("VmHWM") - before, 1),
    }


def _resident_mb(name: str) -> float:
    lines = _STATUS.read_text("ascii").splitlines()
    (line,) = [line for line in lines if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024 / _MB


def hash_and_copy(source: Path, target: Path) -> None:
    """The least that anybody does with a file."""
    content = source.read_bytes()
    hashlib.sha256(content).digest()
    target.write_bytes(content)


def sign(place: EnginePlace, source: Path, target: Path, *, shown: bool) -> None:
    """What the worker does with a file."""
    content = source.read_bytes()
    with target.open("wb") as out:
        out.writelines(place.sign(content, place.resident, stamp() if shown else None))


def _child(folder: Path) -> dict[str, object]:
    """Everything, in a process that has seen no large file yet."""
    source, target = folder / "large.pdf", folder / "out.pdf"
    with short_folder() as hsm, engine_place(hsm) as place:
        place.sign(pdfs.one_page(), place.resident)  # what is made once is made
        copied = measured(lambda: hash_and_copy(source, target))
        hidden = measured(lambda: sign(place, source, target, shown=False))
        shown = measured(lambda: sign(place, source, target, shown=True))
        faults = faults_of(target.read_bytes(), place.pki.chain[-1], is_long=False)
    return {"copied": copied, "invisible": hidden, "visible": shown, "faults": faults}


def run(mb: int, times: int) -> dict[str, object]:
    """All of it; the ratios are of medians."""
    found: list[dict[str, Any]] = []
    with short_folder() as folder:
        (folder / "large.pdf").write_bytes(pdfs.heavy(100, mb * _MB))
        size_mb = (folder / "large.pdf").stat().st_size / _MB
        for _ in range(times):
            with get_context("spawn").Pool(1) as pool:
                found.append(pool.apply(_child, (folder,)))

    def median(who: str, what: str) -> float:
        return statistics.median(float(one[who][what]) for one in found)

    ratios = {
        who: {
            "memory_to_size": round(median(who, "memory_mb") / size_mb, 2),
            "time_to_copied": round(median(who, "s") / median("copied", "s"), 2),
            "cpu_to_copied": round(median(who, "cpu_s") / median("copied", "cpu_s"), 2),
        }
        for who in ("copied", "invisible", "visible")
    }
    return {
        "size_mb": round(size_mb, 1),
        "ratios": ratios,
        "wanted_below": {"memory_to_size": _MEMORY, "time_to_copied": _TIME},
        "runs": found,
        "faults": [fault for one in found for fault in one["faults"]],
        "load_after": os.getloadavg()[0],
    }


def main() -> int:
    """Print the figures as JSON; exit status 1 when a signature is bad."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mb", type=int, default=101)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to a file too")
    options = parser.parse_args()
    figures = run(options.mb, options.runs)
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json is not None:
        options.json.write_text(text, "utf-8")
    return 1 if figures["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
