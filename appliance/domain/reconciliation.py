"""Findings of the comparison of record and audit (`rubrica audit reconcile`)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Check(StrEnum):
    """Kind of a finding; stored and sent."""

    CERTIFIED_UNASKED = "certified_unasked"
    """A certificate was issued or renewed without a task that somebody asked for."""
    USED_WITHOUT_CONSENT = "used_without_consent"
    """A key was used, or is to be, for an activation that no front recorded."""
    USED_TWICE = "used_twice"
    """A key was used more than once for one document of an activation."""
    ENROLLED_UNINVITED = "enrolled_uninvited"
    """A person got a key without an invitation, vouching or replaced password."""
    USED_AFTER_REVOCATION = "used_after_revocation"
    """A key was used, or certified again, after its revocation."""
    CERTIFICATE_UNKNOWN = "certificate_unknown"
    """A credential signs with a certificate that was neither issued nor imported for
    its key."""
    CREDENTIAL_UNRECORDED = "credential_unrecorded"
    """A credential of which the audit knows nothing."""
    SIGNED_WITHOUT_KEY = "signed_without_key"
    """A request is signed, and its signer's key was never used for it."""
    SIGNATURE_UNRECORDED = "signature_unrecorded"
    """A signature stands in the record of which the audit knows nothing."""
    VERSION_UNRECORDED = "version_unrecorded"
    """A version of a signed document of which the audit knows nothing."""
    WRONG_WRITER = "wrong_writer"
    """A process recorded an event that is another role's."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that no honest history has."""

    check: Check
    reason: str
    """English words for people."""
    at: datetime | None = None
    """When it happened; None: the record says no time."""
    request: int | None = None
    person: str | None = None
    credential: str | None = None
    activation: str | None = None
    serial: str | None = None
    """Of a certificate."""
    writer: str | None = None
    """Process start whose row of the audit it is about."""
    n: int | None = None
    """Number of that row."""
