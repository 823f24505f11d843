"""A bucket of backups: its URL, and the table that says how it is reached.

    to = "s3://backups/rubrica"

    [bucket]
    endpoint = "https://s3.example:9000"
    access_key_file = "/etc/rubrica/secrets/backup-access-key"
    secret_key_file = "/etc/rubrica/secrets/backup-secret-key"

Keys are those of `[documents]` with the same names, and `retry_s`. The access key
stands in files alone: in no URL and on no command line.

Source: docs/backup.md "Into a bucket"; docs/settings.md "[documents]".
"""

import contextlib
import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from appliance.domain.vocab import Environment
from appliance.settings import DocumentSettings, Settings, SettingsError

SCHEME: Final = "s3://"
Where = Path | str
"""A folder or a file of this machine, or a URL of a bucket or of what lies in one."""
RETRY: Final = "retry_s"
FILES: Final = ("access_key_file", "secret_key_file", "root_certificate_file")
_TIMES: Final = ("connect_timeout_s", "request_timeout_s")
_KEYS: Final = ("endpoint", "region", "address_style", *FILES, *_TIMES, RETRY)
_NEEDED: Final = ("access_key_file", "secret_key_file")
_REQUEST_S: Final = 60.0
"""A link abroad carries less than one to a store beside the machine."""
_RETRY_S: Final = 120.0
_LONGEST_RETRY_S: Final = 3600
_AWS: Final = ".amazonaws.com"
_USUAL_PORTS: Final = (None, 80, 443)
"""Of one store, by HTTP and by HTTPS."""


@dataclass(frozen=True, slots=True)
class BackupBucket:
    """A bucket of backups, and how it is reached."""

    settings: DocumentSettings
    """With a `url`: what they say of documents is for none of it."""
    retry_s: float
    """How long what a request fails at is tried again, in seconds."""

    @property
    def url(self) -> str:
        """For people, and to be put before a backup's name; no `/` at its end."""
        return (self.settings.url or "").rstrip("/")

    @property
    def name(self) -> str:
        """The bucket's, without what is below it."""
        return self.settings.bucket[0] if self.settings.bucket else ""

    @property
    def store(self) -> str:
        """What tells its store from another."""
        return _store(self.settings)


def is_bucket(where: Where | None) -> bool:
    """Whether it is a URL, and no name of this machine's."""
    return isinstance(where, str)


def read_where(text: str) -> Where:
    """A folder's or a file's name, or a bucket's URL, as somebody typed it."""
    return text if text.startswith(SCHEME) else Path(text)


def bucket_of(url: str, table: Mapping[str, Any], at: str) -> BackupBucket:
    """A bucket by its URL and its table.

    Args:
        url: `s3://bucket/prefix`.
        table: see above.
        at: the table's name, for what is told.

    Raises:
        SettingsError: each fault in a line.
    """
    from appliance.system.tls import read_authorities  # noqa: PLC0415 (heavy)

    faults = [*table_faults(table, at)]
    faults += [
        f"{at}.{key}: is missing; {url} needs it" for key in _NEEDED if key not in table
    ]
    if not is_url(url):
        faults.append(f"{url}: must be s3://bucket or s3://bucket/prefix")
    if faults:
        raise SettingsError("\n".join(faults))
    settings = DocumentSettings.model_validate(_given(table) | {"url": url})
    if settings.root_certificate_file is not None:
        read_authorities(settings.root_certificate_file)  # its words for what is none
    return BackupBucket(settings, float(table.get(RETRY, _RETRY_S)))


def is_url(text: str) -> bool:
    """Whether it is a bucket's URL."""
    try:
        return DocumentSettings.model_validate({"url": text}).bucket is not None
    except ValidationError:
        return False


def table_faults(table: object, at: str) -> Iterator[str]:
    """What is wrong with a table, each in a line.

    Args:
        table: as TOML gives it.
        at: its name.
    """
    if not isinstance(table, dict):
        yield f"{at}: must be a table"
        return
    for key in table:
        if key not in _KEYS:
            yield f"{at}.{key}: unknown key; allowed here: {', '.join(_KEYS)}"
    for key in FILES:
        value = table.get(key)
        if value is not None and not (
            isinstance(value, str) and Path(value).is_absolute()
        ):
            yield f"{at}.{key}: must be an absolute path"
    retry_s = table.get(RETRY, 0)
    if isinstance(retry_s, bool) or not (
        isinstance(retry_s, int | float) and 0 <= retry_s <= _LONGEST_RETRY_S
    ):
        yield f"{at}.{RETRY}: must be a number of seconds, 0 to {_LONGEST_RETRY_S}"
    try:
        DocumentSettings.model_validate(_given(table))
    except ValidationError as exc:
        for error in exc.errors():
            key = str(error["loc"][0])
            if key not in FILES:
                told = str(error.get("ctx", {}).get("error", error["msg"]))
                yield f"{at}.{key}: {told.replace('documents.', f'{at}.')}"


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of `[documents]`."""
    known = {key: table[key] for key in _KEYS if key in table and key != RETRY}
    return {"request_timeout_s": _REQUEST_S, **known}


def _store(settings: DocumentSettings) -> str:
    address = urlsplit(settings.endpoint or f"https://s3{_AWS}")
    host = (address.hostname or "").rstrip(".")
    # A bucket of AWS is the same by the name of any region.
    if host.endswith(_AWS):
        return _AWS
    return host if address.port in _USUAL_PORTS else f"{host}:{address.port}"


def refuse_shared(
    settings: Settings, record: BackupBucket | None, secrets: BackupBucket | None
) -> None:
    """Refuse buckets and keys that are another purpose's as well.

    Who has the documents' key, as every role has, must reach no backup with it; and who
    has the key to one kind of backups must not have the other kind.

    Args:
        settings: of the installation.
        record: the bucket of the record's backups; None: a folder has them.
        secrets: that of the secrets'.

    Raises:
        SettingsError: they are, or a key cannot be read; or PROD would send what it
            sends in clear.
    """
    used: list[tuple[str, BackupBucket]] = []
    if settings.documents.url is not None:
        used.append(("documents.url", BackupBucket(settings.documents, 0)))
    for at, bucket in (("bucket", record), ("secrets_bucket", secrets)):
        if bucket is None:
            continue
        for of, other in used:
            _refuse_same(at, bucket, of, other)
        used.append((at, bucket))
        endpoint = bucket.settings.endpoint or ""
        if settings.environment is Environment.PROD and _is_open(endpoint):
            msg = f"{at}.endpoint: {endpoint!r}: PROD needs https://"
            raise SettingsError(msg)


def _refuse_same(at: str, bucket: BackupBucket, of: str, other: BackupBucket) -> None:
    """Refuse a bucket, or a key, that is another's as well.

    Raises:
        SettingsError: it is, or the key cannot be read.
    """
    from appliance.documents.s3.credentials import read_access  # noqa: PLC0415 (heavy)

    if bucket.store != other.store:
        return
    if bucket.name == other.name:
        msg = (
            f"{bucket.url}: is in the bucket of {other.url} ({of}): who finds or loses "
            "one has or loses the other; give each a bucket of its own"
        )
        raise SettingsError(msg)
    one, another = read_access(bucket.settings), None
    # systemd may have handed the documents' to the roles alone.
    with contextlib.suppress(SettingsError):
        another = read_access(other.settings)
    if another is not None and one.key_id == another.key_id:
        msg = (
            f"{at}.access_key_file: is the key to {other.url} ({of}) as well: make one "
            f"that may go to {bucket.url} alone"
        )
        raise SettingsError(msg)


def _is_open(endpoint: str) -> bool:
    """Whether others may listen on the way to an address."""
    parts = urlsplit(endpoint)
    if parts.scheme != "http" or parts.hostname == "localhost":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return True
