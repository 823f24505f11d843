"""What the demo integrator has in configuration, as any integrator would.

`rubrica demo setup` writes the file; the API key lies in one of its own, so that
the configuration can be shown around.
"""

import ipaddress
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from appliance.settings import SettingsError

USER_FIELDS: Final = ("cuil", "dni", "email", "name", "gender", "phone", "address")
"""Fields of `userData`. Source: contract, "Iframe init message payload"."""


@dataclass(frozen=True, slots=True)
class HostConfig:
    """Everything that the demo host is told."""

    listen: str
    """Address that it listens on, `host:port`; also its origin."""
    web_url: str
    """Where sessions are asked for ({web_url})."""
    iframe_url: str
    """Origin of the iframe ({iframe_url})."""
    integrator_id: str
    """The integrator's id."""
    api_key_file: Path
    """File with the API key; read for each session, so that it can be rotated."""
    event_prefix: str = "svc"
    """Prefix of the browser messages."""
    download_origins: tuple[str, ...] = ()
    """Origins that signed documents are fetched from, by `delivery.url`."""
    sample: Path | None = None
    """A PDF that the page offers beside the visitor's own."""
    mail_listen: str = ""
    """Address where the trial's mails are caught, `host:port`; empty: they are not."""
    user: dict[str, str] = field(default_factory=dict)
    """What the signer's form is filled with; fields of `userData`."""
    public_origin: str = ""
    """Origin in browsers where that is another one: behind a TLS front."""
    service_url: str = ""
    """Where this backend reaches the service; empty: at `web_url`."""
    visit_key_file: Path | None = None
    """Key without which no passwords, codes and mails are shown; None: on this
    machine's loopback none is asked for."""

    @property
    def origin(self) -> str:
        """The demo host's own origin, to be registered with the appliance."""
        return self.public_origin or f"http://{self.listen}"

    @property
    def is_on_this_machine(self) -> bool:
        """True if the site listens on loopback alone."""
        host = self.listen.rpartition(":")[0].strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def read_config(path: Path) -> HostConfig:
    """Read the demo host's configuration.

    Args:
        path: JSON; relative paths inside count from its folder.

    Raises:
        SettingsError: not readable, or a key is missing, unknown or of no use.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        config = _of_json(raw, path.resolve().parent)
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror}); run `rubrica demo setup`"
        raise SettingsError(msg) from exc
    except (TypeError, ValueError, KeyError) as exc:
        msg = f"{path}: not a configuration of the demo host ({exc})"
        raise SettingsError(msg) from exc
    return config


def _of_json(raw: dict[str, Any], folder: Path) -> HostConfig:
    """Build the configuration.

    Raises:
        ValueError: `userData` has no such field.
    """
    raw = dict(raw)
    unknown = raw.get("user", {}).keys() - set(USER_FIELDS)
    if unknown:
        msg = f"user: unknown fields {sorted(unknown)}"
        raise ValueError(msg)
    raw["api_key_file"] = folder / raw["api_key_file"]
    raw["download_origins"] = tuple(raw.get("download_origins", ()))
    for name in ("sample", "visit_key_file"):
        if raw.get(name):
            raw[name] = folder / raw[name]
    return HostConfig(**raw)
