"""`rubrica database`: what an administrator of PostgreSQL does once, and a check.

rubrica database roles | runuser -l postgres -c 'psql --set ON_ERROR_STOP=1'
rubrica database check
"""

import argparse
import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from appliance.cli.terminal import run_async, say
from appliance.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from appliance.cli.arguments import Subparsers

_NAME: Final = "rubrica"
_SALT_BYTES: Final = 16
_ROUNDS: Final = 4096
"""PostgreSQL's own; our passwords are random and long, so more would add nothing."""
_SQL: Final = """\
-- For psql as a superuser; run again, it changes nothing.
SELECT format('CREATE ROLE %I LOGIN', name)
FROM unnest(ARRAY[{users}]) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\\gexec
{passwords}SELECT $$CREATE DATABASE {database} OWNER {owner} ENCODING 'UTF8' TEMPLATE template0$$
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = {database_text})
\\gexec
ALTER DATABASE {database} OWNER TO {owner};
REVOKE ALL ON DATABASE {database} FROM PUBLIC;
GRANT CONNECT ON DATABASE {database} TO {roles};
\\connect {database}
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {roles};
GRANT CREATE, USAGE ON SCHEMA public TO {owner};
-- Where one user had all: its tables become the owner's. `rubrica migrate` then
-- grants each role its rights.
SELECT format('ALTER TABLE %I.%I OWNER TO {owner}', schemaname, tablename)
FROM pg_tables
WHERE schemaname = 'public' AND tableowner <> {owner_text}
    AND tablename = ANY (ARRAY[{tables}])
\\gexec
"""  # noqa: E501 (psql takes what \gexec runs from one line)


def register(commands: "Subparsers[argparse.ArgumentParser]") -> None:
    """Add the command.

    Args:
        commands: of the `rubrica` parser.
    """
    database = commands.add_parser("database", help="users of PostgreSQL")
    parts = database.add_subparsers(dest="part", required=True)
    roles = parts.add_parser(
        "roles", help="the SQL, for psql, that makes a user for each role"
    )
    which = roles.add_mutually_exclusive_group()
    which.add_argument(
        "--passwords",
        action="store_true",
        help="have psql ask for a password of each; on its own machine's socket "
        "PostgreSQL knows them by their Unix users",
    )
    which.add_argument(
        "--from-files",
        action="store_true",
        help="with the passwords that are in the files database.password_file and "
        "database.password_file-ROLE, as PostgreSQL keeps them: none can be read",
    )
    roles.set_defaults(run=_roles)
    check = parts.add_parser(
        "check",
        help="tell what `rubrica migrate` would change; changes nothing",
        epilog="Exit status: 0, nothing; 1, each in a line; 75, the database is away.",
    )
    check.add_argument(
        "--knows",
        metavar="VERSION",
        type=_table_version,
        help="tell instead whether a Rúbrica that knows tables of no newer version "
        "may use them, before it is gone back to; 1, it may not",
    )
    check.set_defaults(run=_check)


def _table_version(text: str) -> str:
    """A version of the tables, in digits.

    Raises:
        ValueError: it is none.
    """
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return text


def _check(args: argparse.Namespace) -> int:
    if args.knows is not None:
        return run_async(lambda settings: _look_for(settings, args.knows), args)

    async def work(settings: Settings) -> int:
        from appliance.cli.installation.upgrade_state import (  # noqa: PLC0415 (heavy)
            is_upgrade_closed,
        )
        from appliance.database.migrate import look  # noqa: PLC0415 (heavy)
        from appliance.database.table_version import Standing  # noqa: PLC0415 (heavy)
        from appliance.record.unit_of_work import store_faults  # noqa: PLC0415 (heavy)

        with store_faults():
            is_closed = is_upgrade_closed(settings)
            tables, amiss = await look(settings, is_closed=is_closed)
        for line in amiss:
            say(line)
        if tables.standing is Standing.NEWER:
            say(f"tables of version {tables.version}, which this one may use")
        elif not amiss:
            say("the tables and everybody's rights are as they should be")
        return 1 if amiss else 0

    return run_async(work, args)


async def _look_for(settings: Settings, knows: str) -> int:
    """Tell whether a Rúbrica that knows no newer version may use the tables."""
    from appliance.database.engines import open_engines  # noqa: PLC0415 (heavy)
    from appliance.database.table_version import table_version  # noqa: PLC0415 (heavy)
    from appliance.record.unit_of_work import store_faults  # noqa: PLC0415 (heavy)

    with store_faults():
        engines = open_engines(settings)
        try:
            async with engines.reader.connect() as connection:
                found = await table_version(connection)
        finally:
            await engines.dispose()
    refusal = found.refusal_of(knows)
    said = f"tables of version {found.version}, which one that knows {knows} may use"
    say(refusal or said)
    return 1 if refusal else 0


def _roles(args: argparse.Namespace) -> int:
    from appliance.database.password_files import password_file_of  # noqa: PLC0415 (heavy)
    from appliance.database.rights import OWNER, Role  # noqa: PLC0415 (heavy)

    settings = load_settings(args.settings)
    known: dict[str, str] = {}
    if args.from_files:
        owners = settings.database.password_file
        if owners is None:
            msg = "database.password_file: is not set: there are no passwords"
            raise SettingsError(msg)
        users = (OWNER, *(role.value for role in Role))
        known = verifiers_of({user: password_file_of(owners, user) for user in users})
    name = database_name(settings)
    say(roles_sql(name, passwords=args.passwords, verifiers=known).rstrip())
    return 0


def verifiers_of(files: Mapping[str, Path]) -> dict[str, str]:
    """What PostgreSQL keeps of some passwords, by user.

    Args:
        files: with a password each, by user.

    Raises:
        SettingsError: a file cannot be read, or what is in it is not printable ASCII.
    """
    from appliance.database.password_files import read_password  # noqa: PLC0415 (heavy)

    found = {}
    for user, path in files.items():
        password = read_password(path)
        try:
            found[user] = scram_verifier(password, secrets.token_bytes(_SALT_BYTES))
        except ValueError as exc:
            msg = f"{path}: must hold {exc}"
            raise SettingsError(msg) from None
    return found


def database_name(settings: Settings) -> str:
    """The database that the settings name; a usual name where they say SQLite."""
    url = settings.database.url
    path = "" if url == "sqlite" else urlsplit(url).path
    return unquote(path.lstrip("/")) or _NAME


def roles_sql(
    database: str,
    *,
    passwords: bool = False,
    verifiers: Mapping[str, str] | None = None,
) -> str:
    """What psql makes users, database and ownership of.

    Args:
        database: its name.
        passwords: whether psql asks for one of each user.
        verifiers: what PostgreSQL knows each password by, by user; see
            `scram_verifier`.
    """
    from appliance.database.rights import OWNER, RIGHTS, Role  # noqa: PLC0415 (heavy)

    roles = [role.value for role in Role]
    asked = "".join(f"\\password {_named(user)}\n" for user in (OWNER, *roles))
    known = "".join(
        f"ALTER ROLE {_named(user)} PASSWORD {_text(verifier)};\n"
        for user, verifier in (verifiers or {}).items()
    )
    return _SQL.format(
        users=", ".join(map(_text, (OWNER, *roles))),
        passwords=asked if passwords else known,
        roles=", ".join(map(_named, roles)),
        owner=_named(OWNER),
        owner_text=_text(OWNER),
        database=_named(database),
        database_text=_text(database),
        tables=", ".join(map(_text, sorted(RIGHTS))),
    )


def scram_verifier(password: str, salt: bytes) -> str:
    """What PostgreSQL keeps of a password, and takes in its place.

    Args:
        password: of printable ASCII, which SASLprep leaves as it is.
        salt: 16 random bytes.

    Raises:
        ValueError: it has other characters.

    Source: RFC 5802, 3; RFC 7677; PostgreSQL, "pg_authid".
    """
    if not (password.isascii() and password.isprintable()):
        msg = "a password of printable ASCII"
        raise ValueError(msg)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ROUNDS)

    def keyed(what: bytes) -> bytes:
        return hmac.digest(salted, what, "sha256")

    stored = hashlib.sha256(keyed(b"Client Key")).digest()
    words = [b64encode(each).decode() for each in (salt, stored, keyed(b"Server Key"))]
    return f"SCRAM-SHA-256${_ROUNDS}:{words[0]}${words[1]}:{words[2]}"


def _named(identifier: str) -> str:
    """An identifier, quoted."""
    return '"' + identifier.replace('"', '""') + '"'


def _text(value: str) -> str:
    """A literal, quoted."""
    return "'" + value.replace("'", "''") + "'"
