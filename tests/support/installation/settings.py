"""Settings and secrets of an installation in a folder.

settings = settings_in(folder, auth={"login_per_minute_account": 5})
write_secrets(settings)
"""

from pathlib import Path
from typing import Any, Final

from appliance.settings import Settings

_KEYS: Final = {
    "data_key_file": ("data-key", b"d"),
    "document_key_file": ("document-key", b"k"),
    "lookup_key_file": ("lookup-key", b"l"),
    "pepper_file": ("pepper", b"p"),
}
"""File of each key, and the byte that it is 32 of, by the setting that names it."""


def settings_in(folder: Path, url: str = "sqlite", **tables: Any) -> Settings:
    """Settings of an installation in a folder; nobody made its secrets yet.

    Args:
        folder: for data and secrets.
        url: of the database.
        tables: whole tables or other settings, in place of the usual ones.
    """
    token = {"label": "x", "pin_file": str(folder / "pin")}
    return Settings.model_validate(
        {
            "data_dir": str(folder),
            "run_dir": str(folder),
            "hsm": {"firma": token, "pki": token},
            "secrets": {key: str(folder / name) for key, (name, _) in _KEYS.items()},
            "database": {"url": url},
            **tables,
        }
    )


def merged(usual: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Usual settings, with what is given in their place, table by table."""
    both = {**usual, **given}
    for name in usual.keys() & given.keys():
        if isinstance(usual[name], dict):
            both[name] = {**usual[name], **given[name]}
    return both


def write_secrets(settings: Settings) -> None:
    """Make the key files that are not there, each readable by its owner alone."""
    for key, (_, letter) in _KEYS.items():
        path: Path = getattr(settings.secrets, key)
        if not path.exists():
            path.write_text((letter * 32).hex())
            path.chmod(0o600)
