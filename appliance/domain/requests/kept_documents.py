"""Signed documents that the installation keeps, as they are verified again."""

from dataclasses import dataclass
from datetime import datetime

from appliance.domain.ids import IntegratorId, ProcessId, RequestId


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """Newest version of a request's signed document."""

    request: RequestId
    process: ProcessId
    integrator: IntegratorId
    version: int
    """From 1."""
    sha256: str
    """Hex."""
    signatures: int
    """Signatures that the requests of its process have put into it, its own among
    them."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Documents to verify; all that are kept, by default."""

    request: RequestId | None = None
    since: datetime | None = None
    """Earliest time at which the newest version was made, aware."""
    before: RequestId | None = None
    """Only requests with a lower number, to go on where a run ended."""
