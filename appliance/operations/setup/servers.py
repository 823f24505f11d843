"""Servers on other hosts: passwords, the units' way there, a look at PostgreSQL.

    servers.make_passwords(settings)
    servers.write_drop_ins(settings)
    servers.make_users(settings, administrator)

Each role has a user of its own in the database, with a password of its own, which
systemd hands to its unit alone under the name that the settings have. The mail server
is the chores' alone.

Source: docs/database.md "Set it up", docs/mail.md "Setting it up".
"""

import asyncio
import ipaddress
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg

from appliance.cli.as_role import credentials_of
from appliance.cli.installation.database import database_name, roles_sql, verifiers_of
from appliance.cli.terminal import say
from appliance.database.engines import connect_options, database_url
from appliance.database.password_files import password_file_of, read_password
from appliance.database.rights import OWNER, Role
from appliance.operations import system
from appliance.operations.libpq import libpq_variables, named_user
from appliance.operations.setup.addresses import addresses_of_host
from appliance.operations.setup_answers import (
    AUTHORITIES,
    MAIL_PASSWORD,
    PASSWORDS,
    Answers,
)
from appliance.settings import Settings, SettingsError

_USERS: Final = (OWNER, *(role.value for role in Role))
UNITS: Final[Mapping[str, str]] = {
    "api": Role.API,
    "embed": Role.EMBED,
    "admin": Role.ADMIN,
    "signing@": Role.SIGNING,
    "chores": Role.CHORES,
    "migrate": OWNER,
    "audit-verify": OWNER,
    "backup": OWNER,
}
"""Units that use the database, and as whom."""
_OWN_UNIT: Final = {
    user: next(unit for unit, one in UNITS.items() if one == user) for user in _USERS
}
"""The unit that a user of the database is named after."""
_MAILING: Final = "chores"
"""The unit that hands mails to their server."""
_FILE: Final = "servers.conf"
"""Our drop-in's name."""
_DROP_IN: Final = """\
# Written by `rubrica setup`, and again where it is another: the way to PostgreSQL,
# Redis and the mail server on other hosts. Lines of your own go into a file beside it.
[Service]
"""
_NOT_YET: Final = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)
"""What PostgreSQL says where users or database are not there, or not let in."""
_AMISS: Final = "database: "
_EVERYWHERE: Final = "postgres"
"""The database that each server has."""


def has_host(settings: Settings) -> bool:
    """Whether PostgreSQL is asked by a host's name, with a password.

    Args:
        settings: of the installation.
    """
    netloc = urlsplit(settings.database.url).netloc.rpartition("@")[2]
    return bool(netloc) and settings.database.password_file is not None


def bring_files(answers: Answers) -> None:
    """Copy what the answers name to where the roles may read it.

    Args:
        answers: looked at.

    Raises:
        SettingsError: a file cannot be read.
    """
    for key, place in AUTHORITIES.items():
        if given := getattr(answers, key):
            text = _read(Path(given))
            system.write_if_missing(place, text, mode=0o644, owner="root")
    passwords = {
        "redis": answers.redis_password_file,
        MAIL_PASSWORD: answers.mail_password_file,
    }
    for name, given in passwords.items():
        if given:
            text = read_password(Path(given)) + "\n"
            place = PASSWORDS / name
            system.write_if_missing(place, text, mode=0o600, owner=OWNER)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        msg = f"{path}: cannot be read ({exc})"
        raise SettingsError(msg) from exc


def make_passwords(settings: Settings) -> None:
    """A password of each user of the database; those that are there stay.

    Args:
        settings: whose database is on a host.
    """
    ours = settings.database.password_file
    for path in _password_files(settings).values():
        # What a drop-in of the operator's names is theirs to make.
        if ours is not None and path.parent == ours.parent:
            text = secrets.token_hex(32) + "\n"
            system.write_if_missing(path, text, mode=0o600, owner=OWNER)


def _password_files(settings: Settings) -> dict[str, Path]:
    """By user; where the settings name one user for all, that is the only one.

    A user whose unit is handed its password by a drop-in of the operator's has it
    there; one that systemd alone can read (LoadCredentialEncrypted=) is left out.
    """
    owners = settings.database.password_file
    if owners is None:
        return {}
    if one := named_user(settings):
        return {one: owners}
    found = {}
    for user in _USERS:
        handed = _handed(_OWN_UNIT[user], owners.name)
        if handed is None or handed.is_absolute():
            found[user] = handed or password_file_of(owners, user)
    return found


def _handed(unit: str, name: str) -> Path | None:
    """What a drop-in that is not ours hands to a unit under a credential's name.

    Returns:
        Its file; `.` where systemd alone can read it; None where there is none.
    """
    for conf in sorted(_folder(unit).glob("*.conf")):
        if conf.name == _FILE:
            continue
        for line in credentials_of(conf.read_text("utf-8")):
            kind, _, value = line.partition("=")
            credential, _, source = value.partition(":")
            if credential == name:
                return Path(source if kind == "LoadCredential" else ".")
    return None


def _folder(unit: str) -> Path:
    """Where a unit's drop-ins are."""
    return system.UNITS / f"rubrica-{unit}.service.d"


def write_drop_ins(settings: Settings) -> None:
    """The units' credentials, and the addresses that they may reach.

    Args:
        settings: of the installation.

    Raises:
        SettingsError: a host has no address.
    """
    changed = False
    for unit in UNITS:
        lines = unit_lines(settings, unit)
        path = _folder(unit) / _FILE
        text = _DROP_IN + "".join(f"{line}\n" for line in lines)
        before = path.read_text("utf-8") if path.exists() else _DROP_IN
        if before == text:
            continue
        path.unlink(missing_ok=True)
        if lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            system.write_if_missing(path, text, mode=0o644, owner="root")
        changed = True
    if changed:
        system.run("systemctl", "daemon-reload")


def unit_lines(settings: Settings, unit: str) -> list[str]:
    """What a unit needs beside what it has.

    Args:
        settings: of the installation.
        unit: a key of `UNITS`.

    Raises:
        SettingsError: a host has no address.
    """
    lines = []
    if has_host(settings) and (owners := settings.database.password_file):
        files = _password_files(settings)
        place = files.get(named_user(settings) or UNITS[unit])
        if place is not None and _handed(unit, owners.name) is None:
            lines.append(f"LoadCredential={owners.name}:{place}")
    passwords = [settings.redis.password_file]
    urls = [settings.database.url, settings.redis.url or ""]
    if unit == _MAILING and settings.mail.is_on:
        passwords.append(settings.mail.password_file)
        urls.append(f"smtp://{_host_in_url(settings.mail.host or '')}")
    lines.extend(
        f"LoadCredential={password.name}:{password}"
        for password in passwords
        if password is not None and _handed(unit, password.name) is None
    )
    addresses = {address for url in urls for address in addresses_of(url)}
    # What a unit may reach besides is this machine alone.
    beyond = sorted(a for a in addresses if not ipaddress.ip_address(a).is_loopback)
    return lines + [f"IPAddressAllow={each}" for each in beyond]


def _host_in_url(host: str) -> str:
    """A host as a URL has it: an address of IPv6 in brackets (RFC 3986, 3.2.2)."""
    return f"[{host}]" if ":" in host else host


def addresses_of(url: str) -> set[str]:
    """The addresses of a URL's hosts as this machine knows them now.

    Args:
        url: `postgresql://user@one:5432,two/name`, `rediss://host:6379/0`; of a Unix
            socket there are none.

    Raises:
        SettingsError: one has none.
    """
    if not urlsplit(url).scheme or url.startswith("unix:"):
        return set()
    found: set[str] = set()
    for each in urlsplit(url).netloc.rpartition("@")[2].split(","):
        host = urlsplit(f"//{each}").hostname
        if not host:
            continue
        found |= addresses_of_host(host)
    return found


def make_users(settings: Settings, superuser: str, superuser_file: str) -> None:
    """Users and database on the other host; and each user gets in from here.

    Args:
        settings: of the installation.
        superuser: who may make them there.
        superuser_file: that one's password; empty: what is to be run is written down.

    Raises:
        SettingsError: PostgreSQL is away or refuses; or somebody else has to run
            what was written down.
    """
    written = system.SETTINGS.with_name("database-roles.sql")
    amiss = refused_users(settings)
    if amiss and named_user(settings):
        raise SettingsError(_AMISS + "; ".join(amiss))
    if amiss:
        # No password can be read in it.
        known = verifiers_of(_password_files(settings))
        sql = roles_sql(database_name(settings), verifiers=known)
        if superuser_file:
            _run_there(settings, superuser, read_password(Path(superuser_file)), sql)
        else:
            _write_down(written, sql, amiss)
        if amiss := refused_users(settings):
            raise SettingsError(_AMISS + "; ".join(amiss))
    written.unlink(missing_ok=True)
    users = len(_password_files(settings))
    say(f"database: {users} users get in, TLS {settings.database.tls}")


def _write_down(path: Path, sql: str, amiss: list[str]) -> None:
    """Have somebody else do it.

    Raises:
        SettingsError: always: how to go on.
    """
    path.unlink(missing_ok=True)
    system.write_if_missing(path, sql, mode=0o600, owner="root")
    told = "\n".join(f"  {each}" for each in amiss)
    msg = (
        f"database: not everybody gets in yet:\n{told}\n"
        f"Run {path} there as a superuser (no password can be read in it):\n"
        f"  psql --set ON_ERROR_STOP=1 --file {path.name}\n"
        "let these users in by its pg_hba.conf (hostssl, scram-sha-256), and run "
        "rubrica setup again"
    )
    raise SettingsError(msg)


def _run_there(settings: Settings, user: str, password: str, sql: str) -> None:
    """Run SQL on the database's host as somebody who may.

    Raises:
        SettingsError: there is no psql, or it fails; with its words.
    """
    if shutil.which("psql") is None:
        msg = "psql: is not there; install postgresql-client"
        raise SettingsError(msg)
    variables = {
        **libpq_variables(settings),
        "PGUSER": user,
        "PGPASSWORD": password,
        "PGDATABASE": _EVERYWHERE,
    }
    command = ["psql", "-X", "--quiet", "--set", "ON_ERROR_STOP=1"]
    system.run(*command, given=sql, environment={**os.environ, **variables})


def refused_users(settings: Settings) -> list[str]:
    """Users who do not get in, with PostgreSQL's words.

    Args:
        settings: of an installation whose users have passwords.

    Raises:
        SettingsError: it does not answer at all, or is not whom the settings mean.
    """
    return asyncio.run(_refused(settings))


async def _refused(settings: Settings) -> list[str]:
    amiss = []
    for user, path in _password_files(settings).items():
        try:
            await _get_in(settings, user, read_password(path))
        except _NOT_YET as exc:
            amiss.append(f"{user}: {exc}")
        except (OSError, TimeoutError, asyncpg.PostgresError) as exc:
            told = str(exc) or type(exc).__name__
            msg = f"database: does not answer as it should: {told}"
            raise SettingsError(msg) from exc
    return amiss


def refused_login(settings: Settings, user: str, password: str) -> str:
    """Why somebody who makes databases does not get in; empty: they do.

    Args:
        settings: whose database is on a host, which may not have it yet.
        user: a superuser.
        password: theirs.
    """
    try:
        asyncio.run(_get_in(settings, user, password, _EVERYWHERE))
    except (OSError, TimeoutError, asyncpg.PostgresError) as exc:
        return f"{user} does not get in: {exc or type(exc).__name__}"
    return ""


async def _get_in(
    settings: Settings, user: str, password: str, database: str | None = None
) -> None:
    """Connect as somebody, by the settings' TLS."""
    url = database_url(settings)
    options: dict[str, Any] = {
        # By a Unix socket the URL has no host, and its folder in the query.
        "host": url.query.get("host") or url.host,
        "port": url.port,
        "database": database or url.database,
        **connect_options(settings),
    }
    connection = await asyncpg.connect(user=user, password=password, **options)
    await connection.close()
