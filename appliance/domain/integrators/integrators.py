"""Integrators, their keys and domains, sessions of the frame, the console's users.

What services give and faces show. Differences from what was first agreed on:
`Sessions.note_seen` takes the integrator's code too (two integrators may have
one origin); the steps of a session after its exchange are `SessionSteps`; the TOTP
seed of an enrolment never comes back from the browser, so `Enrolment.complete`
takes a `Choice` without it; inviting is `Invitations`, apart from `Enrolment`,
because the console's role (`bootstrap.open_admin`) must never hold the pepper.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from appliance.domain.appearance.details import Logo
from appliance.domain.documents.inspected import CameDocument
from appliance.domain.ids import (
    IntegratorId,
    PersonId,
    RequestBatchId,
    RequestId,
    TaskId,
)
from appliance.domain.integrators.api_keys import FIRST_SCOPES, ApiKeyScope
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.vocab import (
    Environment,
    SignatureLevel,
    TimestampPolicy,
    VouchedBy,
)

SESSION_S: Final = 1800
"""Lifetime of a session token, in seconds, sharp (spec "Limits")."""
EVENT_PREFIX: Final = r"[a-z][a-z0-9-]{0,31}"
"""What the types of the frame's messages may begin with, before the dot."""
DELIVERY_LIMIT_BYTES: Final = 8_000_000
"""Largest signed PDF that is delivered inline, unless the integrator differs."""


class PageKind(StrEnum):
    """What a frame's page is served for."""

    LIVE = "live"
    EXPIRED = "expired"
    """Known and over: by time, or because its key was revoked."""
    UNKNOWN = "unknown"


class SessionState(StrEnum):
    """Where a session stands; that its time is over is told by `until`."""

    OPEN = "open"
    COMPLETED = "completed"
    """Signed: what was told to the host is stored and can be told again."""
    CANCELLED = "cancelled"
    """The signer or the host ended it without a signature."""
    ENDED = "ended"
    """Its API key was revoked before it was completed."""


class SessionFault(StrEnum):
    """What is to go wrong in a session, for the tests of a host; in PREPROD alone."""

    EXPIRED = "token_vencido"
    """Its token is over when it is first shown."""
    BUSY = "hsm_ocupado"
    """No HSM takes the signature."""
    SLOW = "tsa_lenta"
    """The signature takes as long as a slow TSA makes it."""
    REJECTION = "rechazo"
    """The signer rejects, in place of signing."""


class FlagReason(StrEnum):
    """How an API key was seen where it must never be."""

    URL = "url"
    BROWSER = "browser"


@dataclass(frozen=True, slots=True)
class IntegratorView:
    """An integrator."""

    id: IntegratorId
    code: str
    name: str
    delivery_limit_bytes: int
    """Largest signed PDF that its frames deliver inline, in bytes."""
    may_vouch: bool
    """Whether its backend may vouch for who somebody is."""
    created: datetime
    level: SignatureLevel | None = None
    """Of its signatures; None: the installation's, as the next three."""
    timestamp_policy: TimestampPolicy | None = None
    digest: DigestAlgorithm | None = None
    tsa: tuple[str, ...] | None = None
    """Names of the timestamping authorities to ask, in order."""
    event_prefix: str | None = None
    """What the types of its frames' messages begin with; None: as the setting says."""
    disabled: datetime | None = None
    """Since when none of its keys opens a session; None while they do."""
    mails_signers: bool = False
    """Whether the installation writes to those whom it asks to sign."""
    reminder_days: tuple[int, ...] = ()
    """After how many days each of them is reminded, in order."""
    sign_url: str | None = None
    """Where they sign, as `is_sign_url` takes it; None: its name says where."""


@dataclass(frozen=True, slots=True)
class KeyView:
    """An API key, without its secret."""

    id: str
    """Twelve letters and digits; stands in the key too."""
    label: str
    hint: str
    """The first and the last four characters, `rbk_test_…wxyz`."""
    created: datetime
    expires: datetime | None
    last_used: datetime | None
    revoked: datetime | None
    flagged: datetime | None
    """When it was last seen where it must never be."""
    ends: datetime | None
    """Rotated: until when it still works beside its successor."""
    flag_reason: FlagReason | None = None
    scopes: tuple[ApiKeyScope, ...] = FIRST_SCOPES
    networks: tuple[str, ...] = ()
    """From where it may be used, in CIDR form; empty: from anywhere."""

    def usable(self, at: datetime) -> bool:
        """Whether it works at a time."""
        return (
            self.revoked is None
            and (self.expires is None or at < self.expires)
            and (self.ends is None or at < self.ends)
        )


@dataclass(frozen=True, slots=True)
class ExpiringKey:
    """An API key whose time ends."""

    id: str
    integrator: IntegratorId
    created: datetime
    expires: datetime
    told: int | None
    """Days before its end of which it was told last."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new API key and, this once, the key itself."""

    key: KeyView
    secret: str = field(repr=False)
    """The whole key, `rbk_test_…`."""


@dataclass(frozen=True, slots=True)
class IntegratorCaller:
    """An integrator whose backend asks, by one of its keys."""

    integrator: IntegratorView
    key: str
    """Id of the API key, twelve letters and digits."""

    @property
    def actor(self) -> str:
        """How the audit names it."""
        return f"integrator:{self.integrator.id}"


@dataclass(frozen=True, slots=True)
class DomainView:
    """An origin whose pages may show the frame."""

    id: str
    origin: str
    seen: datetime | None
    """When a page of it last started a session, or None for never."""


@dataclass(frozen=True, slots=True)
class BlockedView:
    """An origin whose page tried to show the frame and was not listed."""

    origin: str
    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, slots=True)
class NewSession:
    """A new session's token, shown once."""

    token: str = field(repr=False)
    valid_until: datetime
    public_id: str = ""
    """Stands in addresses and logs, opens nothing."""


@dataclass(frozen=True, slots=True)
class FramePage:
    """What the frame's page needs before anybody says anything."""

    kind: PageKind
    session_public_id: str
    """Stands in addresses and logs, opens nothing; empty when unknown."""
    integrator_code: str
    integrator_name: str
    origins: tuple[str, ...]
    """For `frame-ancestors`; empty: `'none'` (unknown sessions aside)."""
    environment: Environment
    event_prefix: str
    logo: Logo | None = None
    """The integrator's, or else the installation's."""


@dataclass(frozen=True, slots=True)
class EmbedSession:
    """A session of the frame."""

    id: str
    public_id: str
    integrator: IntegratorView
    issued: datetime
    until: datetime
    nonce: str | None
    idem_key: str | None
    person: PersonId | None
    """Whom the signer says to be, and was matched; proven once `otp_at` is set."""
    otp_at: datetime | None
    document: CameDocument | None
    document_name: str | None
    request: RequestId | None
    completed: dict[str, object] | None
    """Payload of the completed event, the same whenever it is told."""
    state: SessionState
    init_sha256: str | None = None
    """Fingerprint of the init that holds."""
    host_document: bool = False
    """Whether the host has sent a document, be it one that was refused: then the
    signer brings none."""
    successor: str | None = None
    """Id of the session that goes on in its place, after a renewal."""
    wanted: RequestId | None = None
    """The request that its integrator's backend opened it for: its signer is that
    of the request, and no document comes."""
    batch: RequestBatchId | None = None
    """The batch that it was opened for in place of one request: `request` is the one of
    it that is read now."""
    fault: SessionFault | None = None
    """What goes wrong in it, as its integrator's backend wants."""

    @property
    def is_for_something(self) -> bool:
        """Whether its integrator's backend said what is signed in it."""
        return self.wanted is not None or self.batch is not None


@dataclass(frozen=True, slots=True)
class Bearer:
    """What the frame's page shows from now on instead of the token."""

    bearer: str = field(repr=False)
    session: EmbedSession


@dataclass(frozen=True, slots=True)
class Invitation:
    """A person who may enrol, and the link by which, shown once."""

    person: PersonId
    code: str = field(repr=False)
    url: str = field(repr=False)
    until: datetime


@dataclass(frozen=True, slots=True)
class EnrolmentView:
    """What the page behind an enrolment link shows."""

    person: PersonId
    cuil: str
    name: str
    email: str = field(repr=False)
    until: datetime
    totp_uri: str = field(repr=False)
    """`otpauth://…`, as a QR."""
    totp_secret: str = field(repr=False)
    """The same seed in base32, to be typed."""
    totp_issuer: str
    """Name under which authenticator apps show the seed, beside the e-mail address."""
    opening: str = field(repr=False)
    """What this seed is made of, besides what the server keeps: who shows it again
    gets the same seed, any other opening of the form another one."""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """A person who has secrets now, and the task that makes key and certificate."""

    person: PersonId
    task: TaskId
    vouched_by: VouchedBy
    revocation_pin: str = field(default="", repr=False)
    """A new one; empty where it was made before."""
    kept_pin: str = field(default="", repr=False)
    """The same, sealed for the browser that it is shown in (`KeptPins`)."""


@dataclass(frozen=True, slots=True)
class ConsoleUser:
    """Somebody who administers the installation."""

    id: str
    name: str
    created: datetime
    disabled: datetime | None = None
    """When they were shut out, or None while they may sign in."""

    @property
    def actor(self) -> str:
        """How the audit names them."""
        return f"console:{self.id}"


@dataclass(frozen=True, slots=True)
class ConsoleUserView:
    """An administrator in the list of them."""

    user: ConsoleUser
    last_login: datetime | None
    sessions: int
    """Of theirs that are open now."""


@dataclass(frozen=True, slots=True)
class FactorOffer:
    """A new TOTP seed of an administrator that counts once a code of it came."""

    totp_uri: str = field(repr=False)
    sealed: str = field(repr=False)
    """The seed for `take_factor`, opened by the console alone."""


@dataclass(frozen=True, slots=True)
class NewConsoleUser:
    """A new administrator and, this once, the TOTP enrolment."""

    user: ConsoleUser
    totp_uri: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A signed-in administrator."""

    user: ConsoleUser
    until: datetime
    csrf: str = field(repr=False)
    """What every form of this session carries."""
    proven: datetime | None = None
    """When a code was last given in it, at its opening or later."""


@dataclass(frozen=True, slots=True)
class NewConsoleSession:
    """A fresh sign-in: the cookie's value, shown once."""

    token: str = field(repr=False)
    session: ConsoleSession


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An API key and whose it is."""

    integrator: IntegratorView
    key: KeyView
    key_index: str = field(repr=False)
    """The HMAC of the whole key that it stands under."""


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
    wanted: RequestId | None = None
    """See `EmbedSession`."""
    batch: RequestBatchId | None = None
    """See `EmbedSession`."""
    fault: SessionFault | None = None
