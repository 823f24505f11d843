"""Turns of documents in one signing worker, and who makes way for whom.

A document that somebody waits for comes before a batch. So the groups of batches are
signed one after the other: several at once would only be slower, each waiting for
the others' threads, and with locks of the record held meanwhile. Between its stages a
group makes way for single documents, here and in other processes of this host, for up
to three times as long as groups have worked since they last did: a batch beside single
documents without end goes on at a quarter of its pace.

While a group waits for an HSM or a disk that takes its time, another one goes on.

Source: docs/signing.md "Turns".
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final
from weakref import WeakValueDictionary

from appliance.domain.ids import PersonId

_MAKES_WAY_S: Final = 0.5
"""Longest that a group makes way at once: a lease and a key's time are running."""
_TIMES: Final = 3
"""How many times what groups have worked they make way for. The processors go to
single documents meanwhile; by one time those took twice as long as alone, by three
less than one and a half times."""
_LOOK_S: Final = 0.002
"""Time between two looks at other processes while way is made for theirs."""
_PATIENCE_S: Final = 1.0
"""Longest that a group waits for another one: documents that take long to read hold up
no other batch."""
_SOON_S: Final = 0.02
"""What an HSM or a disk that is quick takes for a group."""
TOGETHER: Final = 8
"""Documents that a group works on between two looks for who comes before it."""


def _now() -> float:
    """Seconds by the clock that this loop's time-outs go by."""
    return asyncio.get_running_loop().time()


class Turn:
    """A single document's turn: it makes way for nobody."""

    async def make_way(self) -> None:
        """Let those go before that come first."""

    @asynccontextmanager
    async def waiting(self, *, long: bool = False) -> AsyncIterator[None]:
        """Wait for an HSM or a disk.

        Args:
            long: whether that is known to take its time.
        """
        del long
        yield


SINGLE: Final = Turn()


class _Groups:
    """What the groups of batches share: one of them works at a time."""

    def __init__(self, are_on_host: Callable[[], bool]) -> None:
        self._are_on_host = are_on_host
        self.place = asyncio.Lock()
        """Of the one that works."""
        self._singles = 0
        """Single documents in work, or waiting for a hand."""
        self._over = asyncio.Event()
        """They have come to their end."""
        self.worked_s = 0.0
        """Since the last time that way was made for them."""

    @contextmanager
    def single(self) -> Iterator[None]:
        """Know of a single document for the time of the block."""
        self._singles += 1
        try:
            yield
        finally:
            self._singles -= 1
            if not self._singles:
                self._over.set()

    async def make_way(self) -> None:
        """Wait for single documents, for a few times what groups have worked."""
        if not self._singles and not self._are_on_host():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(_TIMES * self.worked_s, _MAKES_WAY_S)):
                while self._singles or self._are_on_host():
                    await self._wait()
        self.worked_s = 0.0

    async def _wait(self) -> None:
        """Until there may be none any more."""
        if self._singles:
            self._over.clear()
            await self._over.wait()
        else:
            await asyncio.sleep(_LOOK_S)


class _GroupTurn(Turn):
    """The turn of one group of a batch's documents."""

    def __init__(self, groups: _Groups) -> None:
        self._groups = groups
        self._has_place = False
        self._since: float | None = None
        """From when on its work counts; None while it waits for its turn."""

    async def begin(self) -> None:
        """Wait until no other group works, or it takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                await self._groups.place.acquire()
                self._has_place = True
        self._since = _now()

    def end(self) -> None:
        """Leave the place to the next."""
        if self._since is not None:
            self._count(self._since)
        if self._has_place:
            self._has_place = False
            self._groups.place.release()

    async def make_way(self) -> None:
        """Let single documents go before."""
        if self._since is not None:
            self._count(self._since)
        await self._groups.make_way()
        self._since = _now()

    @asynccontextmanager
    async def waiting(self, *, long: bool = False) -> AsyncIterator[None]:
        """Wait for an HSM or a disk; another group goes on if it takes its time."""
        soon = 0.0 if long else _SOON_S
        leaving = asyncio.get_running_loop().call_later(soon, self.end)
        try:
            yield
        finally:
            leaving.cancel()
        if not self._has_place:
            await self.begin()

    def _count(self, since: float) -> None:
        self._since = _now()
        self._groups.worked_s += self._since - since


class Turns:
    """Whose documents are in work in this process.

    Args:
        hands: single documents in work at a time, and as many groups; who waits gets
            a hand in order.
        share: of one person at a time, of either.
        are_on_host: whether other processes of this host have single documents in
            work.
    """

    def __init__(self, hands: int, share: int, are_on_host: Callable[[], bool]) -> None:
        self._groups = _Groups(are_on_host)
        self.ahead = self._groups.single
        """Has groups make way for the time of a block, as for a single document."""
        self._hands = {False: asyncio.Semaphore(hands), True: asyncio.Semaphore(hands)}
        """Of single documents, and of groups: neither waits for the other."""
        self._share = share
        self._shares: WeakValueDictionary[tuple[PersonId, bool], asyncio.Semaphore] = (
            WeakValueDictionary()
        )
        """Of those who have documents in work, or waiting for a turn."""

    @asynccontextmanager
    async def turn(self, person: PersonId, *, of_batch: bool) -> AsyncIterator[Turn]:
        """Have a hand for the time of the block.

        Args:
            person: whose.
            of_batch: whether it is for documents of a batch.
        """
        # What a person waits for before a hand: one of their own to end.
        share = self._shares.setdefault(
            (person, of_batch), asyncio.Semaphore(self._share)
        )
        hands = self._hands[of_batch]
        if not of_batch:
            with self.ahead():
                async with share, hands:
                    yield SINGLE
            return
        async with share:
            turn = _GroupTurn(self._groups)
            try:
                # First of all: who waits for another group has no hand meanwhile.
                await turn.begin()
                async with hands:
                    yield turn
            finally:
                turn.end()
