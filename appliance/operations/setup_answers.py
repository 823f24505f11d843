"""The few choices of an installation, and the settings file that they make.

    answers = Answers.of({"base_url": "https://firma.example"})
    settings_text(answers)  # TOML, with comments

An answers file is TOML: a key of `Answers` and its value, a line each.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from socket import getfqdn
from typing import Final, Self
from urllib.parse import urlsplit

from appliance.domain.vocab import StampDesign
from appliance.settings import faults_in, read_toml, refuse

PROXIES: Final = ("nginx", "caddy", "haproxy", "other", "none")
"""Web servers that setup writes a sample for, another one, or none."""
_ON_THIS_MACHINE: Final = ("http://localhost:8081", "http://127.0.0.1:8082")
"""Frame and console of a trial that no web server stands before."""
SETTINGS_OF: Final = {
    "environment": "environment",
    "installation": "installation",
    "base_url": "web.base_url",
    "iframe_url": "web.iframe_url",
    "admin_url": "web.admin_url",
    "stamp": "stamp.design",
    "database": "database.url",
    "database_tls": "database.tls",
    "redis": "redis.url",
    "documents": "documents.path",
    "hsm_profile": "hsm.profile",
    "hsm_module": "hsm.module",
    "firma_label": "hsm.firma.label",
    "pki_label": "hsm.pki.label",
    "trusted_proxies": "web.trusted_proxies",
}
"""The key of the settings that each answer becomes; those that become none are not
here."""
BUCKET_SETTINGS_OF: Final = {
    "documents": "documents.url",
    "documents_endpoint": "documents.endpoint",
    "documents_region": "documents.region",
    "documents_root_certificate_file": "documents.root_certificate_file",
    "documents_access_key_file": "documents.access_key_file",
    "documents_secret_key_file": "documents.secret_key_file",
}
"""The same, of documents in a bucket, in the order in which it is asked."""
MAIL_SETTINGS_OF: Final = {
    "mail_host": "mail.host",
    "mail_tls": "mail.tls",
    "mail_port": "mail.port",
    "mail_from": "mail.from_address",
    "mail_user": "mail.user",
}
"""The same, of the server that mails are handed to, where one is named."""
TLS_TO_MAIL: Final = ("starttls", "implicit", "none")
"""What `mail.tls` may be."""


@dataclass(frozen=True, slots=True)
class Answers:
    """One answer for each question, in the order in which they are asked."""

    environment: str = "PREPROD"
    """`PREPROD` or `PROD`."""
    installation: str = "Rubrica"
    """Its name, which stands in the CA's and stays."""
    base_url: str = ""
    """Public address of the API, for years (`{base_url}/pki/`)."""
    iframe_url: str = ""
    """Origin of the signing frame."""
    admin_url: str = ""
    """Origin of the console."""
    stamp: str = "card"
    """As `stamp.design`; a card has a QR code, too."""
    database: str = "postgresql:///rubrica?host=/run/postgresql"
    """As `database.url`."""
    database_tls: str = ""
    """As `database.tls`; empty: `verify-full` to another host."""
    database_ca: str = ""
    """File with the certificates of PostgreSQL's authority; empty: the system's."""
    database_superuser: str = "postgres"
    """Who makes our users there, where the next one is given."""
    database_superuser_password_file: str = ""
    """File with that one's password; empty: an administrator runs the SQL there."""
    redis: str = "redis://127.0.0.1:6379/0"
    """As `redis.url`."""
    redis_ca: str = ""
    """File with the certificates of Redis' authority; empty: the system's."""
    redis_password_file: str = ""
    """File with Redis' password; empty: it has none."""
    documents: str = "/var/lib/rubrica/documents"
    """Folder of the documents, or a bucket: `s3://bucket/prefix`."""
    documents_endpoint: str = ""
    """Address of that bucket's store; empty: AWS's."""
    documents_region: str = "us-east-1"
    """As `documents.region`."""
    documents_root_certificate_file: str = ""
    """Authority of the store's certificate; empty: the system's."""
    documents_access_key_file: str = "/etc/rubrica/secrets/documents-access-key"
    """File with the id of the access key to that store."""
    documents_secret_key_file: str = "/etc/rubrica/secrets/documents-secret-key"  # noqa: S105 (a path)
    """File with that key's secret."""
    hsm_profile: str = "softhsm2"
    """Name of a profile of `hsm_config/profiles`, or a path."""
    hsm_module: str = ""
    """PKCS#11 module; empty: the profile's."""
    firma_label: str = "firma"
    """Label of the token with the signers' keys."""
    pki_label: str = "pki"
    """Label of the token with the CA's key."""
    proxy: str = "nginx"
    """One of `PROXIES`."""
    trusted_proxies: str = "127.0.0.1"
    """Networks that it asks from, with blanks between."""
    certificate: str = ""
    """Its TLS certificate, for the sample."""
    certificate_key: str = ""
    """That certificate's private key, for the sample."""
    mail_host: str = ""
    """SMTP server that mails to people are handed to; empty: none is sent."""
    mail_tls: str = "starttls"
    """One of `TLS_TO_MAIL`."""
    mail_port: str = ""
    """Its port; empty: the usual one of that."""
    mail_ca: str = ""
    """File with the certificates of its authority; empty: the system's."""
    mail_from: str = ""
    """Address that mails come from."""
    mail_user: str = ""
    """Whom to sign in there as; empty: nobody."""
    mail_password_file: str = ""
    """File with that one's password."""
    backup_file: str = ""
    """File that says where backups go, as /etc/rubrica/backup.toml; empty: not yet."""
    administrator: str = ""
    """Name of the first administrator; empty: none is made."""
    administrator_password_file: str = ""
    """File with that one's password; empty: it is asked for."""

    @property
    def has_bucket(self) -> bool:
        """Whether documents are in a bucket, and not in a folder."""
        return self.documents.startswith("s3:")

    @classmethod
    def read(cls, path: Path) -> dict[str, str]:
        """The answers of a file; those that it leaves out are left out.

        Raises:
            SettingsError: it cannot be read, or holds an answer to no question.
        """
        raw = read_toml(path)
        known = [each.name for each in fields(cls)]
        refuse(faults_in(path, raw, known, _wrong))
        return {key: str(value) for key, value in raw.items()}

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Answers as given, and for the rest what is usual."""
        return cls(**given).filled()

    @property
    def has_database_host(self) -> bool:
        """Whether PostgreSQL is reached by a host's name, with passwords."""
        return bool(urlsplit(self.database).netloc)

    def filled(self) -> Self:
        """What follows from other answers, where it was not answered itself."""
        base_url = self.base_url or f"https://{getfqdn()}"
        host = urlsplit(base_url).hostname or "firma.example"
        none = self.proxy == "none"
        afar = "verify-full" if self.has_database_host else "prefer"
        iframe_url, admin_url = f"https://marco.{host}", f"https://consola.{host}"
        if host == "127.0.0.1":
            iframe_url, admin_url = _ON_THIS_MACHINE
        return replace(
            self,
            database_tls=self.database_tls or afar,
            base_url=base_url,
            iframe_url=self.iframe_url or iframe_url,
            admin_url=self.admin_url or admin_url,
            trusted_proxies="" if none else self.trusted_proxies,
            certificate=self.certificate or f"/etc/ssl/{host}.pem",
            certificate_key=self.certificate_key or f"/etc/ssl/private/{host}.key",
        )


def _wrong(_key: str, value: object) -> str:
    """What an answer would have to be; empty where it is that."""
    return "" if isinstance(value, str) else "must be a text"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an installation's processes have what its settings name."""

    settled: Mapping[str, str] = field(default_factory=dict)
    """Answers that are not asked for, since nothing else would do."""
    usual: Mapping[str, str] = field(default_factory=dict)
    """Answers that are usual here, and not elsewhere."""
    host: str = "127.0.0.1"
    """What the faces listen on."""
    host_note: str = "The listeners stand in the units rubrica-*.socket too."
    database: str = (
        "# By a socket PostgreSQL knows each role by its Unix user, without a password."
    )
    """Lines of `[database]` before its address."""
    redis: str = ""
    """Lines of `[redis]` after its address."""
    secrets: str = "/etc/rubrica/secrets"
    """Folder of the keys."""
    secrets_note: str = "systemd hands each role those that it needs (LoadCredential=)."
    metrics: str = ""
    """Lines of `[metrics]` after its listener."""
    tables: str = ""
    """Tables that stand in no other layout, with a line end."""


MACHINE: Final = Layout()
"""Roles as systemd's units."""

_TEMPLATE: Final = """\
# Settings of this installation, readable for all: no secret stands here.
# /opt/rubrica/docs/settings.md describes every key; `rubrica check-config` checks them.
environment = {environment}
# It stands in the CA's name, and every key is bound to it: it stays.
installation = {installation}
data_dir = "/var/lib/rubrica"
run_dir = "/run/rubrica"

[web]
# What checks a signature in years to come asks below this address: it stays.
base_url = {base_url}
# {host_note}
listen_api = "{host}:8080"
# Another origin than every other address here: nothing else may be served there.
iframe_url = {iframe_url}
listen_embed = "{host}:8081"
# Best reachable from inside alone.
admin_url = {admin_url}
listen_admin = "{host}:8082"
# Where the web server before the faces asks from; its word on the client's address
# is taken.
trusted_proxies = {trusted_proxies}

[metrics]
# Figures of all roles, for Prometheus: docs/metrics.md.
listen = "{host}:8083"
{metrics}
[database]
{database_more}url = {database}

[redis]
url = {redis}
{redis_more}{documents}
[hsm]
profile = {hsm_profile}
{hsm_more}# In memory, on a tmpfs.
activation_dir = "/run/rubrica/activation"
firma = {{ label = {firma_label}, pin_file = "/etc/rubrica/hsm/firma.pin" }}
pki = {{ label = {pki_label}, pin_file = "/etc/rubrica/hsm/pki.pin" }}

[secrets]
# {secrets_note}
pepper_file = "{secrets}/pepper"
data_key_file = "{secrets}/data-key"
document_key_file = "{secrets}/document-key"
lookup_key_file = "{secrets}/lookup-key"

{mail}{tables}[stamp]
# What visible signatures look like: docs/stamp.md, "Two designs".
design = {stamp}
qr = {has_code}

[log]
format = "json"
"""
_USUAL: Final = Answers()
PASSWORDS: Final = Path("/etc/rubrica/secrets")
"""Folder of the files `database` (and `database-ROLE`), `redis` and `mail-password`."""
MAIL_PASSWORD: Final = "mail-password"  # noqa: S105 (a name)
"""Name of the file with the password that `chores` signs in to the mail server by."""
AUTHORITIES: Final = {
    "database_ca": Path("/etc/rubrica/database-ca.pem"),
    "redis_ca": Path("/etc/rubrica/redis-ca.pem"),
    "mail_ca": Path("/etc/rubrica/mail-ca.pem"),
}
"""Where setup puts copies of the authorities' certificates: every role reads them."""


def settings_text(answers: Answers, layout: Layout = MACHINE) -> str:
    """The settings file that some answers make: TOML, with comments."""
    more = ""
    if answers.hsm_profile == "softhsm2":
        more += 'softhsm_conf = "/var/lib/rubrica/tokens/softhsm2.conf"\n'
    if answers.hsm_module:
        more += f"module = {_quoted(answers.hsm_module)}\n"
    authorities = {
        key: f"root_certificate_file = {_quoted(str(place))}\n"
        for key, place in AUTHORITIES.items()
        if getattr(answers, key)
    }
    database_more = f"{layout.database}\n"
    if answers.has_database_host:
        database_more = (
            "# systemd hands each role the password of its own user.\n"
            f'password_file = "{PASSWORDS}/database"\n'
            f"tls = {_quoted(answers.database_tls)}\n"
            + authorities.get("database_ca", "")
        )
    redis_more = layout.redis + authorities.get("redis_ca", "")
    if answers.redis_password_file:
        redis_more = f'password_file = "{PASSWORDS}/redis"\n{redis_more}'
    documents = ""
    if answers.has_bucket:
        documents = f"\n[documents]\n{_bucket_text(answers)}"
    elif answers.documents != _USUAL.documents:
        documents = f"\n[documents]\npath = {_quoted(answers.documents)}\n"
    texts = {
        each.name: _quoted(getattr(answers, each.name)) for each in fields(answers)
    }
    return _TEMPLATE.format(
        **{
            **texts,
            "trusted_proxies": json.dumps(answers.trusted_proxies.split()),
            "has_code": json.dumps(answers.stamp == StampDesign.CARD),
            "documents": documents,
            "hsm_more": more,
            "database_more": database_more,
            "redis_more": redis_more,
            "host": layout.host,
            "host_note": layout.host_note,
            "secrets": layout.secrets,
            "secrets_note": layout.secrets_note,
            "metrics": layout.metrics,
            "tables": layout.tables,
            "mail": _mail_text(answers, layout) if answers.mail_host else "",
        }
    )


def _bucket_text(answers: Answers) -> str:
    """The keys of a bucket, without those that are not given."""
    given = {
        key.partition(".")[2]: getattr(answers, name)
        for name, key in BUCKET_SETTINGS_OF.items()
    }
    return "".join(
        f"{key} = {_quoted(value)}\n" for key, value in given.items() if value
    )


def _mail_text(answers: Answers, layout: Layout) -> str:
    """`[mail]`, without the keys that are not given."""
    lines = [
        f"{key.partition('.')[2]} = {_number_or_text(name, getattr(answers, name))}\n"
        for name, key in MAIL_SETTINGS_OF.items()
        if getattr(answers, name)
    ]
    if answers.mail_user:
        lines.append(f'password_file = "{layout.secrets}/{MAIL_PASSWORD}"\n')
    if answers.mail_ca:
        place = AUTHORITIES["mail_ca"]
        lines.append(f"root_certificate_file = {_quoted(str(place))}\n")
    return f"[mail]\n# Mails to people: docs/mail.md.\n{''.join(lines)}\n"


def _number_or_text(name: str, value: str) -> str:
    """A port as the number that it is; what is none, the settings refuse."""
    return value if name == "mail_port" and value.isdecimal() else _quoted(value)


def _quoted(text: str) -> str:
    """A basic string of TOML; JSON writes one, but for DEL (TOML 1.0 "String")."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
