"""HSM profiles: what differs between makes of HSM, one TOML file each.

A profile holds facts about a make (where its module lies, what it gets wrong),
never anything about one installation, which is the settings file's matter.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from appliance.domain.keys.hsm_keys import KeyAlgorithm, WrapMethod
from appliance.settings import HsmSettings, SettingsError

_FOLDER: Final = Path(__file__).parent / "profiles"
_KEYS: Final = {"algorithms", "pss", "wrap", "wrap_numbers", "opens"}
_VENDORS: Final = 1 << 31
_LARGEST: Final = (1 << 32) - 1
"""Vendors' numbers lie between these. Source: PKCS#11 2.40, 3.4."""
_QUIRKS: Final = {
    "makes_tokens",
    "pin_chars",
    "rewrites_tokens",
    "start_tries",
    "ec_unwrap_point",
    "wraps_unextractable",
    "software",
    "several_threads",
}
_E = TypeVar("_E", bound=StrEnum)


class Standing(StrEnum):
    """What a profile's facts rest on."""

    TESTED = "tested"
    """Our tests run on this make."""
    DOCUMENTED = "documented"
    """The vendor's documents; `rubrica hsm check` has the last word."""
    REFUSED = "refused"
    """Our tests show that it is not fit, and that `rubrica hsm check` says so."""


@dataclass(frozen=True, slots=True)
class HsmKeys:
    """What keys this make can hold for us."""

    algorithms: tuple[KeyAlgorithm, ...]
    """Kinds of key pairs that it makes and signs with."""
    pss: bool
    """Whether RSA keys sign by PSS."""
    wrap: tuple[WrapMethod, ...]
    """How keys are wrapped, best first; none: keys can only be resident."""
    wrap_numbers: Mapping[WrapMethod, int]
    """Mechanisms of the vendor's own that do what a method says."""
    opens: Mapping[WrapMethod, int]
    """Methods of other makes whose blobs it opens besides, by which mechanism."""


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
    ec_unwrap_point: int | None
    """A vendor's attribute that must bring the public point when an EC key is
    unwrapped, or None."""
    wraps_unextractable: bool
    """It wraps keys that are not extractable, so who holds the PIN can take
    keys out while they are unwrapped. Only software tokens may be so."""
    software: bool
    """It keeps keys in files that the PIN opens, so who has both has every key on the
    token. Left out: it is hardware."""
    several_threads: bool
    """Started with CKF_OS_LOCKING_OK, its module may be called by several threads
    at once. Not said: nobody has found out, and one thread calls it."""


@dataclass(frozen=True, slots=True)
class HsmProfile:
    """One make of HSM."""

    name: str
    """Shown to operators."""
    standing: Standing
    """What its facts rest on."""
    modules: tuple[Path, ...]
    """Where its PKCS#11 module may lie, in the order to try."""
    config_env: str | None
    """Environment variable with the path of the module's own configuration."""
    keys: HsmKeys
    """What keys it can hold."""
    quirks: HsmQuirks
    """Its departures."""

    @property
    def resident_only(self) -> bool:
        """Whether it cannot keep users' keys wrapped."""
        return not self.keys.wrap

    @property
    def own_algorithm(self) -> KeyAlgorithm:
        """Kind of the installation's own keys that sign often and small.

        P-256: ten times as fast as RSA and short; the makes' smallest RSA where
        they have no EC.
        """
        kinds = self.keys.algorithms
        return KeyAlgorithm.EC_P256 if KeyAlgorithm.EC_P256 in kinds else kinds[0]


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
    keys = {"name", "standing", "modules", "config_env", "keys", "quirks"}
    return _Table(path, "", raw, keys).profile()


def refuse_sessions(hsm: HsmSettings, profile: HsmProfile) -> None:
    """Refuse several sessions of a make that several threads may not call.

    Raises:
        SettingsError: `hsm.sessions` is more than 1, and the profile does not say
            that its module locks.
    """
    if hsm.sessions > 1 and not profile.quirks.several_threads:
        msg = (
            f"hsm.sessions: the profile {profile.name} does not say that several "
            "threads may call its module (quirks.several_threads); set 1, and start "
            "more signing workers instead"
        )
        raise SettingsError(msg)


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
        modules = self._raw.get("modules")
        if not isinstance(modules, list) or not modules:
            raise self._fault("modules", "a list of paths is needed")
        return HsmProfile(
            name=self._text("name"),
            standing=self._one_of("standing", Standing),
            modules=tuple(Path(str(module)) for module in modules),
            config_env=self._text("config_env") if "config_env" in self._raw else None,
            keys=self._table("keys", _KEYS).keys(),
            quirks=self._table("quirks", _QUIRKS).quirks(),
        )

    def keys(self) -> HsmKeys:
        return HsmKeys(
            algorithms=self._some("algorithms", KeyAlgorithm),
            pss=self._flag("pss"),
            wrap=self._several("wrap", WrapMethod),
            wrap_numbers=self._numbers("wrap_numbers", _VENDORS),
            opens=self._numbers("opens", 0),
        )

    def quirks(self) -> HsmQuirks:
        point = "ec_unwrap_point"
        return HsmQuirks(
            makes_tokens=self._flag("makes_tokens"),
            pin_chars=self._number("pin_chars", 8, 64),
            rewrites_tokens=self._flag("rewrites_tokens"),
            start_tries=self._number("start_tries", 1, 20),
            ec_unwrap_point=self._number(point, _VENDORS, _LARGEST)
            if point in self._raw
            else None,
            wraps_unextractable=self._flag("wraps_unextractable"),
            software="software" in self._raw and self._flag("software"),
            several_threads=(
                "several_threads" in self._raw and self._flag("several_threads")
            ),
        )

    def _numbers(self, key: str, least: int) -> Mapping[WrapMethod, int]:
        if key not in self._raw:
            return {}
        table = self._table(key, set(WrapMethod))
        return {
            WrapMethod(method): table._number(method, least, _LARGEST)  # noqa: SLF001 (our own kind)
            for method in table._raw  # noqa: SLF001
        }

    def _table(self, key: str, keys: set[str]) -> "_Table":
        value = self._raw.get(key)
        if not isinstance(value, dict):
            raise self._fault(key, "a table is needed")
        return _Table(self._path, f"{self._prefix}{key}.", value, keys)

    def _text(self, key: str) -> str:
        value = self._raw.get(key)
        if not isinstance(value, str) or not value:
            raise self._fault(key, "a text is needed")
        return value

    def _one_of(self, key: str, kind: type[_E]) -> _E:
        try:
            return kind(str(self._raw.get(key)))
        except ValueError:
            raise self._fault(key, f"one of {', '.join(kind)} is needed") from None

    def _several(self, key: str, kind: type[_E]) -> tuple[_E, ...]:
        fault = self._fault(key, f"a list of these is needed: {', '.join(kind)}")
        values = self._raw.get(key)
        if not isinstance(values, list):
            raise fault
        try:
            return tuple(kind(str(value)) for value in values)
        except ValueError:
            raise fault from None

    def _some(self, key: str, kind: type[_E]) -> tuple[_E, ...]:
        values = self._several(key, kind)
        if not values:
            raise self._fault(key, "at least one is needed")
        return values

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
