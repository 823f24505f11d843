"""The redis-server that `rubrica up` runs for itself, on a unix socket.

It is a doorbell and nothing else: it writes nothing to the disk.
"""

import os
import signal
import subprocess

from appliance.runtime.processes import SUPERVISED, die_with_parent
from appliance.settings import Settings, SettingsError


def start_redis(settings: Settings, lock: int) -> int:
    """Start a private redis-server on a unix socket; gives its process id.

    Args:
        settings: where its socket and folder are.
        lock: descriptor of `run_dir`'s lock, which it holds while it lives.

    Raises:
        SettingsError: its program cannot be run.
    """
    folder = settings.data_dir / "redis"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder / "redis.log"
    arguments = [
        settings.redis.command,
        *("--port", "0"),
        *("--unixsocket", str(settings.redis_socket)),
        *("--unixsocketperm", "700"),
        *("--dir", str(folder)),
        *("--save", ""),
        *("--appendonly", "no"),
        *("--logfile", str(log)),
    ]
    parent = os.getpid()
    try:
        process = subprocess.Popen(  # noqa: S603 (the program is a setting)
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock,),
            preexec_fn=lambda: _prepare_program(parent),  # noqa: PLW1509 (no thread here)
        )
    except OSError as exc:
        msg = f"redis.command: {settings.redis.command} cannot be run ({exc.strerror})"
        raise SettingsError(msg) from exc
    process.returncode = 0  # reaped by the supervisor, not by Popen
    return process.pid


def _prepare_program(parent: int) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SUPERVISED)
    die_with_parent(parent)
