# ruff: noqa: INP001 (it stands alone, run by a path)
"""Print the licences of all that an installation brings along of others.

    VENV/bin/python packaging/notices.py SOURCE

SOURCE is a checkout with the browser libraries in it. It stands alone: the standard
library, run by the interpreter whose packages are meant.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

_LICENCE = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)
_RULE = "=" * 78


def main() -> int:
    """Print them; the process's exit status: 1 where one of them has no licence."""
    vendor = Path(sys.argv[1]) / "appliance/web/vendor/files"
    say, lacking = sys.stdout.write, []
    say("Software of others that Rubrica is installed with, and its licences.\n")
    for each in sorted(distributions(), key=lambda each: each.name.lower()):
        if each.name == "rubrica":
            continue
        told, texts = _told(each), list(_texts(each))
        if not told and not texts:
            lacking.append(each.name)
        say(f"\n{_RULE}\n{each.name} {each.version}: {told or 'see below'}\n")
        for text in texts:
            say(f"\n{text.strip()}\n")
    for path in sorted(vendor.glob("**/LICENSE*")):
        name = path.parent.relative_to(vendor)
        text = path.read_text("utf-8").strip()
        say(f"\n{_RULE}\n{name} (in the browser)\n\n{text}\n")
    for name in lacking:
        sys.stderr.write(f"{name}: has no licence\n")
    return 1 if lacking else 0


def _told(of: Distribution) -> str:
    """What a package says of its licence in a line."""
    data = of.metadata
    if data["License-Expression"]:
        return str(data["License-Expression"])
    classes = [
        line.rpartition(" :: ")[2]
        for line in data.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    return ", ".join(classes) or (data["License"] or "").partition("\n")[0]


def _texts(of: Distribution) -> Iterator[str]:
    """The texts of licences in a package's own folder of metadata."""
    for path in of.files or ():
        if ".dist-info" in str(path) and _LICENCE.search(path.name):
            yield path.read_text("utf-8")


if __name__ == "__main__":
    sys.exit(main())
