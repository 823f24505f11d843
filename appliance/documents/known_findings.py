"""What the sandbox said of documents lately, for who brings the same ones again.

A call that is refused, or that ran out of time, leaves nothing of its documents; that
they were examined need not be lost. Findings are kept in memory, by integrator and
SHA-256: nobody learns from the time that an answer takes what another integrator has.
"""

import json
from collections import OrderedDict
from typing import Final

from appliance.domain.documents.inspected import (
    Inspection,
    inspection_from_json,
    inspection_to_json,
)
from appliance.domain.ids import IntegratorId

MOST_BYTES: Final = 8_388_608
"""Of all of them: some 10,000 documents of one page."""


class KnownFindings:
    """A bounded memory of one process, whose version of the sandbox is one.

    Args:
        most_bytes: of all integrators; one has half of it.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._found: dict[IntegratorId, OrderedDict[str, bytes]] = {}
        self._sizes: dict[IntegratorId, int] = {}

    def get(self, integrator: IntegratorId, sha256: str) -> Inspection | None:
        """What was said of a document; None: it is not known.

        Args:
            integrator: whose.
            sha256: of its bytes, hex.
        """
        own = self._found.get(integrator)
        found = None if own is None else own.get(sha256)
        if own is None or found is None:
            return None
        own.move_to_end(sha256)
        return inspection_from_json(found.decode())

    def note(
        self, integrator: IntegratorId, sha256: str, inspection: Inspection
    ) -> None:
        """Remember what was said of one; what was not asked for the longest goes."""
        text = json.dumps(inspection_to_json(inspection), separators=(",", ":"))
        own = self._found.setdefault(integrator, OrderedDict())
        before = own.pop(sha256, b"")
        own[sha256] = content = text.encode()
        grown = len(content) - len(before)
        self._sizes[integrator] = self._sizes.get(integrator, 0) + grown
        while self._sizes.get(integrator, 0) > self._most // 2:
            self._forget_oldest(integrator)
        while sum(self._sizes.values()) > self._most:
            self._forget_oldest(max(self._sizes, key=self._sizes.__getitem__))

    def _forget_oldest(self, integrator: IntegratorId) -> None:
        own = self._found[integrator]
        _, content = own.popitem(last=False)
        self._sizes[integrator] -= len(content)
        if not own:
            del self._found[integrator], self._sizes[integrator]
