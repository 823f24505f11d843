"""A folder with settings and secrets, and `rubrica` run on it as operators do.

make_command_folder(folder)
said = CommandFolder(folder).run("secrets", "status")
"""

from dataclasses import dataclass
from pathlib import Path

from tests.support.installation.settings import (
    settings_in,
    tables_in,
    toml,
    write_secrets,
)
from tests.support.processes.forked_process import Running
from tests.support.processes.rubrica import start_rubrica


@dataclass
class CommandFolder:
    """An installation's folder."""

    folder: Path

    def begin(self, *words: str) -> Running:
        """Start a command."""
        return start_command(self.folder / "settings.toml", *words)

    def run(self, *words: str, status: int = 0) -> str:
        """Run a command to its end; what it says."""
        with self.begin(*words) as process:
            out, err = process.communicate(timeout=120)
        assert process.returncode == status, out + err
        return out


def start_command(settings: Path, *words: str) -> Running:
    """Start `rubrica` with a settings file."""
    return start_rubrica("--settings", str(settings), *words)


def make_command_folder(folder: Path, url: str = "sqlite") -> None:
    """Write settings and secrets.

    Args:
        folder: where they go.
        url: of the database.
    """
    write_secrets(settings_in(folder))
    (folder / "settings.toml").write_text(toml(tables_in(".", url=url)))
