"""States in words for people: those that messages name, never their stored values."""

from typing import Final

from appliance.domain.vocab.certificates import CredentialState
from appliance.domain.vocab.people import PersonState
from appliance.domain.vocab.requests import BatchState, RequestState

PLACES: Final = frozenset({"estado", "state"})
"""Places of sentences that hold a state."""
STATE_WORDS: Final[dict[str, str]] = {
    RequestState.WAITING: "waiting for another signer",
    RequestState.PENDING: "waiting for its signature",
    RequestState.IN_PROGRESS: "being signed",
    RequestState.SIGNED: "signed",
    RequestState.REJECTED: "rejected by its signer",
    RequestState.CANCELLED: "cancelled",
    RequestState.EXPIRED: "expired",
    RequestState.FAILED: "failed",
    BatchState.PREPARING: "being prepared",
    BatchState.READY: "ready to be signed",
    BatchState.REFUSED: "refused as a whole",
    BatchState.CANCELLED: "taken back",
    PersonState.INVITED: "invited, not enrolled yet",
    PersonState.ACTIVE: "active",
    PersonState.DISABLED: "disabled",
    CredentialState.SUPERSEDED: "replaced by another one",
    CredentialState.REVOKING: "being revoked",
    CredentialState.REVOKED: "revoked",
}
"""The msgid of each state; what is active is called so of people and credentials."""
