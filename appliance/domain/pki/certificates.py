"""What the internal CA certified, and what it publishes of that.

Serial numbers are hexadecimal text, lower case, without leading zeros: too long
for a column of numbers, and what certificate viewers show.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from appliance.domain.errors import ApplianceError, ErrorCode, FieldInvalidError
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.vocab import (
    CertificateKind,
    CertificateState,
    CredentialState,
    RevocationReason,
    VouchedBy,
)

ARC: Final = "2.25.203864791873263086617336735730773149798"
"""Root of the project's object identifiers. Source: ITU-T X.667, 7 (a UUID)."""
POLICIES: Final = {
    VouchedBy.VOUCHED: f"{ARC}.1.1",
    VouchedBy.OFFICER: f"{ARC}.1.2",
    VouchedBy.EXTERNAL: f"{ARC}.1.3",
    VouchedBy.DEMO: f"{ARC}.1.4",
    VouchedBy.TEST: f"{ARC}.1.6",
}
"""How a person came to be certified, as a certificate policy, dotted; never changed or
reused. Source: decisions "who may be certified"."""
STATUS_KINDS: Final = frozenset({CertificateKind.SIGNER, CertificateKind.TSA})
"""Whose status OCSP tells; of its own responder nobody is to ask."""
TSA_REASONS: Final = (
    RevocationReason.SUPERSEDED,
    RevocationReason.CESSATION_OF_OPERATION,
    RevocationReason.AFFILIATION_CHANGED,
    RevocationReason.KEY_COMPROMISE,
)
"""Why a TSA's certificate is revoked: all but the last, told as such, leave earlier
timestamps valid. Source: RFC 3161, 4."""
_SERIAL: Final = re.compile(r"0*([0-9a-f]{1,40})", re.ASCII)


def serial_text(serial: int) -> str:
    """A serial number as it is kept and shown.

    Args:
        serial: positive, up to 20 octets (RFC 5280, 4.1.2.2).
    """
    return f"{serial:x}"


def parse_serial(text: str, field_name: str = "serial") -> str:
    """Read a serial number as people copy it from a certificate viewer.

    Args:
        text: hexadecimal, in any case, perhaps with colons or blanks.
        field_name: the name that an error gives to it.

    Raises:
        FieldInvalidError: it is none.
    """
    match = _SERIAL.fullmatch(re.sub(r"[:\s]", "", text).lower())
    if match is None:
        raise FieldInvalidError(field_name, "1 to 40 hexadecimal digits")
    return match[1]


@dataclass(frozen=True, slots=True)
class CertificateRecord:
    """A certificate that the internal CA issued."""

    serial: str
    """See `serial_text`; unique, being random."""
    kind: CertificateKind
    issuer: str
    """SHA-1 of the issuing CA's public key in hex: its key identifier."""
    credential: CredentialId | None
    """Whose key it certifies; none for the CA's own."""
    der: bytes = field(repr=False)
    not_before: datetime
    not_after: datetime
    state: CertificateState = CertificateState.VALID
    revoked_at: datetime | None = None
    """When its revocation was asked for, in whole seconds."""
    reason: RevocationReason | None = None


@dataclass(frozen=True, slots=True)
class CertificateView:
    """A signer's certificate as operators see it."""

    certificate: CertificateRecord
    person: PersonId
    name: str
    """The person's name and CUIL as recorded now."""
    cuil: str
    credential_state: CredentialState
    is_current: bool
    """The one that its credential signs with; a renewal left the others."""


@dataclass(frozen=True, slots=True)
class RevokedEntry:
    """A line of a CRL."""

    serial: str
    at: datetime
    """In whole seconds."""
    reason: RevocationReason


@dataclass(frozen=True, slots=True)
class Crl:
    """The newest CRL of one CA."""

    issuer: str
    """As in `CertificateRecord`."""
    number: int
    """Its CRLNumber: from 1, and one more with each (RFC 5280, 5.2.3)."""
    der: bytes = field(repr=False)
    this_update: datetime
    next_update: datetime


@dataclass(frozen=True, slots=True)
class OcspAnswer:
    """The newest OCSP answer of one certificate, signed and stored."""

    serial: str
    state: CertificateState
    """What it says: `valid` or `revoked`."""
    der: bytes = field(repr=False)
    this_update: datetime
    next_update: datetime


@dataclass(frozen=True, slots=True)
class CrlDraft:
    """A CRL but for its signature."""

    issuer: str
    number: int
    entries: tuple[RevokedEntry, ...]
    this_update: datetime
    """In whole seconds, as `next_update`."""
    next_update: datetime


@dataclass(frozen=True, slots=True)
class AnswerDraft:
    """An OCSP answer but for its signature."""

    serial: str
    state: CertificateState
    revoked_at: datetime | None
    reason: RevocationReason | None
    this_update: datetime
    """In whole seconds, as `next_update`."""
    next_update: datetime

    def signed(self, der: bytes) -> OcspAnswer:
        """The answer, once it is signed."""
        return OcspAnswer(
            self.serial, self.state, der, self.this_update, self.next_update
        )


@dataclass(frozen=True, slots=True)
class Revoking:
    """A revocation that is to be published: what has to be signed for it."""

    credential: CredentialId | None
    """None: certificates of the appliance's own."""
    crl: CrlDraft
    answers: tuple[AnswerDraft, ...]


def is_outside(certificate: bytes, issued: Collection[CertificateRecord]) -> bool:
    """Whether an outside CA issued a certificate: ours keeps what it issues.

    Args:
        certificate: DER, that a credential has.
        issued: what ours issued for that credential.
    """
    return bool(issued) and all(one.der != certificate for one in issued)


def revoked_entry(certificate: CertificateRecord) -> RevokedEntry:
    """The line of a CRL for a certificate that is being revoked, or is.

    Args:
        certificate: with time and reason.

    Raises:
        ApplianceError: `INTERNAL`: it lacks one of them.
    """
    if certificate.revoked_at is None or certificate.reason is None:
        raise ApplianceError(ErrorCode.INTERNAL)
    return RevokedEntry(certificate.serial, certificate.revoked_at, certificate.reason)


class StatusKind(StrEnum):
    """What is kept."""

    OCSP = "ocsp"
    """An OCSPResponse about one certificate."""
    OCSP_NOW = "ocsp_now"
    """The same, which names no nextUpdate: for what it was asked for alone."""
    CRL = "crl"
    """A CertificateList from one address."""
    REVOKED = "revoked"
    """A certificate that was found revoked; without a document."""


@dataclass(frozen=True, slots=True)
class KeptStatus:
    """An answer or list that was checked when it came."""

    kind: StatusKind
    subject: str
    """SHA-256, hex: of a certificate; of a CA's name and key, and an address."""
    der: bytes = field(repr=False)
    this_update: datetime
    next_update: datetime
    revoked_at: datetime | None = None
    """Of `REVOKED`: since when; None for what was found before this was kept."""
    reason: str = ""
    """Of `REVOKED`: CRLReason by its name in RFC 5280; empty: the CA told none."""
