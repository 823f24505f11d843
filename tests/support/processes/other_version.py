"""The product under another version's name: what an upgrade did not start anew."""

from importlib.metadata import distribution
from pathlib import Path

_NAME = "rubrica"


def other_version(folder: Path, version: str) -> Path:
    """A folder which, first on a process's path, has `rubrica` be of that version.

    Args:
        folder: to be made.
        version: that it says it is.

    Returns:
        The folder, for `PYTHONPATH`.
    """
    own = distribution(_NAME)
    described = folder / f"{_NAME}-{version}.dist-info"
    described.mkdir(parents=True)
    metadata = own.read_text("METADATA")
    points = own.read_text("entry_points.txt")
    assert metadata is not None
    assert points is not None
    before = f"\nVersion: {own.version}\n"
    assert before in metadata
    told = metadata.replace(before, f"\nVersion: {version}\n", 1)
    (described / "METADATA").write_text(told, "utf-8")
    (described / "entry_points.txt").write_text(points, "utf-8")
    return folder
