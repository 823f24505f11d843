r"""Who asks the sandbox for what kind of job, said by the name of the caller's socket.

The server decides whose turn it is before it forks, and reads no byte of a request
until then. So a client binds its socket to a name in the abstract namespace, which
the kernel tells the server with the connection:

    \0rubrica-sandbox/KIND/SHARE/RANDOM
"""

import hashlib
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.domain.sandbox.messages import Operation

_PREFIX: Final = b"\0rubrica-sandbox"
_SHARE_CHARS: Final = 16
_RANDOM_BYTES: Final = 16
_PARTS: Final = 4


class JobKind(StrEnum):
    """Kinds of jobs, as places are given out by."""

    EXAMINE = "examine"
    DRAW = "draw"
    PING = "ping"


@dataclass(frozen=True, slots=True)
class JobCaller:
    """Whose a job is."""

    kind: JobKind
    share: str
    """Jobs with the same one share their part of the places; up to 16 characters,
    `""` for the installation's own."""


UNNAMED: Final = JobCaller(JobKind.EXAMINE, "unnamed")
"""Whoever did not say."""
_KINDS: Final = {
    Operation.RENDER: JobKind.DRAW,
    Operation.PICTURE: JobKind.DRAW,
    Operation.PING: JobKind.PING,
}


def job_caller(operation: Operation, share: str) -> JobCaller:
    """Who asks.

    Args:
        operation: that is asked for.
        share: any text that names whose it is; `""` for the installation's own.
    """
    kind = _KINDS.get(operation, JobKind.EXAMINE)
    # Shortened, as a name has 108 bytes at most.
    digest = hashlib.sha256(share.encode("utf-8", "surrogatepass")).hexdigest()
    return JobCaller(kind, digest[:_SHARE_CHARS] if share else "")


def socket_name(caller: JobCaller) -> bytes:
    """A name for the socket of one job; no two are alike."""
    words = (caller.kind.value, caller.share, secrets.token_hex(_RANDOM_BYTES))
    return b"/".join([_PREFIX, *(word.encode("ascii") for word in words)])


def caller_of(name: object) -> JobCaller:
    """Read a name, distrusting it.

    Args:
        name: as `accept` gives it; bytes in the abstract namespace.

    Returns:
        `UNNAMED` for what is no such name.
    """
    parts = name.split(b"/") if isinstance(name, bytes) else []
    if len(parts) != _PARTS or parts[0] != _PREFIX or len(parts[2]) > _SHARE_CHARS:
        return UNNAMED
    try:
        return JobCaller(JobKind(parts[1].decode("ascii")), parts[2].decode("ascii"))
    except ValueError:
        return UNNAMED
