"""Tries at a sign-in, counted before it is known how they end.

A try is recorded in the database first, so that no number of parallel guesses
gets past the count; wrong ones make the next wait longer.

Source: decisions "Limits"; research "Login, OTP".
"""

import math
from datetime import datetime, timedelta
from typing import Final

from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import PersonId, new_id
from appliance.domain.records import Store
from appliance.domain.records.login import AttemptKind, NewAttempt, Tries
from appliance.settings import AuthSettings

_MINUTE: Final = timedelta(minutes=1)
_WRONG_FROM_ADDRESS: Final = timedelta(minutes=10)
_WRONG_ON_ACCOUNT: Final = timedelta(hours=24)
_LONGEST_WAIT_S: Final = 900


class Throttle:
    """Lets tries through, a few at a time.

    Args:
        store: where tries are kept.
        clock: the time.
        settings: the limits.
    """

    def __init__(self, store: Store, clock: Clock, settings: AuthSettings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings

    async def begin(
        self,
        kind: AttemptKind,
        account_index: str,
        person: PersonId | None,
        address: str,
    ) -> str:
        """Record a try unless there were too many.

        Args:
            kind: what is tried.
            account_index: HMAC of the account, or of what was typed.
            person: whose account it is, or None.
            address: where the call came from.

        Returns:
            The attempt's id, to say later how it ended.

        Raises:
            ApplianceError: `RATE_LIMITED`, with `retryAfter`.
        """
        now = self._clock.now()
        limits = self._settings
        async with self._store.write() as records:
            logins = records.logins
            await logins.lock(address, account_index)
            place = await logins.tries_from(
                address, kind, now - _MINUTE, now - _WRONG_FROM_ADDRESS
            )
            account = await logins.tries_on(
                account_index, kind, now - _MINUTE, now - _WRONG_ON_ACCOUNT
            )
            wait_s = max(
                _wait_s(place, limits.login_per_minute_address, now),
                _wait_s(account, limits.login_per_minute_account, now),
            )
            if wait_s > 0:
                raise ApplianceError(
                    ErrorCode.RATE_LIMITED, extras={"retryAfter": math.ceil(wait_s)}
                )
            attempt = new_id()
            await logins.begin(
                NewAttempt(attempt, now, address, account_index, kind, person)
            )
        return attempt


def _wait_s(tries: Tries, limit: int, now: datetime) -> float:
    """How long a further try must wait: the minute's limit, growing delays.

    Each `limit` wrong tries double the wait after the last of them, from a
    minute to a quarter of an hour.
    """
    wait = timedelta(0)
    if tries.count >= limit and tries.oldest is not None:
        wait = tries.oldest + _MINUTE - now
    rounds = tries.wrong // limit
    if rounds and tries.last_wrong is not None:
        delay_s = min(60 * 2 ** min(rounds - 1, 10), _LONGEST_WAIT_S)
        wait = max(wait, tries.last_wrong + timedelta(seconds=delay_s) - now)
    return wait.total_seconds()
