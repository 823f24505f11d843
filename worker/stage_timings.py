"""How long each stage of one signature took, for the log and the benchmarks."""

import time
from typing import Final

from appliance.core import metrics

_MS: Final = 1000


class StageTimings:
    """A stopwatch that is pressed at the end of each stage."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.ms: dict[str, float] = {}
        """Milliseconds by stage, in the order in which they ended."""

    def done(self, stage: str) -> None:
        """End a stage; the next one begins."""
        now = time.perf_counter()
        self.ms[stage] = round((now - self._last) * _MS, 2)
        metrics.SIGNATURE_STEP_SECONDS.labels(stage).observe(now - self._last)
        self._last = now
