"""The walk of one signature through the code: which of our functions it enters.

    walk = walk_of_a_signature()

Counted on the running system, in the roles `api` and `signing`, in all their threads.
What a role does meanwhile for its own sake differs from one signature to the next, so
that a walk has what several signatures have in common, in the order of the one into
which the least else came.
"""

import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from json import loads
from pathlib import Path
from typing import Final

import httpx
import psutil

from tests.support.appliance.appliance import Appliance, TestPerson
from tests.support.documents import pdfs
from tests.support.processes.scratch import short_folder

_RECORDER: Final = Path(__file__).parent / "walk_recorder"
_ROLES: Final = ("api", "signing")
_SIGNATURES: Final = 10
_TELLS_S: Final = 120.0
_REST_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Entered:
    """A function that was entered."""

    module: str
    """Path of its file, from the root folder on."""
    function: str
    """Its qualified name."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Functions in the order in which they were first entered, each once."""

    entered: tuple[Entered, ...]

    @property
    def functions(self) -> int:
        """How many."""
        return len(self.entered)

    @property
    def module_changes(self) -> int:
        """How often the next function is another module's."""
        return sum(1 for _ in self._changes())

    @property
    def returns(self) -> int:
        """How often that other module had been left before."""
        left: set[str] = set()
        count = 0
        for before, after in self._changes():
            left.add(before)
            count += after in left
        return count

    def _changes(self) -> Iterator[tuple[str, str]]:
        modules = [each.module for each in self.entered]
        for before, after in pairwise(modules):
            if before != after:
                yield before, after


def common(walks: Sequence[Walk]) -> Walk:
    """What all have, in the order of the one that is interrupted least."""
    everywhere = set.intersection(*(set(walk.entered) for walk in walks))
    shared = [
        Walk(tuple(each for each in walk.entered if each in everywhere))
        for walk in walks
    ]
    return min(shared, key=lambda walk: walk.module_changes)


def walk_of_a_signature() -> Walk:
    """Sign several times: JSON, one request, a wrapped key, B-LT."""
    with short_folder() as folder, short_folder() as told:
        environment = {"PYTHONPATH": str(_RECORDER), "RUBRICA_TEST_WALK": str(told)}
        with Appliance.made(
            # One worker: of several, each would walk some of the way.
            folder,
            signing="workers = 1",
            environment=environment,
            execute=True,
        ) as appliance:
            return _common_walk(appliance, told)


def _common_walk(appliance: Appliance, told: Path) -> Walk:
    person = appliance.new_person()
    requests = appliance.new_requests(person, pdfs.one_page(), _SIGNATURES + 1)
    with appliance.client(person) as client:
        # The first one opens and remembers what later ones find.
        _sign(client, person, requests.pop())
        return common([_walk(appliance, told, client, person, r) for r in requests])


def _walk(
    appliance: Appliance,
    told: Path,
    client: httpx.Client,
    person: TestPerson,
    request: int,
) -> Walk:
    processes = [own for role in _ROLES for own in appliance.children(role)]
    # What ends the answer before is of that call's walk.
    time.sleep(_REST_S)
    _tell(told, processes)
    _sign(client, person, request)
    entered = sorted(_tell(told, processes))
    each = dict.fromkeys(Entered(module, name) for _, module, name in entered)
    return Walk(tuple(each))


def _sign(client: httpx.Client, person: TestPerson, request: int) -> None:
    body = {"solicitudId": request, "password": person.signing_password}
    answer = client.post("/solicitudes/firmar", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["nivel"] == "B-LT"


def _tell(
    told: Path, processes: Sequence[psutil.Process]
) -> list[tuple[int, str, str]]:
    """Have each process tell what it entered since it was last asked."""
    files = [told / f"{process.pid}.json" for process in processes]
    for process in processes:
        process.send_signal(signal.SIGUSR2)
    deadline = time.monotonic() + _TELLS_S
    while not all(file.exists() for file in files):
        assert time.monotonic() < deadline, "a process does not tell"
        time.sleep(0.01)
    entered = [
        (int(at), str(module), str(name))
        for file in files
        for at, module, name in loads(file.read_text("utf-8"))
    ]
    for file in files:
        file.unlink()
    return entered
