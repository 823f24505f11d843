"""What `rubrica backup` is to do, in a file: for a timer, which types no options.

to = "/backup/record"
secrets_to = "/elsewhere/secrets"
recipients = ["age1…"]
keep = 30

Each key is the option of its name; an option that is given counts more. Where `to` is a
bucket's URL, the table `[bucket]` says how it is reached, and where `secrets_to` is
one, `[secrets_bucket]` (`appliance.operations.backup.buckets`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Self

from appliance.operations.backup.buckets import (
    RETRY,
    BackupBucket,
    Where,
    bucket_of,
    is_url,
    read_where,
    table_faults,
)
from appliance.settings import faults_in, read_toml, refuse

FILE: Final = Path("/etc/rubrica/backup.toml")
"""That of the timer."""
TABLES: Final = ("bucket", "secrets_bucket")


@dataclass(frozen=True, slots=True)
class BackupConfig:
    """Where to, for whom, and how many stay."""

    to: Where | None = None
    """Folder of the record's backups, or their bucket's URL."""
    secrets_to: Where | None = None
    """Those of the secrets', another place; None: they are in no backup."""
    recipients: list[str] = field(default_factory=list)
    """Public keys of age's."""
    recipients_files: list[Path] = field(default_factory=list)
    """Files with such keys."""
    keep: int = 0
    """How many of each stay; 0: all."""
    bucket: Mapping[str, Any] = field(default_factory=dict)
    """How `to` is reached, where it is a bucket."""
    secrets_bucket: Mapping[str, Any] = field(default_factory=dict)
    """How `secrets_to` is."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """What a file says.

        Raises:
            SettingsError: it cannot be read, or says what is none of it; each fault
                in a line.
        """
        raw = read_toml(path)
        flat = {key: value for key, value in raw.items() if key not in TABLES}
        faults = faults_in(path, flat, [each.name for each in fields(cls)], _wrong)
        faults += [
            f"{path}: {fault}"
            for at in TABLES
            if at in raw
            for fault in table_faults(raw[at], at)
        ]
        refuse(faults)
        return cls(**{key: _value(key, value) for key, value in raw.items()})

    def at_once(self) -> Self:
        """The same, of which nothing is tried again: for who waits for an answer."""
        return replace(
            self,
            bucket={**self.bucket, RETRY: 0},
            secrets_bucket={**self.secrets_bucket, RETRY: 0},
        )

    def buckets(self) -> tuple[BackupBucket | None, BackupBucket | None]:
        """Those of the record's backups and of the secrets'; None: no bucket has them.

        Raises:
            SettingsError: what says how one is reached is wrong, or missing.
        """
        record, secrets = self.to, self.secrets_to
        return (
            bucket_of(record, self.bucket, TABLES[0])
            if isinstance(record, str)
            else None,
            bucket_of(secrets, self.secrets_bucket, TABLES[1])
            if isinstance(secrets, str)
            else None,
        )


def _wrong(key: str, value: Any) -> str:
    """What a value would have to be; empty where it is that."""
    if key == "keep":
        right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "" if right else "must be a whole number, ≥ 0"
    if key.startswith("recipients"):
        right = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return "" if right else "must be a list of texts"
    right = isinstance(value, str) and (Path(value).is_absolute() or is_url(value))
    return "" if right else "must be an absolute path, or s3://bucket/prefix"


def _value(key: str, value: Any) -> Any:
    if key in {"to", "secrets_to"}:
        return read_where(value)
    return [Path(one) for one in value] if key == "recipients_files" else value
