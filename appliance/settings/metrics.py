"""`[metrics]`: where figures are handed over, and where they are asked for."""

import re
from pathlib import Path
from typing import Final

from pydantic import Field, field_validator

from appliance.domain.text.urls import read_address
from appliance.settings.section import Section
from appliance.settings.web import checked_listener

_HOST: Final = re.compile(r"https?://[^/?#@\s]+:[1-9][0-9]{0,4}")


class MetricsSettings(Section):
    """Figures for Prometheus."""

    listen: str = ""
    """Address that the `metrics` role listens on, `host:port` or `unix:/path`, for
    Prometheus and other hosts' consoles: whoever reaches it reads all figures, and
    nothing secret. `rubrica
    setup` and `rubrica init` write one; empty, figures are not served."""
    folder: Path | None = None
    """Folder in which each role has one of its own to hand its figures over; the
    default is `metrics` in `run_dir`."""

    hosts: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        examples=[["http://192.0.2.12:8083"]],
    )
    """Addresses of the other hosts' figures (their `metrics.listen`), without a path.
    The console shows them beside those of its own host."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for each in given:
            parts = read_address(each)
            if parts is None or not _HOST.fullmatch(each) or not parts.hostname:
                msg = f"{each!r}: must be http://host:port, or https"
                raise ValueError(msg)
        if len(set(given)) < len(given):
            msg = "each host once"
            raise ValueError(msg)
        return given

    @field_validator("listen")
    @classmethod
    def _listens_somewhere(cls, given: str) -> str:
        return checked_listener(given)
