"""HSM profiles: what differs between makes of HSM, one TOML file each.

A profile holds facts about a make (where its module lies, what it gets wrong),
never anything about one installation, which is the settings file's matter.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.settings import SettingsError

_FOLDER: Final = Path(__file__).parent / "profiles"


@dataclass(frozen=True, slots=True)
class HsmQuirks:
    """Where this make departs from what one would expect."""

    makes_tokens: bool
    """`rubrica hsm init` makes the tokens and their PINs; otherwise they must
    stand ready, with their PIN files."""
    pin_chars: int
    """Length of a PIN that `init` makes, 8 to 64 characters."""
    rewrites_tokens: bool
    """A login rewrites the token's file in place, so that it is kept twice."""
    start_tries: int
    """How often a start is tried before the HSM counts as away, 1 to 20."""


@dataclass(frozen=True, slots=True)
class HsmProfile:
    """One make of HSM."""

    name: str
    """Shown to operators."""
    modules: tuple[Path, ...]
    """Where its PKCS#11 module may lie, in the order to try."""
    config_env: str | None
    """Environment variable with the path of the module's own configuration."""
    quirks: HsmQuirks
    """Its departures."""


def load_profile(name_or_path: str) -> HsmProfile:
    """Read a profile.

    Args:
        name_or_path: a name in `hsm_config/profiles`, or a path to a `.toml`.

    Returns:
        The profile, checked.

    Raises:
        SettingsError: no such profile, not TOML, a key unknown, missing or bad.
    """
    path = (
        Path(name_or_path)
        if name_or_path.endswith(".toml")
        else _FOLDER / f"{name_or_path}.toml"
    )
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except OSError as exc:
        known = ", ".join(sorted(p.stem for p in _FOLDER.glob("*.toml")))
        msg = f"hsm.profile: {path} cannot be read; profiles here: {known}"
        raise SettingsError(msg) from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        msg = f"{path}: not valid TOML ({exc})"
        raise SettingsError(msg) from exc
    return _Table(path, "", raw, {"name", "modules", "config_env", "quirks"}).profile()


class _Table:
    """One table of a profile file, read key by key."""

    def __init__(
        self, path: Path, prefix: str, raw: dict[str, object], keys: set[str]
    ) -> None:
        self._path = path
        self._prefix = prefix
        self._raw = raw
        for key in raw:
            if key not in keys:
                allowed = ", ".join(sorted(keys))
                raise self._fault(key, f"unknown key; allowed here: {allowed}")

    def profile(self) -> HsmProfile:
        quirks = self._raw.get("quirks")
        if not isinstance(quirks, dict):
            raise self._fault("quirks", "a table is needed")
        modules = self._raw.get("modules")
        if not isinstance(modules, list) or not modules:
            raise self._fault("modules", "a list of paths is needed")
        return HsmProfile(
            name=self._text("name"),
            modules=tuple(Path(str(module)) for module in modules),
            config_env=self._text("config_env") if "config_env" in self._raw else None,
            quirks=_Table(
                self._path,
                "quirks.",
                quirks,
                {"makes_tokens", "pin_chars", "rewrites_tokens", "start_tries"},
            ).quirks(),
        )

    def quirks(self) -> HsmQuirks:
        return HsmQuirks(
            makes_tokens=self._flag("makes_tokens"),
            pin_chars=self._number("pin_chars", 8, 64),
            rewrites_tokens=self._flag("rewrites_tokens"),
            start_tries=self._number("start_tries", 1, 20),
        )

    def _text(self, key: str) -> str:
        value = self._raw.get(key)
        if not isinstance(value, str) or not value:
            raise self._fault(key, "a text is needed")
        return value

    def _flag(self, key: str) -> bool:
        value = self._raw.get(key)
        if not isinstance(value, bool):
            raise self._fault(key, "true or false is needed")
        return value

    def _number(self, key: str, least: int, most: int) -> int:
        value = self._raw.get(key)
        if type(value) is not int or not least <= value <= most:
            raise self._fault(key, f"a whole number from {least} to {most} is needed")
        return value

    def _fault(self, key: str, remedy: str) -> SettingsError:
        return SettingsError(f"{self._path}: {self._prefix}{key}: {remedy}")
