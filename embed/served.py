"""Sessions whose page was asked for by their token, as far as this process knows."""

from collections import OrderedDict
from typing import Final

_AT_MOST: Final = 10_000


class ServedSessions:
    """The last ones, by public id; memory is bounded."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, public_id: str) -> None:
        """Note that a session's page was asked for."""
        self._ids[public_id] = None
        self._ids.move_to_end(public_id)
        while len(self._ids) > _AT_MOST:
            self._ids.popitem(last=False)

    def has(self, public_id: str) -> bool:
        """Return whether it was, lately."""
        return public_id in self._ids
