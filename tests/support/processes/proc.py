"""What the kernel tells of a process, by `/proc`."""

from pathlib import Path


def status(pid: int) -> dict[str, str]:
    """The lines of its status."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    return {key: value.strip() for key, _, value in (x.partition(":") for x in lines)}


def open_files(pid: int) -> list[str]:
    """Every open file, socket and pipe by its name, sorted."""
    return sorted(str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir())
