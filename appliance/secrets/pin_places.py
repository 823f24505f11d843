"""Where PINs are root's own, and a name there that none of them has.

    for key, token in tokens_of(settings):
        place = places.free_for(token)

Source: docs/hsm.md, "PINs".
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from appliance.settings import Settings, TokenSettings

PIN_FOLDER: Final = Path("/etc/rubrica/hsm")
"""Its files alone are handed over under their names: those of one folder differ."""


def tokens_of(settings: Settings) -> Iterator[tuple[str, TokenSettings]]:
    """Every token, by the key of `[hsm]`."""
    hsm = settings.hsm
    yield from (("firma", hsm.firma), ("pki", hsm.pki))
    for number, replica in enumerate(hsm.replicas):
        yield f"replicas.{number}", replica


class FreePlaces:
    """Names in the folder for PINs that lie elsewhere; none is told twice.

    Args:
        settings: of the installation, which may name files that are not there.
        folder: where PINs are root's own.
    """

    def __init__(self, settings: Settings, folder: Path = PIN_FOLDER) -> None:
        self._folder = folder
        self._taken = {
            path
            for _, token in tokens_of(settings)
            for path in (token.pin_file, token.so_pin_file)
        }

    def free_for(self, token: TokenSettings) -> TokenSettings:
        """A token with its PIN and SO PIN in the folder, where no other's is.

        Args:
            token: whose PIN is to be moved.
        """
        file = token.pin_file
        for number in count(1):
            name = file.name if number == 1 else f"{file.stem}-{number}{file.suffix}"
            place = self._folder / name
            moved = token.model_copy(update={"pin_file": place})
            both = {place, moved.so_pin_file}
            is_there = any(path.is_symlink() or path.exists() for path in both)
            if not is_there and self._taken.isdisjoint(both):
                break
        self._taken |= both
        return moved
