"""Signature requests: their states, legal moves, and what is told of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Never

from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.documents.inspected import Inspection, Repair
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    ProcessId,
    RequestBatchId,
    RequestId,
)
from appliance.domain.requests.levels import NO_WISHES, ProfileWishes
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import RequestState

_S = RequestState
LEGAL_MOVES: Final[dict[RequestState, frozenset[RequestState]]] = {
    _S.WAITING: frozenset({_S.PENDING, _S.CANCELLED, _S.EXPIRED}),
    _S.PENDING: frozenset(
        {_S.IN_PROGRESS, _S.REJECTED, _S.CANCELLED, _S.EXPIRED, _S.FAILED}
    ),
    _S.IN_PROGRESS: frozenset({_S.SIGNED, _S.PENDING, _S.FAILED}),
    _S.SIGNED: frozenset(),
    _S.REJECTED: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.EXPIRED: frozenset(),
    _S.FAILED: frozenset(),
}
"""Where a request may go from each state (decisions "estados")."""

UNFINISHED: Final = frozenset({state for state, then in LEGAL_MOVES.items() if then})
"""States that a request leaves again."""

SHOWN: Final = frozenset(
    {RequestState.PENDING, RequestState.IN_PROGRESS, RequestState.SIGNED}
)
"""States of a request that a session may be opened for: its outcome can be told too."""

WAITS_FOR_A_PERSON_S: Final = 60
"""When to ask again for a document that nobody has begun to sign."""

LISTED: Final = frozenset({_S.PENDING, _S.IN_PROGRESS})
"""What `GET /solicitudes` lists by itself (decisions "GET /solicitudes")."""


def check_move(now: RequestState, then: RequestState) -> None:
    """Refuse a move that is not legal.

    Raises:
        ApplianceError: `STATE`, with the present state.
    """
    if then not in LEGAL_MOVES[now]:
        raise ApplianceError(ErrorCode.STATE, params={"estado": now.value})


@dataclass(frozen=True, slots=True)
class RequestView:
    """One signature request as its signer may see it."""

    id: RequestId
    person: PersonId
    integrator: IntegratorId
    integrator_name: str
    document_name: str
    """File name of the document, ends in `.pdf`."""
    state: RequestState
    reason: str
    """Error code of the last failure, or the signer's words of a rejection."""
    sha256: str
    """Of the document to be signed, hex."""
    inspection: Inspection
    created: datetime
    expires: datetime | None
    params_sha256: str | None
    """Fingerprint of the command in progress or done."""
    activation: str | None
    """The activation in progress or done."""
    process: ProcessId
    """Whose requests are signed in turn."""
    seq: int
    """Its place among them, from 0."""
    origin: str = ""
    """Where it came from: `operador`, or `sesion` for a session of the frame."""
    repair: Repair | None = None
    """Where the document comes from, when it is a repaired copy."""
    turn: int | None = None
    """From 1; those of a process with the same one sign in any order. None: alone, in
    the order of `seq`."""
    shared: bool = False
    """Whether others have the same turn."""
    held: bool = False
    """Whether one of them is being signed, or has been and this one is not on what
    that made yet: until then it cannot be signed."""
    followed: bool = False
    """Whether somebody may sign after it."""
    wishes: ProfileWishes = NO_WISHES
    """How it is to be signed, where it or its integrator differ."""
    preset: SignaturePreset | None = None
    """Look and place that whoever asked for it wants."""
    batch: RequestBatchId | None = None
    """What it was asked for with, where it is one of many."""

    @property
    def turn_number(self) -> int:
        """Its turn, from 1: those of a lower one sign before it."""
        return self.seq + 1 if self.turn is None else self.turn

    @property
    def may_get_another_document(self) -> bool:
        """True if others sign its document too, beside its signer or before."""
        return self.shared or self.seq > 0


def refuse_unsigned(view: RequestView, now: datetime) -> Never:
    """Say why there is no signed document of a request: not yet, or never any more.

    Args:
        view: without a signed document.
        now: the time.

    Raises:
        ApplianceError: `NOT_SIGNED_YET` while it can still be signed, to be asked
            again soon where it is being signed, and seldom where it waits for a
            person; else `STATE`.
    """
    state = view.state
    waits = state in {RequestState.WAITING, RequestState.PENDING}
    if waits and view.expires is not None and view.expires <= now:
        state = RequestState.EXPIRED
    if state in UNFINISHED:
        extras: dict[str, object] = {}
        if waits:
            extras["retryAfter"] = WAITS_FOR_A_PERSON_S
        raise ApplianceError(ErrorCode.NOT_SIGNED_YET, extras=extras)
    raise ApplianceError(ErrorCode.STATE, params={"estado": state.value})


@dataclass(frozen=True, slots=True)
class SignedDocumentView:
    """A signed document that may be handed out."""

    request: RequestId
    integrator: IntegratorId
    file_name: str
    sha256: str
    size_bytes: int
    level: str
    """The level reached, `B-B` …"""
    version: int = 1
    """From 1; a later one begins with the bytes of those before it."""


@dataclass(frozen=True, slots=True)
class SignedVersion:
    """One version of a signed document: it stays, whatever is appended later."""

    request: RequestId
    number: int
    """From 1; each begins with the bytes of those before it."""
    level: str
    """The level reached, `B-B` …"""
    sha256: str
    """Hex."""
    size_bytes: int
    made: datetime


@dataclass(frozen=True, slots=True)
class SignCommand:
    """One call of firmar, parsed."""

    request: RequestId
    given: GivenParameters
    """By the caller; what it leaves open is the request's preset's to say."""
    password: bytes = field(repr=False)
    """UTF-8 of the NFC form, 8 to 1024 bytes; see `signing_password.normalize`."""
    if_match: str | None = None
    """SHA-256 (hex) that the caller saw, or None."""
    idempotency_key: str | None = None

    def sha256(self, fingerprints: Mapping[RequestId, str]) -> str:
        """Fingerprint that tells a repeated command from another one, hex.

        Args:
            fingerprints: of the parameters of requests with a preset.
        """
        return fingerprints.get(self.request) or self.given.params.sha256(self.request)


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signs, as the front established it."""

    person: PersonId
    actor: str
    """For the audit: `person:<id>`."""
    factors: tuple[str, ...]
    """`amr` values of the token."""
    authenticated_at: datetime


@dataclass(frozen=True, slots=True)
class SignOutcome:
    """What became of a call of firmar."""

    request: RequestId
    document: SignedDocumentView | None
    """The signed document, or None while the work goes on (202)."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Where a stamp would lie, and the page with it."""

    layout: StampLayout | None
    """None for an invisible signature."""
    page: int
    """The one that is drawn, 1-based."""
    terms: SignatureTerms
    """Terms of the signature."""
    png: bytes = field(repr=False)
