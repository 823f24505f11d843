"""`[integration]`: how much integrators' backends may call for."""

from pydantic import Field

from appliance.settings.section import Section


class IntegrationSettings(Section):
    """How much an integrator's backend may call for; what goes beyond it is 429.

    Counted in Redis for all processes; while it is away each counts alone.
    """

    calls_per_minute: int = Field(default=6_000, ge=1, le=1_000_000)
    """Calls a minute with one API key, but for `session/new`."""
    sessions_per_minute: int = Field(default=600, ge=1, le=1_000_000)
    """Sessions of the iframe a minute that one API key opens."""
    requests_per_day: int = Field(default=100_000, ge=1, le=1_000_000_000)
    """Requests that one integrator makes within 24 hours."""
    upload_bytes_per_day: int = Field(
        default=10_737_418_240, ge=1_048_576, le=1_099_511_627_776
    )
    """Bytes of documents that one integrator's backend sends within 24 hours."""
