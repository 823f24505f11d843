"""What is asked of a timestamping authority, in plain values (RFC 3161)."""

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Final

from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.pki.certificates import ARC

TIMESTAMP_POLICY: Final = f"{ARC}.2.1"
"""Policy under which the internal authority stamps; never changed or reused."""

_NONCE_BITS: Final = 63
"""One less than a 64-bit integer's: some authorities read no longer one."""


def new_nonce() -> int:
    """Make the nonce of a question."""
    return secrets.randbits(_NONCE_BITS)


@dataclass(frozen=True, slots=True)
class TimestampQuestion:
    """What shall be stamped, and what the answer must have. Source: RFC 3161, 2.4.1."""

    imprint: bytes
    """Digest of what is stamped, as long as its algorithm says: who reads a question
    of others refuses any other."""
    digest: DigestAlgorithm
    nonce: int | None = None
    """What the token has to repeat."""
    certificates: bool = True
    """Whether the token carries the authority's certificates."""
    null_parameters: bool = False
    """Whether the digest's AlgorithmIdentifier has NULL parameters: the token's
    imprint is that of the question, to the octet."""


@dataclass(frozen=True, slots=True)
class IssuedTimestamp:
    """A token and what stands in it."""

    token: bytes = field(repr=False)
    """TimeStampToken, a CMS ContentInfo in DER."""
    serial: int
    """Unique for the authority; positive, up to 128 bits."""
    time: datetime
    """Its genTime: aware, in UTC, in whole milliseconds."""


class TimestampRefusal(IntEnum):
    """Why a question is rejected: a PKIFailureInfo. Source: RFC 3161, 2.4.2."""

    BAD_ALGORITHM = 0
    """A digest that is not taken, or no longer."""
    BAD_REQUEST = 2
    """Another version, or parameters of an algorithm that has none."""
    BAD_DATA_FORMAT = 5
    """Not a TimeStampReq, or a digest of another length."""
    UNACCEPTED_POLICY = 15
    UNACCEPTED_EXTENSION = 16


@dataclass(frozen=True, slots=True)
class RevokedTsa:
    """A certificate that is known to be revoked, of one who may make timestamps."""

    certificate: str
    """SHA-256 of its DER, hex."""
    at: datetime
    reason: str
    """CRLReason by its name in RFC 5280; empty: none is told."""
