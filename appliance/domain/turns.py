"""Turns among those who wait, by start-time fair queueing.

A key is whoever has turns: a share, or a group of shares. Each turn moves its key back
by one; whoever comes new, or comes back, begins at the present virtual time, so that
neither passes those who wait already. The virtual time goes on with each turn by one
over the number of keys that wait, so that a key waits for one round of all of them at
most, however many new ones keep coming.

Source: Goyal, Vin, Cheng, "Start-time Fair Queuing" (1996); the virtual time is that of
Bennett and Zhang, "Hierarchical packet fair queueing algorithms" (WF2Q+, 1996).
"""

from collections import OrderedDict
from typing import Final

_KEPT: Final = 1_024
"""Keys whose last turn is remembered; those of before begin anew."""


class Turns:
    """Virtual times of keys, in one event loop."""

    def __init__(self) -> None:
        self._now = 0.0
        self._start: dict[str, float] = {}
        self._finish: OrderedDict[str, float] = OrderedDict()

    def come(self, key: str) -> None:
        """Have a key wait, if it does not yet."""
        self._start.setdefault(key, self._begin(key))

    def leave(self, key: str) -> None:
        """Have a key wait no more."""
        self._start.pop(key, None)

    def of(self, key: str) -> float:
        """The virtual time at which it is a key's turn: the least goes first."""
        return self._start.get(key, self._begin(key))

    def take(self, key: str) -> None:
        """Count a turn of a key, which waits no more."""
        start = self._start.pop(key, self._begin(key))
        self._finish[key] = start + 1
        self._finish.move_to_end(key)
        while len(self._finish) > _KEPT:
            self._finish.popitem(last=False)
        self._now += 1 / (len(self._start) + 1)
        if self._start:
            self._now = max(self._now, min(self._start.values()))

    def _begin(self, key: str) -> float:
        return max(self._now, self._finish.get(key, 0.0))
