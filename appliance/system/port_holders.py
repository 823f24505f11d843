"""Who listens on a TCP port of this machine, as far as this user may see.

Source: proc(5), /proc/net/tcp and /proc/pid/fd.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TABLES: Final = ("tcp", "tcp6")
_LISTENS: Final = "0A"
_SHOWN: Final = 200
"""Characters of a command line."""


def holder_of(port: int, proc: Path = Path("/proc")) -> str:
    """The process that listens on a port, for people; empty where it is not seen.

    Args:
        port: whatever the address.
        proc: where the kernel tells.
    """
    sockets = {f"socket:[{inode}]" for inode in _inodes(port, proc)}
    for folder in proc.glob("[0-9]*"):
        if sockets & set(_open_files(folder)):
            return f"process {folder.name}: {_command(folder)}"
    return ""


def _inodes(port: int, proc: Path) -> Iterator[str]:
    for name in _TABLES:
        try:
            lines = (proc / "net" / name).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            local, state, inode = fields[1], fields[3], fields[9]
            if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                yield inode


def _open_files(folder: Path) -> Iterator[str]:
    try:
        for each in (folder / "fd").iterdir():
            yield str(each.readlink())
    except OSError:
        # Another user's, or over by now.
        return


def _command(folder: Path) -> str:
    try:
        raw = (folder / "cmdline").read_bytes()
    except OSError:
        return "?"
    text = raw.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
    return "".join(each if each.isprintable() else "?" for each in text)[:_SHOWN]
