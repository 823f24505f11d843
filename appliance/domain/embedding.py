"""What the signing frame shows and takes: claims, places, and where a session is."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from appliance.domain.appearance.presets import Corner
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import Inspection, Repair
from appliance.domain.errors import ApplianceError, FieldInvalidError
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.integrators.integrators import EmbedSession
from appliance.domain.people.identity import typed_cuil
from appliance.domain.requests.backend_batch import BatchDocument, BatchStanding
from appliance.domain.requests.preset import SignaturePreset, effective
from appliance.domain.requests.request import RequestView
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import GivenParameters, SignParameters

_DNI = re.compile(r"[0-9]{7,8}", re.ASCII)
_DNI_DIGITS = 8


class EmbedSessionState(StrEnum):
    """Where a session of the frame stands, as its page is told."""

    OPEN = "open"
    """Document and signer are still to come."""
    AUTHORISED = "authorised"
    """The code was right and there is a request to be signed."""
    SIGNING = "signing"
    SIGNED = "signed"
    FAILED = "failed"
    """This document cannot be signed."""
    CANCELLED = "cancelled"
    """Somebody left; the request, if there is one, goes on waiting."""
    REJECTED = "rejected"
    """The signer refused to sign, for good."""


class LegalWord(StrEnum):
    """What a signature may be called, by the certificate's chain (design §6)."""

    DEMO = "demo"
    """Of a trial: without any legal validity."""
    ELECTRONIC = "electronic"
    """*Firma electrónica* (Ley 25.506, 5)."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who the host, or the signer, says the signer is; it proves nothing."""

    email: str = field(repr=False)
    dni: str | None = None
    """Eight digits."""
    cuil: str | None = None
    """Eleven digits."""


def make_claim(email: str, dni: str | None, cuil: str | None) -> Claim:
    """Read a claim.

    Args:
        email: as typed.
        dni: 7 or 8 digits, or None.
        cuil: with or without dashes, or None.

    Raises:
        FieldInvalidError: `dni` or `cuil` by form or check digit, or the two do
            not agree, or neither is there.

    Source: decisions "dni, cuil".
    """
    if not cuil and not dni:
        raise FieldInvalidError("cuil", "XX-XXXXXXXX-X")
    email, dni = email.strip(" "), dni and dni.strip(" ")
    digits = typed_cuil(cuil) if cuil else None
    if not dni:
        return Claim(email, None, digits)
    if not _DNI.fullmatch(dni):
        raise FieldInvalidError("dni", "8 digits")
    padded = dni.zfill(_DNI_DIGITS)
    if digits is not None and digits[2:10] != padded:
        raise FieldInvalidError("dni", "the digits of cuil")
    return Claim(email, padded, digits)


@dataclass(frozen=True, slots=True)
class EmbedSessionDocument:
    """The document of a session."""

    name: str
    sha256: str
    inspection: Inspection
    followed: bool = False
    """Whether others sign it after."""
    message: str | None = None
    """What whoever asks for the signature wrote to the signers."""
    preset: SignaturePreset | None = None
    """Look and place that whoever asked for the signature wants."""
    repair: Repair | None = None
    """Original and faults of a repaired copy; None for a document taken as it came."""

    @property
    def look(self) -> SignParameters:
        """The parameters of a signature whose signer chooses nothing."""
        return effective(GivenParameters(), self.preset)

    @property
    def terms(self) -> SignatureTerms:
        """Terms of such a signature."""
        return SignatureTerms.of(self.look, self.inspection)


@dataclass(frozen=True, slots=True)
class EmbedSessionSigner:
    """Who signs, once that is proven, and with what certificate."""

    name: str
    cuil: str
    """Eleven digits."""
    issuer: str
    """Common name of who certified them, or empty."""
    legal: LegalWord


@dataclass(frozen=True, slots=True)
class EmbedSessionSigned:
    """What the signer is told of the signature, besides the completed event."""

    file_name: str
    """To save it under."""
    at: datetime | None
    """When the key was used."""
    verify_url: str | None
    """Page of the signature, where its stamp has a code."""


@dataclass(frozen=True, slots=True)
class EmbedSessionView:
    """All that the page is told of its session."""

    session: EmbedSession
    state: EmbedSessionState
    seconds_left: int
    document: EmbedSessionDocument | None
    signer: EmbedSessionSigner | None
    reason: ApplianceError | None
    """Why it failed, or why the last attempt was undone."""
    completed: dict[str, object] | None
    """What the host is told of the signature, without the document's bytes."""
    signed: EmbedSessionSigned | None = None
    batch: BatchStanding | None = None
    """How the batch stands, in a session for one whose signer is proven."""
    withdrawn: bool = False
    """It is cancelled, and nobody left it here: the integrator withdrew the request,
    or its time ran out."""
    request: RequestView | None = None
    """The request that the document belongs to, once there is one."""


@dataclass(frozen=True, slots=True)
class PlaceChoice:
    """Where the signer wants the mark."""

    corner: Corner
    page: int
    """1-based."""
    field: str | None = None
    """Full name of the document's own field; then corner and page are unused."""
    x: float | None = None
    """Of a place of the signer's own, in points from the left of the page as seen, to
    the mark's top left; then the corner is unused. None together with `y`."""
    y: float | None = None
    preset: bool = False
    """Where the request's preset has it; then all else is unused."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the mark would lie for a choice of the signer."""

    params: SignParameters
    layout: StampLayout | None
    """None without a visible mark."""
    terms: SignatureTerms
    """Terms of the signature."""
    png: bytes | None = field(default=None, repr=False)
    """The mark as it will be drawn, on white; None where it cannot be drawn now."""


@dataclass(frozen=True, slots=True)
class SignOrder:
    """What the signer asks for with the signing password."""

    place: PlaceChoice
    seen: str
    """SHA-256 of the document that was on the screen, hex."""
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class BatchPage:
    """Documents of a batch, as its signer is shown the list."""

    documents: Sequence[BatchDocument]
    signed: Mapping[RequestId, EmbedSessionSigned]
    """Signatures of those documents that are signed."""
    message: str | None
    """To the signer, where all of the batch have the same."""


@dataclass(frozen=True, slots=True)
class BatchBegun:
    """A batch whose signing has begun."""

    view: EmbedSessionView
    refused: Mapping[RequestId, ApplianceError]
    """What of it is not signed, and why."""


@dataclass(frozen=True, slots=True)
class OpenedFrame:
    """A session that the page may use from now on."""

    bearer: str = field(repr=False)
    view: EmbedSessionView


@dataclass(frozen=True, slots=True)
class InitOrder:
    """An initial message, read."""

    page: str
    """Public id of the session whose page sent it."""
    nonce: str
    idem_key: str | None
    token: str = field(repr=False)
    claim: Claim
    sha256: str
    """Fingerprint of its content, the nonce apart."""
    brings_document: bool = False
    """Whether a document came with it; the page looks at that itself."""


@dataclass(frozen=True, slots=True)
class BroughtDocument:
    """A file that a session has brought, or the repaired copy of one."""

    session: str
    integrator: IntegratorId
    sha256: str
    size_bytes: int
