"""A Debian that is booted with its own systemd, as an operator's machine is.

    with Booted.made(folder, packages) as machine:
        machine.run("systemctl --failed")
        machine.within(lambda: httpx.get("http://127.0.0.1/"))

It has no network but loopback: what an operator would fetch is brought beforehand.
Needs root, `mmdebstrap` and `systemd-container`.
"""

import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import psutil

Result = TypeVar("Result")
_CLONE_NEWNET: Final = 0x4000_0000
_SUITE: Final = "bookworm"
_BASE: Final = ("systemd", "systemd-sysv", "dbus")
_BOOTED_S: Final = 120
_LOOK_AGAIN_S: Final = 0.1
_STARTED: Final = frozenset({"running", "degraded"})
_STARTING: Final = frozenset({"starting"})
_UMASK: Final = "umask 022\n"
"""An operator's; that of the tests would come along."""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Booted:
    """A running machine.

    Args:
        root: its file system; what it says at its console goes into a file beside it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._process = _switched_on(root)

    @classmethod
    @contextmanager
    def made(cls, folder: Path, packages: Sequence[str]) -> Iterator["Booted"]:
        """Make a minimal Debian with some packages, boot it, and switch it off after.

        Args:
            folder: an empty one, which takes some 700 MB.
            packages: of Debian; their services start with the machine.
        """
        root = folder / "root"
        wanted = ",".join((*_BASE, *packages))
        options = ["--quiet", "--variant=minbase", f"--include={wanted}"]
        subprocess.run(["mmdebstrap", *options, _SUITE, str(root)], check=True)
        machine = cls(root)
        try:
            machine._wait_until_booted()
            yield machine
        finally:
            machine.switch_off()
            shutil.rmtree(root)

    def run(
        self, script: str, *, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell script as root, as an operator's terminal would.

        Args:
            script: of bash; ends at the first command that fails.
            check: an exit status other than 0 is an error; the script, what it
                wrote and the journal's last lines are told.
        """
        done = self._inside(["bash", "-euo", "pipefail", "-c", _UMASK + script])
        if check and done.returncode != 0:
            journal = self._inside(["journalctl", "--no-pager", "-n", "60"]).stdout
            told = f"{script}\n{done.stdout}{done.stderr}\n{journal}"
            raise AssertionError(told)
        return done

    def within(self, work: Callable[[], Result]) -> Result:
        """Do something of the tests' on this machine's network."""
        return in_network(self._namespace(), work)

    def enter_network(self) -> None:
        """Move the calling thread to this machine's network, for good."""
        _enter(self._namespace())

    def _namespace(self) -> Path:
        return Path(f"/proc/{self._init().pid}/ns/net")

    def switch_off(self) -> None:
        """Have it stop as a machine does."""
        if self._process.poll() is None:
            self._inside(["systemctl", "poweroff"])
            try:
                self._process.wait(_BOOTED_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def reboot(self) -> None:
        """Have it stop and start again; its units are still starting afterwards.

        Its /tmp and /run begin empty.
        """
        self.switch_off()
        self._process = _switched_on(self.root)
        self._wait_until_booted(_STARTING | _STARTED)

    def _wait_until_booted(self, states: AbstractSet[str] = _STARTED) -> None:
        """Wait for its systemd.

        Args:
            states: of the machine, in systemd's words, one of which is enough.
        """
        deadline = time.monotonic() + _BOOTED_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, "the machine did not boot"
            # While it starts, systemd-nspawn has none of them, or two.
            if len(psutil.Process(self._process.pid).children()) == 1:
                told = self._inside(["systemctl", "is-system-running"]).stdout.strip()
                if told in states:
                    return
            time.sleep(_LOOK_AGAIN_S)
        msg = "the machine did not boot in time"
        raise AssertionError(msg)

    def _enter(self) -> list[str]:
        plain = ["env", "-i", f"PATH={_PATH}", "HOME=/root", "LANG=C.UTF-8"]
        return ["nsenter", "--target", str(self._init().pid), "--all", *plain]

    def _init(self) -> psutil.Process:
        (init,) = psutil.Process(self._process.pid).children()
        return init

    def _inside(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._enter(), *command],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )


def _switched_on(root: Path) -> "subprocess.Popen[bytes]":
    """Start a machine's `systemd-nspawn`."""
    command = ["systemd-nspawn", "--quiet", f"--directory={root}", "--boot"]
    # With --keep-unit it ends where the machine asks for a reboot.
    alone = ["--register=no", "--keep-unit", "--console=pipe", "--private-network"]
    with root.with_name("console").open("ab") as console:
        return subprocess.Popen(
            [*command, *alone], stdin=subprocess.DEVNULL, stdout=console
        )


def in_network(namespace: Path, work: Callable[[], Result]) -> Result:
    """Do something in a network namespace.

    Args:
        namespace: its file.
        work: what is done.

    Source: setns(2): a thread alone can be moved to another network.
    """

    def moved() -> Result:
        _enter(namespace)
        return work()

    # Its one thread stays on that network and ends with the pool.
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(moved).result()


def _enter(namespace: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with namespace.open("rb") as there:
        if libc.setns(there.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def can_boot() -> bool:
    """Whether this machine has what it takes."""
    programs = ("mmdebstrap", "systemd-nspawn", "nsenter")
    return os.geteuid() == 0 and all(map(shutil.which, programs))
