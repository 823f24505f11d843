"""`[pki]`, `[timestamps]` and `[revocation]`: the internal CA, TSAs, other CAs."""

import ipaddress
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from appliance.domain.requests.levels import INTERNAL_TSA, TSA_NAME_MOST, TSA_NAMES_MOST
from appliance.domain.text.urls import read_address
from appliance.settings.named_files import CHORES, Content, Holds
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


class ExternalTsaSettings(Section):
    """One timestamping authority outside of the installation."""

    name: str = Field(
        default="", max_length=TSA_NAME_MOST, pattern=r"^([A-Za-z0-9][A-Za-z0-9.:-]*)?$"
    )
    """What profiles call it; the default is the host of its address, and the port
    where it names one."""
    url: str = Field(pattern=r"^https?://[^@\s/?#]+[^@\s#]*$")
    """Its address (RFC 3161 over HTTP), without a user name in it."""
    username: str | None = Field(default=None, pattern=r"^[^:\s]{1,128}$")
    """User name (HTTP Basic), where it wants one; only over https."""
    password_file: Annotated[Path | None, Holds(Content.TEXT, CHORES)] = None
    """File with its password, read by the chores worker."""
    policy: str | None = Field(default=None, pattern=r"^[0-2](\.[0-9]+)+$")
    """Policy to ask for, an object identifier; the default is its own choice."""
    header: str | None = Field(default=None, pattern=r"^[A-Za-z0-9-]{1,64}$")
    """Name of a header by which it knows us (`X-Api-Key`), where it wants one; only
    over https."""
    header_file: Annotated[Path | None, Holds(Content.TEXT, CHORES)] = None
    """File with that header's value, read by the chores worker."""
    certificate_file: Annotated[Path | None, Holds(Content.TEXT, CHORES)] = None
    """Certificate chain (PEM) that we show it in TLS, where it wants one."""
    key_file: Annotated[Path | None, Holds(Content.TEXT, CHORES)] = None
    """Private key (PEM, not encrypted) of that certificate."""
    ca_file: Annotated[Path | None, Holds(Content.TEXT, CHORES)] = None
    """Certificates (PEM) that its TLS is checked by; the default is the system's.
    Its timestamps are checked by the trust store, see docs/timestamps.md."""

    @model_validator(mode="after")
    def _secrets_are_not_told_to_all(self) -> Self:
        for first, second in (
            ("username", "password_file"),
            ("header", "header_file"),
            ("certificate_file", "key_file"),
        ):
            given = getattr(self, first) is not None
            if given is not (getattr(self, second) is not None):
                msg = f"{first} and {second} come together"
                raise ValueError(msg)
            if given and not self.url.startswith("https:"):
                msg = f"{first}: only over https"
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _name_is_its_host(self) -> Self:
        address = read_address(self.url)
        if address is None:
            msg = "url: is no address (https://host/path)"
            raise ValueError(msg)
        if not self.name:
            host = address.netloc.lower()
            # Once, before anybody sees it: the model is frozen from here on.
            object.__setattr__(self, "name", host[:TSA_NAME_MOST])
        return self


class TimestampSettings(Section):
    """Timestamps (RFC 3161): who makes them, and for whom."""

    outside: tuple[ExternalTsaSettings, ...] = Field(
        default=(), max_length=TSA_NAMES_MOST
    )
    """Authorities outside. Which of them stamps, and in which order they are asked,
    says the profile (`profile.tsa`)."""
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

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [INTERNAL_TSA, *(one.name for one in self.outside)]
        if len(set(names)) != len(names):
            msg = f"outside: names must differ, and from {INTERNAL_TSA!r}: {names[1:]}"
            raise ValueError(msg)
        return self


class RevocationSettings(Section):
    """How the status of certificates of outside CAs is asked for (OCSP, CRL)."""

    timeout_s: float = Field(default=10, gt=0, le=60)
    """Longest that one answer or list may take, in seconds."""
    crl_limit_bytes: int = Field(default=10_485_760, ge=1024, le=104_857_600)
    """Largest CRL that is fetched, in bytes; it is embedded in documents as it is."""
    rest_s: Seconds = 300
    """Time for which an address that failed is asked last, in seconds."""
    proxy: str | None = Field(default=None, pattern=r"^http://[^@\s/?#]+/?$")
    """HTTP proxy by which they are reached; which addresses it goes to is then a
    matter of the proxy."""
    allowed_networks: tuple[str, ...] = Field(default=(), max_length=32)
    """Networks (`10.1.2.0/24`) that may be asked beside public addresses: where to
    ask stands in certificates, so loopback, link-local and private ones are refused."""

    @field_validator("allowed_networks")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            ipaddress.ip_network(one)
        return value
