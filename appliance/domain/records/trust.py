"""The trust store, what was said of ends, and revocation PINs."""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from appliance.domain.identity import Credential
from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.trust_store import Anchor, AnchorPurpose, Expiring, ExpiringKind


class TrustRecords(Protocol):
    """Roots of outside CAs."""

    async def add(self, new: Anchor) -> None:
        """Record a root.

        Raises:
            ApplianceError: `ALREADY_EXISTS` for one that serves this purpose.
        """
        ...

    async def remove(self, anchor: str) -> Anchor | None:
        """Take a root out; what it was, or None where there is none."""
        ...

    async def all(self, purpose: AnchorPurpose | None = None) -> list[Anchor]:
        """Every root, of a purpose or of any, soonest end first."""
        ...


class ExpiryRecords(Protocol):
    """What ends soon, and what was said of it."""

    async def signers(self, until: datetime, days: int, limit: int) -> list[Expiring]:
        """Credentials in use that end by then and were not told so yet.

        Args:
            until: the last end that counts.
            days: the warning; one told with as few days or fewer is left out.
            limit: how many at most.
        """
        ...

    async def listed(
        self,
        until: datetime | None,
        limit: int,
        after: tuple[datetime, str] | None,
        among: Collection[PersonId] | None = None,
    ) -> list[Expiring]:
        """Credentials in use that end by then, soonest first, told or not.

        Args:
            until: None: whenever they end.
            limit: how many.
            after: end and id of the one before.
            among: only of these people; None: of anybody.
        """
        ...

    async def count(self, until: datetime) -> int:
        """How many credentials in use end by then."""
        ...

    async def told(
        self, kind: ExpiringKind, ids: Collection[str]
    ) -> dict[tuple[str, datetime], int]:
        """The days of the last warning, by id and end."""
        ...

    async def tell(self, what: Expiring, days: int, at: datetime) -> bool:
        """Note that a warning is given; False if another process gave it."""
        ...


class FormerCertificateRecords(Protocol):
    """Certificates that credentials had before."""

    async def keep(self, former: Credential, at: datetime) -> None:
        """Record what a credential has, before it gets another."""
        ...

    async def of_credential(
        self, credential: CredentialId
    ) -> list[tuple[bytes, datetime]]:
        """Former certificates in DER with the time of their replacement."""
        ...


class RevocationPinRecords(Protocol):
    """What proves a person who has lost everything else."""

    async def set(self, person: PersonId, phc: str, at: datetime) -> None:
        """Record the Argon2id hash of a person's PIN; an earlier one is over."""
        ...

    async def get(self, person: PersonId) -> str | None:
        """The hash of a person's PIN."""
        ...
