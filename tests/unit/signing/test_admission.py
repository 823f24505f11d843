"""Who is let in when more comes than can be done, in a time of the test's own."""

import heapq
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

from appliance.core.work_owner import WorkOwner
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.signing.admission import Admission, AdmissionLimits

PER_S = 15.0
"""What the service of these tests does."""


@dataclass
class Service:
    """Does one piece of work after the other, in the order in which they came."""

    now: float = 0.0
    stalls: tuple[float, float] = (0.0, 0.0)
    """From when to when it does nothing."""
    waits: list[float] = field(default_factory=list)
    """Of those who were let in, in seconds."""
    turned_away: list[tuple[ErrorCode, object]] = field(default_factory=list)
    """By which code, and when they may come again."""
    let_in: list[str] = field(default_factory=list)
    """Of which shares."""

    def __post_init__(self) -> None:
        self.admission = Admission(AdmissionLimits(), "test", lambda: self.now)
        self._free_at = 0.0
        self._ends: list[tuple[float, int, AbstractContextManager[None]]] = []
        self._count = 0

    def come(self, at: float, share: str, per_s: float = PER_S) -> None:
        """Somebody comes, and takes their place or is turned away."""
        self.end_until(at)
        self.now = at
        place = self.admission.place(WorkOwner(share))
        try:
            place.__enter__()
        except ApplianceError as exc:
            self.turned_away.append((exc.code, exc.extras["retryAfter"]))
            return
        start = max(at, self._free_at)
        if self.stalls[0] <= start < self.stalls[1]:
            start = self.stalls[1]
        self._free_at = start + 1 / per_s
        self.waits.append(self._free_at - at)
        self.let_in.append(share)
        self._count += 1
        heapq.heappush(self._ends, (self._free_at, self._count, place))

    def fail(self) -> None:
        """Somebody's work fails at once.

        Raises:
            ValueError: it failed.
        """
        with self.admission.place(WorkOwner("wrong")):
            msg = "wrong"
            raise ValueError(msg)

    def end_until(self, at: float) -> None:
        """Do what is done until then."""
        while self._ends and self._ends[0][0] <= at:
            self.now, _, place = heapq.heappop(self._ends)
            place.__exit__(None, None, None)


def arrivals(per_s: float, seconds: float, begin: float = 0.0) -> Iterable[float]:
    """When those come who come evenly."""
    return (begin + n / per_s for n in range(int(per_s * seconds)))


def test_overload_is_told_at_once_and_who_is_let_in_waits_little() -> None:
    """Three times the most comes: a third is let in, and waits two seconds at most."""
    service = Service()
    for number, at in enumerate(arrivals(3 * PER_S, 120)):
        service.come(at, f"person {number}")
    service.waits.sort()
    assert service.waits[int(0.99 * len(service.waits))] < 2
    assert len(service.waits) > 0.97 * 120 * PER_S
    assert len(service.turned_away) > 1.9 * 120 * PER_S
    assert set(service.turned_away) == {(ErrorCode.OVERLOADED, 2)}


def test_load_that_can_be_borne_is_let_in() -> None:
    """Nearly the most that it does is not too much."""
    service = Service()
    for number, at in enumerate(arrivals(0.95 * PER_S, 60)):
        service.come(at, f"person {number}")
    assert not service.turned_away


def test_burst_is_let_in() -> None:
    """Two hundred within a moment wait, as they would without a bound."""
    service = Service()
    for number in range(200):
        service.come(number / 1000, f"person {number}")
    assert not service.turned_away


def test_few_are_let_in_however_slow_it_is() -> None:
    """Where hardly anybody is there, nobody is turned away."""
    service = Service()
    for at in arrivals(0.5, 120):
        service.come(at, "person", per_s=0.6)
    assert not service.turned_away


def test_nobody_is_turned_away_for_a_stall() -> None:
    """Those who come while nothing moves are let in, and wait."""
    service = Service(stalls=(10.0, 18.0))
    for number, at in enumerate(arrivals(2, 40)):
        service.come(at, f"person {number}")
    assert max(service.waits) > 7.9
    assert not service.turned_away


def test_after_an_overload_all_are_let_in_again() -> None:
    """What was too much is forgotten once it is over."""
    service = Service()
    for number, at in enumerate(arrivals(3 * PER_S, 20)):
        service.come(at, f"person {number}")
    refused = len(service.turned_away)
    for number, at in enumerate(arrivals(0.7 * PER_S, 30, begin=22.0)):
        service.come(at, f"later {number}")
    assert refused > 0
    assert len(service.turned_away) == refused


def test_flood_of_one_share_leaves_room_for_others() -> None:
    """Who has little under way is let in beside a share that has much."""
    service = Service()
    quiet = iter(arrivals(2, 30, begin=5.0))
    due = next(quiet)
    for at in arrivals(4 * PER_S, 30):
        service.come(at, "flood")
        if at >= due:
            service.come(at, "quiet")
            due = next(quiet, 1e9)
    assert service.let_in.count("quiet") == 50
    assert service.turned_away


def test_work_that_fails_makes_nobody_quicker() -> None:
    """Thirty a second fail at once: that is not what the others take."""
    service = Service()
    for number, at in enumerate(arrivals(2 * PER_S, 60)):
        service.come(at, f"person {number}")
        with suppress(ValueError, ApplianceError):
            service.fail()
    service.waits.sort()
    assert service.waits[int(0.99 * len(service.waits))] < 2


def test_first_crowd_is_known_by_what_came_before_it() -> None:
    """Nothing has ended of the crowd yet, but calls ended before it."""
    service = Service()
    for number, at in enumerate(arrivals(5, 10)):
        service.come(at, f"person {number}")
    for number, at in enumerate(arrivals(3 * PER_S, 2, begin=10)):
        service.come(at, f"crowd {number}")
    assert max(service.waits) < 2
    assert service.turned_away
