"""What a front asks of the HSM."""

from enum import StrEnum


class TaskState(StrEnum):
    """An `HsmTask`."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class TaskKind(StrEnum):
    """What a front may ask of the HSM."""

    ISSUE = "issue"
    """Make a key pair for a person and have the CA certify it."""
    RENEW = "renew"
    """Certify a credential's key again."""
    REVOKE = "revoke"
    """Sign what says that a credential's certificates are revoked."""
    CSR = "csr"
    """Sign a certificate signing request with a credential's key."""
    PUBLISH = "publish"
    """Sign the CRLs and OCSP answers that are due."""
    TIMESTAMP = "timestamp"
    """Answer a question to the internal timestamping authority."""
