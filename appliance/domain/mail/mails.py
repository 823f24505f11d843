"""Mails to people: what they tell of, and how far they got."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from appliance.domain.audit.record import AuditEvent
from appliance.domain.ids import IntegratorId, PersonId, RequestId, new_id
from appliance.domain.vocab import EventKind

PERSON: Final = "person:"
"""What the audit's name of a person begins with."""


class MailKind(StrEnum):
    """What a mail tells."""

    INVITATION = "invitation"
    REQUEST = "request"
    """A document waits for their signature."""
    REMINDER = "reminder"
    SIGNED = "signed"
    """All have signed; with the document, where it is small enough. Of a batch: how
    many documents are signed, and which are not."""
    CANCELLED = "cancelled"
    """What they were asked to sign need not be signed any more."""
    EXPIRED = "expired"
    """The time in which they were asked to sign is over."""
    ENROLLED = "enrolled"
    CODES_SET = "codes_set"
    """New codes for sign-in."""
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 (a word, no secret)
    PASSWORD_LOCKED = "password_locked"  # noqa: S105 (a word, no secret)
    SIGNED_IN_ELSEWHERE = "signed_in_elsewhere"
    """Somebody signed in as them from an address that was not known."""
    CERTIFIED = "certified"
    """A certificate was issued, or renewed."""
    REVOKED = "revoked"
    HELP_ASKED = "help_asked"
    """Somebody asked for help in their name; with a link that withdraws it."""
    TEST = "test"
    """An operator tries the server."""


class MailState(StrEnum):
    """How far a mail got."""

    PENDING = "pending"
    SENT = "sent"
    """The server took it; what becomes of it then is not known here."""
    REFUSED = "refused"
    """The server said that it never will."""
    GIVEN_UP = "given_up"
    """It could not be sent for days."""
    WITHDRAWN = "withdrawn"
    """What it was to tell is over, or mail is off."""
    CAUGHT = "caught"
    """It is to a test signer: kept to be read, and handed to no server."""


NOTICES: Final[Mapping[EventKind, MailKind]] = {
    EventKind.PERSON_ENROLLED: MailKind.ENROLLED,
    EventKind.PERSON_TOTP_SET: MailKind.CODES_SET,
    EventKind.SIGN_PASSWORD_CHANGED: MailKind.PASSWORD_CHANGED,
    EventKind.SIGN_PASSWORD_REPLACED: MailKind.PASSWORD_CHANGED,
    EventKind.SIGN_LOCKED: MailKind.PASSWORD_LOCKED,
    EventKind.LOGIN_ELSEWHERE: MailKind.SIGNED_IN_ELSEWHERE,
    EventKind.CREDENTIAL_ISSUED: MailKind.CERTIFIED,
    EventKind.CERTIFICATE_RENEWED: MailKind.CERTIFIED,
    EventKind.CERTIFICATE_IMPORTED: MailKind.CERTIFIED,
    EventKind.REVOCATION_ASKED: MailKind.REVOKED,
    EventKind.REVOCATION_FOUND: MailKind.REVOKED,
}
"""What of the audit is told to whom it happened, whoever did it."""


ASKS: Final = frozenset({MailKind.REQUEST, MailKind.REMINDER})
"""Mails that wait for a signature; over once nothing waits."""
OVER: Final = frozenset({MailKind.CANCELLED, MailKind.EXPIRED})
"""That what was asked for is over without a signature."""
AFTER_REQUEST: Final = OVER | {MailKind.REMINDER}
"""Mails that make no sense to who was not asked: they wait for the request's mail."""
DAYS: Final = "days"
"""Of `detail` of a reminder: how many after the request's mail was handed over."""
RECORDED: Final = "recorded"
"""Of `detail` of a reminder: that whoever asked for it left the audit's row."""


@dataclass(frozen=True, slots=True)
class NewMail:
    """A mail that is to be sent."""

    person: PersonId
    kind: MailKind
    due: datetime
    integrator: IntegratorId | None = None
    """On whose behalf; None: the installation's own."""
    request: RequestId | None = None
    detail: Mapping[str, object] = field(default_factory=dict)
    id: str = field(default_factory=new_id)
    link_sealed: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class MailView:
    """A mail as those see it who look after people and requests."""

    id: str
    person: PersonId
    request: RequestId | None
    kind: MailKind
    state: MailState
    tries: int
    answer: str
    """What the server said at last, without addresses; empty where it said nothing."""
    created: datetime
    due: datetime
    ended: datetime | None


@dataclass(frozen=True, slots=True)
class MailClaim:
    """A mail in hand."""

    id: str
    fence: int
    person: PersonId
    integrator: IntegratorId | None
    request: RequestId | None
    kind: MailKind
    detail: Mapping[str, object]
    link_sealed: bytes | None = field(repr=False)
    tries: int
    created: datetime
    is_notice: bool = False
    """True if the row is a security notice, which has a table of its own."""
    due: datetime | None = None
    """When it was to be sent, where that is asked for."""


def noticed_person(event: AuditEvent) -> str | None:
    """Whom an event of `NOTICES` happened to; None where it is nobody's."""
    person = event.detail.get("person")
    if person is None and event.actor.startswith(PERSON):
        person = event.actor.removeprefix(PERSON)
    return None if person is None else str(person)
