"""What anybody's page can have recorded, bounded by address and by session.

Which origin tried to show the frame, and which error a page found by itself, are told
by browsers that have proven nothing: what is beyond these limits is not recorded.
"""

from typing import Final

from appliance.admission.address_rates import AddressRate
from appliance.domain.clock import Clock
from appliance.domain.errors import ApplianceError

ADDRESS_MOST: Final = 30
"""Records a minute that one address causes."""
SESSION_MOST: Final = 10
"""Records a minute about one session, from wherever."""


class Reports:
    """Counts one kind of record.

    Args:
        clock: the time.
    """

    def __init__(self, clock: Clock) -> None:
        self._addresses = AddressRate(ADDRESS_MOST, clock)
        self._sessions = AddressRate(SESSION_MOST, clock)

    def admits(self, address: str, session: str) -> bool:
        """Count one; False when it is one too many.

        Args:
            address: of the caller.
            session: public id of the session that it is about.
        """
        try:
            self._addresses.count(address)
            self._sessions.count(session)
        except ApplianceError:
            return False
        return True
