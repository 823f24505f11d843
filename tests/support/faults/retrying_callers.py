"""People who call firmar and repeat it until their document is signed.

A call is repeated on 202, on 5xx and on a broken connection, as any client may; each
answer and each time is kept. The callers run in a thread of their own, so that
a test can do harm meanwhile.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Final, cast

import httpx

from appliance.bootstrap import open_front
from appliance.domain.clock import SystemClock
from appliance.domain.documents.inspected import Inspection
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ports import DocumentBytes, PdfInspector
from appliance.requests.intake import Intake
from tests.support.appliance.appliance import Appliance, TestPerson, intake_order
from tests.support.processes.plain_http import NO_TLS

_PATIENCE_S = 300.0
"""After which a caller gives up, so that a failing test ends."""
_AGAIN_S = 0.2
"""Pause after a broken connection."""
_NEXT_S = 0.1
"""Pause before each call beyond `at_least`: what is signed is looked at, too."""
_AWAY = {ErrorCode.SANDBOX_UNAVAILABLE, ErrorCode.STORE_UNAVAILABLE}
BROKEN = "broken"
"""Kept for a connection that could not be made, or broke."""
LET_IN: Final = 10
"""So many at a time are in work or wait, on any machine (docs/limits.md)."""


@dataclass(slots=True)
class Call:
    """One person's wish to have one request signed."""

    person: TestPerson
    request: int
    answers: list[str] = field(default_factory=list)
    """`200`, `202`, `broken`, or status and code of an error."""
    longest_s: float = 0.0
    """Of one HTTP call."""
    waited_s: float = 0.0
    """From the first call to the last answer, while the appliance was up."""
    sha256: str = ""
    """Of the signed document, as the last answer said."""

    @property
    def signed(self) -> bool:
        """Whether it ended with the document."""
        return self.answers[-1:] == ["200"]


@dataclass(slots=True)
class Crowd:
    """Callers at work.

    Args:
        appliance: that they call.
        people: who take turns.
        pdf: what they sign.
        concurrency: calls at a time.
        at_least: calls before they may end.
    """

    appliance: Appliance
    people: Sequence[TestPerson]
    pdf: bytes
    concurrency: int = LET_IN
    at_least: int = 40
    calls: list[Call] = field(default_factory=list)
    """Those that ended."""
    begun: Event = field(default_factory=Event)
    """Set once they call; the first requests are there by then."""
    _enough: Event = field(default_factory=Event)

    @contextmanager
    def calling(self) -> Iterator["Crowd"]:
        """Keep calling during the block and until `at_least` calls ended."""
        with ThreadPoolExecutor(1) as pool:
            done: Future[None] = pool.submit(asyncio.run, self._call_all())
            try:
                self._await_begin(done)
                yield self
            finally:
                self._enough.set()
            done.result()

    def _await_begin(self, done: Future[None]) -> None:
        while not self.begun.wait(0.05):
            if done.done():
                done.result()

    async def _call_all(self) -> None:
        """Take documents in ahead of the callers, and let them call."""
        limits = httpx.Limits(max_connections=self.concurrency)
        ahead: asyncio.Queue[Call | None] = asyncio.Queue(self.at_least)
        enough_ahead = asyncio.Event()
        async with (
            open_front(self.appliance.settings, SystemClock(), "operator") as front,
            httpx.AsyncClient(
                base_url=self.appliance.base_url,
                limits=limits,
                timeout=_PATIENCE_S,
                verify=NO_TLS,
            ) as client,
        ):
            tokens = {
                person.id: await front.tokens.issue(
                    person.id, ("pwd", "otp"), front.clock.now()
                )
                for person in self.people
            }

            once = _Once(front.core.inspector)
            intake = Intake(
                front.core.store,
                front.core.documents,
                cast("PdfInspector", once),
                front.clock,
                self.appliance.settings.documents,
            )

            async def supply() -> None:
                nonlocal intake
                for number in itertools.count():
                    if number >= self.at_least and self._enough.is_set():
                        break
                    person = self.people[number % len(self.people)]
                    request = await self._take_in(intake, person)
                    if number + 1 >= self.at_least:
                        # From here on harm is done, to the sandbox too.
                        intake = front.intake
                        enough_ahead.set()
                        self.begun.set()
                        await asyncio.sleep(_NEXT_S)
                    await ahead.put(Call(person, request))
                for _ in range(self.concurrency):
                    await ahead.put(None)

            async def caller() -> None:
                await enough_ahead.wait()
                while (call := await ahead.get()) is not None:
                    token = tokens[call.person.id].token
                    await until_signed(client, call, token, self.appliance.clock)
                    self.calls.append(call)

            async with asyncio.TaskGroup() as group:
                group.create_task(supply())
                for _ in range(self.concurrency):
                    group.create_task(caller())

    async def _take_in(self, intake: Intake, person: TestPerson) -> int:
        """A request; while sandbox or documents are away, an integrator tries again."""
        clock = self.appliance.clock
        deadline = clock() + _PATIENCE_S
        while True:
            try:
                return await intake.create_request(intake_order(person), self.pdf)
            except ApplianceError as exc:
                away = exc.code in _AWAY
                if not away or clock() > deadline:
                    raise
                await asyncio.sleep(_AGAIN_S)

    @property
    def answers(self) -> Counter[str]:
        """How often each answer was given."""
        return Counter(answer for call in self.calls for answer in call.answers)

    @property
    def longest_wait_s(self) -> float:
        """From a first call to the signed document, the longest."""
        return max(call.waited_s for call in self.calls)


class _Once:
    """Asks the sandbox once for each document.

    Of forty requests of one document each asking is as dear as a signature; every
    other step of taking it in is made for each.

    Args:
        inspector: the sandbox.
    """

    def __init__(self, inspector: PdfInspector) -> None:
        self._inspector = inspector
        self._found: dict[bytes, Inspection] = {}

    async def inspect(self, pdf: DocumentBytes) -> Inspection:
        """Describe a PDF, as it was described before."""
        pdf = bytes(pdf)
        if pdf not in self._found:
            self._found[pdf] = await self._inspector.inspect(pdf)
        return self._found[pdf]


async def until_signed(
    client: httpx.AsyncClient, call: Call, token: str, clock: Callable[[], float]
) -> None:
    """Call, and call again, until there is an end; times are the clock's."""
    begun = clock()
    body = {"solicitudId": call.request, "password": call.person.signing_password}
    headers = {"Authorization": f"Bearer {token}"}
    while True:
        asked = clock()
        try:
            answer = await client.post(
                "/solicitudes/firmar", json=body, headers=headers
            )
        except httpx.TransportError:
            call.answers.append(BROKEN)
            pause = _AGAIN_S
        else:
            call.answers.append(word_of(answer))
            pause = float(answer.headers.get("Retry-After", _AGAIN_S))
            call.sha256 = answer.json().get("sha256", "")
        now = clock()
        call.longest_s = max(call.longest_s, now - asked)
        call.waited_s = now - begun
        again = call.answers[-1] in {"202", BROKEN} or call.answers[-1].startswith("5")
        if not again or call.waited_s > _PATIENCE_S:
            return
        await asyncio.sleep(pause)


def word_of(answer: httpx.Response) -> str:
    """An answer in a word or two."""
    if answer.is_success:
        return str(answer.status_code)
    return f"{answer.status_code} {answer.json()['code']}"
