"""Which master key of the HSM wraps which users' keys."""

from dataclasses import dataclass, field

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
