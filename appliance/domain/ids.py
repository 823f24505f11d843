"""Identifiers, kept apart by type so that they are not mixed up."""

import re
import time
import uuid
from typing import NewType

PersonId = NewType("PersonId", str)
IntegratorId = NewType("IntegratorId", str)
CredentialId = NewType("CredentialId", str)
DocumentId = NewType("DocumentId", str)
ProcessId = NewType("ProcessId", str)
RequestId = NewType("RequestId", int)
"""`solicitudId`: a positive integer below 2**53."""
ActivationId = NewType("ActivationId", str)
BatchId = NewType("BatchId", str)
RequestBatchId = NewType("RequestBatchId", str)
"""`loteId`: of what an integrator's backend asked one person to sign at once."""
TaskId = NewType("TaskId", str)
UpkeepWorkId = NewType("UpkeepWorkId", str)
"""Name of a document's upkeep among what workers are notified of."""
UploadId = NewType("UploadId", str)
"""`documentoId`: of what an integrator's backend uploaded."""

MAX_REQUEST_ID = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8259, 6)."""

UPKEEP = "upkeep:"
"""Prefix of an upkeep's name among the notifications to workers."""
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_LOW_48 = (1 << 48) - 1
_BELOW_VERSION = (1 << 76) - 1


def is_id(text: str) -> bool:
    """Tell whether a text has the form of an id that `new_id` makes.

    Args:
        text: of an address or a body.
    """
    return bool(_ID.fullmatch(text))


def upkeep_work(upkeep: str) -> UpkeepWorkId:
    """Name an upkeep for those who are notified.

    Args:
        upkeep: its id.
    """
    return UpkeepWorkId(f"{UPKEEP}{upkeep}")


def new_id() -> str:
    """A fresh UUID v7 in its usual text form; names a row, guards nothing.

    It begins with the time, in ms: new rows lie together at the end of an index, and
    cost the same however many came before. Those of a version 4 lie anywhere in it.

    Source: RFC 9562, 5.7.
    """
    at_ms = time.time_ns() // 1_000_000 & _LOW_48
    # Of a UUID v4 all but the time's place, its variant with it.
    rest = uuid.uuid4().int & _BELOW_VERSION
    return str(uuid.UUID(int=at_ms << 80 | 7 << 76 | rest))
