# ruff: noqa: INP001 (it stands alone: packaging/build-deb puts it into the preinst)
"""Look whether an upgrade finds what it needs, before anything of it is unpacked.

The system's Python runs it, as root, out of the package's preinst; the installed
version is still there, and its roles are at work. What the new one needs comes as
arguments. Each lack is told with what to do about it, and one is enough to refuse.
HSM and database are looked at after it (packaging/preflight_at_work.py).

Source: deb-preinst(5); systemd.unit(5); tmpfiles.d(5).
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

_ROOT: Final = Path(os.environ.get("DPKG_ROOT") or "/")
"""Of the system that is upgraded."""
_SETTINGS: Final = _ROOT / "etc/rubrica/settings.toml"
_UNITS: Final = _ROOT / "etc/systemd/system"
_OWN_UNITS: Final = (_UNITS, _ROOT / "usr/local/lib/systemd/system")
"""Where an operator's units hide those of a package."""
_TMPFILES: Final = (
    _ROOT / "usr/lib/tmpfiles.d/rubrica.conf",
    _ROOT / "etc/tmpfiles.d/rubrica-documents.conf",
)
"""Folders of the version that is installed."""
_TARGET_STARTS: Final = ("signing@1", "signing@2")
_TIMED: Final = ("backup", "audit-verify")
"""No roles: a timer starts them, and what they lack no role does."""
_REQUIRING: Final = ("Requires", "Requisite", "BindsTo")
_CREDENTIALS: Final = "(?:Load|Set)Credential(?:Encrypted)?"
_PACKAGED: Final = "*/lib/systemd/system"
"""Where packages have their units."""
_PINS: Final = "/etc/rubrica/hsm"
"""Root's own from 0.2.0 on: what workers read by themselves may not lie there."""
_PIN_NAME: Final = re.compile(r"[A-Za-z0-9._@+=,~-]+")
"""Of a file that systemd hands over under its name."""
_MANUAL: Final = 'docs/running.md, "Upgrading from"'


class Lack(NamedTuple):
    """Something that is not there."""

    what: str
    remedy: str


def main() -> int:
    """Tell what is lacking; the exit status is 1 where something is."""
    needs = _arguments().parse_args()
    found = list(_lacks(needs))
    for lack in found:
        sys.stderr.write(f"rubrica: lacks {lack.what}\n    -> {lack.remedy}\n")
    return 1 if found else 0


def _arguments() -> argparse.ArgumentParser:
    """What a version needs, as packaging/build-deb tells it."""
    parser = argparse.ArgumentParser()
    for name in ("installed", "oldest", "size"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("files", "settings", "folders", "made", "required", "units"):
        parser.add_argument(f"--{name}", nargs="*", default=[])
    return parser


def _lacks(needs: argparse.Namespace) -> Iterator[Lack]:
    """What is lacking of the version before, room, files, settings, folders, units."""
    if _is_before(needs.installed, needs.oldest):
        yield Lack(
            f"release {needs.oldest} installed first, after {needs.installed}",
            f"apt-get install ./rubrica_{needs.oldest}_….deb; {_MANUAL}",
        )
    yield from _lacks_room(int(needs.size))
    if not _SETTINGS.exists():
        return  # nothing was set up, and no role runs
    try:
        settings = tomllib.loads(_SETTINGS.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        yield Lack(f"settings that can be read: {exc}", "rubrica check-config")
        return
    yield from _lacks_files(needs.files)
    yield from _lacks_settings(settings, needs.settings)
    yield from _lacks_folders(settings, needs.folders, needs.made)
    yield from _lacks_own_pins(settings)
    yield from _hidden_units(needs.units)
    yield from _lacks_units(needs.required)


def _is_before(one: str, other: str) -> bool:
    """Whether a version is earlier than another one, or none is known."""
    command = ["dpkg", "--compare-versions", one, "lt-nl", other]
    return subprocess.run(command, check=False).returncode == 0  # noqa: S603 (our own words)


def _lacks_room(needed_kib: int) -> Iterator[Lack]:
    """Old and new files stand side by side until dpkg is done."""
    places = (_ROOT / "opt/rubrica", _ROOT / "opt", _ROOT)
    place = next(each for each in places if each.exists())
    room = os.statvfs(place)
    left = room.f_bavail * room.f_frsize // 1024
    if left < needed_kib:
        yield Lack(
            f"{needed_kib} KiB of room in /opt, where {left} are left",
            "df /opt; remove what is not needed there, or grow the disk",
        )


def _lacks_files(needed: Sequence[str]) -> Iterator[Lack]:
    """Files that the units hand to roles.

    Args:
        needed: as ROLE=NAME:FILE; a drop-in may hand it over from elsewhere.
    """
    told = set()
    for role, given in map(_parted, needed):
        name, _, file = given.partition(":")
        if _left_out(role) or file in told or (_ROOT / file[1:]).exists():
            continue
        if any(_values(f"{_CREDENTIALS}=({name}:.*)", _role_files())):
            continue
        told.add(file)
        yield Lack(
            f"the file {file}",
            f"{_MANUAL}, tells how a new one is made; one that was there is brought "
            "back from a backup",
        )


def _lacks_settings(settings: dict[str, Any], needed: Sequence[str]) -> Iterator[Lack]:
    """Settings without a default."""
    for name in needed:
        found: Any = settings
        for key in name.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            yield Lack(
                f"{name} in /etc/rubrica/settings.toml", f"{_MANUAL}; add it there"
            )


def _lacks_folders(
    settings: dict[str, Any], needed: Sequence[str], made: Sequence[str]
) -> Iterator[Lack]:
    """Folders that the installed version made, and that roles of the new one write to.

    Those below /run are made anew with each start of the machine.

    Args:
        settings: of the installation.
        needed: by the new version's units, as ROLE=FOLDER; one with "-" may be missing.
        made: by the new version itself.
    """
    had = [word for path in _TMPFILES for word in _values("d\\s+(\\S+)\\s.*", [path])]
    wanted = dict.fromkeys(had, "the installed version has it")
    for role, folder in map(_parted, needed):
        if folder not in {*made, "/"} and not _takes_back(role):
            wanted.setdefault(folder, f"rubrica-{role}.service writes there")
    for path in _role_files():
        for line in _values("ReadWritePaths=(.*)", [path]):
            for folder in line.split():
                wanted.setdefault(folder, f"{path} names it")
    documents = settings.get("documents")
    named = documents.get("path") if isinstance(documents, dict) else None
    if isinstance(named, str):
        wanted.setdefault(str(Path("/etc/rubrica") / named), "documents.path names it")
    for folder, why in wanted.items():
        is_there = (_ROOT / folder.lstrip("/")).is_dir()
        if folder.startswith("/") and not folder.startswith("/run/") and not is_there:
            yield Lack(
                f"the folder {folder} ({why})",
                "mount it, or bring it back from a backup; an empty one for a role "
                f"that is new: {_MANUAL}",
            )


def _lacks_own_pins(settings: dict[str, Any]) -> Iterator[Lack]:
    """What keeps the folder of the PINs from becoming root's own.

    `rubrica hsm pins` looks for the same (hsm_config/provisioning/pin_folder.py): by
    then the new version is unpacked.

    Args:
        settings: of the installation.
    """
    own = _ROOT / _PINS[1:]
    if own.is_symlink():
        yield Lack(
            f"a folder {_PINS}: it is a link",
            "put the folder with the PINs in its place",
        )
        return
    for key, path, is_pin in _paths_of(settings):
        if is_pin and str(path.parent) == _PINS:
            yield from _lacks_pin(key, path)
        elif _is_below(path, own):
            yield _in_the_way(f"{path} ({key} in the settings)")
    pattern = f"((?:Environment|ReadWritePaths)=.*{_PINS}(?![\\w.-]).*)"
    for line in _values(pattern, _role_files("signing@*")):
        yield _in_the_way(f"{line} (a drop-in of rubrica-signing@.service)")


def _in_the_way(what: str) -> Lack:
    return Lack(
        f"{_PINS} with PINs alone, which no role can look into any more: {what}",
        f"move that out, to {_PINS}-client (a PIN: right into {_PINS}), and name it "
        f"there; {_MANUAL}",
    )


def _lacks_pin(key: str, path: Path) -> Iterator[Lack]:
    """Of a PIN, and the security officer's beside it.

    Args:
        key: of the settings.
        path: right in the folder.
    """
    if not _PIN_NAME.fullmatch(path.name):
        yield Lack(
            f"a name of {path} ({key}) that systemd hands a file over by",
            "give it one of letters, digits, dots and hyphens",
        )
    for file in (path, path.with_name(f"{path.stem}-so{path.suffix}")):
        if (_ROOT / str(file)[1:]).is_symlink():
            yield Lack(
                f"a file {file} that is no link ({key})",
                "put the file with the PIN in its place",
            )


def _paths_of(
    table: dict[str, Any], above: str = ""
) -> Iterator[tuple[str, Path, bool]]:
    """What may be a path in settings: its key, itself, and whether a PIN is there.

    Args:
        table: of the settings, or in them.
        above: keys that lead there, each with a dot after it.
    """
    for name, value in table.items():
        is_pin = name == "pin_file"
        if is_pin and table.get("pin_source", "file") != "file":
            continue  # a name alone
        if isinstance(value, str) and name != "label":
            yield f"{above}{name}", Path("/etc/rubrica") / value, is_pin
        for number, each in enumerate(value if isinstance(value, list) else ()):
            if isinstance(each, dict):
                yield from _paths_of(each, f"{above}{name}.{number}.")
            if isinstance(each, str):
                yield f"{above}{name}.{number}", Path("/etc/rubrica") / each, False
        if isinstance(value, dict):
            yield from _paths_of(value, f"{above}{name}.")


def _is_below(path: Path, folder: Path) -> bool:
    """Whether a path of the settings leads below a folder, itself or by a link."""
    plain = Path(os.path.normpath(_ROOT / str(path)[1:]))
    try:
        found = (plain, Path(os.path.realpath(plain)))
    except (OSError, ValueError):
        found = (plain,)  # no path, but a text
    tops = (folder, Path(os.path.realpath(folder)))
    return any(one != top and one.is_relative_to(top) for one in found for top in tops)


def _takes_back(role: str) -> bool:
    """Whether a role's unit is left out here, or a drop-in takes its folders back."""
    return _left_out(role) or "" in _values("ReadWritePaths=\\s*()", _role_files(role))


def _hidden_units(names: Sequence[str]) -> Iterator[Lack]:
    """Units of the package in whose place systemd reads a file of the operator's.

    What the new version's units hand to a role, allow it and forbid it would never
    reach that role.

    Args:
        names: of the new version's units; one with "@" stands for its instances too.
    """
    for folder in _OWN_UNITS:
        for name in names:
            for path in sorted(folder.glob(name.replace("@.", "@*."))):
                if _is_empty(path) or path.resolve().parent.match(_PACKAGED):
                    continue
                yield Lack(
                    f"this version's {path.name}, which {path} hides",
                    "what is your own in it goes into a drop-in: systemctl edit "
                    f"{path.name}; then rm {path}; systemctl daemon-reload",
                )


def _lacks_units(needed: Sequence[str]) -> Iterator[Lack]:
    """Units without which systemd starts no role, and that it would not start itself.

    Args:
        needed: by the new version's units, as ROLE=UNIT.
    """
    pairs = [pair for pair in map(_parted, needed) if not _left_out(pair[0])]
    for path in _role_files():
        for key in _REQUIRING:
            for line in _values(f"{key}=(.*)", [path]):
                pairs += [(_role_of(path), unit) for unit in line.split()]
    for role, unit in dict.fromkeys(pairs):
        of = f"the unit {unit}, which rubrica-{role}.service requires"
        if _is_empty(_UNITS / unit) or _load_state(unit) == "masked":
            mend = f"systemctl unmask {unit}"
            if unit.endswith(".socket"):
                # Masked it let go of its listener, which the role may still have.
                mend += f"; systemctl restart {unit} rubrica-{role}.service"
            yield Lack(f"{of}: it is masked", mend)
        elif not unit.startswith("rubrica") and _load_state(unit) not in {"", "loaded"}:
            yield Lack(
                f"{of}: {_load_state(unit)}",
                f"systemctl status {unit}; install what brings it, or take the line "
                f"out: systemctl edit rubrica-{role}.service",
            )


def _load_state(unit: str) -> str:
    """What systemd makes of a unit; empty where it does not run what is upgraded."""
    if Path("/") != _ROOT or not Path("/run/systemd/system").is_dir():
        return ""
    command = ["systemctl", "show", "--value", "--property=LoadState", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (the same)
    return done.stdout.strip()


def _left_out(role: str) -> bool:
    """Whether a role is not of this host: its units are masked.

    Args:
        role: as its unit is named; of the signing workers `signing@`.
    """
    if _is_empty(_UNITS / f"rubrica-{role}.service"):
        return True
    if role != "signing@":
        return False
    wants = _UNITS / "rubrica.target.wants"
    enabled = [path.name for path in wants.glob("rubrica-signing@*.service")]
    starts = [f"rubrica-{worker}.service" for worker in _TARGET_STARTS]
    return all(_is_empty(_UNITS / name) for name in (*enabled, *starts))


def _is_empty(path: Path) -> bool:
    """Whether a unit's file masks it: it is a link to /dev/null, or empty."""
    return path.exists() and (not path.is_file() or path.stat().st_size == 0)


def _role_files(role: str = "*") -> list[Path]:
    """Drop-ins of the roles that are of this host, as systemd reads them."""
    found = sorted(_UNITS.glob(f"rubrica-{role}.service.d/*.conf"))
    roles = [path for path in found if _role_of(path) not in _TIMED]
    return [path for path in roles if not _left_out(_kind(_role_of(path)))]


def _role_of(drop_in: Path) -> str:
    return drop_in.parent.name.removeprefix("rubrica-").removesuffix(".service.d")


def _kind(role: str) -> str:
    """A role without the number of one of several."""
    return role.partition("@")[0] + "@" * ("@" in role)


def _values(pattern: str, files: Sequence[Path]) -> list[str]:
    """What whole lines of some files have in a pattern's group."""
    texts = [path.read_text("utf-8", "replace") for path in files if path.is_file()]
    return [each for text in texts for each in re.findall(f"(?m)^{pattern}$", text)]


def _parted(pair: str) -> tuple[str, str]:
    role, _, value = pair.partition("=")
    return role, value


if __name__ == "__main__":
    sys.exit(main())
