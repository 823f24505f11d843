"""What the service bears: calls that come at planned times, below and above its most.

    python -m bench.service [--minutes 10] [--overload-s 120] [--postgres URL]

A whole appliance in a folder of its own; many people, each request with a document of
its own and a stamp. First the most that it signs a second is found, by callers who wait
for each answer. Then calls come at 0.7 of that, evenly, whatever became of those before
them: times count from the planned start, refusals apart, and the memory of all
processes is read meanwhile. Then three times the most comes, and 0.7 again. In the end
every signed document is looked at by the auditor. Raw signatures of the same HSM are
timed before and after, with nothing else running.
"""

import argparse
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from bench.firmar import raw_signatures, summary, take_in_of
from bench.memory import role_memory
from bench.open_loop import Answer, Callers, SignCall, told, well_again_s
from tests.support.appliance.appliance import Appliance
from tests.support.appliance.ledger import read_ledger
from tests.support.processes.scratch import short_folder

_STEADY: Final = 0.7
_OVERLOAD: Final = 3.0
_AT_A_TIME: Final = 8
_WARM: Final = 60
_AFTER_S: Final = 30.0
_WINDOW_S: Final = 2.0
_MEMORY_EVERY_S: Final = 10.0
_FLAT: Final = 1.05
"""What memory may grow by, from the first third of a steady load to the last."""
_STEADY_MS: Final = 1000.0
_ADMITTED_MS: Final = 2000.0
_REFUSED_MS: Final = 50.0
_WELL_AGAIN_S: Final = 10.0


@dataclass(slots=True)
class Memory:
    """Memory of all processes in MiB, read now and then."""

    appliance: Appliance
    read: list[float] = field(default_factory=list)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Read it as long as this is entered."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(_MEMORY_EVERY_S):
                self.read.append(role_memory(self.appliance)["pss"]["sum"])

        watching = threading.Thread(target=look)
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join()

    def told(self) -> dict[str, float]:
        """The first third and the last, in MiB, and their ratio."""
        third = max(1, len(self.read) // 3)
        first = sum(self.read[:third]) / third
        last = sum(self.read[-third:]) / third
        return {
            "first_third_mib": round(first, 1),
            "last_third_mib": round(last, 1),
            "ratio": round(last / first, 3),
        }


class Bench:
    """Loads on one appliance.

    Args:
        appliance: that runs.
        people: who sign, in turn.
    """

    def __init__(self, appliance: Appliance, people: int) -> None:
        self._appliance = appliance
        self._callers = Callers(appliance.base_url)
        self._people = [appliance.new_person() for _ in range(people)]
        self._number = 0

    def calls(self, count: int) -> list[SignCall]:
        """As many requests, no two documents alike."""
        made: list[SignCall] = []
        while len(made) < count:
            made += self._some(min(100, count - len(made)))
        return made

    def _some(self, count: int) -> list[SignCall]:
        numbers = range(self._number, self._number + count)
        self._number += count

        signers = [self._people[number % len(self._people)] for number in numbers]
        return [
            SignCall(request, signer.cuil, signer.signing_password)
            for signer, request in zip(
                signers, take_in_of(self._appliance, signers), strict=True
            )
        ]

    def _signed_in(self, calls: Sequence[SignCall]) -> list[SignCall]:
        """With access tokens that outlast a load of ten minutes."""
        bearers = {each.cuil: self._appliance.bearer(each) for each in self._people}
        return [replace(call, bearer=bearers[call.cuil]) for call in calls]

    def most_per_s(self, count: int) -> tuple[float, dict[str, object]]:
        """What it signs a second for callers who wait for each answer."""
        warming = self._signed_in(self.calls(_WARM))
        self._callers.at_a_time(warming, _AT_A_TIME)
        calls = self._signed_in(self.calls(count))
        begun = time.perf_counter()
        answers = self._callers.at_a_time(calls, _AT_A_TIME)
        took_s = time.perf_counter() - begun
        found = told(answers, took_s)
        if len(answers) != sum(each.is_signed for each in answers):
            raise RuntimeError(found)
        return count / took_s, found

    def loads(self, most: float, steady_s: float, overload_s: float) -> dict[str, Any]:
        """The steady load, the overload, and the steady load again."""
        rates = (most * _STEADY, most * _OVERLOAD, most * _STEADY)
        lengths = (steady_s, overload_s, _AFTER_S)
        # Made first: nothing but the load runs beside it.
        left = iter(self.calls(sum(map(_count, rates, lengths))))
        memory = Memory(self._appliance)
        answers: list[list[Answer]] = []
        for rate, seconds in zip(rates, lengths, strict=True):
            calls = self._signed_in(list(islice(left, _count(rate, seconds))))
            if answers:
                answers.append(self._callers.at_rate(calls, rate))
                continue
            with memory.watched():
                answers.append(self._callers.at_rate(calls, rate))
        steady, overload, after = answers
        limit = 2 * _median(steady)

        def good(window: Sequence[Answer]) -> bool:
            return all(a.is_signed for a in window) and _median(window) <= limit

        return {
            "steady": told(steady, steady_s) | {"memory": memory.told()},
            "overload": told(overload, overload_s),
            "after": told(after, _AFTER_S)
            | {"well_again_s": well_again_s(after, good, _WINDOW_S)},
        }


def _count(rate: float, seconds: float) -> int:
    return int(rate * seconds)


def _median(answers: Sequence[Answer]) -> float:
    signed = [each.ms for each in answers if each.is_signed]
    return summary(signed)["median"] if signed else float("inf")


def machine() -> dict[str, object]:
    """What was measured on."""
    with Path("/proc/cpuinfo").open() as lines:
        models = [
            line.partition(":")[2].strip() for line in lines if "model name" in line
        ]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All of it."""
    facts = machine()
    database = {} if options.postgres is None else {"database": options.postgres}
    with short_folder() as folder, Appliance.made(folder, **database) as appliance:
        bench = Bench(appliance, options.people)
        raw_before = raw_signatures(appliance)["median"]
        most, found = bench.most_per_s(options.find)
        loads = bench.loads(most, options.minutes * 60, options.overload_s)
        raw = min(raw_before, raw_signatures(appliance)["median"])
        faults = read_ledger(appliance).faults()
    return {
        "machine": facts,
        "database": "sqlite" if options.postgres is None else "postgresql",
        "raw_c_sign_ms": raw,
        "most": found,
        "most_to_raw": round(most * raw / 1000, 4),
        **loads,
        "faults": faults,
        "misses": _misses(loads),
    }


def _misses(loads: dict[str, Any]) -> list[str]:
    """What was not held of what is demanded."""
    steady, overload, after = (loads[name] for name in ("steady", "overload", "after"))
    demands = {
        "steady: no error, nothing refused": not steady["errors"] + steady["refused"],
        "steady: p99 under 1 s": steady["signed_ms"]["p99"] < _STEADY_MS,
        "steady: memory is flat": steady["memory"]["ratio"] <= _FLAT,
        "overload: no error": not overload["errors"],
        "overload: p99 of the admitted under 2 s": overload["signed_ms"]["p99"]
        < _ADMITTED_MS,
        "overload: refused in under 50 ms": "refused_ms" in overload
        and overload["refused_ms"]["p95"] < _REFUSED_MS,
        "well again within 10 s": after["well_again_s"] is not None
        and after["well_again_s"] <= _WELL_AGAIN_S,
    }
    return [what for what, held in demands.items() if not held]


def main() -> int:
    """Print the figures as JSON; exit status 1 when the auditor finds a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="of steady load")
    parser.add_argument("--overload-s", type=float, default=120)
    parser.add_argument("--find", type=int, default=400, help="calls to find the most")
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--postgres", help="URL of a fresh database")
    parser.add_argument("--json", type=Path, help="write them to a file too")
    options = parser.parse_args()
    found = run(options)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    print(text)
    if options.json is not None:
        options.json.write_text(text, "utf-8")
    return 1 if found["faults"] or found["misses"] else 0


if __name__ == "__main__":
    sys.exit(main())
