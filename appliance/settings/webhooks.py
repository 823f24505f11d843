"""`[webhooks]`: how integrators' backends are told of what happens."""

import ipaddress
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from appliance.domain.text.public_addresses import Network
from appliance.settings.named_files import CHORES, Content, Holds
from appliance.settings.section import Section


class WebhookSettings(Section):
    """Webhooks: what the chores worker sends to integrators' backends."""

    allow_http: bool | None = None
    """Whether addresses may be of http as well as https; the default is yes in
    `PREPROD` and no in `PROD`."""
    allowed_networks: tuple[str, ...] = Field(default=(), max_length=32)
    """Networks (`10.1.2.0/24`) that may be told beside public addresses: integrators
    choose where to, so loopback, link-local and private ones are refused."""
    proxy: str | None = Field(default=None, pattern=r"^http://[^@\s/?#]+/?$")
    """HTTP proxy by which they are reached; which addresses it goes to is then a
    matter of the proxy."""
    ca_file: Annotated[Path | None, Holds(Content.CERTIFICATES, CHORES)] = None
    """Certificates (PEM) that TLS is checked by beside the system's."""
    timeout_s: float = Field(default=15, gt=0, le=60)
    """Longest that one try may take, in seconds."""
    concurrency: int = Field(default=32, ge=1, le=256)
    """Tries at once, in each chores worker; a quarter of them for one integrator."""
    endpoint_concurrency: int = Field(default=4, ge=1, le=64)
    """Of those, tries at once to one endpoint; 1 to one that is failing."""
    disable_days: int = Field(default=5, ge=1, le=90)
    """Days for which every try at an endpoint has failed when it is disabled."""
    kept_days: int = Field(default=30, ge=1, le=3650)
    """Days for which it is kept what was sent and answered."""

    @property
    def networks(self) -> tuple[Network, ...] | None:
        """Networks that may be told beside public addresses; None: the proxy knows."""
        if self.proxy is not None:
            return None
        return tuple(map(ipaddress.ip_network, self.allowed_networks))

    @field_validator("allowed_networks")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            ipaddress.ip_network(one)
        return value
