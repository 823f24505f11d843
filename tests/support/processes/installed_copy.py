"""An installation beside the checkout, whose files a test can take away.

    place = Installed.made(folder)
    start(place.command("serve", "api"))
    place.take_away()

What dpkg does to a running role: the files that it was started from are gone. Our
packages are copies; libraries are links to those of this environment, reached by no
other way. Python's own library is not of the package, and stays.
"""

import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

from tests.support.processes.fork_server import PACKAGES

_ROOT: Final = Path(__file__).parents[3]
_MAIN: Final = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from appliance.cli import main
sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """Where it is."""

    site: Path

    @classmethod
    def made(cls, folder: Path) -> "Installed":
        """Install it.

        Args:
            folder: existing; `site` is made in it.
        """
        site = folder / "site"
        site.mkdir()
        for name in PACKAGES:
            shutil.copytree(_ROOT / name, site / name)
        libraries = Path(str(distribution("rubrica").locate_file("")))
        for path in libraries.iterdir():
            # One of these would lead back to the checkout.
            if path.suffix != ".pth" and path.name not in PACKAGES:
                (site / path.name).symlink_to(path)
        return cls(site)

    def command(self, *arguments: str) -> list[str]:
        """How `rubrica` is executed from there, and from nowhere else.

        Args:
            *arguments: of it.
        """
        isolated = ("-I", "-S", "-B")
        return [sys.executable, *isolated, "-c", _MAIN, str(self.site), *arguments]

    def take_away(self) -> None:
        """Have none of its files be there any more."""
        self.site.rename(self.site.with_name("gone"))
        shutil.rmtree(self.site.with_name("gone"))
