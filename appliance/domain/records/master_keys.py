"""Which master key of the HSM wraps which users' keys."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from appliance.domain.ids import CredentialId, PersonId
from appliance.domain.keys import KeyAlgorithm, WrapMethod


@dataclass(frozen=True, slots=True)
class MasterWrapped:
    """A credential's W as a master key wraps it."""

    credential: CredentialId
    master: int
    blob_w: bytes = field(repr=False)
    method_w: WrapMethod


@dataclass(frozen=True, slots=True)
class KeyNeeds:
    """What an HSM must be able to do for a credential to sign by it."""

    credential: CredentialId
    person: PersonId
    algorithm: KeyAlgorithm
    method_k: WrapMethod | None
    """How the private key is wrapped; None of a resident one, which stays where it
    is."""

    @property
    def is_resident(self) -> bool:
        """Whether the key is on a token."""
        return self.method_k is None


class MasterRecords(Protocol):
    """Wrapped keys by the master key that wraps them."""

    async def counts(self) -> dict[int, int]:
        """How many keys there are under each version."""
        ...

    async def otherwise(
        self,
        version: int,
        method: WrapMethod | None,
        after: CredentialId | None,
        limit: int,
    ) -> list[MasterWrapped]:
        """Keys that another version wraps, or another method, by id.

        Args:
            version: of the master key.
            method: of W, if it shall be a certain one.
            after: the credential to begin after.
            limit: how many at the most.
        """
        ...

    async def rewrapped(self, old: MasterWrapped, new: MasterWrapped) -> bool:
        """Have another version wrap a key; False if it changed meanwhile."""
        ...

    async def needs(self) -> list[KeyNeeds]:
        """What each key in force needs of an HSM."""
        ...

    async def in_the_making(self, at: datetime) -> int:
        """How many tasks of the HSM some worker has in hand."""
        ...
