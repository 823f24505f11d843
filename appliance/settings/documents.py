"""`[documents]` and `[sandbox]`: how PDFs are kept, and looked at."""

from pathlib import Path

from pydantic import Field

from appliance.domain.document import FindingKind
from appliance.settings.section import Seconds, Section


class DocumentSettings(Section):
    """Where PDFs are kept and how big they may be."""

    path: Path | None = None
    """Folder; the default is `documents` in `data_dir`."""
    limit_bytes: int = Field(default=50_000_000, ge=1024, le=104_857_600)
    """Largest document, in bytes."""
    pages: int = Field(default=5000, ge=1, le=5000)
    """Most pages of a document."""
    refuse: tuple[FindingKind, ...] = ()
    """Findings for which a document is not taken in: 422 `PDF_NOT_ALLOWED`; see
    `docs/documents.md`. By default the signer is told of each and decides."""
    reserve_bytes: int = Field(default=134_217_728, ge=0, le=1_099_511_627_776)
    """Room kept on the documents' disk for what was signed already, in bytes. As
    long as the disk has none left for it, nothing is signed (`STORAGE_FULL`). Make
    it as large as all the documents that are signed at a time; 0: none."""
    unused_days: int = Field(default=7, ge=1, le=3650)
    """Days after which a document that nothing refers to is removed."""
    pictures_bytes: int = Field(default=33_554_432, ge=0, le=1_073_741_824)
    """Memory of each `embed` process for pictures of pages, in bytes. They are kept
    in memory alone, as nothing of a document lies on a disk unencrypted."""
    per_session: int = Field(default=20, ge=1, le=1000)
    """Documents that one session of the frame may bring, one after the other."""
    session_bytes: int = Field(default=209_715_200, ge=1024, le=10_737_418_240)
    """Bytes that one session of the frame may have brought at a time; a document of
    `limit_bytes` always passes. What it replaced goes within minutes."""
    integrator_bytes: int = Field(default=5_368_709_120, ge=1024, le=1_099_511_627_776)
    """Bytes that all sessions of one integrator's frame may have brought at a time
    and nobody has been asked to sign. They go at the sessions' ends."""
    intake_room_bytes: int = Field(default=536_870_912, ge=0, le=1_099_511_627_776)
    """Room on the documents' disk, in bytes, that documents which come in leave: with
    less of it they are refused (`STORAGE_FULL`), and what came in before is signed."""


class SandboxSettings(Section):
    """Limits within which one PDF is looked at."""

    socket: Path | None = None
    """Unix socket; the default is `sandbox.sock` in `run_dir`."""
    memory_bytes: int = Field(default=1_073_741_824, ge=268_435_456)
    """Address space of one job, in bytes."""
    cpu_s: int = Field(default=10, ge=1, le=120)
    """CPU time of one job, in seconds."""
    wall_s: Seconds = 20
    """Wall time of one job, in seconds; what computes has 1 s of a processor before."""
    jobs: int = Field(default=4, ge=1, le=64)
    """Jobs that run at the same time; more wait. Drawing never takes all places, and
    one integrator's jobs do not either (see `docs/limits.md`)."""
    render_cpu_s: int = Field(default=3, ge=1, le=120)
    """CPU time of a job that draws a page, in seconds; at most `cpu_s` is used."""
    render_wall_s: Seconds = 6
    """Wall time of a job that draws a page, likewise; at most `wall_s` is used."""
