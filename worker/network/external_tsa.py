"""A timestamping authority outside, as it is set: its address and our secrets."""

import base64
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from appliance.settings import ExternalTsaSettings, SettingsError

QUERY: Final = "application/timestamp-query"
REPLY: Final = "application/timestamp-reply"


@dataclass(slots=True)
class ExternalTsa:
    """An authority, and how it did."""

    name: str
    url: str = field(repr=False)
    policy: str | None
    headers: dict[str, str] = field(repr=False)
    tls: ssl.SSLContext | bool
    rests_until: datetime | None = None

    @property
    def host(self) -> str:
        """Its host: the rest of an address may hold what is nobody's business."""
        return urlsplit(self.url).netloc


def read_outside(settings: ExternalTsaSettings) -> ExternalTsa:
    """An authority of the settings, its files read.

    Args:
        settings: of it.

    Raises:
        SettingsError: one cannot be used.
    """
    headers = {
        "Content-Type": QUERY,
        "Accept": REPLY,
        "Accept-Encoding": "identity",
        "User-Agent": "rubrica",
    }
    tls: ssl.SSLContext | bool = True
    try:
        if settings.password_file is not None:
            password = _secret(settings.password_file)
            pair = f"{settings.username}:{password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        if settings.header is not None and settings.header_file is not None:
            headers[settings.header] = _secret(settings.header_file)
        if settings.ca_file is not None or settings.certificate_file is not None:
            tls = ssl.create_default_context(
                cafile=settings.ca_file and str(settings.ca_file)
            )
            if settings.certificate_file is not None:
                # An empty password: never one that is asked for at a terminal.
                tls.load_cert_chain(settings.certificate_file, settings.key_file, "")
    except (OSError, ValueError) as exc:
        msg = f"timestamps.outside: {settings.name}: a file cannot be used ({exc})"
        raise SettingsError(msg) from exc
    return ExternalTsa(settings.name, settings.url, settings.policy, headers, tls)


def _secret(path: Path) -> str:
    """What a file holds, which goes into a header.

    Raises:
        ValueError: more than one line, or nothing.
        OSError: it cannot be read.
    """
    text = path.read_text("utf-8").strip()
    if not text or not text.isprintable():
        msg = f"{path}: not one line of text"
        raise ValueError(msg)
    return text
