"""Addresses from which somebody has proven of late who they are.

The record keeps them as HMACs (`known_address`), by account and for anybody. By account
they let a person past the ceiling of wrong tries (`login_throttle`). For anybody they
tell a process who is no stranger before more is known of a call: shared pools keep a
part for these (`fair_queue`).

Source: decisions "attempts".
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from appliance.admission.login_attempt_store import LoginAttemptStore
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError
from appliance.domain.ports import LookupIndex
from appliance.record.unit_of_work import Database, Transaction

_KNOWN: Final = "known-address"
_ANYBODY: Final = "anybody"
"""In place of an account; none is written so."""
_MOST: Final = 100_000
"""Addresses that a process remembers, some 200 bytes each: the latest ones."""
_EVERY_S: Final = 15.0
_OVERLAP: Final = timedelta(minutes=2)
"""Rows may be committed that long after the time that they bear."""
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_log = structlog.get_logger()


def known_indexes(lookup: LookupIndex, subject: str, address: str) -> tuple[str, ...]:
    """Indexes by which the record knows an account's address; the first is stored.

    Args:
        lookup: makes them.
        subject: id of the person; of an administrator, the account's index.
        address: as `appliance.web.server.client_address.client_address` gives it.
    """
    return lookup.indexes(_KNOWN, f"{subject}|{address}")


def somebodys_indexes(lookup: LookupIndex, address: str) -> tuple[str, ...]:
    """Indexes by which the record knows an address, whoever proved who they are there.

    Args:
        lookup: makes them.
        address: as in `known_indexes`.
    """
    return known_indexes(lookup, _ANYBODY, address)


async def remember_address(
    transaction: Transaction,
    lookup: LookupIndex,
    subject: str,
    address: str,
    now: datetime,
) -> None:
    """Record that somebody has proven who they are from an address.

    Args:
        transaction: the caller's.
        lookup: makes the indexes.
        subject: as in `known_indexes`.
        address: as there.
        now: the time.
    """
    attempts = LoginAttemptStore(transaction)
    await attempts.remember(known_indexes(lookup, subject, address)[0], now)
    await attempts.remember(somebodys_indexes(lookup, address)[0], now)


class KnownAddresses:
    """What a process knows of them, without asking the record for each call.

    An address that another process learnt is known here within 15 s.

    Args:
        store: where they are kept.
        lookup: indexes addresses.
        clock: the time.
        days: how long an address is known after the last proof.
    """

    def __init__(
        self, store: Database, lookup: LookupIndex, clock: Clock, days: int
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._clock = clock
        self._kept = timedelta(days=days)
        self._at: OrderedDict[str, datetime] = OrderedDict()
        self._latest = _BEGINNING

    def __contains__(self, address: object) -> bool:
        since = self._clock.now() - self._kept
        indexes = somebodys_indexes(self._lookup, str(address))
        return any(self._at.get(each, _BEGINNING) > since for each in indexes)

    async def refresh(self) -> None:
        """Read what was recorded since the last time.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._clock.now()
        since = max(self._latest - _OVERLAP, now - self._kept)
        async with self._store.read() as transaction:
            rows = await LoginAttemptStore(transaction).known_since(since, now, _MOST)
        for index, at in rows:
            self._at[index] = at
            self._at.move_to_end(index)
            self._latest = max(self._latest, at)
        while len(self._at) > _MOST:
            self._at.popitem(last=False)

    @asynccontextmanager
    async def followed(self, every_s: float = _EVERY_S) -> AsyncIterator[None]:
        """Refresh for the time of the block.

        Args:
            every_s: time between two looks, in seconds.
        """
        following = asyncio.create_task(self._follow(every_s))
        try:
            yield
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following

    async def _follow(self, every_s: float) -> None:
        while True:
            try:
                await self.refresh()
            except ApplianceError as exc:
                # The database is away; who was known is still.
                _log.warning("known_addresses.failed", code=exc.code.value)
            await asyncio.sleep(every_s)
