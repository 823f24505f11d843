"""`rubrica database`: what an administrator of PostgreSQL does once, and a check.

rubrica database roles | runuser -u postgres -- psql --set ON_ERROR_STOP=1
rubrica database check
"""

import argparse
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from appliance.commands.terminal import run_async, say
from appliance.settings import Settings, load_settings

if TYPE_CHECKING:
    from appliance.commands.groups import Subparsers

_NAME: Final = "rubrica"
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
    roles.add_argument(
        "--passwords",
        action="store_true",
        help="have psql ask for a password of each; on its own machine's socket "
        "PostgreSQL knows them by their Unix users",
    )
    roles.set_defaults(run=_roles)
    check = parts.add_parser(
        "check",
        help="tell what `rubrica migrate` would change; changes nothing",
        epilog="Exit status: 0, nothing; 1, each in a line; 75, the database is away.",
    )
    check.set_defaults(run=_check)


def _check(args: argparse.Namespace) -> int:
    async def work(settings: Settings) -> int:
        from appliance.storage.migrate import look  # noqa: PLC0415 (heavy)
        from appliance.storage.store import store_faults  # noqa: PLC0415 (heavy)
        from appliance.storage.table_version import Standing  # noqa: PLC0415 (heavy)

        with store_faults():
            tables, amiss = await look(settings)
        for line in amiss:
            say(line)
        if tables.standing is Standing.NEWER:
            say(f"tables of version {tables.version}, which this one may use")
        elif not amiss:
            say("the tables and everybody's rights are as they should be")
        return 1 if amiss else 0

    return run_async(work, args)


def _roles(args: argparse.Namespace) -> int:
    name = _database_name(load_settings(args.settings))
    say(roles_sql(name, passwords=args.passwords).rstrip())
    return 0


def _database_name(settings: Settings) -> str:
    """The database that the settings name; a usual name where they say SQLite."""
    url = settings.database.url
    path = "" if url == "sqlite" else urlsplit(url).path
    return unquote(path.lstrip("/")) or _NAME


def roles_sql(database: str, *, passwords: bool = False) -> str:
    """What psql makes users, database and ownership of.

    Args:
        database: its name.
        passwords: whether psql asks for one of each user.
    """
    from appliance.storage.rights import (  # noqa: PLC0415 (heavy)
        OWNER,
        RIGHTS,
        Role,
    )

    roles = [role.value for role in Role]
    asked = "".join(f"\\password {_named(user)}\n" for user in (OWNER, *roles))
    return _SQL.format(
        users=", ".join(map(_text, (OWNER, *roles))),
        passwords=asked if passwords else "",
        roles=", ".join(map(_named, roles)),
        owner=_named(OWNER),
        owner_text=_text(OWNER),
        database=_named(database),
        database_text=_text(database),
        tables=", ".join(map(_text, sorted(RIGHTS))),
    )


def _named(identifier: str) -> str:
    """An identifier, quoted."""
    return '"' + identifier.replace('"', '""') + '"'


def _text(value: str) -> str:
    """A literal, quoted."""
    return "'" + value.replace("'", "''") + "'"
