"""Identifiers, kept apart by type so that they are not mixed up."""

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
TaskId = NewType("TaskId", str)

MAX_REQUEST_ID = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8259, 6)."""


def new_id() -> str:
    """A fresh UUID v4 in its usual text form; names a row, guards nothing."""
    return str(uuid.uuid4())
