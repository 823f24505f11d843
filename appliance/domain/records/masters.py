"""Which master key of the HSM wraps which users' keys."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from appliance.domain.hsm import KeyAlgorithm, WrapMethod
from appliance.domain.ids import CredentialId, PersonId


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
    method_w: WrapMethod | None
    method_k: WrapMethod | None
    """Both None of a resident key, which stays where it is."""

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
        self, version: int, after: CredentialId | None, limit: int
    ) -> list[MasterWrapped]:
        """Keys that another version wraps, after a credential, by id."""
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
