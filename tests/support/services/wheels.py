"""Python packages that an installation without network is given beforehand."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[3]


def fetch(folder: Path, locks: Sequence[str]) -> None:
    """Fetch what lock files name, by its hashes, for everybody to read.

    Args:
        folder: that they are put in.
        locks: names of files of this checkout.
    """
    asked = [part for lock in locks for part in ("-r", str(_ROOT / lock))]
    options = ["--quiet", "--no-deps", "--require-hashes", "--dest", str(folder)]
    pip = [sys.executable, "-m", "pip", "download"]
    subprocess.run([*pip, *options, *asked], check=True)
    # What tests make is their own alone; what an operator fetches is not.
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)


def pip_configuration(folder: str) -> str:
    """What has pip take packages from a folder, and nowhere else.

    Args:
        folder: as the one who installs sees it.
    """
    return f"[global]\nno-index = true\nfind-links = {folder}\n"
