"""The steps of setup: each makes what is missing, and keeps what is there.

Source: docs/installing.md, "First installation, with systemd".
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from appliance.cli.as_role import credentials_of, unit_text
from appliance.cli.terminal import read_file, say
from appliance.domain.vocab import Environment
from appliance.operations import system
from appliance.operations.installation_checks import (
    look_at_hsm_kind,
    look_at_service,
    look_at_settings,
    look_at_units,
)
from appliance.operations.reachability import look_at_redis, socket_place
from appliance.operations.setup import servers
from appliance.operations.setup.addresses import addresses_of
from appliance.operations.setup_answers import Answers
from appliance.settings import DocumentSettings, Settings, SettingsError

_KEEPER: Final = "rubrica-migrate"
"""Who owns keys and tables, and does operators' work."""
_STORING: Final = ("api", "embed", "admin", "signing@", "chores", "migrate")
"""Units that read or write documents, and the one that marks their folder."""
_USUAL_DOCUMENTS: Final = Path("/var/lib/rubrica/documents")
"""The folder that tmpfiles.conf and the units have."""
_READY_S: Final = 120
_LOOK_AGAIN_S: Final = 0.5


def make_users_and_folders() -> None:
    """Users, groups and folders, with their owners and modes.

    Raises:
        SettingsError: the units are not installed.
    """
    if not Path("/run/systemd/system").is_dir():
        msg = "setup: this machine does not run systemd; see docs/installing.md"
        raise SettingsError(msg)
    done = subprocess.run(
        ["systemctl", "cat", "rubrica.target"],  # noqa: S607 (root's own PATH)
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        msg = (
            "setup: the units are not installed; install the package, or do step 2 of "
            "docs/installing.md first"
        )
        raise SettingsError(msg)
    system.run("systemd-sysusers", "rubrica.conf")
    system.run("systemd-tmpfiles", "--create", "rubrica.conf")


def make_secrets(settings: Settings) -> None:
    """The keys of a new installation.

    Raises:
        SettingsError: one is missing where the HSM is prepared already: another one
            in its place would open nothing.
    """
    every = (
        settings.secrets.pepper_file,
        settings.secrets.data_key_file,
        settings.document_key_file,
        settings.secrets.lookup_key_file,
    )
    handed = _handed_otherwise()
    paths = [path for path in every if path.name not in handed]
    lost = [str(path) for path in paths if not path.exists()]
    if lost and settings.root_file.exists():
        msg = (
            f"{', '.join(lost)}: is not there, and what it locked opens with no other; "
            "bring it back from a backup. A file that is new in this version: "
            'docs/running.md, "Upgrading from"'
        )
        raise SettingsError(msg)
    for path in paths:
        system.write_if_missing(path, system.new_secret(), mode=0o600, owner=_KEEPER)


def _handed_otherwise() -> set[str]:
    """Credentials that a drop-in has the API get from elsewhere, by name."""
    given = [line.partition("=")[2] for line in credentials_of(unit_text("api"))]
    sources = dict(each.split(":", 1) for each in given if ":" in each)
    usual = "/etc/rubrica/secrets/"
    return {name for name, source in sources.items() if source != f"{usual}{name}"}


def make_servers(settings: Settings, answers: Answers) -> None:
    """Passwords for PostgreSQL and Redis elsewhere, the units' way there, users.

    Args:
        settings: of the installation.
        answers: who makes the users, where one is named.

    Raises:
        SettingsError: PostgreSQL refuses, or somebody else has to do something there.
    """
    if servers.has_host(settings):
        servers.make_passwords(settings)
    servers.write_drop_ins(settings)
    if servers.has_host(settings):
        servers.make_users(
            settings,
            answers.database_superuser,
            answers.database_superuser_password_file,
        )


def make_database(settings: Settings) -> None:
    """Users and database of a PostgreSQL on this machine, then the tables.

    Raises:
        SettingsError: PostgreSQL refuses, or a role's rights are not as declared.
    """
    place = socket_place(settings.database.url)
    if place is not None:
        sql = system.rubrica("database", "roles")
        psql = system.psql(*place)
        system.run(*psql, "--quiet", "--set", "ON_ERROR_STOP=1", given=sql)
    _tell(system.rubrica("migrate"))
    if place is None:
        _tell(system.rubrica("database", "check"))


def make_documents_place(settings: Settings) -> None:
    """The units' way to a bucket, or to a folder that is not the usual one."""
    if settings.documents.url is not None:
        _add_to_units("".join(_way_to_bucket(settings.documents)))
        return
    folder = settings.documents_dir
    if folder == _USUAL_DOCUMENTS:
        return
    # systemd makes it, and mends its owner and mode: it follows no link of a role's.
    conf = Path("/etc/tmpfiles.d/rubrica-documents.conf")
    line = f"d {folder} 2770 root rubrica -\n"
    system.write_if_missing(conf, line, mode=0o644, owner="root")
    system.run("systemd-tmpfiles", "--create", conf.name)
    _add_to_units(f"ReadWritePaths={folder}\n")


def _way_to_bucket(documents: DocumentSettings) -> Iterator[str]:
    """The key to a bucket, which no role can read by itself, and its addresses."""
    for path in (documents.access_key_file, documents.secret_key_file):
        if path is not None:
            yield f"LoadCredential={path.name}:{path}\n"
    found = addresses_of(documents)
    if found:
        say(f"the units may talk to {' '.join(found)}, where {documents.url} is now")
        yield f"IPAddressAllow={' '.join(found)}\n"


def _add_to_units(lines: str) -> None:
    """Add lines to all units that read or write documents, or mark their place."""
    for unit in _STORING:
        drop_in = Path(f"/etc/systemd/system/rubrica-{unit}.service.d")
        drop_in.mkdir(parents=True, exist_ok=True)
        text = f"[Service]\n{lines}"
        path = drop_in / "documents.conf"
        system.write_if_missing(path, text, mode=0o644, owner="root")
    system.run("systemctl", "daemon-reload")


def take_pins() -> None:
    """PINs that are there become root's own, and are handed over by systemd."""
    _tell(system.rubrica("hsm", "pins"))


def warn_of_hsm(settings_file: Path = system.SETTINGS) -> None:
    """Say that production keys would be in a software token, where they would.

    Args:
        settings_file: of the installation.
    """
    command = system.rubrica_command(
        "hsm", "kind", settings_file=settings_file.absolute()
    )
    for each in look_at_hsm_kind(command):
        if each.is_warning:
            say(f"warn  {each.what}")
            say(f"      -> {each.remedy}")


def prepare_hsm() -> None:
    """Tokens, PINs, the CA's key and certificate."""
    _tell(system.rubrica("hsm", "init"))


def check_settings() -> None:
    """All that the settings, and the files that they name, have wrong for a role.

    Raises:
        SettingsError: each fault in a line.
    """
    if found := [each.what for each in look_at_settings()]:
        raise SettingsError("\n".join(found))
    say("settings: good for every role")


def start(settings: Settings) -> None:
    """Start what does not run, and wait until it is ready.

    Raises:
        SettingsError: it is not within two minutes, or a role does not run; with
            what it said.
    """
    # A run that was killed may have written drop-ins that systemd has not read.
    system.run("systemctl", "daemon-reload")
    system.run("systemctl", "enable", "--quiet", "rubrica.target")
    system.run("systemctl", "start", "rubrica.target")
    deadline = time.monotonic() + _READY_S
    while True:
        found = [*look_at_service(settings), *look_at_units(settings)]
        if not found:
            say("ready")
            for each in look_at_redis(settings):
                say(f"amiss: {each.what}; rubrica doctor tells what to do")
            return
        if time.monotonic() >= deadline:
            break
        time.sleep(_LOOK_AGAIN_S)
    told = "\n".join(each.what for each in found)
    msg = f"{told}\nnot ready after {_READY_S} s; rubrica doctor tells what to do"
    raise SettingsError(msg)


def sign_sample(settings: Settings) -> None:
    """In PREPROD: a document signed through the public API, and verified."""
    if settings.environment is Environment.PREPROD:
        _tell(system.rubrica("sample"))


def make_administrator(name: str, password_file: str, *, interactive: bool) -> None:
    """The first administrator, unless there is one.

    Args:
        name: empty: a person is asked.
        password_file: empty: the same.
        interactive: whether there is one to ask.

    Raises:
        SettingsError: refused, or no password came.
    """
    if _administrators():
        return
    if not name and interactive:
        name = input("First administrator (empty: none): ").strip()
    if not name:
        say("no administrator yet: rubrica console-user create NAME")
        return
    command = system.rubrica_command("console-user", "create", name)
    if password_file:
        secret = read_file(Path(password_file)).decode(errors="replace")
        _tell(system.run(*command, given=secret.rstrip("\n") + "\n"))
        return
    if subprocess.run(command, check=False).returncode != 0:  # noqa: S603 (same)
        msg = f"setup: the administrator {name} was not made; run setup again"
        raise SettingsError(msg)


def _administrators() -> list[str]:
    lines = system.rubrica("console-user", "list").splitlines()[1:]
    return [line.split()[0] for line in lines if line.strip()]


def _tell(text: str) -> None:
    for line in text.splitlines():
        say(line)
