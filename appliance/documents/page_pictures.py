"""Pictures of documents' pages: each is drawn once, however often it is asked for.

They are kept in memory, bounded by number and bytes, by integrator, document, page
and scale; never on a disk, where they would lie unencrypted. Who asks for what is
being drawn waits for that; a page that cannot be drawn is remembered like a picture,
so that its time is spent once.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final

from appliance.admission.fair_queue import FairLimits, FairQueue
from appliance.admission.work_owner import WORK_OWNER, WorkOwner
from appliance.domain.errors import DocumentRefusedError
from appliance.domain.ids import IntegratorId
from appliance.domain.ports import BlobStore, PdfInspector

_KEPT: Final = 4_096
"""Pictures and refusals that are kept at most."""
_REFUSAL_BYTES: Final = 1_024
"""What a refusal counts for."""
_REFUSAL_S: Final = 600
"""After this it is tried again: the machine may have been busy."""
_LIMITS: Final = FairLimits(places=4, per_share=3, per_party=2, waiting=32)
"""Documents that are in memory to be drawn: waiting for a place holds none."""


@dataclass(frozen=True, slots=True)
class PageWanted:
    """Which picture."""

    integrator: IntegratorId
    sha256: str
    """Of the document."""
    page: int
    """1-based."""
    dpi: int


_Outcome = bytes | DocumentRefusedError


@dataclass(frozen=True, slots=True)
class _Kept:
    outcome: _Outcome
    until: float | None
    """On the monotonic clock; None for as long as there is room."""

    @property
    def size(self) -> int:
        """Bytes that it counts for."""
        if isinstance(self.outcome, bytes):
            return len(self.outcome)
        return _REFUSAL_BYTES


class PagePictures:
    """The pictures of one process.

    Args:
        documents: where PDFs are.
        inspector: the sandbox, which draws.
        most_bytes: that pictures may take in memory; 0 keeps none.
    """

    def __init__(
        self, documents: BlobStore, inspector: PdfInspector, most_bytes: int
    ) -> None:
        self._documents = documents
        self._inspector = inspector
        self._most_bytes = most_bytes
        self._queue = FairQueue(_LIMITS, "pictures")
        self._kept: OrderedDict[PageWanted, _Kept] = OrderedDict()
        self._kept_bytes = 0
        self._drawing: dict[PageWanted, asyncio.Task[_Outcome]] = {}

    async def get(self, wanted: PageWanted) -> bytes:
        """A page as a PNG.

        Raises:
            DocumentRefusedError: it cannot be drawn.
            ApplianceError: `OVERLOADED`, `SANDBOX_UNAVAILABLE`, `STORE_UNAVAILABLE`.
        """
        outcome = self._known(wanted) or await self._drawn(wanted)
        if isinstance(outcome, DocumentRefusedError):
            # A new one each time: an exception keeps the frames it passed through.
            raise DocumentRefusedError(
                outcome.code, outcome.reason, params=dict(outcome.params)
            )
        return outcome

    def _known(self, wanted: PageWanted) -> _Outcome | None:
        kept = self._kept.get(wanted)
        if kept is None:
            return None
        if kept.until is not None and time.monotonic() >= kept.until:
            self._forget(wanted)
            return None
        self._kept.move_to_end(wanted)
        return kept.outcome

    def _forget(self, wanted: PageWanted) -> None:
        self._kept_bytes -= self._kept.pop(wanted).size

    async def _drawn(self, wanted: PageWanted) -> _Outcome:
        """Draw, or wait for whoever does."""
        task = self._drawing.get(wanted)
        if task is None:
            task = asyncio.create_task(self._draw(wanted, WORK_OWNER.get()))
            self._drawing[wanted] = task
            task.add_done_callback(lambda done: self._end(wanted, done))
        # Who leaves takes the picture from nobody; a job is not stopped either way.
        return await asyncio.shield(task)

    async def _draw(self, wanted: PageWanted, owner: WorkOwner) -> _Outcome:
        owner = replace(owner, share=wanted.integrator)
        async with self._queue.place(owner):
            pdf = await self._documents.get(wanted.integrator, wanted.sha256)
            try:
                return await self._inspector.render(pdf, wanted.page, None, wanted.dpi)
            except DocumentRefusedError as refusal:
                return refusal.with_traceback(None)

    def _end(self, wanted: PageWanted, done: asyncio.Task[_Outcome]) -> None:
        """Keep what was drawn; a failure of ours is forgotten."""
        del self._drawing[wanted]
        if done.cancelled() or done.exception() is not None:
            return
        outcome = done.result()
        is_picture = isinstance(outcome, bytes)
        kept = _Kept(outcome, None if is_picture else time.monotonic() + _REFUSAL_S)
        if kept.size > self._most_bytes:
            return
        self._kept[wanted] = kept
        self._kept_bytes += kept.size
        while self._kept_bytes > self._most_bytes or len(self._kept) > _KEPT:
            self._forget(next(iter(self._kept)))
