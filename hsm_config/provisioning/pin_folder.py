"""What may not lie in the folder of the PINs when it becomes root's own.

    check_folder(settings, folder, Path("/etc/systemd/system"))

Source: docs/hsm.md, "PINs"; systemd.exec(5), "LoadCredential=".
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from appliance.secrets.pin_places import tokens_of
from appliance.settings import Settings, SettingsError

_NAME: Final = re.compile(r"[A-Za-z0-9._@+=,~-]+")
"""Of a credential, in a line of a unit, where `%`, blanks and `:` mean something."""


def check_folder(settings: Settings, folder: Path, units: Path) -> None:
    """See to it that closing the folder keeps nothing from the workers.

    The same is looked for before an upgrade (packaging/preflight.py).

    Args:
        settings: of the installation.
        folder: of the PINs.
        units: folder of this machine's own, with the drop-ins of the workers'.

    Raises:
        SettingsError: the folder is a link, or a PIN in it; something else that the
            settings or a drop-in name lies in it; or a PIN has a name that no line of
            a unit can have.
    """
    if folder.is_symlink():
        msg = f"{folder}: is a link; put the folder with the PINs in its place"
        raise SettingsError(msg)
    named = [
        f"{path} ({key})"
        for key, path in _named(settings, folder)
        if _is_below(path, folder)
    ]
    named += _named_by_drop_ins(folder, units)
    if named:
        msg = (
            f"hsm pins: {named[0]} is no PIN right in {folder}, and no role can read "
            "it there once that is root's own; move it out, as to "
            f"{folder}-client (a PIN: right into {folder}), and name it there"
        )
        raise SettingsError(msg)
    check_links(settings, folder)
    for key, token in tokens_of(settings):
        path = token.pin_file
        if path.parent == folder and not _NAME.fullmatch(path.name):
            msg = (
                f"{path} (hsm.{key}.pin_file): systemd hands over no file of such a "
                "name; give it one of letters, digits, dots and hyphens"
            )
            raise SettingsError(msg)


def check_links(settings: Settings, folder: Path) -> None:
    """See to it that no PIN is a link, which led systemd anywhere.

    Args:
        settings: of the installation.
        folder: of the PINs.

    Raises:
        SettingsError: one is.
    """
    for _, token in tokens_of(settings):
        for path in (token.pin_file, token.so_pin_file):
            if path.parent == folder and path.is_symlink():
                msg = f"{path}: is a link; put the file with the PIN in its place"
                raise SettingsError(msg)


def _named(settings: Settings, folder: Path) -> Iterator[tuple[str, Path]]:
    """Paths of the settings by their keys, but for PINs right in the folder."""
    for key, token in tokens_of(settings):
        # One of another source has a name alone.
        if token.pin_source == "file" and token.pin_file.parent != folder:
            yield f"hsm.{key}.pin_file", token.pin_file
    if settings.hsm.profile.endswith(".toml"):
        yield "hsm.profile", Path(settings.hsm.profile)
    yield from _paths(settings.model_dump(), "")


def _paths(value: Any, key: str) -> Iterator[tuple[str, Path]]:
    """Paths in a table of settings or a list of them, but for PINs."""
    if isinstance(value, Path):
        yield key, value
    elif isinstance(value, dict):
        for name, each in value.items():
            if name != "pin_file":
                yield from _paths(each, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _paths(each, f"{key}.{number}")


def _named_by_drop_ins(folder: Path, units: Path) -> Iterator[str]:
    """Lines of the workers' drop-ins that have their processes look into the folder.

    What systemd itself reads there, as root, is not among them.
    """
    pattern = (
        rf"(?m)^(?:Environment|ReadWritePaths)=.*{re.escape(str(folder))}(?![\w.-]).*"
    )
    for path in sorted(units.glob("rubrica-signing@*.service.d/*.conf")):
        for line in re.findall(pattern, path.read_text("utf-8", "replace")):
            yield f"{line} ({path})"


def _is_below(path: Path, folder: Path) -> bool:
    """Whether a path leads below a folder, itself or by a link on its way."""
    real = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    plain = Path(os.path.normpath(path)), folder
    return any(one != top and one.is_relative_to(top) for one, top in (real, plain))
