"""The trust store, and warnings of what comes to its end."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from appliance.domain.ids import PersonId


class AnchorPurpose(StrEnum):
    """What a root of the trust store is trusted for."""

    SIGNERS = "signers"
    """Chains of signers that an outside CA certified."""
    TIMESTAMPS = "timestamps"
    """Chains of timestamping authorities; never of a signer."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A root of an outside CA."""

    id: str
    certificate: bytes = field(repr=False)
    """DER."""
    sha256: str
    """Of the DER, hex."""
    purpose: AnchorPurpose
    not_after: datetime
    added: datetime


@dataclass(frozen=True, slots=True)
class AnchorView:
    """A root of the trust store, for people."""

    id: str
    """Empty for the installation's own root, which cannot be removed."""
    subject: str
    """All of the subject, RFC 4514."""
    name: str
    """Its CN, or all of the subject without one."""
    sha256: str
    sha1: str
    """Hex; some CAs publish this one alone."""
    algorithm: str
    """`RSA 4096`, `EC secp384r1`."""
    purpose: AnchorPurpose
    not_before: datetime
    not_after: datetime
    added: datetime | None
    certificate: bytes = field(repr=False)
    """DER."""


class ExpiringKind(StrEnum):
    """What comes to its end."""

    SIGNER = "signer"
    ANCHOR = "anchor"
    CA = "ca"
    """The internal root or issuing CA."""
    OCSP = "ocsp"
    TSA = "tsa"
    """The internal timestamping authority."""


EXPIRY_DAYS: Final = (90, 30, 7, 1)
"""Days before an end on which it is told, once each."""
SOON_DAYS: Final = 30
"""Days before its end from which the console counts a certificate as ending soon."""


def due_days(begins: datetime, ends: datetime, now: datetime) -> int | None:
    """The tightest warning of an end that is due now, in days; None for none.

    Twice the time of a warning must fit into the life, or it would be warned of from
    the first day on. What has ended is told once more, as 0.

    Args:
        begins: when the life begins, aware.
        ends: when it ends, aware.
        now: aware.
    """
    if now >= ends:
        return 0
    life, left = ends - begins, ends - now
    due = [
        days
        for days in EXPIRY_DAYS
        if left <= timedelta(days=days) and 2 * timedelta(days=days) <= life
    ]
    return min(due, default=None)


@dataclass(frozen=True, slots=True)
class Expiring:
    """Something that comes to its end, and whose it is."""

    kind: ExpiringKind
    id: str
    """Of the credential or anchor; the SHA-256 of a certificate of ours."""
    name: str
    """Whom or what the certificate names."""
    not_before: datetime
    not_after: datetime
    person: PersonId | None = None

    def due_days(self, now: datetime) -> int | None:
        """The tightest warning that is due now, in days; None for none.

        Args:
            now: aware.
        """
        return due_days(self.not_before, self.not_after, now)
