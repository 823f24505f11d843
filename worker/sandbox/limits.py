"""What one job of the sandbox may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of a job, and how many jobs run at once.

    Args and units are those of the settings' section `sandbox`.
    """

    memory_bytes: int
    """Address space of one job, in bytes."""
    cpu_s: int
    """CPU time of one job, in seconds."""
    wall_s: float
    """Wall time of one job, in seconds, from its start."""
    jobs: int
    """Jobs that run at the same time; more wait (see `worker.sandbox.job_queue`)."""
    render_cpu_s: int
    """CPU time of a job that draws, in seconds."""
    render_wall_s: float
    """Wall time of a job that draws, in seconds."""
    document_bytes: int
    """Largest PDF, in bytes."""
    pages: int
    """Most pages of a PDF."""
