"""PDF/A as Ghostscript makes it of any PDF; for PDF/A-4, of its PDF/A-2.

Of Debian: `ghostscript`.
"""

import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pikepdf

CAN_CONVERT: Final = shutil.which("gs") is not None
_PROFILE: Final = Path("/usr/share/color/icc/ghostscript/srgb.icc")
_MOST_S: Final = 120
_DEFINED: Final = f"""%!
[/_objdef {{icc}} /type /stream /OBJ pdfmark
[{{icc}} <</N 3>> /PUT pdfmark
[{{icc}} ({_PROFILE}) (r) file /PUT pdfmark
[/_objdef {{intent}} /type /dict /OBJ pdfmark
[{{intent}} <</Type/OutputIntent/S/GTS_PDFA1/DestOutputProfile {{icc}}
 /OutputConditionIdentifier(sRGB)/Info(sRGB)>> /PUT pdfmark
[{{Catalog}} <</OutputIntents[{{intent}}]>> /PUT pdfmark
"""
_ZONE: Final = b"Z00'00'"
"""As Ghostscript writes it, and Preflight does not read it."""
_SECOND: Final = (
    (re.compile(rb"(part['\">= ]+)2"), rb"\g<1>4"),
    (re.compile(rb"<pdfaid:conformance>B</pdfaid:conformance>"), b""),
    (re.compile(rb"pdfaid:conformance=(['\"])B\1"), rb"pdfaid:rev=\g<1>2020\g<1>"),
)


def converted(pdf: Path, part: str, folder: Path) -> bytes | None:
    """Convert a PDF; None where Ghostscript cannot.

    Args:
        pdf: any.
        part: `1b`, `2b`, `3b` or `4`.
        folder: for what it writes.
    """
    number = "2" if part == "4" else part[0]
    defined, made = folder / "defined.ps", folder / "made.pdf"
    defined.write_text(_DEFINED)
    options = [
        "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite", f"-dPDFA={number}",
        "-dPDFACompatibilityPolicy=1", "-sColorConversionStrategy=RGB",
        f"--permit-file-read={_PROFILE}", "-o", str(made), str(defined), str(pdf),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            ["gs", *options], capture_output=True, check=False, timeout=_MOST_S
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    out = made.read_bytes().replace(_ZONE, b"+" + _ZONE[1:])
    return _as_part_4(out) if part == "4" else out


def _as_part_4(pdf: bytes) -> bytes:
    """A PDF/A-2 as PDF 2.0, which says that it is PDF/A-4."""
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        metadata = opened.Root.Metadata.read_bytes()
        for pattern, instead in _SECOND:
            metadata = pattern.sub(instead, metadata)
        opened.Root.Metadata.write(metadata)
        del opened.trailer["/Info"]
        opened.save(
            out,
            force_version="2.0",
            fix_metadata_version=False,
            compress_streams=False,
            stream_decode_level=pikepdf.StreamDecodeLevel.none,
            object_stream_mode=pikepdf.ObjectStreamMode.generate,
        )
    return out.getvalue()
