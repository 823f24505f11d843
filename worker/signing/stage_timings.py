"""How long each stage of one signature took, for the log and the benchmarks."""

import time
from dataclasses import dataclass, field
from typing import Final

from appliance.metrics import metrics
from worker.signing.turns import SINGLE, Turn

_MS: Final = 1000


@dataclass(slots=True)
class StageTimings:
    """A stopwatch that is pressed at the end of each stage.

    Args:
        turn: in which the stages are.
    """

    turn: Turn = SINGLE
    ms: dict[str, float] = field(default_factory=dict)
    """Milliseconds by stage, in the order in which they ended."""
    _last: float = field(default_factory=time.perf_counter)

    def done(self, stage: str) -> None:
        """End a stage; the next one begins."""
        now = time.perf_counter()
        self.ms[stage] = round((now - self._last) * _MS, 2)
        metrics.SIGNATURE_STEP_SECONDS.labels(stage).observe(now - self._last)
        self._last = now

    async def over(self, stage: str) -> None:
        """End a stage after which others may go before; that is part of none."""
        self.done(stage)
        await self.turn.make_way()
        self._last = time.perf_counter()
