"""What the CA's publications need by themselves, as seen without an HSM."""

from datetime import datetime, timedelta
from typing import Final

import structlog

from appliance.bootstrap import Core
from appliance.pki.ca_certificates import read_authority
from appliance.pki.publication import Publishing
from appliance.pki.revocation import Revocations
from appliance.pki.tsa.authority import TimestampWork
from appliance.pki.tsa.tsa_certificates import TsaCertificates
from appliance.settings import SettingsError

_log = structlog.get_logger(__name__)
_EVERY: Final = timedelta(minutes=1)


class AuthorityChores:
    """Asks for what falls due, once a minute.

    Args:
        core: the record.
        slot: of this worker.
    """

    def __init__(self, core: Core, slot: str) -> None:
        self._core = core
        self._publishing = Publishing(
            core.store, core.clock, core.settings.pki, slot, core.work_notifier
        )
        self._timestamps = TimestampWork(core.store, core.clock, slot)
        self._revocations = Revocations(core.store, core.clock)
        self._tsa = TsaCertificates(core.store, core.clock)
        self._next: datetime | None = None

    async def run(self) -> None:
        """Do them if their time has come.

        Raises:
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        now = self._core.clock.now()
        if self._next is not None and now < self._next:
            return
        self._next = now + _EVERY
        try:
            authority = read_authority(self._core.settings)
        except SettingsError as exc:
            _log.warning("worker.no_authority", reason=str(exc))
            return
        await self._revocations.resume()
        await self._tsa.resume()
        await self._publishing.submit_due(authority.issuers)
        await self._publishing.forget()
        await self._timestamps.forget()
