"""The console's users and their sessions, and enrolment links."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from appliance.domain.ids import PersonId
from appliance.domain.integrators.integrators import ConsoleUser, ConsoleUserView


@dataclass(frozen=True, slots=True)
class ConsoleSecret:
    """A user of the console and what proves them."""

    user: ConsoleUser
    phc: str = field(repr=False)
    totp_sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConsoleSessionRow:
    """A signed-in user of the console."""

    user: ConsoleUser
    created: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class EnrolmentRow:
    """A link by which a person enrols, once."""

    id: str
    person: PersonId
    totp_sealed: bytes = field(repr=False)
    until: datetime
    used: datetime | None


class ConsoleRecords(Protocol):
    """Users of the console and their sessions."""

    async def add_user(self, new: ConsoleSecret) -> None:
        """Record a user.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for a name in use.
        """
        ...

    async def users(self) -> list[ConsoleUser]:
        """Every user, by name."""
        ...

    async def by_name(self, name: str) -> ConsoleSecret | None:
        """A user by name."""
        ...

    async def by_id(self, user: str) -> ConsoleSecret | None:
        """A user by id."""
        ...

    async def views(self, at: datetime) -> list[ConsoleUserView]:
        """Every user, by name, with the sessions open at a time."""
        ...

    async def enabled(self) -> list[str]:
        """Ids of users who can sign in; none is shut out until the commit."""
        ...

    async def set_disabled(self, user: str, at: datetime | None) -> None:
        """Shut a user out from then on, or let them in again."""
        ...

    async def set_password(self, user: str, phc: str) -> None:
        """Set a password in the place of the one before."""
        ...

    async def set_totp(self, user: str, sealed: bytes, step: int) -> None:
        """Set a TOTP seed in the place of the one before.

        Args:
            user: whose.
            sealed: the seed.
            step: of the last code of it that is used up; 0 for none.
        """
        ...

    async def advance_step(self, secret: ConsoleSecret, step: int) -> bool:
        """Mark a TOTP step as used; False if it or a later one was before.

        False, too, for a user who was shut out or whose password or seed was
        changed since `secret` was read.
        """
        ...

    async def note_login(self, user: str, at: datetime) -> None:
        """Record when a user last signed in."""
        ...

    async def close_sessions(self, user: str, keep: Sequence[str] = ()) -> int:
        """End a user's sessions; how many there were.

        Args:
            user: whose.
            keep: HMACs of the token of a session that goes on.
        """
        ...

    async def open_session(
        self, token_index: str, user: str, at: datetime, until: datetime
    ) -> None:
        """Record a session by the HMAC of its token."""
        ...

    async def session(self, indexes: Sequence[str]) -> ConsoleSessionRow | None:
        """A session by the HMAC of its token, over or not."""
        ...

    async def prolong_session(self, indexes: Sequence[str], until: datetime) -> None:
        """Let a session that is being used go on until then."""
        ...

    async def close_session(self, indexes: Sequence[str]) -> bool:
        """End a session; False if it was gone."""
        ...

    async def sweep(self, before: datetime) -> int:
        """Forget sessions that were over by then; how many there were."""
        ...


class EnrolmentRecords(Protocol):
    """Enrolment links."""

    async def add(self, code_index: str, new: EnrolmentRow, at: datetime) -> None:
        """Record a link by the HMAC of its code; earlier ones of the person end."""
        ...

    async def by_code(self, indexes: Sequence[str]) -> EnrolmentRow | None:
        """A link by the HMAC of its code, over or not."""
        ...

    async def end_of_person(self, person: PersonId, at: datetime) -> int:
        """End the unused links of a person; how many."""
        ...

    async def use(self, enrolment: str, at: datetime) -> bool:
        """Use a link up; False if it is over or was used."""
        ...
