"""Read the file, and say in its own words what is wrong with it."""

import tomllib
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from appliance.settings.root import Settings
from appliance.settings.section import SettingsError


def load_settings(path: Path) -> Settings:
    """Read and check the settings file.

    Raises:
        SettingsError: not readable, not TOML, an unknown key or a bad value.
    """
    try:
        with path.open("rb") as file:
            raw = tomllib.load(file)
    except OSError as exc:
        msg = f"{path}: cannot be read ({exc.strerror})"
        raise SettingsError(msg) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        msg = f"{path}: not valid TOML ({exc})"
        raise SettingsError(msg) from exc
    try:
        settings = Settings.model_validate(_absolute(raw, path.resolve().parent))
    except ValidationError as exc:
        raise SettingsError(_explain(path, exc)) from exc
    return settings


_PATH_KEYS = frozenset(
    {
        "data_dir",
        "run_dir",
        "fonts_dir",
        "password_file",
        "socket",
        "path",
        "module",
        "pin_file",
        "softhsm_conf",
        "activation_dir",
        "config",
        "pepper_file",
        "data_key_file",
        "document_key_file",
        "lookup_key_file",
        "ca_file",
        "header_file",
        "certificate_file",
        "key_file",
    }
)


def _absolute(table: dict[str, object], folder: Path) -> dict[str, object]:
    """Make every relative path count from the file's folder."""
    out: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out[key] = _absolute(value, folder)
        elif isinstance(value, list):
            out[key] = [
                _absolute(one, folder) if isinstance(one, dict) else one
                for one in value
            ]
        elif key in _PATH_KEYS and isinstance(value, str):
            out[key] = str(folder / value)
        else:
            out[key] = value
    return out


def _explain(path: Path, exc: ValidationError) -> str:
    """One line for each fault: file, key, and what is allowed."""
    lines = []
    for error in exc.errors():
        key = ".".join(str(part) for part in error["loc"]) or "(file)"
        if error["type"] == "extra_forbidden":
            allowed = ", ".join(sorted(_keys_beside(error["loc"])))
            lines.append(f"{path}: {key}: unknown key; allowed here: {allowed}")
        else:
            lines.append(f"{path}: {key}: {error['msg']}")
    return "\n".join(lines)


def _keys_beside(loc: tuple[int | str, ...]) -> list[str]:
    """The keys that the table holding `loc` may have."""
    model: type[BaseModel] = Settings
    for part in loc[:-1]:
        if isinstance(part, int):
            continue  # a place in a list, whose elements' model it is already
        annotation = model.model_fields[part].annotation
        for kind in (annotation, *get_args(annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return list(model.model_fields)
