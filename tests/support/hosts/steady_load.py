"""People who sign two documents a second by two fronts, and do not give up.

    load = SteadyLoad(site, people, requests)
    with load.calling():
        …
    load.waits

A call that broke, or was answered that it is too early, is repeated by the other front,
as a balancer and any client do.
"""

import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

import httpx

from appliance.system.dead_connections import OPTIONS
from tests.support.faults.retrying_callers import BROKEN, word_of
from tests.support.processes.plain_http import NO_TLS

PER_S: Final = 2
_CALLERS: Final = 200
_CONNECT_S: Final = 3.0
_ANSWER_S: Final = 30.0
_PATIENCE_S: Final = 400.0
"""After which a caller gives up, so that a failing test ends."""
_AGAIN_S: Final = 0.3
_AGAIN: Final = frozenset({202, 429, 503})


class Front(Protocol):
    """A host with `api`."""

    @property
    def api(self) -> str:
        """Where its API is."""


class Caller(Protocol):
    """A place that clients call from."""

    def enter(self) -> None:
        """Move the calling thread there."""


class Fronts(Protocol):
    """Fronts of one installation."""

    @property
    def fronts(self) -> Sequence[Front]:
        """Those that are called."""

    @property
    def client(self) -> Caller:
        """From where."""


class PasswordHolder(Protocol):
    """A signer."""

    @property
    def signing_password(self) -> str:
        """What they type."""


@dataclass(slots=True)
class Wish:
    """One request that somebody wants to have signed."""

    request: int
    answers: list[str] = field(default_factory=list)
    """Statuses with their codes, or `BROKEN`."""
    longest_s: float = 0.0
    """Of one call."""
    waited_s: float = 0.0
    """From the first call to the last answer."""


@dataclass
class SteadyLoad:
    """A load, and what it was answered.

    Args:
        site: whose fronts are called.
        signers: who sign in turn, each with a bearer and requests of their own.
    """

    site: Fronts
    signers: Sequence[tuple[PasswordHolder, str, list[int]]]
    wishes: list[Wish] = field(default_factory=list)
    _begun: int = 0

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Call meanwhile, as long as there are requests; then all calls end."""
        over = threading.Event()
        thread = threading.Thread(target=self._call_all, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @property
    def waiting(self) -> int:
        """Calls that have begun and not ended."""
        return self._begun - len(self.wishes)

    @property
    def answers(self) -> Counter[str]:
        """How often each answer was given."""
        return Counter(answer for wish in self.wishes for answer in wish.answers)

    @property
    def longest_wait_s(self) -> float:
        """Of those who have their document, or gave up."""
        return max((wish.waited_s for wish in self.wishes), default=0.0)

    def _call_all(self, over: threading.Event) -> None:
        turns = itertools.cycle(self.signers)
        enter = self.site.client.enter
        with ThreadPoolExecutor(_CALLERS, initializer=enter) as pool, _client() as http:
            ends: list[Future[None]] = []
            due = time.monotonic()
            while not over.wait(max(due - time.monotonic(), 0)):
                person, bearer, requests = next(turns)
                if not requests:
                    break
                wish = Wish(requests.pop())
                ends.append(pool.submit(self._sign, http, wish, person, bearer))
                self._begun += 1
                due += 1 / PER_S
            for end in ends:
                end.result()

    def _sign(
        self, http: httpx.Client, wish: Wish, person: PasswordHolder, bearer: str
    ) -> None:
        body = {"solicitudId": wish.request, "password": person.signing_password}
        headers = {"Authorization": f"Bearer {bearer}"}
        fronts = itertools.cycle(self.site.fronts)
        if self._begun % 2:
            next(fronts)
        begun = time.monotonic()
        pause: float | None = 0.0
        while pause is not None and time.monotonic() - begun < _PATIENCE_S:
            url = f"{next(fronts).api}/solicitudes/firmar"
            time.sleep(pause)
            asked = time.monotonic()
            try:
                answer = http.post(url, json=body, headers=headers)
            except httpx.TransportError:
                wish.answers.append(BROKEN)
                pause = _AGAIN_S
            else:
                wish.answers.append(word_of(answer))
                pause = _pause_s(answer)
            wish.longest_s = max(wish.longest_s, time.monotonic() - asked)
        wish.waited_s = time.monotonic() - begun
        self.wishes.append(wish)


def _client() -> httpx.Client:
    """One that notices a dead link as soon as the service does."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    options += [(socket.IPPROTO_TCP, name, value) for name, value in OPTIONS.items()]
    # Without connections that are kept: they may end before the next call arrives.
    limits = httpx.Limits(max_connections=_CALLERS, max_keepalive_connections=0)
    transport = httpx.HTTPTransport(
        verify=NO_TLS, limits=limits, socket_options=options
    )
    timeout = httpx.Timeout(_ANSWER_S, connect=_CONNECT_S)
    return httpx.Client(transport=transport, timeout=timeout)


def _pause_s(answer: httpx.Response) -> float | None:
    """When to ask again, in seconds; None for an end."""
    if answer.status_code not in _AGAIN:
        return None
    return float(answer.headers.get("Retry-After", _AGAIN_S))
