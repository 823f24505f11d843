"""Where the database is, as PostgreSQL's own programs are told it.

    subprocess.run(["psql"], env={**os.environ, **libpq_variables(settings)})

By the environment: arguments are read by every process of the machine.

Source: PostgreSQL, "libpq", 34.15.
"""

import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from appliance.database.engines import connect_options, database_url
from appliance.settings import Settings

_AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
"""The system's; libpq before 16 has no word for them."""


def libpq_variables(settings: Settings) -> dict[str, str]:
    """Hosts, database, user, password and TLS; what is not set is left out.

    Args:
        settings: of the installation; PostgreSQL's.

    Raises:
        SettingsError: a file that they name cannot be read.
    """
    url = database_url(settings)
    database, options = settings.database, connect_options(settings)
    authorities = database.root_certificate_file
    if authorities is None and database.tls.startswith("verify"):
        authorities = _AUTHORITIES
    hosts = options.get("host", [url.query.get("host") or url.host])
    ports = options.get("port", [url.query.get("port") or url.port])
    found = {
        "PGDATABASE": url.database,
        "PGHOST": ",".join(map(str, filter(None, hosts))),
        "PGPORT": ",".join(map(str, filter(None, ports))),
        "PGUSER": url.query.get("user")
        or named_user(settings)
        or os.environ.get("PGUSER"),
        "PGPASSWORD": url.password,
        "PGSSLMODE": database.tls,
        "PGSSLROOTCERT": authorities,
        "PGTARGETSESSIONATTRS": options.get("target_session_attrs"),
        "PGCONNECT_TIMEOUT": "10",
    }
    return {key: str(value) for key, value in found.items() if value}


def named_user(settings: Settings) -> str:
    """The one user that the settings name for all; empty: each comes as who it is."""
    given = settings.database.url
    before = given.partition("://")[2].partition("?")[0].partition("/")[0]
    return unquote(before.rpartition("@")[0])
