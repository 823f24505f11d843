"""Integrators with their keys and domains, and sessions of the frame."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from appliance.domain.ids import DocumentId, IntegratorId, PersonId, RequestId
from appliance.domain.integrators.integrators import (
    BlockedView,
    DomainView,
    EmbedSession,
    FlagReason,
    IntegratorView,
    KeyView,
)


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An API key and whose it is."""

    integrator: IntegratorView
    key: KeyView


@dataclass(frozen=True, slots=True)
class DomainRow:
    """A registered origin and whose it is."""

    integrator: IntegratorView
    domain: DomainView


@dataclass(frozen=True, slots=True)
class NewSessionRow:
    """A session to be recorded."""

    id: str
    public_id: str
    token_index: str = field(repr=False)
    integrator: IntegratorId
    api_key: str
    issued: datetime
    until: datetime


class IntegratorRecords(Protocol):
    """Integrators, their API keys, and origins allowed and blocked."""

    async def all(self) -> list[IntegratorView]:
        """Every integrator, by code."""
        ...

    async def get(self, code: str) -> IntegratorView | None:
        """An integrator by code."""
        ...

    async def add(self, new: IntegratorView) -> None:
        """Record an integrator.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a code in use.
        """
        ...

    async def change(self, changed: IntegratorView) -> None:
        """Set name, delivery limit and the right to vouch."""
        ...

    async def keys(self, integrator: IntegratorId) -> list[KeyView]:
        """An integrator's API keys, newest first."""
        ...

    async def key(self, key_id: str, *, lock: bool = False) -> KeyRow | None:
        """An API key by id; `lock` keeps others from changing it."""
        ...

    async def lock_keys(self, whose: IntegratorId) -> None:
        """Let no session of an integrator be opened until the commit."""
        ...

    async def key_by_index(self, indexes: Sequence[str]) -> KeyRow | None:
        """An API key by the HMAC of its text."""
        ...

    async def add_key(
        self, integrator: IntegratorId, key: KeyView, key_index: str
    ) -> None:
        """Record an API key by the HMAC of its text."""
        ...

    async def end_key(self, key_id: str, ends: datetime) -> None:
        """Let a rotated key work until then and no longer."""
        ...

    async def revoke_key(self, key_id: str, at: datetime) -> bool:
        """Revoke a key; False if it was."""
        ...

    async def used_key(self, key_id: str, key_index: str, at: datetime) -> None:
        """Say that a key opened a session, and by what it is found from now on."""
        ...

    async def flag_key(self, key_id: str, reason: FlagReason, at: datetime) -> None:
        """Say that a key was seen where it must never be."""
        ...

    async def domains(self, integrator: IntegratorId) -> list[DomainView]:
        """Origins whose pages may show the frame, in order."""
        ...

    async def domain(self, domain_id: str) -> DomainRow | None:
        """A registered origin by id."""
        ...

    async def add_domain(
        self, integrator: IntegratorId, new: DomainView, at: datetime
    ) -> None:
        """Register an origin; it is no longer listed as blocked.

        Raises:
            ApplianceError: `ALREADY_EXISTS`.
        """
        ...

    async def remove_domain(self, domain_id: str) -> bool:
        """Take an origin back; False if it was gone."""
        ...

    async def seen_domain(
        self, integrator: IntegratorId, origin: str, at: datetime
    ) -> None:
        """Say that a page of a registered origin started a session."""
        ...

    async def blocked(self, integrator: IntegratorId) -> list[BlockedView]:
        """Origins that tried and were not listed, last seen first."""
        ...

    async def note_blocked(
        self, integrator: IntegratorId, origin: str, at: datetime, keep: int
    ) -> None:
        """Count a try of an origin that is not listed; keep the latest `keep`."""
        ...


class SessionRecords(Protocol):
    """Sessions of the frame.

    Changes are conditional: each gives False, and changes nothing, where the
    session is over or has gone on already.
    """

    async def add(self, new: NewSessionRow) -> None:
        """Record a session."""
        ...

    async def get(self, session: str, *, lock: bool = False) -> EmbedSession | None:
        """A session by id; `lock` keeps others from changing it."""
        ...

    async def by_token(self, indexes: Sequence[str]) -> EmbedSession | None:
        """A session by the HMAC of its token."""
        ...

    async def by_public_id(self, public_id: str) -> EmbedSession | None:
        """A session by the id that opens nothing."""
        ...

    async def by_bearer(self, indexes: Sequence[str]) -> EmbedSession | None:
        """A session by the HMAC of the bearer that holds now."""
        ...

    async def exchange(self, session: str, bearer_index: str, at: datetime) -> bool:
        """Set the bearer that holds from now on."""
        ...

    async def init(
        self,
        session: str,
        nonce: str,
        idem_key: str | None,
        init_sha256: str,
        at: datetime,
    ) -> bool:
        """Take an init, until the signer has proven who they are.

        It forgets whom an earlier init named.
        """
        ...

    async def count_document(self, session: str, most: int, at: datetime) -> bool:
        """Count one more document that it brings; False when it may bring no more."""
        ...

    async def count_code(self, session: str, most: int, at: datetime) -> bool:
        """Count one more code that it tries; False when it may try no more."""
        ...

    async def by_host(self, session: str, at: datetime) -> bool:
        """Say that the host has sent a document, whatever becomes of it."""
        ...

    async def set_document(
        self, session: str, document: DocumentId, name: str, at: datetime
    ) -> bool:
        """Load or replace the document, until there is a request."""
        ...

    async def set_person(
        self, session: str, person: PersonId | None, at: datetime
    ) -> bool:
        """Say whom the signer was matched with, until that is proven."""
        ...

    async def set_otp(self, session: str, person: PersonId, at: datetime) -> bool:
        """The matched person gave a right code."""
        ...

    async def set_request(self, session: str, request: RequestId, at: datetime) -> bool:
        """Bind the request to be signed, once, after a right code."""
        ...

    async def complete(self, session: str, payload: dict[str, object]) -> bool:
        """Store what is told of the signature, once; also after the time."""
        ...

    async def of_idem_key(
        self, integrator: IntegratorId, idem_key: str
    ) -> EmbedSession | None:
        """The newest session that made a request under an idempotency key."""
        ...

    async def completed_of(self, request: RequestId) -> dict[str, object] | None:
        """What was told of a request's signature, by whichever session."""
        ...

    async def cancel(self, session: str, at: datetime) -> bool:
        """End a session without a signature."""
        ...

    async def carry_over(self, old: EmbedSession, new: str, at: datetime) -> bool:
        """Have a fresh session go on where another one stood; that one is over."""
        ...

    async def end_of_key(self, key_id: str, at: datetime) -> list[str]:
        """End the unfinished sessions of a key, and the requests they made.

        Returns:
            Their public ids.
        """
        ...

    async def end_of_integrator(self, whose: IntegratorId, at: datetime) -> list[str]:
        """End an integrator's unfinished sessions, and the requests they made."""
        ...

    async def end_of_person(self, person: PersonId, at: datetime) -> list[str]:
        """End a person's unfinished sessions, and the requests they made.

        Returns:
            Their public ids.
        """
        ...

    async def sweep(self, before: datetime) -> int:
        """Forget sessions that were over by then; how many there were."""
        ...
