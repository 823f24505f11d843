"""`[metrics]`: where figures are handed over, and where they are asked for."""

from pathlib import Path

from pydantic import field_validator

from appliance.settings.section import Section
from appliance.settings.web import checked_listener


class MetricsSettings(Section):
    """Figures for Prometheus."""

    listen: str = ""
    """Address that the `metrics` role listens on, `host:port` or `unix:/path`, for
    Prometheus alone: whoever reaches it reads all figures, and nothing secret. `rubrica
    setup` and `rubrica init` write one; empty, figures are not served."""
    folder: Path | None = None
    """Folder in which each role has one of its own to hand its figures over; the
    default is `metrics` in `run_dir`."""

    @field_validator("listen")
    @classmethod
    def _listens_somewhere(cls, given: str) -> str:
        return checked_listener(given)
