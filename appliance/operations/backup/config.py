"""What `rubrica backup` is to do, in a file: for a timer, which types no options.

to = "/backup/record"
secrets_to = "/elsewhere/secrets"
recipients = ["age1…"]
keep = 30

Each key is the option of its name; an option that is given counts more.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from appliance.settings import read_toml, refuse_faults


@dataclass(frozen=True, slots=True)
class BackupConfig:
    """Where to, for whom, and how many stay."""

    to: Path | None = None
    """Folder of the record's backups."""
    secrets_to: Path | None = None
    """Folder of the secrets', in another place; None: they are in no backup."""
    recipients: list[str] = field(default_factory=list)
    """Public keys of age's."""
    recipients_files: list[Path] = field(default_factory=list)
    """Files with such keys."""
    keep: int = 0
    """How many of each stay; 0: all."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """What a file says.

        Raises:
            SettingsError: it cannot be read, or says what is none of it; each fault
                in a line.
        """
        raw = read_toml(path)
        refuse_faults(path, raw, [each.name for each in fields(cls)], _wrong)
        return cls(**{key: _value(key, value) for key, value in raw.items()})


def _wrong(key: str, value: Any) -> str:
    """What a value would have to be; empty where it is that."""
    if key == "keep":
        right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "" if right else "must be a whole number, ≥ 0"
    if key.startswith("recipients"):
        right = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return "" if right else "must be a list of texts"
    right = isinstance(value, str) and Path(value).is_absolute()
    return "" if right else "must be an absolute path"


def _value(key: str, value: Any) -> Any:
    if key in {"to", "secrets_to"}:
        return Path(value)
    return [Path(one) for one in value] if key == "recipients_files" else value
