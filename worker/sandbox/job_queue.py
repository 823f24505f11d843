"""Whose turn it is when a place of the sandbox is free.

Jobs are cut, but none is interrupted: who is to be served soon needs a place that
others could not take. So of n places drawing has n - 1 at most, whoever asks; the
jobs of one share (an integrator) have n - 1 at most, n - 2 of them for drawing. A
ping has a place of its own, or a busy sandbox would look like one that is away.
"""

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

from appliance.domain.sandbox import JobCaller, JobKind
from appliance.domain.turns import Turns

_DRAWS = JobKind.DRAW


class _HasCaller(Protocol):
    @property
    def caller(self) -> JobCaller: ...


_Waiting = TypeVar("_Waiting", bound=_HasCaller)


class Places:
    """Gives out a number of places.

    Args:
        count: how many there are, 1 at least; a ping's own comes on top.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._draws = max(1, count - 1)
        self._of_share = max(1, count - 1)
        self._draws_of_share = max(1, count - 2)
        self._turns = Turns()
        self._came: set[str] = set()

    def next(
        self, waiting: Sequence[_Waiting], running: Collection[JobCaller]
    ) -> _Waiting | None:
        """Whoever is to run now, None while nobody may.

        Of those who may it is a ping, then of the share that has the fewest jobs
        running, then of the one whose turn it is (`Turns`), then who came first.

        Args:
            waiting: in the order they came.
            running: callers of the jobs that run.
        """
        self._note_shares({each.caller.share for each in waiting})
        chosen, best = None, (0, 0.0)
        for each in waiting:
            caller = each.caller
            if not self._may_run(caller, running):
                continue
            if caller.kind is JobKind.PING:
                return each
            share = caller.share
            having = sum(other.share == share for other in running)
            rank = (having, self._turns.of(share))
            if chosen is None or rank < best:
                chosen, best = each, rank
        if chosen is not None:
            self._turns.take(chosen.caller.share)
            self._came.discard(chosen.caller.share)
        return chosen

    def _may_run(self, caller: JobCaller, running: Collection[JobCaller]) -> bool:
        pings = sum(other.kind is JobKind.PING for other in running)
        if caller.kind is JobKind.PING:
            return pings == 0
        if len(running) - pings >= self._count:
            return False
        of_share = [other for other in running if other.share == caller.share]
        if len(of_share) >= self._of_share:
            return False
        if caller.kind is not _DRAWS:
            return True
        draws = sum(other.kind is _DRAWS for other in running)
        own = sum(other.kind is _DRAWS for other in of_share)
        return draws < self._draws and own < self._draws_of_share

    def _note_shares(self, waiting: set[str]) -> None:
        """Have the shares that wait, and no others, count as waiting."""
        for share in self._came - waiting:
            self._turns.leave(share)
        for share in waiting - self._came:
            self._turns.come(share)
        self._came = waiting
