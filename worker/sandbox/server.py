"""The sandbox: a template that accepts, and one confined process for each PDF.

    serve(listener, limits, fonts_dir)

The template loads and warms everything once, gives up what it does not need, and
then does nothing but accept, fork, wait and kill; it reads no byte of a request:
whose turn it is it learns from the name of the client's socket. It holds no secret
and opens no database, so there is none to inherit.
"""

import gc
import logging
import mmap
import os
import select
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

from appliance.domain.errors import DocumentRefusedError, ErrorCode
from appliance.domain.sandbox import DIED, JobCaller, JobKind, caller_of
from appliance.metrics import metrics
from appliance.metrics.metrics_file import EVERY_S, MetricsFile
from appliance.system.freed_memory import give_back
from worker.pades.appearance.fonts import load_fonts
from worker.sandbox import confinement, prewarm
from worker.sandbox import job as child
from worker.sandbox.job import EXIT_PROTOCOL, EXIT_TOO_MUCH, Probe, Tools
from worker.sandbox.job_protocol import answer_bytes
from worker.sandbox.job_queue import Places
from worker.sandbox.limits import SandboxLimits

__all__ = ["SandboxLimits", "serve"]

_log = logging.getLogger(__name__)
_ROOM_BYTES: Final = 67_108_864
_TOO_MUCH: Final = {-signal.SIGKILL, -signal.SIGXCPU, EXIT_TOO_MUCH}
"""By the exit code; that of a signal is negative."""
_WAITING: Final = 256
"""Clients that wait for a place; more stay in the listener's queue."""
_SHORT_S: Final = 0.5
"""Jobs that last longer make way for others, and so do all that draw."""
_DUE: Final = 0.5
"""Part of its processor time that a job has before its wall time ends it, unless it
sleeps."""
_AGAIN_S: Final = 0.5
"""After this a job is looked at again that has not had so much."""
_NICE: Final = 5
"""Of every job: whoever signs comes before whoever brings something to sign."""
_NICE_MORE: Final = 10
"""Of a share's second job and further ones, and of what lasts long."""
_NICE_DRAWING: Final = 15


@dataclass(frozen=True, slots=True)
class _Client:
    """Somebody who waits for a place."""

    connection: socket.socket
    caller: JobCaller


@dataclass(slots=True)
class _Job:
    """A running job, as the template sees it."""

    pid: int
    connection: socket.socket
    answered: mmap.mmap
    caller: JobCaller
    deadline: float
    """By the monotonic clock."""
    due_s: float
    """Seconds of a processor that it has before that ends it."""
    makes_way_at: float | None
    """When it gets less of the processor, None once it does."""
    is_left: bool = False
    """The client hung up, so nobody waits for an answer."""
    is_killed: bool = False
    """Nothing is to be done but to wait for its end."""


def serve(
    listener: socket.socket,
    limits: SandboxLimits,
    fonts_dir: Path,
    probes: Mapping[str, Probe] | None = None,
    metrics_file: MetricsFile | None = None,
) -> None:
    """Serve until SIGTERM, then finish what runs and return.

    Call it in the main thread of a process of its own: it gives up powers for
    good, and forks.

    Args:
        listener: a listening AF_UNIX stream socket.
        limits: what a job may use.
        fonts_dir: folder of the stamp's fonts.
        probes: further operations, for tests of the confinement.
        metrics_file: where figures are handed over; None: nowhere.

    Raises:
        OSError: this machine cannot confine, and nothing was served.
        ValueError: the limit of memory leaves a job no room.
        RuntimeError: a library does not work here.
    """
    tools = Tools(
        limits=limits,
        fonts=load_fonts(fonts_dir),
        rules=confinement.job_filter(),
        null=os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC),
        template=os.getpid(),
        probes=probes or {},
    )
    prewarm.warm(tools)
    _demand_room(limits)
    if metrics_file is not None:
        _open(metrics_file)
    confinement.confine_template()
    gc.collect()
    give_back()
    gc.freeze()  # or a collection in a job would copy what it shares with us
    _Server(listener, tools, metrics_file).run()


def _open(metrics_file: MetricsFile) -> None:
    """Open the folder of figures, which is out of reach afterwards."""
    try:
        metrics_file.open(confinement.NOBODY if os.geteuid() == 0 else None)
    except OSError as exc:
        # It is looked for again at each writing.
        _log.warning("no folder for figures: %s", exc.strerror)


def _demand_room(limits: SandboxLimits) -> None:
    """Make sure that a job has memory left beside what it shares with us.

    Raises:
        ValueError: it would have too little to read anything.
    """
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    needed = pages * os.sysconf("SC_PAGE_SIZE") + _ROOM_BYTES
    if limits.memory_bytes < needed:
        msg = f"sandbox.memory_bytes: at least {needed} are needed here"
        raise ValueError(msg)


class _Server:
    """The loop of the template.

    Args:
        listener: a listening AF_UNIX stream socket.
        tools: what jobs need.
        metrics_file: where it hands its figures over; None: nowhere.
    """

    def __init__(
        self, listener: socket.socket, tools: Tools, metrics_file: MetricsFile | None
    ) -> None:
        self._listener = listener
        self._tools = tools
        self._places = Places(tools.limits.jobs)
        # In the order they came.
        self._waiting: list[_Client] = []
        self._jobs: dict[int, _Job] = {}
        self._stopping = False
        self._accepting = False
        self._poll = select.epoll()
        self._wake, self._waker = socket.socketpair()
        self._metrics = metrics_file
        self._write_at = time.monotonic()
        for outcome in ("answered", "cut", "died", "left"):
            # Told from the start: an increase from nothing is none to Prometheus.
            metrics.SANDBOX_JOBS.labels(outcome)
        metrics.watch_pool("sandbox_jobs", self, _Server.state, refuses=False)

    def state(self) -> metrics.PoolState:
        """How many jobs there may be, how many run, and how many wait."""
        most = self._tools.limits.jobs
        return metrics.PoolState(most, len(self._jobs), len(self._waiting))

    def run(self) -> None:
        """Accept, fork, reap and kill until told to stop and nothing runs."""
        self._listener.setblocking(False)  # noqa: FBT003 (the library's own)
        for end in (self._wake, self._waker):
            end.setblocking(False)  # noqa: FBT003 (the library's own)
        self._poll.register(self._wake, select.EPOLLIN)
        previous = {
            signal.SIGTERM: signal.signal(signal.SIGTERM, self._stop),
            # A handler of ours makes the signal write to the waker.
            signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda *_: None),
        }
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        try:
            while self._jobs or not self._stopping:
                self._turn()
        finally:
            for client in list(self._waiting):
                self._dismiss(client)
            for job in list(self._jobs.values()):
                self._kill(job)
                self._end(job, os.waitpid(job.pid, 0)[1])
            signal.set_wakeup_fd(-1)
            for number, handler in previous.items():
                signal.signal(number, handler)
            for owned in (self._poll, self._wake, self._waker):
                owned.close()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """Take no more jobs."""
        self._stopping = True

    def _turn(self) -> None:
        """Wait for what comes next, and do it."""
        self._listen()
        ready = {descriptor for descriptor, _ in self._poll.poll(self._patience())}
        if self._wake.fileno() in ready:
            self._drain()
        for client in [c for c in self._waiting if c.connection.fileno() in ready]:
            self._dismiss(client)
        for job in [j for j in self._jobs.values() if j.connection.fileno() in ready]:
            job.is_left = True
            # Told again and again until it is reaped, this would keep a core busy.
            self._poll.unregister(job.connection)
            self._kill(job)
        now = time.monotonic()
        if self._metrics is not None and now >= self._write_at:
            # No thread does it: a job must not be forked with one.
            self._metrics.write()
            self._write_at = now + EVERY_S
        for job in self._living():
            if job.deadline <= now:
                self._cut(job, now)
            elif job.makes_way_at is not None and job.makes_way_at <= now:
                self._make_way(job)
        self._reap()
        if self._accepting and self._listener.fileno() in ready:
            self._accept()
        self._start_jobs()

    def _listen(self) -> None:
        """Listen while more may wait, else leave clients in the queue."""
        room = not self._stopping and len(self._waiting) < _WAITING
        if room and not self._accepting:
            self._poll.register(self._listener, select.EPOLLIN)
        elif self._accepting and not room:
            self._poll.unregister(self._listener)
        self._accepting = room

    def _patience(self) -> float | None:
        """Seconds until a job is cut or makes way, or figures are due; None: never."""
        times = [
            when
            for job in self._living()
            for when in (job.deadline, job.makes_way_at)
            if when is not None
        ]
        if self._metrics is not None:
            times.append(self._write_at)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _living(self) -> list[_Job]:
        """Jobs that may still be cut or make way."""
        return [job for job in self._jobs.values() if not job.is_killed]

    def _drain(self) -> None:
        """Empty the waker."""
        try:
            while self._wake.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _accept(self) -> None:
        """Let in all who came, before one of them is chosen."""
        while len(self._waiting) < _WAITING:
            try:
                connection, name = self._listener.accept()
            except (BlockingIOError, ConnectionError):
                return
            self._waiting.append(_Client(connection, caller_of(name)))
            # No event is asked for, so that only a client's leaving is reported.
            self._poll.register(connection, 0)

    def _start_jobs(self) -> None:
        """Fork a job for each client who may have one now."""
        while not self._stopping and self._waiting:
            running = [job.caller for job in self._jobs.values()]
            client = self._places.next(self._waiting, running)
            if client is None:
                return
            self._waiting.remove(client)
            self._start(client)

    def _dismiss(self, client: _Client) -> None:
        """Let go of a client who left, or who had better ask our successor."""
        self._waiting.remove(client)
        self._poll.unregister(client.connection)
        client.connection.close()

    def _start(self, client: _Client) -> None:
        """Fork a job for a client."""
        tools, draws = self._tools, client.caller.kind is JobKind.DRAW
        if draws:
            tools = replace(tools, limits=_of_drawing(tools.limits))
        answered = mmap.mmap(-1, 1)
        now = time.monotonic()
        try:
            pid = os.fork()
        except OSError:
            _log.exception("no process for a job")
            answered.close()
            self._poll.unregister(client.connection)
            client.connection.close()
            return
        if pid == 0:
            child.run(client.connection, answered, tools)
        self._jobs[pid] = job = _Job(
            pid=pid,
            connection=client.connection,
            answered=answered,
            caller=client.caller,
            deadline=now + tools.limits.wall_s,
            due_s=tools.limits.cpu_s * _DUE,
            makes_way_at=now + _SHORT_S,
        )
        others = [other for other in self._jobs.values() if other is not job]
        if draws or any(other.caller.share == job.caller.share for other in others):
            self._make_way(job)
        else:
            self._set_priority(job, _NICE)

    def _make_way(self, job: _Job) -> None:
        """Give a job less of the processor than short ones get."""
        job.makes_way_at = None
        draws = job.caller.kind is JobKind.DRAW
        self._set_priority(job, _NICE_DRAWING if draws else _NICE_MORE)

    def _set_priority(self, job: _Job, nice: int) -> None:
        """Say how much of the processor a job gets beside others."""
        try:
            os.setpriority(os.PRIO_PROCESS, job.pid, nice)
        except OSError as exc:
            # Fairness suffers where a service manager forbids it, nothing else does.
            _log.warning("no priority for a job: %s", exc.strerror)

    def _cut(self, job: _Job, now: float) -> None:
        """End a job whose wall time is over, unless it had less than its due.

        A busy machine makes no document too complex. Such a job goes when its client
        leaves, who has patience of their own.
        """
        if _starves(job.pid, job.due_s):
            job.deadline = now + _AGAIN_S
        else:
            self._kill(job)

    def _kill(self, job: _Job) -> None:
        """End a job and whatever it might have started; it is reaped later."""
        if job.is_killed:
            return
        job.is_killed = True
        try:
            os.killpg(job.pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(job.pid, signal.SIGKILL)  # it has no group of its own yet

    def _reap(self) -> None:
        """Take leave of the jobs that ended."""
        for job in list(self._jobs.values()):
            pid, status = os.waitpid(job.pid, os.WNOHANG)
            if pid:
                self._end(job, status)

    def _end(self, job: _Job, status: int) -> None:
        """Answer for a job that died without a word, and forget it."""
        del self._jobs[job.pid]
        if not job.is_left:
            self._poll.unregister(job.connection)
        silent = not job.answered[0] and not job.is_left
        # Who has the answer hangs up, often before the job is seen to have ended.
        outcome = "answered" if job.answered[0] or not job.is_left else "left"
        code = os.waitstatus_to_exitcode(status)
        if silent and code != EXIT_PROTOCOL:
            too_much = code in _TOO_MUCH
            refusal = DocumentRefusedError(
                ErrorCode.PDF_TOO_COMPLEX if too_much else ErrorCode.PDF_MALFORMED,
                f"{DIED} {code}",
            )
            outcome = "cut" if too_much else "died"
            _log.warning("job cut: %s, %s", refusal.code, refusal.reason)
            self._say(job, refusal)
        metrics.SANDBOX_JOBS.labels(outcome).inc()
        job.connection.close()
        job.answered.close()

    def _say(self, job: _Job, refusal: DocumentRefusedError) -> None:
        """Send a refusal; a few bytes always fit in an unused socket."""
        job.connection.setblocking(False)  # noqa: FBT003 (the library's own)
        try:
            job.connection.send(answer_bytes(refusal), socket.MSG_NOSIGNAL)
        except OSError:
            _log.info("the client left before its refusal")


def _starves(pid: int, due_s: float) -> bool:
    """Whether a process would run if the machine let it, and had less than its due.

    Source: proc(5), `/proc/<pid>/stat`: R is running or ready to, D waits for a disk;
    `utime` and `stime` are in clock ticks.
    """
    try:
        told = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return False
    state, *numbers = told.rpartition(")")[2].split()
    user, system = (int(each) for each in numbers[10:12])
    return state in "RD" and (user + system) / os.sysconf("SC_CLK_TCK") < due_s


def _of_drawing(limits: SandboxLimits) -> SandboxLimits:
    """What a job that draws may use: it looks at one page, so it is cut sooner."""
    return replace(
        limits,
        cpu_s=min(limits.cpu_s, limits.render_cpu_s),
        wall_s=min(limits.wall_s, limits.render_wall_s),
    )
