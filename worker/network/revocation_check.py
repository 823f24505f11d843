"""What OCSP answers and CRLs from outside have in common.

Both come from strangers: nothing is believed before all of it was checked, by
`worker.network.ocsp` and `worker.network.crl`.

Source: RFC 5280, 6.3.3; RFC 6960, 3.2.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes

from appliance.domain.errors import ApplianceError

DRIFT: Final = timedelta(minutes=5)
"""How far another's clock may be ahead of ours."""
STRONG: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
"""Hashes that a signature must be over."""
STUMBLES: Final = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    OverflowError,
    UnsupportedAlgorithm,
    InvalidSignature,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    ApplianceError,
)
"""What pyca and our own rules raise on what is none, or not good."""


class BadStatusError(Exception):
    """An answer or list that must not be used; the text says why, for operators."""


@dataclass(frozen=True, slots=True)
class CheckedStatus:
    """What an answer or list says of one certificate."""

    is_revoked: bool
    this_update: datetime
    next_update: datetime
    """Until then it may be used again; now, where it names no time."""
    responder: bytes | None = field(default=None, repr=False)
    """Certificate of an OCSP responder that is not the CA itself, DER."""
    revoked_at: datetime | None = None
    reason: str = ""
    """CRLReason by its name in RFC 5280; empty: none is told."""

    @property
    def is_on_hold(self) -> bool:
        """Whether the CA may take its revocation back."""
        return self.reason == x509.ReasonFlags.certificate_hold.value


def refuse_unless(good: object, why: str) -> None:
    """Refuse something in which something is not so.

    Raises:
        BadStatusError: it is not.
    """
    if not good:
        raise BadStatusError(why)


def check_times(start: datetime, end: datetime | None, now: datetime) -> None:
    """Refuse what is of the future, or over.

    Raises:
        BadStatusError: it is.
    """
    refuse_unless(start <= now + DRIFT, "it is of the future")
    refuse_unless(end is None or end > now, "its nextUpdate is over")
