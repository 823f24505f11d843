"""Reasons why a signer cannot sign, by the record alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from appliance.domain.vocab import CredentialState, PersonState

_GONE: Final = frozenset({CredentialState.REVOKING, CredentialState.REVOKED})


class Bar(StrEnum):
    """Reason why a signer cannot sign; a refusal has it as its member `obstacle`."""

    INVITED = "invited"
    """They have not enrolled. No refusal has it: who has not enrolled cannot ask."""
    DISABLED = "disabled"
    LOCKED = "locked"
    """The signing password, after too many wrong ones."""
    REVOKED = "revoked"
    EXPIRED = "expired"
    MISSING = "missing"
    """There is no certificate, or none yet in force."""


@dataclass(frozen=True, slots=True)
class Validity:
    """State and dates of a signer's certificate."""

    state: CredentialState
    not_before: datetime
    not_after: datetime


def bar_of(
    state: PersonState,
    locked_at: datetime | None,
    held: Sequence[Validity],
    now: datetime,
) -> Bar | None:
    """Return what keeps somebody from signing at a time; None if nothing does.

    A certificate that only its outside CA says is revoked is not seen here.

    Args:
        state: of the person.
        locked_at: when their signing password was locked; None: it is not.
        held: their certificates, newest first.
        now: the time, aware.
    """
    if state is not PersonState.ACTIVE:
        return Bar.INVITED if state is PersonState.INVITED else Bar.DISABLED
    if locked_at is not None:
        return Bar.LOCKED
    active = next((one for one in held if one.state is CredentialState.ACTIVE), None)
    if active is None:
        return Bar.REVOKED if held and held[0].state in _GONE else Bar.MISSING
    if active.not_after <= now:
        return Bar.EXPIRED
    return Bar.MISSING if now < active.not_before else None
