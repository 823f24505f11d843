"""Read the file, and say in its own words what is wrong with it."""

from pathlib import Path

from appliance.settings.faults import read_tables
from appliance.settings.named_files import absolute
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
        return read_tables(absolute(raw, Settings, path.resolve().parent))
    except SettingsError as exc:
        lines = str(exc).splitlines()
        # None: a cause would show values, and with them what may be a secret.
        raise SettingsError("\n".join(f"{path}: {line}" for line in lines)) from None
