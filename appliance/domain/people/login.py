"""Sign-in secrets and attempts, token keys and download links."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from appliance.domain.ids import PersonId


class AttemptKind(StrEnum):
    """What was tried."""

    PASSWORD = "password"  # noqa: S105 (a word)
    CODE = "code"
    CLAIM = "claim"
    """Who somebody in a frame says to be."""
    REVOCATION = "revocation"
    """A revocation PIN."""
    FRAME_CODE = "frame-code"
    """A code in a frame."""
    CONSOLE_PASSWORD = "console-password"  # noqa: S105 (a word)
    CONSOLE_CODE = "console-code"
    CEILING = "ceiling"
    """No try: a ceiling of an account that was reached; `scope` says of which kind."""


class AttemptOutcome(StrEnum):
    """How it ended."""

    RUNNING = "running"
    """Not known yet, or the process died meanwhile."""
    RIGHT = "right"
    """The password was right; its login token waits for a code."""
    WRONG = "wrong"
    DONE = "done"
    """The code was right (the row of the code and that of its password)."""


@dataclass(frozen=True, slots=True)
class LoginSecret:
    """What proves a person at sign-in."""

    phc: str = field(repr=False)
    """Argon2id hash of the login password."""
    totp_sealed: bytes = field(repr=False)
    last_step: int
    """Number of the last TOTP step whose code was used."""


@dataclass(frozen=True, slots=True)
class NewAttempt:
    """One try, recorded before it is known how it ends."""

    id: str
    at: datetime
    address: str
    """Where it came from, as `client_address.client_address` gives it."""
    account_index: str
    """HMAC of the person's id, or of what was typed."""
    kind: AttemptKind
    person: PersonId | None
    scope: str = ""
    """Within the account: the integrator's id of a code in a frame."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Which tries are counted together: those that have all that is set here."""

    kind: AttemptKind
    network: str | None = None
    """An address, or the /64, /56 or /48 that it came from."""
    account_index: str | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class WrongTries:
    """Wrong tries of late, since the last one that proved who it was."""

    count: int
    last: datetime | None


@dataclass(frozen=True, slots=True)
class CeilingReached:
    """An account at which there were too many wrong tries."""

    account_index: str | None
    """None for a person's, who may have several."""
    person: PersonId | None
    """None for an administrator's."""
    last: datetime


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A right password that waits for its code."""

    attempt: str
    person: PersonId


@dataclass(frozen=True, slots=True)
class JwtKeyRow:
    """One key pair that signs tokens."""

    kid: str
    private_sealed: bytes = field(repr=False)
    public: dict[str, object]
    """As a JWK."""
    valid_from: datetime
    """From when it signs."""
    valid_until: datetime
    """Until when its tokens are accepted."""
