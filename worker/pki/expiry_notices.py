"""What chores do about certificates that end: warn in the log, and renew."""

from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from appliance.console.expiry_notices import Expiry
from appliance.domain.clock import Clock
from appliance.pki.automatic_renewal import AutoRenewal

_log = structlog.get_logger(__name__)
_WARN_EVERY: Final = timedelta(hours=1)
_RENEW_EVERY: Final = timedelta(minutes=1)
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Ends:
    """Runs both at their own pace, however often it is asked to.

    Args:
        expiry: warns.
        renewal: renews.
        clock: the time.
    """

    def __init__(self, expiry: Expiry, renewal: AutoRenewal, clock: Clock) -> None:
        self._expiry = expiry
        self._renewal = renewal
        self._clock = clock
        self._warned = self._renewed = _LONG_AGO

    async def run(self) -> None:
        """Do what is due of the two."""
        now = self._clock.now()
        if now - self._renewed >= _RENEW_EVERY:
            submitted = await self._renewal.submit_due()
            if submitted:
                _log.info("certificates.renewing", count=submitted)
            self._renewed = now
        if now - self._warned >= _WARN_EVERY:
            for what, days in await self._expiry.warn():
                # The name of a person stays out of the log.
                _log.warning(
                    "certificate.expired" if days == 0 else "certificate.expiring",
                    kind=what.kind.value,
                    id=what.id,
                    days=days,
                    until=what.not_after.isoformat(timespec="seconds"),
                )
            self._warned = now
