"""Rows and findings of `rubrica audit reconcile`: record and audit compared."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from appliance.domain.vocab import EventKind, TaskKind

ROLES: Final = frozenset({"api", "embed", "admin", "signing", "chores"})
"""Roles that write in the audit besides operators' commands."""
_FRONTS: Final = frozenset({"api", "embed"})
_USER: Final = "rubrica-"
"""Before a role's name in that of its user of the database."""
_TASKS: Final = frozenset({TaskKind.ISSUE.value, TaskKind.RENEW.value})


class Check(StrEnum):
    """Kind of a finding; stored and sent."""

    CERTIFIED_UNASKED = "certified_unasked"
    """A certificate was issued or renewed without a task that somebody asked for."""
    USED_WITHOUT_CONSENT = "used_without_consent"
    """A key was used, or is to be, for an activation that no front recorded."""
    DOCUMENT_SWAPPED = "document_swapped"
    """A request was consented to for a document that was not its own."""
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


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the audit, with the name of the process that wrote it."""

    writer: str
    n: int
    role: str
    """`audit_writer.role`."""
    db_user: str | None
    """User of the database that began the chain; None on SQLite."""
    at: datetime
    kind: str
    """A value of `EventKind`, or of a later version's."""
    actor: str
    request: int | None
    activation: str | None
    attempt: int | None
    detail: Mapping[str, object]

    def text(self, member: str) -> str:
        """Return a member of the detail as text; empty if it is none."""
        value = self.detail.get(member)
        return value if isinstance(value, str) else ""

    @property
    def item(self) -> int:
        """Place of the document within its activation."""
        value = self.detail.get("item")
        return value if isinstance(value, int) else 0

    @property
    def roles(self) -> frozenset[str]:
        """Roles that wrote it, by the chain's name and by its user of the database.

        Empty for an operator's command.
        """
        user = (self.db_user or "").removeprefix(_USER)
        return frozenset({self.role.partition("/")[0], user}) & ROLES

    @property
    def is_of_a_front(self) -> bool:
        """True unless a role that takes no consent wrote it."""
        return self.roles <= _FRONTS

    def finding(self, check: Check, reason: str, **about: str | int | None) -> Finding:
        """Return a finding about this row."""
        named: dict[str, object] = {
            "request": self.request,
            "activation": self.activation,
            "person": self.text("person") or None,
            "credential": self.text("credential") or None,
            "serial": self.text("serial") or None,
            **about,
        }
        return Finding(
            check,
            reason,
            at=self.at,
            writer=self.writer,
            n=self.n,
            **named,  # type: ignore[arg-type]  # members by their names
        )


@dataclass(frozen=True, slots=True)
class Item:
    """A document of an activation, in the record."""

    activation: str
    seq: int
    credential: str
    """Of the activation."""
    is_keyed: bool
    """The record has its signature, or says that the key yielded it."""
    uses: int
    """Intents that the record calls completed."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a signed document, in the record."""

    number: int
    sha256: str
    made: datetime


@dataclass(slots=True)
class RequestHistory:
    """A request, by record and audit."""

    request: int
    is_signed: bool = False
    """The record calls it `firmada`."""
    has_shared_turn: bool = False
    """Others sign in any order with it, and each goes on with what another made."""
    items: list[Item] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    """By time."""

    def of(self, *kinds: EventKind) -> Iterator[Event]:
        """Yield the events of some kinds."""
        wanted = {kind.value for kind in kinds}
        return (event for event in self.events if event.kind in wanted)


@dataclass(frozen=True, slots=True)
class CredentialRow:
    """A credential, in the record."""

    id: str
    person: str
    spki_sha256: str
    certificate_sha256: str
    serial: str
    """Of that certificate; empty: it cannot be read."""
    certified_spki_sha256: str
    """Of the key that the certificate is on; empty: it cannot be read."""
    created: datetime


@dataclass(frozen=True, slots=True)
class CertificateRow:
    """A signer's certificate of the internal CA, in the record."""

    serial: str
    credential: str
    person: str
    sha256: str
    issued: datetime
    certified_spki_sha256: str
    """Of the key that it is on; empty: it cannot be read."""


@dataclass(slots=True)
class PersonHistory:
    """A person's keys and certificates, by record and audit."""

    person: str
    credentials: list[CredentialRow] = field(default_factory=list)
    certificates: list[CertificateRow] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    tasks: dict[str, Event] = field(default_factory=dict)
    """Events that recorded a task's order, by task."""

    def add(self, row: CredentialRow | CertificateRow | Event) -> None:
        """Add a row of record or audit."""
        if isinstance(row, CredentialRow):
            self.credentials.append(row)
        elif isinstance(row, CertificateRow):
            self.certificates.append(row)
        elif row.kind == EventKind.TASK_CREATED.value:
            if row.text("kind") in _TASKS:
                self.tasks.setdefault(row.text("task"), row)
        else:
            self.events.append(row)

    def of(self, *kinds: EventKind) -> list[Event]:
        """Return the events of some kinds, by time."""
        wanted = {kind.value for kind in kinds}
        found = [event for event in self.events if event.kind in wanted]
        return sorted(found, key=lambda event: (event.at, event.n))
