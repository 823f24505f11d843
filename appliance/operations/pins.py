"""Where a PIN lies open to a role, and what to do about it.

    for finding in look_at_pins(settings):
        print(finding.what, finding.remedy)

Source: docs/hsm.md, "PINs".
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from appliance.cli.as_role import credentials_of, unit_text
from appliance.operations.looks import Finding, owned
from appliance.settings import Settings, TokenSettings

_FOLDER: Final = Path("/etc/rubrica/hsm")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_TAKE: Final = "rubrica hsm pins"
_MOVE: Final = f"mv {{}} {_FOLDER}/; name it there in hsm.{{}}.pin_file; {_TAKE}"


def look_at_pins(settings: Settings, folder: Path = _FOLDER) -> Iterator[Finding]:
    """PINs in files that somebody but root may read, or that no worker is handed.

    Args:
        settings: of the installation.
        folder: where PINs are root's own.
    """
    handed = {
        line.partition("=")[2].partition(":")[0]
        for line in credentials_of(unit_text("signing"))
    }
    for key, token in _tokens(settings):
        for path in (token.pin_file, token.so_pin_file):
            if path.exists() and (how := _open_to(path)):
                what = f"{path}: others than root may read the PIN ({how})"
                at_home = path.parent == folder
                yield Finding(what, _TAKE if at_home else _MOVE.format(path, key))
        path = token.pin_file
        has_file = token.pin_source == "file" and path.exists()
        if has_file and path.name not in handed and not _open_to(path):
            what = f"{path}: is root's own, and no worker is handed it"
            yield Finding(what, _TAKE)


def _open_to(path: Path) -> str:
    """Mode and owner of a file, or of its folder, that is not root's alone."""
    for each in (path, path.parent):
        state = each.stat()
        if state.st_uid != 0 or (each == path and state.st_mode & _OTHERS):
            return f"{each} is {owned(each)}"
    return ""


def _tokens(settings: Settings) -> Iterator[tuple[str, TokenSettings]]:
    """Every token, by the key of `[hsm]`."""
    hsm = settings.hsm
    yield from (("firma", hsm.firma), ("pki", hsm.pki))
    for number, replica in enumerate(hsm.replicas):
        yield f"replicas.{number}", replica
