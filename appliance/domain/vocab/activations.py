"""A signature activation, its documents, and the use of a key for each."""

from enum import StrEnum


class ActivationState(StrEnum):
    """Where a signature activation stands (design §3)."""

    WAITING = "waiting"
    """Made, not yet claimed: claimable until `claim_by`."""
    KEYING = "keying"
    """Claimed; signatures are being made, until `key_until`."""
    FINISHING = "finishing"
    """Every signature value is stored; no user key is needed any more."""
    DONE = "done"
    EXPIRED = "expired"
    FAILED = "failed"


class ItemState(StrEnum):
    """One document of an activation."""

    WAITING = "waiting"
    KEYED = "keyed"
    """Signature value and prepared increment are stored."""
    DONE = "done"
    """Checked, stored and published."""
    FAILED = "failed"


class IntentState(StrEnum):
    """One intended use of a key; ends in exactly one of the last two."""

    OPEN = "abierta"
    COMPLETED = "completada"
    INTERRUPTED = "interrumpida"
