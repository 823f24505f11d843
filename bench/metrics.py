"""What it costs to record figures, beside the signing that they are of.

    python -m bench.metrics [--calls 100]

A whole appliance signs small PDFs, one after the other. How many figures that
recorded is read from `/metrics` itself; what one costs, and what writing the file of
a busy process does, is timed in this process, in the same run.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from appliance.metrics import metrics
from appliance.metrics.metrics_file import EVERY_S, MetricsFile, snapshot
from appliance.operations.metrics.exposition import exposition
from appliance.operations.metrics.reading import read_all
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import signed_pdf
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

_WARM: Final = 10
_TIMES: Final = 20_000
_ROUTES: Final = 60


def recorded(appliance: Appliance) -> float:
    """How many figures were recorded so far: counted, or measured."""
    text = httpx.get(appliance.metrics_url, trust_env=False).text
    return sum(
        one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
        if one.name.endswith(("_count", "_total"))
        and "seconds_total" not in one.name
        and one.labels.get("role") in {"api", "signing", "chores"}
    )


def sign(appliance: Appliance, calls: int) -> tuple[float, float]:
    """Median of a call in seconds, and figures that one recorded."""
    person = appliance.new_person()
    requests = appliance.new_requests(person, pdfs.one_page(), calls + _WARM)
    took = []
    with appliance.client(person) as client:
        for place, request in enumerate(requests):
            if place == _WARM:
                time.sleep(2 * EVERY_S)
                before = recorded(appliance)
            began = time.perf_counter()
            signed_pdf(client, person, request)
            took.append(time.perf_counter() - began)
    time.sleep(2 * EVERY_S)
    return statistics.median(took[_WARM:]), (recorded(appliance) - before) / calls


def one_figure_s() -> float:
    """Seconds that recording one takes, its labels looked up."""
    began = time.perf_counter()
    for _ in range(_TIMES):
        metrics.SIGNATURE_STEP_SECONDS.labels("prepare").observe(0.004)
    return (time.perf_counter() - began) / _TIMES


def file_s(folder: Path) -> tuple[float, float, int]:
    """Seconds to write a busy process's file, and to serve it; its bytes."""
    for number in range(_ROUTES):
        route = f"/route/{number}"
        metrics.HTTP_SECONDS.labels(route).observe(0.02)
        metrics.HTTP_REQUESTS.labels(route, "GET", "2xx").inc()
    file = MetricsFile(folder, "api", 1)
    writes, reads = [], []
    for _ in range(20):
        began = time.perf_counter()
        file.write()
        written = time.perf_counter()
        exposition(read_all(folder))
        writes.append(written - began)
        reads.append(time.perf_counter() - written)
    return statistics.median(writes), statistics.median(reads), len(snapshot("api"))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100)
    args = parser.parse_args()
    with short_folder() as folder, Appliance.made(Path(folder)) as appliance:
        call_s, figures = sign(appliance, args.calls)
    with short_folder() as folder:
        write_s, read_s, size = file_s(Path(folder))
    figure_s = one_figure_s()
    share = figures * figure_s / call_s
    print(f"one figure {figure_s * 1e6:.1f} us; a signature records {figures:.0f}")
    print(f"a signature {call_s * 1e3:.1f} ms, {share:.3%} of it for figures")
    print(
        f"a file of {_ROUTES} routes: {size} bytes; written in {write_s * 1e3:.1f} ms, "
        f"{write_s / EVERY_S:.3%} of a process's time; served in {read_s * 1e3:.1f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
