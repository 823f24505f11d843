"""Warnings that a flood may cause, written now and then."""

import time
from typing import Final

import structlog

_TOLD_EVERY_S: Final = 10.0
_log = structlog.get_logger(__name__)


class Rarely:
    """A warning that is written now and then, with how often it was due.

    Args:
        event: of the log.
    """

    def __init__(self, event: str) -> None:
        self._event = event
        self._due = 0
        self._next = 0.0

    def tell(self, **fields: object) -> None:
        """Count, and write if the last one was written long enough ago.

        Args:
            fields: of the event.
        """
        self._due += 1
        now = time.monotonic()
        if now >= self._next:
            _log.warning(self._event, times=self._due, **fields)
            self._due, self._next = 0, now + _TOLD_EVERY_S
