"""`[web]`: addresses and limits of the HTTP faces."""

import ipaddress
from typing import Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from appliance.domain.text.urls import read_address
from appliance.settings.section import Seconds, Section

_ADDRESS = r"^https?://[^/?#\s]+(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$"
_ORIGIN = r"^https?://[a-z0-9.-]+(:[0-9]{1,5})?$"

_LAST_PORT: Final = 65535
_NETWORKS: Final = (ipaddress.IPv4Network, ipaddress.IPv6Network)
FACES: Final[tuple[str, ...]] = ("api", "embed", "admin")
"""Roles that answer HTTP, each on a listener of its own (`web.listen_…`)."""
INSTALLATION_HEADER: Final = "Rubrica-Installation"
"""Header that names an installation by `Settings.folder_id`; the `api` role repeats it
if it is that one."""
METRICS: Final = "metrics"
"""The role that answers Prometheus, on `metrics.listen`."""


def origin_of(url: str) -> str:
    """Scheme, host and port of an address.

    Args:
        url: http or https.

    Raises:
        ValueError: it is no address.
    """
    parts = read_address(url)
    if parts is None:
        msg = f"{url!r}: is no address (https://host, https://host:port)"
        raise ValueError(msg)
    return f"{parts.scheme}://{parts.netloc}"


def checked_listener(given: str) -> str:
    """An address to listen on, or nothing.

    Args:
        given: `host:port`, `unix:/path` or empty.

    Raises:
        ValueError: it is none of these.
    """
    host, colon, port = given.rpartition(":")
    if not given or (given.startswith("unix:/") and given != "unix:/"):
        return given
    right = port.isascii() and port.isdigit() and 1 <= int(port) <= _LAST_PORT
    if not colon or not host or host == "unix" or not right:
        msg = (
            f"{given!r}: must be host:port with a port from 1 to {_LAST_PORT}, "
            "or unix:/path"
        )
        raise ValueError(msg)
    return given


class WebSettings(Section):
    """Addresses and limits of the HTTP faces."""

    base_url: str = Field(
        default="http://127.0.0.1:8080",
        pattern=_ADDRESS,
        examples=["https://firma.example", "https://firma.example/firma-api"],
    )
    """Public address of the REST API, without a final slash ({base_url}). It may have a
    path (`https://firma.example/firma-api`): all links carry it, and a web server
    before the role may keep it or strip it."""
    web_url: str = Field(
        default="",
        pattern=rf"{_ADDRESS}|^$",
        examples=["https://sesiones.firma.example"],
    )
    """Public address of the session API ({web_url}), served by the `api` role
    too; the default is `base_url`."""
    iframe_url: str = Field(
        default="http://localhost:8081",
        pattern=_ORIGIN,
        examples=["https://marco.firma.example", "https://firma.example:8443"],
    )
    """Origin of the iframe ({iframe_url}): no other address here may have it."""
    admin_url: str = Field(
        default="http://127.0.0.1:8082",
        pattern=_ORIGIN,
        examples=["https://consola.firma.example", "https://firma.example:8444"],
    )
    """Origin of the console; best reachable from inside alone."""
    documentation_url: str = Field(default="", pattern=r"^(https?://[^\s]+)?$")
    """Where this installation's documentation is; the page at {base_url} links to
    it. Empty: no link."""
    listen_api: str = "127.0.0.1:8080"
    """Address that the `api` role listens on: `host:port` or `unix:/path`."""
    listen_embed: str = "127.0.0.1:8081"
    """Address that the `embed` role listens on; empty: `rubrica up` runs none."""
    listen_admin: str = "127.0.0.1:8082"
    """Address that the `admin` role listens on; empty: `rubrica up` runs none."""
    trusted_proxies: tuple[str, ...] | None = None
    """Networks of the proxies before the faces, whose word on the client's address is
    taken (`["10.0.0.0/24"]`; `"unix"` for who connects to a Unix socket). `[]`: none
    is before them. Without it none is trusted, and PROD does not start."""
    client_address_header: Literal["x-forwarded-for", "forwarded"] = "x-forwarded-for"
    """Header in which they name the client; the other one is not looked at."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the REST API, exact (`https://a.example`)."""
    body_limit_bytes: int = Field(default=1_048_576, ge=1024, le=104_857_600)
    """Largest JSON body of who is signed in, in bytes; of others at most 16 KiB."""
    bodies_limit_bytes: int = Field(default=268_435_456, ge=65_536)
    """Bytes of bodies that a process holds at once, at least one document's. One
    person, session or administrator has at most a quarter of them, one integrator
    a half; more is refused with 503."""
    body_timeout_s: Seconds = 15
    """Longest a body may take to arrive, in seconds, and longer by a second for each
    64 KiB that came."""
    graceful_s: Seconds = 30
    """Longest that running calls are waited for at a stop, in seconds."""
    connections: int = Field(default=1024, ge=16, le=65535)
    """Connections of a process, at most three quarters of the descriptors that it may
    open. Beyond, the one that has waited longest without a call ends."""
    connections_address: int = Field(default=256, ge=4, le=65535)
    """Connections of one client's address; trusted proxies have no such limit."""
    backlog: int = Field(default=512, ge=16, le=65535)
    """Connections that may wait to be accepted."""

    def listen(self, face: str) -> str:
        """Where a face listens.

        Args:
            face: one of `FACES`.
        """
        addresses = (self.listen_api, self.listen_embed, self.listen_admin)
        return dict(zip(FACES, addresses, strict=True))[face]

    @field_validator("listen_api", "listen_embed", "listen_admin")
    @classmethod
    def _listens_somewhere(cls, given: str) -> str:
        return checked_listener(given)

    @field_validator("trusted_proxies")
    @classmethod
    def _proxies_are_networks(
        cls, given: tuple[str, ...] | None
    ) -> tuple[str, ...] | None:
        for text in given or ():
            try:
                network = text == "unix" or ipaddress.ip_network(text)
            except ValueError as exc:
                msg = f"{text!r}: must be a network (10.0.0.0/24), an address or unix"
                raise ValueError(msg) from exc
            if isinstance(network, _NETWORKS) and not network.prefixlen:
                msg = f"{text!r}: everybody could name any address as theirs"
                raise ValueError(msg)
        return given

    @model_validator(mode="after")
    def _web_url_is_base_url(self) -> Self:
        if not self.web_url:
            # Once, before anybody sees it: the model is frozen from here on.
            object.__setattr__(self, "web_url", self.base_url)
        return self

    @model_validator(mode="after")
    def _frame_has_its_own_origin(self) -> Self:
        # A page of the API or the console could reach into a frame of its origin.
        # `origin_of` of all: what is no address is refused here.
        others = {
            origin_of(url) for url in (self.base_url, self.web_url, self.admin_url)
        }
        if origin_of(self.iframe_url) in others:
            msg = (
                "iframe_url: must be an origin of its own: another host or port than "
                "web.base_url, web.web_url and web.admin_url have"
            )
            raise ValueError(msg)
        return self
