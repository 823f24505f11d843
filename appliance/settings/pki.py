"""`[pki]` and `[timestamps]`: the internal CA, and who makes timestamps."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from appliance.settings.section import Seconds, Section


class PkiSettings(Section):
    """What the internal CA publishes. Each is signed anew at half of its time."""

    crl_validity_s: int = Field(default=604_800, ge=3600, le=2_592_000)
    """Time from a CRL's thisUpdate to its nextUpdate, in seconds."""
    ocsp_validity_s: int = Field(default=86_400, ge=600, le=604_800)
    """Time from an OCSP answer's thisUpdate to its nextUpdate, in seconds."""
    renew_days: int = Field(default=30, ge=0, le=365)
    """Days before its end that a certificate of the internal CA is renewed by
    itself, on the same key; 0: never."""
    requests_per_minute_address: int = Field(default=1200, ge=10, le=1_000_000)
    """Questions under `/pki/` a minute from one address, in each `api` process."""


class OutsideTsaSettings(Section):
    """One timestamping authority outside of the installation."""

    url: str = Field(pattern=r"^https?://[^@\s/?#]+[^@\s#]*$")
    """Its address (RFC 3161 over HTTP), without a user name in it."""
    username: str | None = Field(default=None, pattern=r"^[^:\s]{1,128}$")
    """User name (HTTP Basic), where it wants one; only over https."""
    password_file: Path | None = None
    """File with its password, read by the chores worker."""
    policy: str | None = Field(default=None, pattern=r"^[0-2](\.[0-9]+)+$")
    """Policy to ask for, an object identifier; the default is its own choice."""
    ca_file: Path | None = None
    """Certificates (PEM) that its TLS is checked by; the default is the system's.
    Its timestamps are checked by the trust store, see docs/timestamps.md."""

    @model_validator(mode="after")
    def _password_is_not_told_to_all(self) -> Self:
        if (self.username is None) is not (self.password_file is None):
            msg = "username and password_file come together"
            raise ValueError(msg)
        if self.username is not None and not self.url.startswith("https:"):
            msg = "username: only over https"
            raise ValueError(msg)
        return self


class TimestampSettings(Section):
    """Timestamps (RFC 3161): who makes them, and for whom."""

    outside: tuple[OutsideTsaSettings, ...] = Field(default=(), max_length=8)
    """Authorities outside, asked in this order until one answers well: so far by
    `rubrica timestamps try` alone; documents are stamped by the internal one."""
    proxy: str | None = Field(default=None, pattern=r"^http://[^@\s/?#]+/?$")
    """HTTP proxy by which the ones outside are reached."""
    timeout_s: float = Field(default=10, gt=0, le=60)
    """Longest that one of them may take to answer, in seconds."""
    rest_s: Seconds = 300
    """Time for which one that failed is asked last, in seconds."""
    accuracy_s: int = Field(default=1, ge=1, le=60)
    """How far from the true time the clocks of signing hosts may be, in seconds:
    what the internal authority's timestamps say of themselves."""
    public: bool = False
    """Whether the internal authority stamps for anybody, at `POST /tsa`."""
    requests_per_minute_address: int = Field(default=60, ge=1, le=1_000_000)
    """Questions to `/tsa` a minute from one address, in each `api` process."""
