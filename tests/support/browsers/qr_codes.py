"""A QR code read off a page as telephones do: drawn by Poppler, decoded by zbar."""

import subprocess
import tempfile
from pathlib import Path

from tests.support.patience import CALL_S


def scanned(pdf: bytes, dpi: int = 100) -> str:
    """What the one QR code of the first page says; empty where none is read.

    Args:
        pdf: the document.
        dpi: of the drawing, which is upright whatever the page's `/Rotate`.
    """
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.pdf")
        page.write_bytes(pdf)
        subprocess.run(
            ["pdftoppm", "-cropbox", "-r", str(dpi), "-singlefile", "-png", page,
             page.with_suffix("")],
            check=True, timeout=CALL_S,
        )  # fmt: skip
        read = subprocess.run(
            ["zbarimg", "--quiet", "--raw", "--nodbus", "-Sdisable", "-Sqrcode.enable",
             page.with_suffix(".png")],
            # Its status says as much as its silence: nothing was found.
            capture_output=True, check=False, text=True, timeout=CALL_S,
        )  # fmt: skip
    return read.stdout.strip()
