"""Images and containers of this checkout, on podman and runc, in a store of their own.

    with ContainerHost.made(folder) as host:
        host.run("docker compose up --detach", folder / "installation")

`docker` of the manual is podman here: `docker build` is `buildah bud`, `docker compose`
podman-compose. What is run has a network of its own, with no way out, so that published
ports are nobody else's; what is built has the machine's. No systemd is asked, so checks
of health are run by the test.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, TypeVar

from tests.support.hosts.booted_machine import in_network
from tests.support.processes.scratch import short_folder
from tests.support.services.wheels import fetch, pip_configuration

Result = TypeVar("Result")
ROOT: Final = Path(__file__).resolve().parents[3]
BASE: Final = "localhost/debian-base:12"
"""As debian:12-slim is: without manuals and other languages."""
_PROGRAMS: Final = ("mmdebstrap", "buildah", "podman", "runc", "ip", "nsenter")
_LEFT_OUT: Final = ("doc/*", "man/*", "info/*", "locale/*", "lintian/*")
_STORAGE: Final = """\
[storage]
driver = "overlay"
graphroot = "{folder}/store"
runroot = "{folder}/run"
"""
_ENGINE: Final = """\
[engine]
runtime = "runc"
[containers]
default_ulimits = ["nofile=8192:8192", "nproc=8192:8192"]
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
_LONGEST_S: Final = 1800


def lacking() -> str:
    """What this machine lacks to run containers; empty: nothing."""
    if os.geteuid() != 0:
        return "root"
    found = [name for name in _PROGRAMS if shutil.which(name) is None]
    if not Path("/usr/lib/podman/netavark").exists():
        found.append("netavark")
    try:
        version("podman-compose")
    except PackageNotFoundError:
        found.append("podman-compose")
    return ", ".join(found)


class ContainerHost:
    """A machine's containers.

    Args:
        folder: an empty one with a short path.
        network: name of the network namespace that they run in.
    """

    def __init__(self, folder: Path, network: str) -> None:
        self.folder = folder
        self._network = Path("/run/netns") / network
        storage, engine = folder / "storage.conf", folder / "containers.conf"
        storage.write_text(_STORAGE.format(folder=folder))
        engine.write_text(_ENGINE.format(folder=folder))
        (folder / "networks").mkdir()
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "CONTAINERS_STORAGE_CONF": str(storage),
            "CONTAINERS_CONF": str(engine),
            "BUILDAH_ISOLATION": "chroot",
            # As docker has it: with the checks of health.
            "BUILDAH_FORMAT": "docker",
            "BASE": BASE,
        }

    @classmethod
    @contextmanager
    def made(cls) -> Iterator["ContainerHost"]:
        """With a base to build images on; all of it is gone afterwards."""
        with short_folder() as folder:
            network = folder.name
            subprocess.run(["ip", "netns", "add", network], check=True)
            host = cls(folder, network)
            try:
                loopback = ["ip", "-n", network, "link", "set", "lo", "up"]
                subprocess.run(loopback, check=True)
                host._make_base()
                yield host
            finally:
                host.run(
                    "podman rm --all --force --time 1; podman volume prune --force"
                )
                subprocess.run(["ip", "netns", "del", network], check=True)

    def _make_base(self) -> None:
        tar = self.folder / "base.tar"
        left_out = [f"--dpkgopt=path-exclude=/usr/share/{each}" for each in _LEFT_OUT]
        kept = ["--dpkgopt=path-include=/usr/share/doc/*/copyright"]
        hooks = ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
        what = ["--quiet", "--variant=minbase", "--include=usr-is-merged"]
        command = ["mmdebstrap", *what, *hooks, *left_out, *kept, "bookworm", str(tar)]
        subprocess.run(command, check=True)
        self.build(f"podman import {tar} {BASE}", self.folder)
        tar.unlink()

    def build(self, line: str, place: Path) -> None:
        """Run a line that makes an image, with what it fetches at hand.

        Args:
            line: of the manual.
            place: folder that it is run in.
        """
        wheels = self.folder / "wheels"
        if not wheels.exists():
            fetch(wheels, ("requirements-build.lock", "requirements.lock"))
            (self.folder / "pip.conf").write_text(pip_configuration("/srv/wheels"))
            (self.folder / "pip.conf").chmod(0o644)
        options = f"--build-arg BASE={BASE}"
        options += f" --volume {wheels}:/srv/wheels:ro"
        options += f" --volume {self.folder}/pip.conf:/etc/pip.conf:ro"
        words = line.replace("docker build", f"buildah bud {options}")
        self._run(words, place, [])

    def run(self, script: str, place: Path | None = None) -> str:
        """Run a script as an operator would; what it wrote.

        Args:
            script: of bash; ends at the first command that fails.
            place: folder that it is run in.
        """
        return self._run(script, place, ["nsenter", f"--net={self._network}"])

    def _run(self, script: str, place: Path | None, before: list[str]) -> str:
        words = script.replace("docker compose", "podman-compose")
        words = re.sub(r"\bdocker (?=[a-z])", "podman ", words)
        command = [*before, "bash", "-euc", f"umask 022\n{words}"]
        # A file, and no pipe: what goes on running in a container keeps that open.
        with (self.folder / "told").open("w+") as told:
            done = subprocess.run(
                command,
                cwd=place or self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=subprocess.STDOUT,
                timeout=_LONGEST_S,
                check=False,
            )
            told.seek(0)
            text = told.read()
        assert done.returncode == 0, f"{words}\n{text}"
        return text

    def within(self, work: Callable[[], Result]) -> Result:
        """Do something on the network that the ports are published on."""
        return in_network(self._network, work)

    def is_well(self, container: str) -> bool:
        """Whether a container's own check finds it well."""
        command = ["podman", "healthcheck", "run", container]
        done = subprocess.run(
            ["nsenter", f"--net={self._network}", *command],
            env=self._environment,
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def wait_until_well(self, container: str) -> float:
        """Wait for that; seconds that it took."""
        begun = time.monotonic()
        while not self.is_well(container):
            assert time.monotonic() < begun + _LONGEST_S, self.run(
                f"podman logs --tail 20 {container}"
            )
            time.sleep(0.2)
        return time.monotonic() - begun
