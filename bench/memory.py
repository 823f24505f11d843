"""Memory of `rubrica up`, all roles and Redis, and how soon it is ready.

    python -m bench.memory [--calls 50] [--starts 3]

Memory is PSS from `smaps_rollup`, in whose sum pages that processes share are counted
once; beside it what each role has alone, which is what one more of it would cost. Both
are read when the appliance is ready and at rest, and again after it has signed. As in
an installation, the modules are compiled before, and what only the tests' environment
has is not there: structlog loads `rich` where it finds it.
"""

import argparse
import compileall
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import psutil

from bench.firmar import call_all
from tests.support.appliance.appliance import Appliance
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

_REST_S: Final = 3.0
_MIB: Final = 1024
_ROOT: Final = Path(__file__).parents[1]
_PACKAGES: Final = ("appliance", "worker", "hsm_config", "admin_ui", "embed")
_NOT_INSTALLED: Final = "import sys\nsys.modules['rich'] = None\n"
_STARTED: Final = re.compile(r"role\.started +name=(\S+) pid=(\d+)")


def role_memory(appliance: Appliance) -> dict[str, dict[str, float]]:
    """PSS and private pages that were written to, in MiB, by role, and their sums."""
    names = role_names(appliance)
    found: dict[str, Counter[str]] = {"pss": Counter(), "private": Counter()}
    up = psutil.Process(appliance.pid)
    for each in [up, *up.children(recursive=True)]:
        name = names.get(each.pid, "sandbox job")
        for kind, key in (("pss", "Pss"), ("private", "Private_Dirty")):
            kib = memory_kib(each.pid).get(key, 0)
            found[kind].update({name: kib, "sum": kib})
    return {
        kind: {name: round(kib / _MIB, 1) for name, kib in counted.items()}
        for kind, counted in found.items()
    }


def role_names(appliance: Appliance) -> dict[int, str]:
    """The role of each process, by its id."""
    # The last that the log tells of a process id is who has it now.
    told = _STARTED.findall(appliance.log.read_text())
    return {int(pid): name for name, pid in told} | {appliance.pid: "up"}


def memory_kib(pid: int) -> dict[str, int]:
    """What `smaps_rollup` says of one process, in KiB; nothing when it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    pairs = (line.split(":") for line in text.splitlines()[1:])
    return {key: int(value.split()[0]) for key, value in pairs}


def run(calls: int, starts: int) -> dict[str, object]:
    """All of it."""
    for package in _PACKAGES:
        compileall.compile_dir(_ROOT / package, quiet=1)
    with (
        tempfile.TemporaryDirectory() as first,
        short_folder() as folder,
        Appliance.made(folder, environment=_as_installed(Path(first))) as appliance,
    ):
        ready_s = []
        for _ in range(starts):
            appliance.stop()
            begun = time.perf_counter()
            appliance.start()
            ready_s.append(round(time.perf_counter() - begun, 2))
        time.sleep(_REST_S)
        at_rest = role_memory(appliance)
        person = appliance.new_person()
        requests = appliance.new_requests(person, pdfs.one_page(), calls)
        with appliance.client(person) as client:
            call_all(client, person, requests, 4)
        time.sleep(_REST_S)
        return {
            "start_to_ready_s": statistics.median(ready_s),
            "starts_s": ready_s,
            "at_rest_mib": at_rest,
            f"after_{calls}_signatures_mib": role_memory(appliance),
        }


def _as_installed(first: Path) -> dict[str, str]:
    """Variables by which Python finds the modules that an installation has."""
    (first / "sitecustomize.py").write_text(_NOT_INSTALLED)
    before = os.environ.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(first), before]))}


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--starts", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(run(options.calls, options.starts), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
