"""What `/metrics` tells of a TSA: how it answered, how quickly, and when."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.metrics import metrics


@contextmanager
def tsa_measured(name: str) -> Iterator[None]:
    """Count a question to a TSA by how it ended.

    Args:
        name: of the settings, or `internal`.
    """
    began = time.perf_counter()
    try:
        yield
    except Exception:
        metrics.TSA_REQUESTS.labels(name, "failed").inc()
        metrics.TSA_LAST_BAD.labels(name).set_to_current_time()
        raise
    else:
        metrics.TSA_REQUESTS.labels(name, "granted").inc()
        metrics.TSA_LAST_GOOD.labels(name).set_to_current_time()
    finally:
        metrics.TSA_SECONDS.labels(name).observe(time.perf_counter() - began)
