"""Files of the demo integrator's site (`rubrica demo host`), made by `demo setup`.

The site is another party: what it knows stands in files of its own, the API key
apart from the rest. The port is kept, since its origin is a registered domain.
"""

import json
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from appliance.system.held_listeners import held_address

CONFIG_FILE: Final = "demo-host.json"
KEY_FILE: Final = "demo-api-key"
SITE: Final = "site"
"""Name of the site's listener, where a trial's start keeps it open."""
SITE_PORT: Final = 8090
"""Preferred port."""


@dataclass(frozen=True, slots=True)
class DemoHostFiles:
    """What the site is told; see `embed.demo.config.HostConfig`."""

    listen: str
    """`host:port`; its origin is `http://` and this."""
    web_url: str
    """{web_url} of the installation."""
    iframe_url: str
    """{iframe_url} of the installation; another site than `listen`."""
    integrator_id: str
    """Id of the demo integrator at the session endpoint."""
    event_prefix: str
    """Prefix of browser messages."""
    download_origins: tuple[str, ...]
    """Origins of download links."""
    mail_listen: str = ""
    """Where the installation's mails go, to be caught; empty: nowhere."""
    user: dict[str, str] = field(default_factory=dict)
    """Proposed `userData`."""
    sample: str = "demo.pdf"
    """Name of the sample document, in the same folder."""
    public_origin: str = ""
    """Origin in browsers, where a TLS front stands before the site."""
    service_url: str = ""
    """Where the site's backend reaches the installation; empty: at `web_url`."""
    visit_key_file: str = ""
    """File with the key that shows codes and mails, from the same folder; empty: none
    is asked for."""

    def write(self, folder: Path) -> None:
        """Write the configuration, whole or not at all.

        Args:
            folder: the installation's data folder.
        """
        told = {
            "listen": self.listen,
            "web_url": self.web_url,
            "iframe_url": self.iframe_url,
            "integrator_id": self.integrator_id,
            "api_key_file": KEY_FILE,
            "event_prefix": self.event_prefix,
            "download_origins": self.download_origins,
            "sample": self.sample,
            "mail_listen": self.mail_listen,
            "user": self.user,
        }
        if self.public_origin:
            told |= {
                "public_origin": self.public_origin,
                "service_url": self.service_url,
                "visit_key_file": self.visit_key_file,
            }
        text = json.dumps(told, ensure_ascii=False, indent=2)
        _write(folder / CONFIG_FILE, f"{text}\n")


def host_address(folder: Path) -> str:
    """Find the site's address: the one it had, or one that is free.

    The start of a trial keeps one open. Without it: 8090 if it is free, or any.

    Args:
        folder: the installation's data folder.

    Returns:
        `127.0.0.1:port`: another site than `localhost`, where the iframe is.
    """
    try:
        told = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        return str(told["listen"])
    except (OSError, ValueError, KeyError, TypeError):
        return held_address(SITE) or f"127.0.0.1:{_free_port()}"


def kept_key(folder: Path) -> str:
    """The site's API key, which was shown once alone; empty before `keep_key`.

    Args:
        folder: the installation's data folder.
    """
    path = folder / KEY_FILE
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def keep_key(folder: Path, secret: str) -> None:
    """Keep the site's API key, for its owner's eyes.

    Args:
        folder: the installation's data folder.
        secret: the key, as it was shown.
    """
    _write(folder / KEY_FILE, f"{secret}\n")


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.touch(mode=0o600)
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _free_port() -> int:
    """8090 where it is free, else one that the system picks.

    Raises:
        OSError: none is free.
    """
    for port in (SITE_PORT, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    msg = "no port is free"
    raise OSError(msg)
