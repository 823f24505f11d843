"""Settings and secrets of an installation in a folder, for a process or as a file.

settings = settings_in(folder, auth={"login_per_minute_account": 5})
write_secrets(settings)
(folder / "settings.toml").write_text(toml(tables_in(".")))
"""

import json
from pathlib import Path
from typing import Any, Final

from appliance.settings import Settings

_KEYS: Final = {
    "pepper_file": ("pepper", b"p"),
    "data_key_file": ("data-key", b"d"),
    "document_key_file": ("document-key", b"k"),
    "lookup_key_file": ("lookup-key", b"l"),
}
"""File of each key, and the byte that it is 32 of, by the setting that names it."""


def tables_in(
    data: Path | str, secrets: Path | str | None = None, url: str = "sqlite"
) -> dict[str, Any]:
    """The settings without which there is no installation.

    Args:
        data: folder of the data, and of what runs.
        secrets: folder of keys and PINs; None: that of the data.
        url: of the database.
    """
    place = Path(data if secrets is None else secrets)
    return {
        "data_dir": str(data),
        "run_dir": str(data),
        "database": {"url": url},
        "hsm": {
            label: {"label": label, "pin_file": str(place / f"{label}.pin")}
            for label in ("firma", "pki")
        },
        "secrets": {key: str(place / name) for key, (name, _) in _KEYS.items()},
    }


def settings_in(folder: Path, url: str = "sqlite", **tables: Any) -> Settings:
    """Settings of an installation in a folder; nobody made its secrets yet.

    Args:
        folder: for data and secrets.
        url: of the database.
        tables: whole tables or other settings, in place of the usual ones.
    """
    usual = tables_in(folder, url=url)
    # A machine that does much else is slow, not wrong.
    usual["database"]["busy_timeout_s"] = 60
    return Settings.model_validate({**usual, **tables})


def merged(usual: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Usual settings, with what is given in their place, table by table."""
    both = {**usual, **given}
    for name in usual.keys() & given.keys():
        if isinstance(usual[name], dict):
            both[name] = merged(usual[name], given[name])
    return both


def toml(tables: dict[str, Any], *path: str) -> str:
    """A settings file: a line for each value, and then the tables.

    Args:
        tables: settings; no value is a time.
        path: of the table that they are in.
    """
    inner = {name: value for name, value in tables.items() if isinstance(value, dict)}
    plain = {name: value for name, value in tables.items() if name not in inner}
    # What holds nothing but tables is made by them.
    lines = [f"[{'.'.join(path)}]\n"] if path and (plain or not inner) else []
    lines += [f"{name} = {_value(value)}\n" for name, value in plain.items()]
    return "".join(lines + [toml(inner[name], *path, name) for name in inner])


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{name} = {_value(each)}" for name, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return json.dumps(value, ensure_ascii=False)


def write_secrets(settings: Settings) -> None:
    """Make the key files that are not there, each readable by its owner alone."""
    for key, (_, letter) in _KEYS.items():
        path: Path = getattr(settings.secrets, key)
        if not path.exists():
            path.write_text((letter * 32).hex())
            path.chmod(0o600)
