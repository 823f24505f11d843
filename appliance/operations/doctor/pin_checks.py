"""Where a PIN lies open to a role, and what to do about it.

    for finding in look_at_pins(settings):
        print(finding.what, finding.remedy)

Source: docs/hsm.md, "PINs".
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from appliance.cli.as_role import BRING_BACK, credentials_of, unit_text
from appliance.operations.installation_checks import Finding, owned
from appliance.secrets.pin_places import PIN_FOLDER, FreePlaces, tokens_of
from appliance.settings import Settings

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_BRING: Final = f"{BRING_BACK}; of a new installation rubrica setup makes it"
_TAKE: Final = "rubrica hsm pins"
_MOVE: Final = "mv -n {} {}; hsm.{}.pin_file = {}; " + _TAKE
"""One that is there already is not to be lost: it opens another token."""


def look_at_pins(settings: Settings, folder: Path = PIN_FOLDER) -> Iterator[Finding]:
    """PINs in files that are not there, that others read, or that no worker is handed.

    Args:
        settings: of the installation.
        folder: where PINs are root's own.
    """
    handed = {
        line.partition("=")[2].partition(":")[0]
        for line in credentials_of(unit_text("signing"))
    }
    free = FreePlaces(settings, folder)
    for key, token in tokens_of(settings):
        at_home = token.pin_file.parent == folder
        place = token if at_home else free.free_for(token)
        for path, to in (
            (token.pin_file, place.pin_file),
            (token.so_pin_file, place.so_pin_file),
        ):
            if path.exists() and (how := _open_to(path)):
                what = f"{path}: others than root may read the PIN ({how})"
                move = _MOVE.format(path, to, key, place.pin_file)
                yield Finding(what, _TAKE if at_home else move)
        path = token.pin_file
        if token.pin_source == "file" and not path.exists():
            yield Finding(f"{path}: is not there: the PIN of {token.label}", _BRING)
        has_file = token.pin_source == "file" and path.exists()
        is_handed = at_home and path.name in handed
        if has_file and not is_handed and not _open_to(path):
            what = f"{path}: is root's own, and no worker is handed it"
            move = _MOVE.format(path, place.pin_file, key, place.pin_file)
            yield Finding(what, _TAKE if at_home else move)


def _open_to(path: Path) -> str:
    """Mode and owner of a file, or of its folder, that is not root's alone."""
    for each in (path, path.parent):
        state = each.stat()
        if state.st_uid != 0 or (each == path and state.st_mode & _OTHERS):
            return f"{each} is {owned(each)}"
    return ""
