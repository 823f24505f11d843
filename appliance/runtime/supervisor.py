"""`rubrica up`: all roles on one machine, for a trial.

The parent reads the settings (no secret file), loads the roles' modules, binds
the listeners, freezes the heap and forks. It runs no event loop, no thread and
no code of a role, so it may fork at any time: a role that dies is back in
milliseconds, sharing the parent's memory.

Source: design §1.
"""

import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import structlog

from appliance.runtime.hang_watchdog import CallWatch, watch_path
from appliance.runtime.logging import configure_logging
from appliance.runtime.process_title import set_title
from appliance.runtime.processes import SUPERVISED, bind, die_with_parent, hold_alone
from appliance.runtime.redis_process import start_redis
from appliance.runtime.shared_heap import share_heap
from appliance.settings import FACES, METRICS, Settings, SettingsError
from appliance.system.held_listeners import close_held

_log = structlog.get_logger(__name__)
RunRole = Callable[[Settings, int, socket.socket | None], int]
"""A role: settings, number among its kind (from 1), listener → exit status."""

_QUIET_S: Final = 1.0
"""A role that lived that long is restarted at once: it did start, and what
killed it since is no reason to let its work wait."""
_MOST_PAUSE_S: Final = 2.0
"""Longest pause before the restart of one that dies as it starts."""
_KILL_AFTER_S: Final = 5.0
_LOOK_S: Final = 1.0
"""Time between two looks for calls that hang, and at the most for one that died."""


def load_role(name: str) -> RunRole:
    """A role's entry point, of the group `rubrica.roles`."""
    (point,) = entry_points(group="rubrica.roles", name=name)
    role: RunRole = point.load()
    return role


@dataclass(slots=True)
class Child:
    """One process to be kept running."""

    name: str
    start: Callable[[], int]
    """Starts it; gives its process id."""
    stage: int
    """Stages stop one after the other, the lowest first."""
    watch: CallWatch | None = None
    """Of a role whose calls may hang."""
    call_limit_s: float = math.inf
    """Longest that such a call may take, in seconds; then the role is killed."""
    pid: int | None = None
    started: float = 0.0
    restart_at: float = 0.0
    pause: float = 0.0


@dataclass(slots=True)
class Supervisor:
    """Keeps children running until it is told to stop."""

    graceful_s: float
    children: list[Child] = field(default_factory=list)
    _stopping: bool = False

    def run(self) -> int:
        """Start all, restart what dies, stop all at SIGTERM or SIGINT."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SUPERVISED)
        share_heap()
        try:
            while not self._stopping:
                self._start_due()
                self._wait(_LOOK_S)
                self._kill_hung()
        finally:
            self._stop_all()
        return 0

    def _start_due(self) -> None:
        now = time.monotonic()
        for child in self.children:
            if child.pid is None and child.restart_at <= now:
                child.pid = child.start()
                child.started = now
                _log.info("role.started", name=child.name, pid=child.pid)

    def _wait(self, timeout_s: float) -> None:
        """Handle one signal, or the end of the time; reap who ended."""
        due = [c.restart_at for c in self.children if c.pid is None]
        if due:
            timeout_s = min(timeout_s, max(min(due) - time.monotonic(), 0.0))
        info = signal.sigtimedwait(SUPERVISED, timeout_s)
        if info is not None and info.si_signo != signal.SIGCHLD:
            self._stopping = True
        self._reap()

    def _kill_hung(self) -> None:
        """Kill a role whose call hangs: nothing else ends such a call."""
        for child in self.children:
            if child.pid is None or child.watch is None:
                continue
            took_s = child.watch.running_s(child.started)
            if took_s > child.call_limit_s:
                child.watch.note_hang()
                _log.error("role.hangs", name=child.name, call_s=round(took_s))
                os.kill(child.pid, signal.SIGKILL)

    def _reap(self) -> None:
        for child in self.children:
            if child.pid is None:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._ended(child, status)

    def _ended(self, child: Child, status: int) -> None:
        lived = time.monotonic() - child.started
        child.pid = None
        if lived >= _QUIET_S:
            child.pause = 0.0
        if not self._stopping:
            _log.warning(
                "role.ended", name=child.name, status=_how(status), lived_s=round(lived)
            )
        child.restart_at = time.monotonic() + child.pause
        child.pause = min(max(child.pause * 2, 0.1), _MOST_PAUSE_S)

    def _stop_all(self) -> None:
        """Fronts first, so that what they accepted is still done; Redis last."""
        self._stopping = True
        for stage in sorted({child.stage for child in self.children}):
            group = [c for c in self.children if c.stage == stage and c.pid is not None]
            _signal(group, signal.SIGTERM)
            deadline = time.monotonic() + self.graceful_s + 1
            while any(c.pid is not None for c in group):
                left = deadline - time.monotonic()
                if left <= 0:
                    _signal(group, signal.SIGKILL)
                    deadline = time.monotonic() + _KILL_AFTER_S
                signal.sigtimedwait(SUPERVISED, min(max(left, 0.01), 0.2))
                self._reap()
        _log.info("supervisor.stopped")


def _signal(children: list[Child], number: signal.Signals) -> None:
    for child in children:
        if child.pid is not None:
            os.kill(child.pid, number)


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit {code}" if code >= 0 else signal.Signals(-code).name


def fork_role(
    name: str,
    run: RunRole,
    settings: Settings,
    number: int,
    own: socket.socket | None,
    others: list[socket.socket],
) -> int:
    """Fork a role; in the child run it and never return.

    Args:
        name: for the log.
        run: the role.
        settings: for the role.
        number: among its kind, from 1.
        own: the listener that it keeps.
        others: listeners of other roles, closed in the child.

    Returns:
        The child's process id, in the parent.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 70  # EX_SOFTWARE
    try:
        die_with_parent(parent)
        set_title(name)
        # A command's own handler is not the role's, which sets one when it is ready.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SUPERVISED)
        for listener in others:
            if listener is not own:
                listener.close()
        configure_logging(settings.log, name)
        status = run(settings, number, own)
    except SettingsError as exc:
        _log.error("role.refused", name=name, error=str(exc))
        status = 78  # EX_CONFIG
    except BaseException:  # noqa: BLE001 (the outermost shell of the process)
        _log.exception("role.failed", name=name)
    # The parent's clean-up is not the child's: leave without it.
    sys.stderr.flush()
    os._exit(status)


def up(
    settings: Settings,
    roles: dict[str, RunRole],
    begun: Sequence[Callable[[], None]] = (),
) -> int:
    """Run every role of a trial until told to stop.

    Args:
        settings: of the installation.
        roles: the faces (`api` and others), `signing`, `chores` and `sandbox`,
            from entry points.
        begun: waits for what was begun to be prepared once, for all roles.

    Raises:
        SettingsError: another one runs here, a listener cannot be bound, or
            something cannot be prepared.
    """
    prepare_folders(settings)
    # A parent that was killed leaves children that still stop.
    patience_s = settings.web.graceful_s + _KILL_AFTER_S
    lock = hold_alone(settings.run_dir / "up.lock", patience_s)
    for wait in begun:
        wait()
    listening = (*FACES, METRICS)
    faces = [name for name in listening if name in roles and settings.listen(name)]
    listeners: dict[str, socket.socket] = {
        name: bind(settings.listen(name), settings.web.backlog) for name in faces
    }
    listeners["sandbox"] = bind(f"unix:{settings.sandbox_socket}", 64)
    # What else a trial's start keeps open is for others, and no role's.
    close_held()
    everyone = list(listeners.values())
    supervisor = Supervisor(settings.web.graceful_s)

    def child(name: str, role: str, number: int, stage: int) -> Child:
        own = listeners.get(role)

        def start() -> int:
            return fork_role(name, roles[role], settings, number, own, everyone)

        supervisor.children.append(Child(name, start, stage))
        return supervisor.children[-1]

    if settings.redis.url is None:
        supervisor.children.append(
            Child("redis", lambda: start_redis(settings, lock), 4)
        )
    child("sandbox", "sandbox", 1, 3)
    for number in range(1, settings.signing.workers + 1):
        signing = child(f"signing-{number}", "signing", number, 2)
        signing.watch = CallWatch(watch_path(settings.run_dir, number))
        signing.call_limit_s = settings.hsm.call_limit_s
    child("chores", "chores", 1, 2)
    for name in faces:
        child(name, name, 1, 1)
    return supervisor.run()


def prepare_folders(settings: Settings) -> None:
    """Make the folders of data and sockets, for the owner alone.

    Raises:
        SettingsError: a folder cannot be made, or `run_dir` is too long.
    """
    longest = 80
    if len(os.fsencode(str(settings.run_dir))) > longest:
        msg = f"run_dir: at most {longest} bytes (paths of unix sockets are short)"
        raise SettingsError(msg)
    for folder in (settings.data_dir, settings.run_dir):
        try:
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            msg = f"{folder}: cannot be made ({exc.strerror})"
            raise SettingsError(msg) from exc
