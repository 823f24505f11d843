"""The audit record: what a row says and how rows hang together.

One process start is one `writer`; its rows are numbered without a hole and each
carries the hash of the one before, so that a later Merkle log can seal them.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from appliance.domain.text.canonical_json import canonical_json
from appliance.domain.vocab import EventKind

GENESIS: Final = "0" * 64
"""`prev` of a writer's first row."""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """What happened, before it has its place in a writer's chain.

    `detail` holds plain JSON values: ids, digests, codes. Never a secret, and
    no name, address or tax number.
    """

    event: EventKind
    actor: str
    """`person:<id>`, `worker:<slot>`, `console:<id>`, `integrator:<id>`,
    `operator`, `system` or `anonymous`."""
    integrator: str | None = None
    request: int | None = None
    activation: str | None = None
    attempt: int | None = None
    detail: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An event in its place: row `n` of `writer`."""

    writer: str
    n: int
    prev: str
    hash: str
    at: datetime
    event: AuditEvent


def chain(writer: str, n: int, prev: str, at: datetime, event: AuditEvent) -> AuditRow:
    """Give an event its place and hash.

    Args:
        writer: id of the process start.
        n: 1 for the writer's first row, then one more each.
        prev: hash of row n - 1, or `GENESIS`.
        at: when, aware.
        event: what.

    Returns:
        The row; `hash` is SHA-256 (hex) of the RFC 8785 JSON of all else.
    """
    fields = {
        "writer": writer,
        "n": n,
        "prev": prev,
        "at": at.astimezone(UTC).isoformat(timespec="microseconds"),
        "event": event.event.value,
        "actor": event.actor,
        "integrator": event.integrator,
        "request": event.request,
        "activation": event.activation,
        "attempt": event.attempt,
        "detail": event.detail,
    }
    digest = hashlib.sha256(canonical_json(fields)).hexdigest()
    return AuditRow(writer, n, prev, digest, at, event)


def first_break(rows: list[AuditRow]) -> int | None:
    """Find the first row of one writer that does not hang on the one before.

    Args:
        rows: all rows of one writer, by `n`.

    Returns:
        Its `n` as stored (or the `n` that is missing), or None if all hang.
    """
    prev = GENESIS
    for expected, row in enumerate(rows, start=1):
        again = chain(row.writer, expected, prev, row.at, row.event)
        if row.n != expected:
            return expected
        if row.prev != prev or row.hash != again.hash:
            return row.n
        prev = row.hash
    return None
