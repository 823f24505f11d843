"""Whether the HSM serves this record, and not one that was restored since.

Source: docs/backup.md "One HSM, one record".
"""

import time
from typing import Final

import structlog

from appliance.domain.errors import HsmUnavailableError
from appliance.domain.keys.generation import NONE
from appliance.record.installation_store import InstallationStore
from appliance.record.unit_of_work import Database
from worker.hsm.connection import HsmStatus
from worker.hsm.session import HsmSession

_log = structlog.get_logger(__name__)
REASON: Final = (
    "the HSM serves another restore of this record; if this is the one that goes on: "
    "rubrica hsm take-over"
)
LOOK_S: Final = 10.0
"""How long it is believed that the HSM serves this record, in seconds."""
LOOK_AGAIN_S: Final = 1.0
"""The same of that it serves another, which is to be over by a take-over."""


class GenerationCheck:
    """Looks at the number of the last take-over, in the HSM and in the record.

    Args:
        session: the HSM.
        store: the record.
    """

    def __init__(self, session: HsmSession, store: Database) -> None:
        self._session = session
        self._store = store
        self._found = NONE
        """What the HSM was of, as last read."""
        self.was = True
        """As it was last found."""
        self._look_at = 0.0
        """Monotonic time of the next look, in seconds."""

    async def look(self) -> bool:
        """Whether its keys may be used; while it is away, by what it had.

        Raises:
            ApplianceError: the record or the HSM is away.
        """
        now = time.monotonic()
        if now < self._look_at:
            return self.was
        is_there = self._session.status is HsmStatus.READY
        if is_there:
            self._found = await self._session.generation()
        async with self._store.read() as transaction:
            own = await InstallationStore(transaction).generation()
        is_served = self._found <= own
        if is_served != self.was:
            log = _log.info if is_served else _log.error
            log("worker.generation", hsm=str(self._found), record=str(own))
        self.was = is_served
        # One that comes back is looked at before its first use.
        pause_s = LOOK_S if is_served else LOOK_AGAIN_S
        self._look_at = now + pause_s if is_there else 0.0
        return is_served

    async def demand(self) -> None:
        """Refuse to use a key of an HSM that serves another record.

        Raises:
            HsmUnavailableError: it does.
            ApplianceError: `STORE_UNAVAILABLE`.
        """
        if not await self.look():
            raise HsmUnavailableError(REASON)
