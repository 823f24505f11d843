"""Takes powers away from the sandbox's processes, for good.

The template loses what it does not need to accept and fork. A job loses all but
computing on memory it has and talking on descriptors it holds: its filter lists
what is allowed, so that a system call nobody thought of is refused. Refusals are
EPERM, never a kill, so that libraries which merely try something go on.
"""

import ctypes
import errno
import fcntl
import os
import resource
import signal
from typing import Final

import pyseccomp

from worker.sandbox.limits import SandboxLimits

NOBODY: Final = 65534
_CLONE_NEWNET: Final = 0x4000_0000
_PR_SET_PDEATHSIG: Final = 1
_PR_GET_PDEATHSIG: Final = 2
_PR_SET_NO_NEW_PRIVS: Final = 38
_DESCRIPTORS: Final = 16
_DESCRIPTORS_AT_MOST: Final = 1_048_576

_libc = ctypes.CDLL(None, use_errno=True)

# What the template never does: it accepts, forks, kills and waits.
_REFUSED_TO_TEMPLATE: Final = (
    "execve execveat socket connect bind listen ptrace process_vm_readv "
    "process_vm_writev unshare setns mount umount2 pivot_root chroot move_mount "
    "open_tree fsopen bpf perf_event_open userfaultfd keyctl add_key request_key "
    "io_uring_setup io_uring_enter io_uring_register open_by_handle_at "
    "init_module finit_module delete_module kexec_load kexec_file_load reboot "
    "swapon swapoff personality vfork"
)

# What a job needs: memory, clocks, signals of its own, and the descriptors it
# has. Nothing here makes a descriptor of a path or of a network, a process, or
# touches another process. `socketpair` is asyncio's own pipe; `newfstatat` is
# how the C library asks for an open file's size.
_ALLOWED_TO_JOB: Final = (
    "read write readv writev pread64 pwrite64 close lseek fstat newfstatat "
    "statx ioctl fcntl dup fadvise64 mmap munmap mprotect mremap madvise brk "
    "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall "
    "rt_sigtimedwait exit exit_group futex getpid getppid gettid getuid geteuid "
    "getgid getegid getpgrp getpgid getsid clock_gettime clock_getres "
    "clock_nanosleep nanosleep gettimeofday time getrandom getrusage times uname "
    "sysinfo sched_yield sched_getaffinity getcpu membarrier rseq set_robust_list "
    "getrlimit setitimer getitimer alarm poll ppoll select pselect6 epoll_create1 "
    "epoll_ctl epoll_wait epoll_pwait eventfd2 socketpair recvmsg recvfrom "
    "sendmsg sendto getsockopt setsockopt getsockname getpeername shutdown"
)


def _prctl(option: int, argument: int) -> None:
    """Call prctl(2).

    Raises:
        OSError: the kernel refused.
    """
    if _libc.prctl(option, argument, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _syscall(name: str) -> int | None:
    """Number of a system call here, None where this machine knows none."""
    try:
        number: int = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    except ValueError:
        return None
    return number if number >= 0 else None


def job_filter() -> pyseccomp.SyscallFilter:
    """Build the filter of jobs; the template builds it once, each job loads it.

    Source: seccomp(2); facts "Sandbox".
    """
    rules = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.EPERM))
    for name in _ALLOWED_TO_JOB.split():
        if (number := _syscall(name)) is not None:
            rules.add_rule(pyseccomp.ALLOW, number)
    # Limits may be asked of oneself only: prlimit64 works on other processes.
    if (number := _syscall("prlimit64")) is not None:
        itself = pyseccomp.Arg(0, pyseccomp.EQ, 0)
        rules.add_rule(pyseccomp.ALLOW, number, itself)
    return rules


def confine_template() -> None:
    """Confine the process that accepts and forks.

    As root it moves to a network namespace with no network and becomes nobody,
    where the host lets it; everywhere it gives up new privileges and the system
    calls it has no use for.

    Raises:
        OSError: the kernel has no seccomp, or refuses it.
    """
    if os.geteuid() == 0:
        _leave_network()
        _become_nobody()
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in _REFUSED_TO_TEMPLATE.split():
        if (number := _syscall(name)) is not None:
            rules.add_rule(pyseccomp.ERRNO(errno.EPERM), number)
    rules.load()


def _leave_network() -> None:
    """Enter an empty network namespace; containers may refuse, seccomp remains."""
    _libc.unshare(_CLONE_NEWNET)


def _become_nobody() -> None:
    """Give up root, keeping the order to die with the parent, if there is one."""
    order = ctypes.c_int(0)
    _libc.prctl(_PR_GET_PDEATHSIG, ctypes.byref(order), 0, 0, 0)
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError:
        # A container may map no such user; it confines its root by itself.
        return
    if order.value:  # a change of user cancels it
        _prctl(_PR_SET_PDEATHSIG, order.value)


def die_with(template: int) -> None:
    """Have a job end when the template does, however that ends.

    Args:
        template: process that forked this one.

    Raises:
        OSError: it has ended already, or the kernel refuses.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != template:
        raise ProcessLookupError


def confine_job(
    connection: int, null: int, limits: SandboxLimits, rules: pyseccomp.SyscallFilter
) -> int:
    """Confine a freshly forked job, before it reads a byte of its request.

    Args:
        connection: descriptor of the request.
        null: descriptor of /dev/null, which becomes 0, 1 and 2.
        limits: what the job may use.
        rules: what `job_filter` built.

    Returns:
        The connection's new descriptor: 3, and nothing is open above it.

    Raises:
        OSError: the kernel refuses one of these.
    """
    # The connection may itself be below 3: out of the way first.
    kept = fcntl.fcntl(connection, fcntl.F_DUPFD, _DESCRIPTORS)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    moved = os.dup2(kept, 3)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.closerange(moved + 1, most if most > 0 else _DESCRIPTORS_AT_MOST)
    _limit(limits)
    rules.load()
    return moved


def _limit(limits: SandboxLimits) -> None:
    """Set the resource limits of a job."""
    cpu_s = limits.cpu_s
    for what, soft, hard in (
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        # SIGXCPU at the limit; SIGKILL a second later, were it caught.
        (resource.RLIMIT_CPU, cpu_s, cpu_s + 1),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
        (resource.RLIMIT_NOFILE, _DESCRIPTORS, _DESCRIPTORS),
    ):
        resource.setrlimit(what, (soft, hard))
