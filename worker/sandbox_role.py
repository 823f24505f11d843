"""The `sandbox` role: hands the sandbox its limits and nothing else.

It stands outside `worker.sandbox`, which knows no settings.
"""

import socket

from appliance.metrics.metrics_file import MetricsFile
from appliance.settings import Settings
from worker.sandbox.server import SandboxLimits, serve


def run_sandbox(settings: Settings, number: int, listener: socket.socket | None) -> int:
    """Serve until told to stop; the process's exit status.

    Raises:
        ValueError: without a listener.
    """
    if listener is None:
        msg = "the sandbox role needs a listener"
        raise ValueError(msg)
    sandbox = settings.sandbox
    limits = SandboxLimits(
        memory_bytes=sandbox.memory_bytes,
        cpu_s=sandbox.cpu_s,
        wall_s=sandbox.wall_s,
        jobs=sandbox.jobs,
        render_cpu_s=sandbox.render_cpu_s,
        render_wall_s=sandbox.render_wall_s,
        document_bytes=settings.documents.limit_bytes,
        pages=settings.documents.pages,
    )
    figures = MetricsFile(settings.metrics_dir, "sandbox", number)
    serve(listener, limits, settings.fonts_dir, metrics_file=figures)
    return 0
