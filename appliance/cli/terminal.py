"""What commands share: settings, a loop, and words on the terminal."""

import argparse
import getpass
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from appliance.settings import Settings, SettingsError, load_settings

_OBEYED: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control characters but for tabs and ends of lines, and those of direction."""


def say(line: str) -> None:
    """Write a line to standard output.

    Characters that the terminal's encoding lacks are replaced: a text of a file ends
    no command. Those that a terminal obeys are shown by their numbers: texts are of
    rows too, and root reads them.
    """
    encoding = sys.stdout.encoding or "utf-8"
    shown = _OBEYED.sub(lambda found: ascii(found[0])[1:-1], line)
    sys.stdout.write(f"{shown}\n".encode(encoding, "replace").decode(encoding))


def note(line: str) -> None:
    """Write a line beside what the command answers, to standard error."""
    sys.stderr.write(f"note: {line}\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under a head, in columns as wide as they need."""
    lines = [head, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def log_to_stderr() -> None:
    """Keep the log out of what the command answers, which programs may read."""
    import structlog  # noqa: PLC0415 (heavy)

    class Warnings(structlog.PrintLogger):
        """Prints what is out of the ordinary: a person reads along."""

        def info(self, message: str) -> None:
            """Leave it out."""

        debug = info

    # Never the local variables of a frame: passwords are among them.
    plain = structlog.dev.plain_traceback
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain),
        ],
        logger_factory=lambda *_: Warnings(sys.stderr),
    )


def run_async(
    work: Callable[[Settings], Awaitable[int]], args: argparse.Namespace
) -> int:
    """Load the settings and run a coroutine of them; its exit status."""
    return run_with(work, load_settings(args.settings))


def run_with(work: Callable[[Settings], Awaitable[int]], settings: Settings) -> int:
    """Run a coroutine of settings that are loaded; its exit status."""
    import asyncio  # noqa: PLC0415 (heavy)

    async def run() -> int:
        return await work(settings)

    log_to_stderr()
    return asyncio.run(run())


def read_file(path: Path) -> bytes:
    """Read a file that a command was given.

    Args:
        path: of the file.

    Raises:
        SystemExit: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as exc:
        raise SystemExit(f"{path}: cannot be read ({exc.strerror})") from exc


def read_text(path: Path) -> str:
    """Read a file of text that a command was given.

    Args:
        path: of the file.

    Raises:
        SystemExit: it cannot be read, or is not UTF-8.
    """
    try:
        return read_file(path).decode()
    except UnicodeDecodeError as exc:
        raise SystemExit(f"{path}: is not text in UTF-8") from exc


def write_file(path: Path, content: bytes) -> None:
    """Write a file that a command was told to.

    Args:
        path: of the file; one that is there is replaced.
        content: of it.

    Raises:
        SystemExit: it cannot be written.
    """
    try:
        path.write_bytes(content)
    except OSError as exc:
        raise SystemExit(f"{path}: cannot be written ({exc.strerror})") from exc


def ask(what: str) -> str:
    """Ask for a secret, twice the same, without showing it.

    Where no person types, as in a pipe, it is the next line, once.

    Args:
        what: it is.

    Raises:
        SettingsError: there is no such line.
    """
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        if not line.strip("\r\n"):
            msg = f"{what}: nothing came; type it at a terminal, or pipe a line with it"
            raise SettingsError(msg)
        return line.rstrip("\r\n")
    while True:
        first = getpass.getpass(f"{what}: ")
        if first == getpass.getpass(f"{what}, again: "):
            return first
        say("they differ")


def show_totp(uri: str) -> None:
    """Show a TOTP enrolment once: as a QR where a person looks, as text elsewhere.

    Args:
        uri: `otpauth://…`.
    """
    import segno  # noqa: PLC0415 (only here)

    say(uri)
    if sys.stdout.isatty():
        segno.make(uri, error="m").terminal(compact=True)
