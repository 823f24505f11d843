"""A shell in which `rubrica` is of a test's appliance, as its operator's would be.

    shell = OperatorShell.of(appliance, folder)
    run_block("integrators.md", "API keys", 0, shell.run)

Variables stay from one script to the next; an answer of HTTP that is an error ends it.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.appliance.appliance import Appliance
from tests.support.processes.forked_command import command_script

TYPED: Final = "una clave de la consola\n"
"""Somebody's password, where a command asks for one."""
_KEPT: Final = "[ ! -e variables ] || . ./variables\nset -a\n"
_KEEP: Final = "\nexport -p >variables"


@dataclass(frozen=True)
class OperatorShell:
    """An operator's, in a folder of its own.

    Args:
        appliance: that it is for.
        folder: an empty one.
        variables: its environment; more may be added.
    """

    appliance: Appliance
    folder: Path
    variables: dict[str, str]

    @classmethod
    def of(cls, appliance: Appliance, folder: Path) -> "OperatorShell":
        """One in which `rubrica` is of an appliance."""
        (folder / "bin").mkdir()
        settings = str(appliance.settings_file)
        for name, text in (
            ("rubrica", command_script("--settings", settings)),
            ("curl", '#!/bin/sh\nexec /usr/bin/curl --fail-with-body "$@"\n'),
        ):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        variables = {
            **os.environ,
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "BASE_URL": appliance.base_url,
            "WEB_URL": appliance.base_url,
        }
        return cls(appliance, folder, variables)

    def run(self, script: str) -> str:
        """Run it to a good end; what it said."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", _KEPT + script + _KEEP],
            cwd=self.folder,
            env=self.variables,
            input=TYPED,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr
