"""Sign-in secrets and attempts, token keys and download links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from appliance.domain.ids import PersonId, RequestId


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
    """Where it came from, as `appliance.web.app.client_address` gives it."""
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


class LoginRecords(Protocol):
    """Sign-in secrets and attempts."""

    async def secret(self, person: PersonId) -> LoginSecret | None:
        """What proves a person."""
        ...

    async def advance_step(self, person: PersonId, step: int) -> bool:
        """Mark a TOTP step as used; False if it or a later one was before.

        One conditional UPDATE: of any number of callers one gets True.
        """
        ...

    async def lock(self, *indexes: str) -> None:
        """Keep others from counting the same tries until this transaction ends."""
        ...

    async def nth_last(
        self, counted: Counted, nth: int, since: datetime, running_since: datetime
    ) -> datetime | None:
        """When the nth last try was that is wrong or still running.

        Args:
            counted: which ones.
            nth: 1 for the last one.
            since: none before that.
            running_since: no running one before that, for its process died.

        Returns:
            The time, or None where there are fewer.
        """
        ...

    async def wrong(
        self, counted: Counted, since: datetime, *, forgiving: bool
    ) -> WrongTries:
        """Wrong tries since then; `forgiving`: since the last completed one."""
        ...

    async def remember(self, known_index: str, at: datetime) -> None:
        """Remember where somebody has proven who they are."""
        ...

    async def is_known(self, known_indexes: Sequence[str], since: datetime) -> bool:
        """Whether they have since then."""
        ...

    async def drop(self, attempt: str) -> None:
        """Take a try back that was not looked at."""
        ...

    async def forget(
        self, account_indexes: Sequence[str], person: PersonId | None = None
    ) -> int:
        """Count the wrong tries on an account no more; how many there were.

        They go on to count for the addresses that they came from.
        """
        ...

    async def ceilings(
        self, since: datetime, accounts: Sequence[str], most: int
    ) -> list[CeilingReached]:
        """Accounts of somebody whose ceiling was reached since then, latest first.

        Args:
            since: when they are looked at from.
            accounts: indexes of accounts that are no person's.
            most: how many are told; a person is one, however many accounts.
        """
        ...

    async def last_ceiling(
        self, since: datetime, accounts: Sequence[str], person: PersonId | None = None
    ) -> datetime | None:
        """When one of these accounts, or of this person's, was last at its ceiling."""
        ...

    async def forget_known(self, before: datetime) -> int:
        """Forget where somebody was last proven before that; how many."""
        ...

    async def begin(self, attempt: NewAttempt) -> None:
        """Record a try, running."""
        ...

    async def end(self, attempt: str, outcome: AttemptOutcome) -> None:
        """Say how a try ended."""
        ...

    async def await_code(self, attempt: str, token_index: str, until: datetime) -> None:
        """The password was right: its login token waits for a code."""
        ...

    async def pending(
        self, indexes: Sequence[str], at: datetime
    ) -> PendingLogin | None:
        """The right password that a login token stands for, while it lives."""
        ...

    async def end_pending(self, person: PersonId) -> None:
        """End the login tokens of a person."""
        ...

    async def consume(self, attempt: str) -> bool:
        """End a login token; False if another call did."""
        ...

    async def sweep(self, before: datetime) -> int:
        """Forget attempts older than that; how many there were."""
        ...


class JwtKeyRecords(Protocol):
    """Keys that sign tokens."""

    async def add(self, key: JwtKeyRow) -> None:
        """Record a key pair."""
        ...

    async def valid(self, at: datetime) -> list[JwtKeyRow]:
        """Keys whose tokens are accepted at a time or will be, oldest first."""
        ...

    async def lock(self) -> None:
        """Keep other processes from adding a key until this transaction ends."""
        ...


class LinkRecords(Protocol):
    """Download links."""

    async def add(self, links: Mapping[str, RequestId], until: datetime) -> None:
        """Record links, one or more: the HMAC of each secret and its request."""
        ...

    async def opens(
        self, indexes: Sequence[str], request: RequestId, at: datetime
    ) -> bool:
        """Whether a link leads to a request's document at a time."""
        ...

    async def sweep(self, before: datetime) -> int:
        """Forget links that ended before that; how many there were."""
        ...
