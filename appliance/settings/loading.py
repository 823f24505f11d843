"""Read the file, and say in its own words what is wrong with it."""

from pathlib import Path

from appliance.settings.faults import read_tables
from appliance.settings.root import Settings
from appliance.settings.section import SettingsError
from appliance.settings.toml_file import read_toml

PACKAGED = Path("/etc/rubrica/settings.toml")
"""Where an installed machine's units read them."""


def load_settings(path: Path) -> Settings:
    """Read and check the settings file.

    Raises:
        SettingsError: not readable, not TOML, an unknown key or a bad value.
    """
    if path == PACKAGED and not path.exists():
        msg = f"{path}: is not there; run `rubrica setup`, which makes it"
        raise SettingsError(msg)
    raw = read_toml(path)
    try:
        return read_tables(_absolute(raw, path.resolve().parent))
    except SettingsError as exc:
        lines = str(exc).splitlines()
        # None: a cause would show values, and with them what may be a secret.
        raise SettingsError("\n".join(f"{path}: {line}" for line in lines)) from None


_PATH_KEYS = frozenset(
    {
        "data_dir",
        "run_dir",
        "fonts_dir",
        "password_file",
        "root_certificate_file",
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
        "access_key_file",
        "secret_key_file",
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
