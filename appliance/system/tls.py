"""TLS to the servers that this stands on: PostgreSQL and Redis."""

import ssl
from pathlib import Path
from typing import Literal

from appliance.settings import DatabaseSettings, SettingsError

DatabaseTls = ssl.SSLContext | Literal["disable", "prefer"]


def database_tls(settings: DatabaseSettings) -> DatabaseTls:
    """How connections to PostgreSQL are kept from others; asyncpg's `ssl`.

    Args:
        settings: of the database.

    Raises:
        SettingsError: the authorities' file cannot be used.

    Source: PostgreSQL, "libpq", 34.19.1.
    """
    if settings.tls in {"disable", "prefer"}:
        return "disable" if settings.tls == "disable" else "prefer"
    context = read_authorities(settings.root_certificate_file)
    context.check_hostname = settings.tls == "verify-full"
    if settings.tls == "require":
        context.verify_mode = ssl.CERT_NONE
    return context


def read_authorities(path: Path | None) -> ssl.SSLContext:
    """What checks a server's certificate by some authorities.

    Args:
        path: of their certificates (PEM); None: the system's.

    Raises:
        SettingsError: it cannot be read, or holds no certificate.
    """
    try:
        return ssl.create_default_context(cafile=path)
    except ssl.SSLError as exc:
        msg = f"{path}: holds no certificates (PEM)"
        raise SettingsError(msg) from exc
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
