"""Another tree of this product beside this one, and an installation that either runs.

    earlier, now = Tree.committed(folder, commit()), Tree.present()
    tree_installation = TreeInstallation(place)
    tree_installation.make(earlier)
    with tree_installation.running(now):
        ...

Whatever is done goes through the command line and over HTTP: names of modules may
differ from tree to tree. Of libraries both have those of this environment.
"""

import configparser
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import httpx

from tests.support.hosts.debian_packages import ROOT, committed
from tests.support.installation.settings import merged, toml

_KNOWN: Final = ROOT / "tests/vectors/earlier-tree.toml"
_WHOSE: Final = """
import importlib.metadata, pathlib, appliance
print(pathlib.Path(appliance.__file__).parents[1])
print(importlib.metadata.distribution("rubrica").locate_file("").resolve())
"""
_READY_S: Final = 300
_STOP_S: Final = 60


def commit() -> str:
    """Id of the commit that is the earlier tree."""
    return str(tomllib.loads(_KNOWN.read_text("utf-8"))["commit"])


def before_one_reading() -> str:
    """Id of the last commit that took in what programs read in different ways."""
    return str(tomllib.loads(_KNOWN.read_text("utf-8"))["before_one_reading"])


def before_host_keys() -> str:
    """Id of the last commit whose fronts know no key of a signing host."""
    return str(tomllib.loads(_KNOWN.read_text("utf-8"))["before_host_keys"])


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of the product, run where they lie."""

    folder: Path

    @classmethod
    def present(cls) -> Self:
        """This checkout."""
        return cls(ROOT)

    @classmethod
    def committed(cls, folder: Path, commit: str) -> Self:
        """The files of a commit, with what tells Python of their commands.

        Args:
            folder: an empty one.
            commit: its whole id.
        """
        committed(folder, commit)
        _describe(folder)
        tree = cls(folder)
        # Whose modules run, and whose commands: another tree's would prove nothing.
        found = subprocess.run(
            [sys.executable, "-c", _WHOSE],
            cwd=folder,
            env=tree.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        assert found == [str(folder), str(folder)], found
        return tree

    def command(self, settings: Path, *words: str) -> list[str]:
        """How `rubrica` is executed of this tree."""
        program = [sys.executable, "-m", "appliance"]
        return [*program, "--settings", str(settings), *words]

    @property
    def environment(self) -> dict[str, str]:
        """In which it is."""
        return {**os.environ, "PYTHONPATH": str(self.folder)}


def _describe(folder: Path) -> None:
    """Write the entry points of a checkout, as an installed package has them."""
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    told = folder / f"{name}-{version}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8"
    )
    points = configparser.ConfigParser(delimiters=("=",))
    points.optionxform = str  # type: ignore[assignment,method-assign]  # as written
    points["console_scripts"] = project["scripts"]
    points.read_dict(project["entry-points"])
    with (told / "entry_points.txt").open("w", encoding="utf-8") as file:
        points.write(file)


class TreeInstallation:
    """A trial with its data in one folder, as `./quickstart` makes it.

    Args:
        folder: a short, private, empty one.
        database: URL of an empty database; None: the SQLite of a trial.
    """

    def __init__(self, folder: Path, database: str | None = None) -> None:
        self.folder = folder
        self._database = database
        self.settings = folder / "settings.toml"
        self._log = folder / "log"

    def run(self, tree: Tree, *words: str, status: int = 0) -> str:
        """Run a command of a tree; what it says.

        Args:
            tree: whose.
            words: of the command.
            status: that it must end with.
        """
        done = self.done(tree, *words)
        assert done.returncode == status, f"{words}: {done.stdout}\n{self.log}"
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def done(self, tree: Tree, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of a tree, however it ends; errors stand in what it says."""
        return subprocess.run(
            tree.command(self.settings, *words),
            # Python looks for modules where it is started.
            cwd=tree.folder,
            env=tree.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    @property
    def log(self) -> str:
        """What the running appliances said, its end."""
        return self._log.read_text("utf-8")[-4000:] if self._log.exists() else ""

    def apart(self, name: str) -> "TreeInstallation":
        """The same installation for commands that find no role of it running.

        A command that needs a sandbox starts one of its own tree.

        Args:
            name: of the folder of its sockets.
        """
        (self.folder / name).mkdir(mode=0o700, exist_ok=True)
        beside = TreeInstallation(self.folder, self._database)
        beside.settings = self.folder / f"settings-{name}.toml"
        given = merged(self.toml(), {"run_dir": name})
        beside.settings.write_text(toml(given), "utf-8")
        return beside

    def bring_up(self, tree: Tree) -> None:
        """What `./quickstart` does before it starts the appliance; again is no harm."""
        self.run(tree, "init", "--trial", str(self.folder))
        if self._database is not None and "database" not in self.toml():
            with self.settings.open("a", encoding="utf-8") as settings:
                settings.write(f'\n[database]\nurl = "{self._database}"\n')
        self.run(tree, "migrate")
        self.run(tree, "hsm", "init")

    @contextmanager
    def running(self, tree: Tree) -> Iterator[None]:
        """Have a tree's `rubrica up` serve it for as long as the block lasts."""
        self.bring_up(tree)
        with (
            self._log.open("ab") as log,
            subprocess.Popen(
                tree.command(self.settings, "up"),
                cwd=tree.folder,
                env=tree.environment,
                stdout=log,
                stderr=log,
            ) as process,
        ):
            try:
                wait = ("--wait", str(_READY_S), "--pid", str(process.pid))
                self.run(tree, "ready", *wait)
                yield
            finally:
                process.terminate()
                process.wait(_STOP_S)
        assert process.returncode == 0, self.log

    def toml(self) -> dict[str, Any]:
        """The settings file."""
        return tomllib.loads(self.settings.read_text("utf-8"))

    @contextmanager
    def client(self, bearer: str = "") -> Iterator[httpx.Client]:
        """Calls the REST API."""
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        base = self.toml()["web"]["base_url"]
        with httpx.Client(base_url=base, headers=headers, timeout=90) as client:
            yield client

    def person(self) -> tuple[str, dict[str, str]]:
        """CUIL and passwords of the first demo person."""
        people = json.loads((self.folder / "demo.json").read_text("utf-8"))
        cuil, told = next(iter(people.items()))
        return str(cuil), told

    def sign_in(self, tree: Tree) -> str:
        """An access token of that person.

        Args:
            tree: whose command tells the code of the second factor.
        """
        cuil, told = self.person()
        with self.client() as client:
            login = {"usuario": cuil, "password": told["clave"]}
            token = _good(client.post("/auth/login", json=login))["loginToken"]
            code = self.run(tree, "demo", "otp", cuil).split()[-1]
            answer = {"loginToken": token, "codigo": code}
            return str(_good(client.post("/auth/otp", json=answer))["access_token"])

    def sign(self, bearer: str, request: int) -> str:
        """Sign a request; where the signed document is."""
        password = self.person()[1]["claveDeFirma"]
        body = {"solicitudId": request, "password": password}
        with self.client(bearer) as client:
            return str(
                _good(client.post("/solicitudes/firmar", json=body))["documentoFirmado"]
            )


def _good(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == httpx.codes.OK, answer.text
    told: dict[str, Any] = answer.json()
    return told
