"""The frame's states: when each is entered, what it accepts, where it leads.

The page obeys this table (it is part of its generated module), and the server
refuses by itself whatever the table forbids.

Source: spec "States and transitions"; research "Iframe: state machine".
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where the frame stands."""

    BOOT = "boot"
    READY = "ready"
    BLOCKED = "blocked"
    CONNECTED = "connected"
    LOADING = "loading"
    REVIEWING = "reviewing"
    AUTHORISING = "authorising"
    SUBMITTING = "submitting"
    RECONCILING = "reconciling"
    SIGNED = "signed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class StateRow:
    """One row of the table."""

    state: State
    entered: str
    """When."""
    accepts: tuple[str, ...]
    """Messages of the host that do something here; the rest is answered by a rule
    of docs/frame.md or ignored."""
    emits: tuple[str, ...]
    leads: tuple[State, ...]


_S = State
TABLE: Final = (
    StateRow(
        _S.BOOT,
        "the page is parsed; its first script strips the token and queues messages",
        ("init",),
        (),
        (_S.READY, _S.BLOCKED),
    ),
    StateRow(
        _S.READY,
        "always, once the page has loaded",
        ("init",),
        ("ready", "cancelled"),
        (_S.CONNECTED, _S.BLOCKED, _S.CANCELLED),
    ),
    StateRow(
        _S.BLOCKED,
        "the session is over, or was opened elsewhere",
        ("init", "session.renew"),
        ("ready", "error"),
        (_S.CONNECTED,),
    ),
    StateRow(
        _S.CONNECTED,
        "init is valid",
        ("init", "load.file", "session.renew", "cancel"),
        ("handshake.ack",),
        (
            _S.LOADING,
            _S.AUTHORISING,
            _S.SIGNED,
            _S.BLOCKED,
            _S.CANCELLED,
            _S.REJECTED,
        ),
    ),
    StateRow(
        _S.LOADING,
        "a document is being taken in",
        ("init", "load.file", "session.renew", "cancel"),
        ("document.loaded", "error"),
        (
            _S.LOADING,
            _S.REVIEWING,
            _S.CONNECTED,
            _S.AUTHORISING,
            _S.SIGNED,
            _S.BLOCKED,
            _S.CANCELLED,
            _S.REJECTED,
        ),
    ),
    StateRow(
        _S.REVIEWING,
        "the first page is on the screen",
        ("init", "load.file", "session.renew", "cancel"),
        ("document.loaded",),
        (
            _S.LOADING,
            _S.AUTHORISING,
            _S.CONNECTED,
            _S.SIGNED,
            _S.BLOCKED,
            _S.CANCELLED,
            _S.REJECTED,
        ),
    ),
    StateRow(
        _S.AUTHORISING,
        "the code was right: the request is made, its document is fixed",
        ("init", "session.renew", "cancel"),
        ("error",),
        (
            _S.LOADING,
            _S.REVIEWING,
            _S.CONNECTED,
            _S.SUBMITTING,
            _S.SIGNED,
            _S.FAILED,
            _S.BLOCKED,
            _S.CANCELLED,
            _S.REJECTED,
        ),
    ),
    StateRow(
        _S.SUBMITTING,
        "the signing password was sent",
        ("init", "session.renew"),
        (),
        (_S.SIGNED, _S.FAILED, _S.AUTHORISING, _S.RECONCILING, _S.BLOCKED),
    ),
    StateRow(
        _S.RECONCILING,
        "the network was lost, or the work outlasts the call: the outcome is asked for",
        ("init", "session.renew"),
        (),
        (_S.SIGNED, _S.FAILED, _S.AUTHORISING, _S.BLOCKED),
    ),
    StateRow(
        _S.SIGNED,
        "the result is stored",
        ("init",),
        ("signature.completed", "batch.completed"),
        (_S.CONNECTED,),
    ),
    StateRow(
        _S.FAILED,
        "the server says that this document cannot be signed",
        ("init",),
        ("error", "batch.completed"),
        (_S.CONNECTED,),
    ),
    StateRow(
        _S.CANCELLED,
        "the signer or the host left; what waits for a signature goes on waiting",
        ("init",),
        ("cancelled",),
        (_S.CONNECTED,),
    ),
    StateRow(
        _S.REJECTED,
        "the signer refused to sign, for good",
        ("init",),
        ("rejected",),
        (_S.CONNECTED,),
    ),
)
"""Every state, once, in the order of the flow."""
