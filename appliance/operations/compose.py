"""`rubrica setup --compose FOLDER`: what `docker compose up` starts from.

    docker run --rm --user 0 -v "$PWD:/here" rubrica setup --compose /here --yes

It runs in the image, as its root, and makes files alone: settings, keys, passwords,
compose.yaml, each with the owner that its container is. The tables and the HSM's keys
are made by containers of compose.yaml, which have what that takes.

Source: docs/installing.md, "Containers"; RFC 5803 (SCRAM verifiers); RFC 7677.
"""

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from appliance.cli.installation.database import roles_sql
from appliance.database.password_files import read_password
from appliance.operations import system
from appliance.operations.setup_answers import (
    MAIL_PASSWORD,
    Answers,
    Layout,
    settings_text,
)
from appliance.settings import SettingsError

SETTINGS: Final = "settings.toml"
"""In the folder; what else is there was made if it is."""
USER: Final = 10001
"""Of every container that is a role; of its group too."""
DATABASE_USER: Final = 10002
"""Of PostgreSQL's container: another, or each role would be its superuser."""
LAYOUT: Final = Layout(
    settled={
        "database": "postgresql:///rubrica?host=/run/postgresql",
        "redis": "unix:///run/redis/redis.sock",
        "documents": "/var/lib/rubrica/documents",
        # The containers see the system's authorities alone.
        "mail_ca": "",
        # Its units make backups of a machine.
        "backup_file": "",
    },
    # The gateway of compose.yaml's network: what asks from the host has its address.
    usual={"base_url": "http://127.0.0.1:8080", "trusted_proxies": "10.201.77.1"},
    host="0.0.0.0",  # noqa: S104 (of a container, published on 127.0.0.1)
    host_note="All of the container's addresses: compose.yaml publishes 127.0.0.1's.",
    database=(
        "# By a socket, each role with a password of its own (and PGUSER).\n"
        'password_file = "/run/secrets/database"'
    ),
    redis='password_file = "/run/secrets/redis"\n',
    secrets="/run/secrets",
    secrets_note="Each container has those that it needs.",
    metrics='folder = "/run/metrics"\n',
    tables='[sandbox]\nsocket = "/run/sandbox/sandbox.sock"\n\n',
)
"""Folders and addresses of compose.yaml."""
NEXT: Final = """\
now, on the host, in the folder that this one is there:
     docker compose up --detach
     docker compose run --rm operator sample --wait 120 --out contrato-firmado.pdf"""
"""What is done with what was made, for people."""
NEXT_OF_RESTORE: Final = """\
now, on the host, in the folder that this one is there:
     docker compose up --detach database redis sandbox
     docker compose --profile backup run --rm recovery restore --wait 120 …"""
"""What is done with a folder that was brought back, for people."""
NEXT_OF_RECORD: Final = """\
now: docker compose run --rm migrate
     docker compose --profile backup run --rm recovery documents recover
     docker compose run --rm hsm take-over
     docker compose up --detach"""
"""What is done once the record is back, for people."""
_KEYS: Final = ("pepper", "data-key", "document-key", "lookup-key")
_PRIVATE: Final = ("secrets", "hsm", "work")
"""Folders that no other user of the host may enter."""
_SEEN: Final = (
    (Path("/run/secrets"), "secrets"),
    (Path("/etc/rubrica/hsm"), "hsm"),
    (Path("/etc/rubrica"), ""),
)
"""Where containers see what is in the folder, and where it is there."""
_DATABASE: Final = "rubrica"
_ITERATIONS: Final = 4096
"""Of SCRAM: as PostgreSQL has it; what is hashed is random."""
_REDIS: Final = """\
# Made by `rubrica setup --compose`: a doorbell, which keeps nothing.
port 0
unixsocket /run/redis/redis.sock
unixsocketperm 770
dir /tmp
save ""
appendonly no
user default on sanitize-payload ~* &* +@all -@admin #{digest}
"""


def make(folder: Path, answers: Answers | None) -> None:
    """Make what is missing, and bring what is this version's to this version.

    Args:
        folder: that compose.yaml is to stand in.
        answers: for the settings; None: they are there.

    Raises:
        SettingsError: this is not the image, a key is missing where there are
            settings, or the folder cannot be written to.
    """
    try:
        make_folders(folder)
        _make_keys(folder, is_new=answers is not None)
        passwords = _make_passwords(folder)
        _bring_mail_password(folder, answers)
        _make_services(folder, passwords)
        if answers is not None:
            # The last: where it is, all that it needs is.
            text = settings_text(answers, LAYOUT)
            system.write_if_missing(folder / SETTINGS, text, mode=0o644, owner=0)
    except OSError as exc:
        msg = f"{exc.filename or folder}: cannot be written ({exc.strerror})"
        raise SettingsError(msg) from exc


def make_folders(folder: Path) -> None:
    """Make those of an installation's files, each with its owner.

    Args:
        folder: that compose.yaml is to stand in.

    Raises:
        SettingsError: this is not the image.
        OSError: one cannot be made.
    """
    if not system.COMPOSE.is_dir():
        msg = f"{system.COMPOSE}: is not there; --compose is for the image"
        raise SettingsError(msg)
    for name in _PRIVATE:
        path = folder / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chown(path, USER, USER)
    (folder / "database").mkdir(exist_ok=True)
    (folder / "database").chmod(0o755)


def place_in(folder: Path, path: Path) -> Path | None:
    """Where a file of the settings is in an installation's folder.

    Args:
        folder: that compose.yaml stands in.
        path: as the settings name it, and containers see it.

    Returns:
        None: it is in a volume, or elsewhere.
    """
    path = Path(os.path.normpath(path))
    for seen, name in _SEEN:
        if path.is_relative_to(seen):
            return folder / name / path.relative_to(seen)
    return None


def _make_keys(folder: Path, *, is_new: bool) -> None:
    """Make the keys of a new installation.

    Raises:
        SettingsError: one is missing in an old one: another would open nothing.
    """
    paths = [folder / "secrets" / name for name in _KEYS]
    lost = [str(path) for path in paths if not path.exists()]
    if lost and not is_new:
        msg = (
            f"{', '.join(lost)}: is not there, and what it locked opens with no other; "
            "bring it back from a backup"
        )
        raise SettingsError(msg)
    for path in paths:
        system.write_if_missing(path, system.new_secret(), mode=0o600, owner=USER)


def _make_passwords(folder: Path) -> dict[str, str]:
    """Make Redis's password and one of each user of the database; all, by user."""
    from appliance.database.rights import OWNER, Role  # noqa: PLC0415 (heavy)

    users = {role.value: f"database-{role.value.split('-')[1]}" for role in Role}
    found = {}
    for user, name in {OWNER: "database", **users, "redis": "redis"}.items():
        path = folder / "secrets" / name
        system.write_if_missing(path, system.new_secret(), mode=0o600, owner=USER)
        found[user] = path.read_text("utf-8").strip()
    return found


def _bring_mail_password(folder: Path, answers: Answers | None) -> None:
    """Bring the password for the mail server; empty where nobody signs in there.

    Raises:
        SettingsError: its file cannot be read.
    """
    given = answers.mail_password_file if answers else ""
    text = read_password(Path(given)) + "\n" if given else ""
    path = folder / "secrets" / MAIL_PASSWORD
    system.write_if_missing(path, text, mode=0o600, owner=USER)


def _make_services(folder: Path, passwords: Mapping[str, str]) -> None:
    """Bring compose.yaml, and what database and Redis start with, to this version."""
    digest = hashlib.sha256(passwords["redis"].encode()).hexdigest()
    system.write_as_it_is_now(
        folder / "redis.conf", _REDIS.format(digest=digest), mode=0o400, owner=USER
    )
    system.write_as_it_is_now(
        folder / "roles.sql",
        _sql({user: each for user, each in passwords.items() if user != "redis"}),
        mode=0o400,
        owner=DATABASE_USER,
    )
    for name in ("compose.yaml", "database/Containerfile", "database/start"):
        text = (system.COMPOSE / name).read_text("utf-8")
        mode = 0o755 if name.endswith("start") else 0o644
        system.write_as_it_is_now(folder / name, text, mode=mode, owner=0)


def _sql(passwords: Mapping[str, str]) -> str:
    """Users, database and rights, with what passwords are checked by; no password."""
    lines = [
        f"ALTER ROLE \"{user}\" PASSWORD '{scram_verifier(user, password)}';\n"
        for user, password in passwords.items()
    ]
    return roles_sql(_DATABASE) + "".join(lines)


def scram_verifier(user: str, password: str) -> str:
    """What PostgreSQL keeps of a password; the same for the same two.

    Args:
        user: of the database.
        password: ASCII, and random: the salt follows from it.

    Source: RFC 5803, RFC 7677; PostgreSQL, `pg_authid.rolpassword`.
    """
    salt = hashlib.sha256(f"salt|{user}|{password}".encode()).digest()[:16]
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    stored = hashlib.sha256(client).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encoded = [base64.b64encode(each).decode() for each in (salt, stored, server)]
    return f"SCRAM-SHA-256${_ITERATIONS}:{encoded[0]}${encoded[1]}:{encoded[2]}"
