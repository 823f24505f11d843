"""Wrong signing passwords that this process has seen, whatever the database says.

Whoever writes to the database can reset the count of wrong passwords and lift a lock.
What a process has seen itself stays in its memory. A person who reaches the limit is
refused there until the count is cleared with a proof: by the person, with the right
password, or by an officer (`CountClearings`).

A clearing without a proof is believed, at first at once and then ever more seldom: a
version before this one proves none.

Wrong passwords count by the person and by the salt. Salt and verifier of somebody else,
copied to a row of one's own, are tried at the same count as where they come from.

Source: decisions "attempts"; docs/keys.md "What bounds guesses".
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.ids import PersonId
from appliance.domain.people.identity import SigningSecret
from appliance.keys.count_clearings import Clearing

_PAUSES: Final = tuple(timedelta(hours=hours) for hours in (0, 1, 2, 4, 8, 16, 24))
"""From the last wrong password until a clearing without a proof is believed: the first
in this process, the second …; the last value for all that follow."""
_DAY: Final = timedelta(days=1)
_LOCKS_A_DAY: Final = 10
"""How often the limit of wrong passwords is checked in a day, however well clearings
are proven: whoever has the lookup key as well makes proofs."""
_CLOCKS: Final = timedelta(seconds=10)
"""Further apart than the clocks of two hosts are (5 s make a host not ready)."""
_ENTRIES: Final = 32_768
"""Persons and salts that are remembered: some tens of megabytes."""
_FULL_FOR: Final = timedelta(days=2)
"""From the last wrong password: so long a full count is never forgotten. What follows
then is no more than what the longest pause allows meanwhile."""
_MARK_BYTES: Final = 16
_KEYS: Final = 2
"""Entries of one check: of its person, and of its salt."""


class Admission(StrEnum):
    """Answer to who wants to check a password."""

    FREE = "free"
    """Go on, and say how it ended."""
    BUSY = "busy"
    """As many checks are running as may be wrong: wait."""
    LOCKED = "locked"
    """No further wrong password can be afforded."""


@dataclass(slots=True)
class _Seen:
    """Wrong passwords of one person, or under one salt."""

    day_began: datetime
    last: datetime
    """When one was wrong last."""
    wrong: set[bytes] = field(default_factory=set, repr=False)
    """Since the count was cleared: a mark of each, which tells it from others."""
    running: int = 0
    today: int = 0
    """All of a day, cleared or not."""
    unproven: int = 0
    """Clearings that were believed without a proof."""
    cleared: datetime | None = None
    """The newest clearing that was believed with a proof."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a password that is running, by what it counts under."""

    keys: tuple[bytes, bytes]
    """Of the person and of the salt."""


class PasswordFloor:
    """Bounds wrong signing passwords by the memory of one process.

    Nothing here waits: each method is one step of the event loop.

    Args:
        clock: the time of this host.
        limit: wrong passwords that lock (`signing.wrong_passwords`).
        entries: persons and salts that are remembered at most.
    """

    def __init__(self, clock: Clock, limit: int, entries: int = _ENTRIES) -> None:
        self._clock = clock
        self._limit = limit
        self._entries = entries
        self._seen: dict[bytes, _Seen] = {}

    def admit(
        self, person: PersonId, secret: SigningSecret, clearing: Clearing | None
    ) -> tuple[Admission, Check]:
        """Decide whether a password may be checked; count the check as running.

        Args:
            person: whose password it is.
            secret: what it will be compared with; the record says that it is not
                locked.
            clearing: proof of when the count was cleared last; None without one.

        Returns:
            The answer; and where it is `FREE`, the check, to be given to `right`,
            `wrong` or `left`.
        """
        now = self._clock.now()
        check = Check(_keys(person, secret.salt))
        new = [key for key in check.keys if key not in self._seen]
        if new and len(self._seen) + len(new) > self._entries and not self._forget(now):
            # Nothing may be forgotten: each of these passwords was tried in vain.
            return Admission.BUSY, check
        both = of_person, of_salt = [self._entry(key, now) for key in check.keys]
        if clearing is not None:
            self._clear(of_person, clearing)
            # A person clears what was tried at their own password alone.
            if clearing.is_of(secret.salt):
                self._clear(of_salt, clearing)
        if any(self._is_locked(each, now) for each in both):
            self._drop_empty(check)
            return Admission.LOCKED, check
        # The record says that it is open though it was full here: believe it for once.
        for each in both:
            if len(each.wrong) >= self._limit:
                each.unproven += 1
                each.wrong.clear()
        if any(len(each.wrong) + each.running >= self._limit for each in both):
            self._drop_empty(check)
            return Admission.BUSY, check
        for each in both:
            each.running += 1
        return Admission.FREE, check

    def wrong(self, check: Check, mark: str) -> None:
        """End a check whose password was wrong.

        Args:
            check: as `admit` gave it.
            mark: of the password, hex; the same one again is no further guess.
        """
        now = self._clock.now()
        short = bytes.fromhex(mark)[:_MARK_BYTES]
        for each in self._ended(check):
            each.last = now
            if short not in each.wrong:
                each.wrong.add(short)
                each.today += 1

    def right(self, check: Check) -> None:
        """End a check whose password was right: earlier ones count no more."""
        for each in self._ended(check):
            each.wrong.clear()
        self._drop_empty(check)

    def left(self, check: Check) -> None:
        """End a check that came to nothing."""
        for _ in self._ended(check):
            pass
        self._drop_empty(check)

    def _ended(self, check: Check) -> Iterable[_Seen]:
        # Entries of running checks are never forgotten.
        for key in check.keys:
            self._seen[key].running -= 1
            yield self._seen[key]

    def _drop_empty(self, check: Check) -> None:
        """Remember nothing of who was never wrong."""
        for key in check.keys:
            each = self._seen[key]
            if not (each.running or each.today or each.wrong or each.unproven):
                del self._seen[key]

    def _entry(self, key: bytes, now: datetime) -> _Seen:
        entry = self._seen.get(key)
        if entry is None:
            entry = self._seen[key] = _Seen(now, now)
        elif now - entry.day_began >= _DAY:
            entry.day_began, entry.today = now, 0
        return entry

    def _forget(self, now: datetime) -> bool:
        """Make room: those with the fewest wrong passwords go first, then the oldest.

        Whoever wants a count to be forgotten has to fill as many others higher. A full
        one is not forgotten at all: filling others is no way round its pause.

        Returns:
            True if there is room for a check.
        """
        idle = [
            key
            for key, each in self._seen.items()
            if each.running == 0
            and not (self._is_full(each) and now - each.last < _FULL_FOR)
        ]
        idle.sort(key=lambda key: self._weight(self._seen[key]))
        for key in idle[: max(_KEYS, self._entries // 16)]:
            del self._seen[key]
        return len(idle) >= _KEYS

    def _is_full(self, entry: _Seen) -> bool:
        """Return whether an entry reached the limit, in one day or since a clearing."""
        most = max(len(entry.wrong), entry.today)
        return entry.unproven > 0 or most >= self._limit

    def _is_locked(self, entry: _Seen, now: datetime) -> bool:
        if entry.today >= self._limit * _LOCKS_A_DAY:
            return True
        pause = _PAUSES[min(entry.unproven, len(_PAUSES) - 1)]
        return len(entry.wrong) >= self._limit and now - entry.last < pause

    def _weight(self, entry: _Seen) -> tuple[int, datetime]:
        """Say what it took to fill an entry, and when."""
        wrong = len(entry.wrong) + entry.today + self._limit * entry.unproven
        return wrong, entry.last

    @staticmethod
    def _clear(entry: _Seen, clearing: Clearing) -> None:
        """Take a proven clearing, once, if it came after what was wrong here."""
        if entry.cleared is not None and clearing.at <= entry.cleared:
            return
        if entry.wrong and clearing.at < entry.last - _CLOCKS:
            return
        entry.cleared = clearing.at
        entry.wrong.clear()


def _keys(person: PersonId, salt: bytes) -> tuple[bytes, bytes]:
    return b"person/" + person.encode(), b"salt/" + salt
