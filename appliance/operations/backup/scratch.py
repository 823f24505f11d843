"""An installation in a scratch folder, with settings and a PostgreSQL of its own.

    with database_for(given, folder) as url:
        settings = scratch_settings(given, folder, url)

Nothing in it names what the backup's settings name: no folder of theirs, no server, no
HSM. The server is one that nobody else reaches: its socket lies in a folder of its own.

Source: PostgreSQL, "initdb", "pg_ctl".
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from appliance.settings import Settings, SettingsError
from appliance.settings.faults import read_tables

KEYS: Final = ("pepper_file", "data_key_file", "document_key_file", "lookup_key_file")
"""Keys of `[secrets]`."""
_USER: Final = "drill"
_SERVER: Final = "postgres"
"""Who runs it where root asks: PostgreSQL refuses to be root's."""
_OPTIONS: Final = (
    "-c listen_addresses= -c fsync=off -c synchronous_commit=off "
    "-c full_page_writes=off -c dynamic_shared_memory_type=mmap "
    "-c max_connections=20 -c shared_buffers=32MB"
)


def key_place(folder: Path, key: str) -> Path:
    """Where a key of the backup's is put.

    Args:
        folder: the scratch one.
        key: one of `KEYS`.
    """
    return folder / "secrets" / key


def scratch_settings(given: Settings, folder: Path, database: str) -> Settings:
    """Settings of an installation that is all in one folder.

    Args:
        given: the backup's: how large its documents may be, and how long each may be
            looked at.
        folder: the scratch one.
        database: `sqlite`, or the URL of `database_for`.
    """
    sandbox = given.sandbox.model_dump(mode="json", exclude={"socket"})
    limits = given.documents.model_dump(mode="json", include={"limit_bytes", "pages"})
    unused: dict[str, Any] = {"label": "none", "pin_file": str(folder / "none")}
    return read_tables(
        {
            "trial": given.trial,
            "installation": given.installation,
            "data_dir": str(folder),
            "run_dir": str(folder / "run"),
            "database": {"url": database},
            "documents": limits,
            "sandbox": sandbox,
            "hsm": {"firma": unused, "pki": {**unused, "label": "none too"}},
            "secrets": {key: str(key_place(folder, key)) for key in KEYS},
            "log": {"level": "error"},
        }
    )


@contextmanager
def database_for(given: Settings, folder: Path) -> Iterator[str]:
    """The URL of an empty database of the backup's kind, gone after the block.

    Args:
        given: the backup's settings.
        folder: the scratch one; others may pass through it.

    Raises:
        SettingsError: no PostgreSQL is installed here, or it does not start.
    """
    if given.database.url == "sqlite":
        yield "sqlite"
        return
    server = _Server(folder / "postgres")
    server.make()
    try:
        yield server.url
    finally:
        server.stop()


class _Server:
    """A PostgreSQL that lasts as long as a drill."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = _programs()

    @property
    def url(self) -> str:
        """Of its one database."""
        return f"postgresql://{_USER}@/postgres?host={self._folder}"

    def make(self) -> None:
        """Make and start it.

        Raises:
            SettingsError: in the words of initdb or pg_ctl.
        """
        self._folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            try:
                shutil.chown(self._folder, _SERVER, _SERVER)
            except LookupError as exc:
                msg = f"{_SERVER}: no such user; `apt-get install postgresql`"
                raise SettingsError(msg) from exc
        data = str(self._folder / "data")
        usual = ["--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"]
        self._run("initdb", "-D", data, "-U", _USER, "--auth=trust", *usual)
        options = f"-k {self._folder} {_OPTIONS}"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop it; what it holds is for nobody."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", _SERVER, "--", *command]
        done = subprocess.run(  # noqa: S603 (no shell)
            command,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            # A pipe would stay open with the server that pg_ctl leaves running.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0:
            told = (done.stderr or b"").decode(errors="replace").strip()
            log = self._folder / "log"
            if not told and log.is_file():
                told = "\n".join(log.read_text("utf-8", "replace").splitlines()[-5:])
            msg = f"{program}: failed ({done.returncode})\n{told}".strip()
            raise SettingsError(msg)


def _programs() -> Path:
    """Folder of the newest PostgreSQL's programs.

    Raises:
        SettingsError: there is none.
    """
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]),
    )
    if found:
        return found[-1].parent
    if on_path := shutil.which("initdb"):
        return Path(on_path).parent
    msg = (
        "initdb: is not installed: the drill starts a PostgreSQL of its own; "
        "`apt-get install postgresql`"
    )
    raise SettingsError(msg)
