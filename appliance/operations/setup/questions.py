"""Ask for each answer and look at it at once: at a terminal one asks again."""

import contextlib
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from appliance.cli.terminal import say
from appliance.database.password_files import read_password
from appliance.domain.errors import ApplianceError, FieldInvalidError
from appliance.domain.vocab import Environment
from appliance.operations.reachability import (
    CONNECT_S,
    DATABASE_PORT,
    REDIS_PORT,
    WANTS_PASSWORD,
    hosts_fault,
    redis_fault,
    socket_place,
)
from appliance.operations.setup import mail_server
from appliance.operations.setup.proxy import fits
from appliance.operations.setup.public_names import (
    look_at_certificate,
    look_at_key,
    missing_yet,
)
from appliance.operations.setup_answers import (
    BUCKET_SETTINGS_OF,
    MACHINE,
    MAIL_SETTINGS_OF,
    PROXIES,
    SETTINGS_OF,
    TLS_TO_MAIL,
    Answers,
    Layout,
    settings_text,
)
from appliance.operations.system import psql
from appliance.settings import Settings, SettingsError
from appliance.settings.faults import read_tables
from appliance.system.tls import read_authorities

_TABLES: Final = (SETTINGS_OF, BUCKET_SETTINGS_OF, MAIL_SETTINGS_OF)
_ANSWERED: Final = frozenset(key for each in _TABLES for key in each.values())
_OF_MAIL: Final = (frozenset(MAIL_SETTINGS_OF) - {"mail_host"}) | {"mail_ca"}
_OF_A_BUCKET: Final = frozenset(BUCKET_SETTINGS_OF) - {"documents"}
_FOLDER: Final = re.compile(r"/[\w./@+:,=~-]*")
"""Folders that units and tmpfiles.d name without quoting."""
_TEXTS: Final = {
    "environment": "Environment: PREPROD (its keys and tokens are worth nothing in "
    "PROD) or PROD",
    "installation": "Name of the installation (it stands in the CA's name and stays)",
    "base_url": "Public address of the API (it stays for years)",
    "iframe_url": "Origin of the signing frame (nothing else may be served there)",
    "admin_url": "Origin of the administrators' console",
    "stamp": "Stamps: card (with a QR code, and its code in letters) or classic",
    "database": "PostgreSQL",
    "database_ca": "Certificates of PostgreSQL's authority (empty: the system's)",
    "database_superuser_password_file": "File with the password of its superuser "
    "(empty: you run the SQL there yourself)",
    "redis": "Redis",
    "redis_ca": "Certificates of Redis' authority (empty: the system's)",
    "redis_password_file": "File with Redis' password (empty: it has none)",
    "documents": "Folder of the documents, or a bucket (s3://bucket/prefix)",
    "documents_endpoint": "Address of the bucket's store (empty: AWS's)",
    "documents_region": "Region that its requests are signed for",
    "documents_root_certificate_file": "Authority of its certificate, PEM (empty: the "
    "system's)",
    "documents_access_key_file": "File with the id of the access key to it",
    "documents_secret_key_file": "File with that key's secret",
    "hsm_profile": "HSM profile",
    "hsm_module": "PKCS#11 module (empty: the profile's)",
    "firma_label": "Label of the HSM's token for signers' keys",
    "pki_label": "Label of the HSM's token for the CA's key",
    "proxy": f"Web server before it ({', '.join(PROXIES)})",
    "trusted_proxies": "Networks that the web server asks from",
    "certificate": "Its TLS certificate",
    "certificate_key": "The private key of that",
    "mail_host": "Mail server, SMTP (docs/mail.md; empty: no mail is sent)",
    "mail_tls": f"TLS to it ({', '.join(TLS_TO_MAIL)})",
    "mail_port": "Its port (empty: 587 for starttls, 465 for implicit, 25 for none)",
    "mail_ca": "Certificates of its authority (empty: the system's)",
    "mail_from": "Address that mails come from",
    "mail_user": "Whom to sign in there as (empty: nobody)",
    "mail_password_file": "File with that one's password",
    "backup_file": "File that says where backups go, a folder or s3://bucket/prefix "
    "(docs/backup.md; empty: not yet)",
}
"""What is asked, by answer; those without a text come from a file alone."""
_ANOTHER: Final = dict.fromkeys(
    ("certificate", "certificate_key"),
    "Put a good one there and take it again, or name where it will be. ",
)
"""How to go on where what is there will not do."""
_ONLY_FOR: Final[Mapping[str, Callable[[Answers], bool]]] = {
    "database_ca": lambda answers: answers.has_database_host,
    "database_superuser_password_file": lambda answers: answers.has_database_host,
    "redis_ca": lambda answers: answers.redis.startswith("rediss:"),
    "redis_password_file": lambda answers: not answers.redis.startswith("unix:"),
    "trusted_proxies": lambda answers: answers.proxy != "none",
    **dict.fromkeys(
        ("certificate", "certificate_key"), lambda answers: fits(answers.filled())
    ),
    **dict.fromkeys(_OF_A_BUCKET, lambda answers: answers.has_bucket),
    **dict.fromkeys(_OF_MAIL, lambda answers: bool(answers.mail_host)),
    "mail_password_file": lambda answers: bool(answers.mail_user),
}
"""What is asked for only where it applies."""


def ask_all(
    given: Mapping[str, str], *, interactive: bool, layout: Layout = MACHINE
) -> Answers:
    """All answers, each looked at.

    Args:
        given: in a file; they are not asked for.
        interactive: ask for the others; else they are the usual ones.
        layout: what is not asked for since it could not be otherwise.

    Raises:
        SettingsError: answers that cannot be, and nobody to ask again.
        EOFError: the terminal ended.
    """
    faults = [
        f"{key}: is {value!r} here; another one is set in the settings afterwards"
        for key, value in layout.settled.items()
        if given.get(key, value) != value
    ]
    answers = Answers(**{**layout.usual, **given, **layout.settled})
    if interactive:
        say(
            "Enter takes what stands in [brackets]; no key and no settings are made "
            "before the last."
        )
    for field in fields(Answers):
        key = field.name
        applies = key not in _ONLY_FOR or _ONLY_FOR[key](answers)
        is_idle = not applies and not getattr(answers, key)
        if key in layout.settled or is_idle:
            continue
        if interactive and key in _TEXTS and key not in given and applies:
            answers = _asked(answers, key)
        else:
            faults += [f"{key}: {fault}" for fault in look(answers.filled(), key)]
    faults += _bare_name(answers) if not interactive else ()
    answers = answers.filled()
    # What is wrong with a key that follows from several, or from none.
    rest = _faults(answers)
    faults += [f"{key}: {text}" for key, text in rest if key not in _ANSWERED]
    if faults:
        raise SettingsError("\n".join(faults))
    for line in missing_yet(answers):
        say(f"not yet: {line}")
    return answers


def look_again(given: Mapping[str, str]) -> Answers:
    """The answers that an installation which has its settings still uses.

    Args:
        given: in a file; those that became settings are not looked at, which is said.

    Raises:
        SettingsError: one that is used cannot be.
    """
    if idle := [key for key in given if key not in _USED_LATER]:
        say(f"not looked at, since there are settings: {', '.join(idle)}")
    answers = Answers.of(given)
    faults = [
        f"{key}: {fault}"
        for key in _LOOKED_AT_AGAIN.intersection(given)
        # One that is gone was of use the first time.
        if not key.endswith("_file") or Path(given[key]).exists()
        for fault in _LOOKS[key](answers)
    ]
    if faults:
        raise SettingsError("\n".join(faults))
    return answers


def _bare_name(answers: Answers) -> Iterator[str]:
    """An address that nobody typed, of a machine that knows no full name of itself.

    In PREPROD it is only told of.
    """
    url = answers.filled().base_url
    if answers.base_url or "." in (urlsplit(url).hostname or ""):
        return
    told = (
        f"base_url: {url} is what this machine calls itself, and no full name "
        "(hostname -f): few reach it by that, and it stays in certificates for years; "
        "give base_url in a file of --answers"
    )
    if answers.environment == Environment.PROD.value:
        yield told
    else:
        say(f"beware: {told}")


def _asked(answers: Answers, key: str) -> Answers:
    """Ask for one answer until it will do."""
    while True:
        # What follows from an earlier answer is offered anew.
        usual = getattr(answers.filled(), key)
        typed = input(f"{_TEXTS[key]} [{usual}]: ").strip()
        tried = replace(answers, **{key: typed or usual})
        faults = look(tried.filled(), key)
        if not faults:
            return tried
        for fault in faults:
            say(f"  {fault}")
        say(f"  {_ANOTHER.get(key, '')}Ctrl-C leaves; nothing was made yet.")


def look(answers: Answers, key: str) -> list[str]:
    """What is wrong with an answer, by its form and by what is there.

    Args:
        answers: those so far.
        key: of the one that is looked at.
    """
    places = {each.get(key) for each in _TABLES}
    faults = [text for place, text in _faults(answers) if place in places]
    if not faults and key in _LOOKS:
        with contextlib.suppress(StopIteration):
            faults.append(next(_LOOKS[key](answers)))
    return faults


def _faults(answers: Answers) -> Iterator[tuple[str, str]]:
    """What the settings of these answers would be refused for."""
    try:
        read_tables(tomllib.loads(settings_text(answers)))
    except SettingsError as exc:
        for line in str(exc).splitlines():
            key, _, text = line.partition(": ")
            yield key, text


def _look_at_database(answers: Answers) -> Iterator[str]:
    url = answers.database
    if url == "sqlite":
        yield "SQLite is for a trial; PostgreSQL, please"
    place = socket_place(url)
    if place is None:
        if told := hosts_fault(url, DATABASE_PORT):
            yield told
        return
    folder, port = place
    if not Path(folder).is_dir():
        yield f"{folder}: no PostgreSQL listens there; install or start it"
    elif shutil.which("psql") is None:
        yield "psql: is not there; install postgresql-client"
    else:
        try:
            done = subprocess.run(  # noqa: S603 (a folder that exists)
                [*psql(folder, port), "-qAtc", "SELECT 1"],
                capture_output=True,
                text=True,
                check=False,
                timeout=CONNECT_S,
                cwd="/",
            )
        except subprocess.TimeoutExpired:
            yield f"PostgreSQL does not answer within {CONNECT_S} s"
            return
        if done.returncode != 0:
            yield f"PostgreSQL does not answer: {done.stderr.strip()}"


def _look_at_redis(answers: Answers) -> Iterator[str]:
    if answers.redis.startswith("rediss:"):
        # Its authority and its password are asked for next.
        told = hosts_fault(answers.redis, REDIS_PORT)
    else:
        told = redis_fault(answers.redis, None, None)
    if told and told != WANTS_PASSWORD:
        yield told


def _look_at_redis_password(answers: Answers) -> Iterator[str]:
    password = None
    if path := answers.redis_password_file:
        try:
            password = read_password(Path(path))
        except SettingsError as exc:
            yield str(exc)
            return
    authority = Path(answers.redis_ca) if answers.redis_ca else None
    told = redis_fault(answers.redis, authority, password)
    # What was told of the address is not told of its password as well.
    if told and not any(_look_at_redis(answers)):
        yield told


def _look_at_authorities(path: str) -> Iterator[str]:
    if path:
        try:
            read_authorities(Path(path))
        except SettingsError as exc:
            yield str(exc)


def _look_at_documents(answers: Answers) -> Iterator[str]:
    if answers.has_bucket:
        return  # with the last of what is asked of it
    path = Path(answers.documents)
    if not _FOLDER.fullmatch(answers.documents):
        yield "must be an absolute path, of letters, digits and ./@+:,=~_-"
        return
    above = next(each for each in (path, *path.parents) if each.exists())
    if not above.is_dir():
        yield f"{above}: is no folder"
        return
    try:
        with tempfile.TemporaryFile(dir=above):
            pass
    except OSError as exc:
        yield f"{above}: cannot be written to ({exc.strerror})"


def _look_at_bucket(answers: Answers) -> Iterator[str]:
    """Write, read and remove an object."""
    from appliance.documents.s3.bucket import Bucket  # noqa: PLC0415 (heavy)
    from appliance.settings import DocumentSettings  # noqa: PLC0415 (heavy)

    if not answers.has_bucket:
        return
    tables = tomllib.loads(settings_text(answers))["documents"]
    try:
        amiss = Bucket(DocumentSettings.model_validate(tables)).probe()
    except SettingsError as exc:
        yield str(exc)
    except ApplianceError as exc:
        yield str(getattr(exc, "reason", "")) or str(exc)
    else:
        if amiss:
            yield f"{answers.documents}: {amiss}"


def _look_at_hsm(answers: Answers) -> Iterator[str]:
    # The HSM's alone: other answers are looked at by themselves.
    usual = Answers.of(
        {"hsm_profile": answers.hsm_profile, "hsm_module": answers.hsm_module}
    )
    settings = read_tables(tomllib.loads(settings_text(usual)))
    for point in sorted(entry_points(group="rubrica.commands")):
        check: Callable[[Settings, str | None], Iterator[tuple[str, str]]] | None
        check = getattr(import_module(point.module), "check_settings", None)
        for key, text in () if check is None else check(settings, None):
            if key in {"hsm.profile", "hsm.module"}:
                yield text


def _look_at_proxy(answers: Answers) -> Iterator[str]:
    if answers.proxy not in PROXIES:
        yield f"must be one of {', '.join(PROXIES)}"


def _look_at_superuser(answers: Answers) -> Iterator[str]:
    """Log in as whoever is to make the users."""
    from appliance.operations.setup.servers import refused_login  # noqa: PLC0415 (heavy)

    path = answers.database_superuser_password_file
    if not path or not answers.has_database_host:
        return
    settings = read_tables(tomllib.loads(settings_text(answers)))
    authority = Path(answers.database_ca) if answers.database_ca else None
    # Where the settings say that files are, setup has not put them yet.
    changed = {"root_certificate_file": authority, "password_file": None}
    database = settings.database.model_copy(update=changed)
    settings = settings.model_copy(update={"database": database})
    try:
        password = read_password(Path(path))
    except SettingsError as exc:
        yield str(exc)
        return
    if told := refused_login(settings, answers.database_superuser, password):
        yield told


def _look_at_administrator(answers: Answers) -> Iterator[str]:
    from appliance.identity.console_login import (  # noqa: PLC0415 (heavy)
        NAME_ALLOWED,
        check_name,
    )

    if not answers.administrator:
        return
    try:
        check_name(answers.administrator)
    except FieldInvalidError:
        yield f"must be of {NAME_ALLOWED}"


def _look_at_administrators_password(answers: Answers) -> Iterator[str]:
    from appliance.domain.people.new_password import ALLOWED, WeakPasswordError  # noqa: PLC0415 (heavy)
    from appliance.identity.console_login import (  # noqa: PLC0415 (heavy)
        PASSWORD_ALLOWED,
        console_password,
    )

    path = answers.administrator_password_file
    if not path:
        return
    try:
        console_password(read_password(Path(path)), answers.administrator)
    except SettingsError as exc:
        yield str(exc)
    except WeakPasswordError as exc:
        allowed = ALLOWED[exc.weakness]
        yield f"{path}: the password of an administrator has to be {allowed}"
    except FieldInvalidError:
        yield f"{path}: the password of an administrator has {PASSWORD_ALLOWED}"


def _look_at_backup_file(path: str) -> Iterator[str]:
    from appliance.operations.setup.backups import (  # noqa: PLC0415 (heavy)
        read_complete,
    )

    if path:
        try:
            read_complete(Path(path))
        except SettingsError as exc:
            yield str(exc)


_LOOKS: Final[Mapping[str, Callable[[Answers], Iterator[str]]]] = {
    "database": _look_at_database,
    "database_ca": lambda answers: _look_at_authorities(answers.database_ca),
    "database_superuser_password_file": _look_at_superuser,
    "redis": _look_at_redis,
    "redis_ca": lambda answers: _look_at_authorities(answers.redis_ca),
    "redis_password_file": _look_at_redis_password,
    "documents": _look_at_documents,
    "documents_secret_key_file": _look_at_bucket,
    "hsm_profile": _look_at_hsm,
    "hsm_module": _look_at_hsm,
    "proxy": _look_at_proxy,
    "certificate": look_at_certificate,
    "certificate_key": look_at_key,
    "mail_host": mail_server.look_at_host,
    "mail_ca": mail_server.look_at_authorities,
    "mail_from": mail_server.look_at_sender,
    "mail_user": mail_server.look_at_user,
    "mail_password_file": mail_server.look_at_password,
    "backup_file": lambda answers: _look_at_backup_file(answers.backup_file),
    "administrator": _look_at_administrator,
    "administrator_password_file": _look_at_administrators_password,
}
"""What is looked at on this machine, by answer."""
_LOOKED_AT_AGAIN: Final = frozenset(
    {"backup_file", "administrator", "administrator_password_file"}
)
"""Of what setup uses though the settings are there, what needs no other answer."""
_USED_LATER: Final = _LOOKED_AT_AGAIN | {
    "database_superuser",
    "database_superuser_password_file",
}
"""What setup uses though the settings are there."""
