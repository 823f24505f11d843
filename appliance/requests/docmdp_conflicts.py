"""Signers of one document who would leave others of it no place; a pure function.

A signer whose place is fixed can be signed in that place alone. Whoever signs before
may take or lock it, and then the document would wait for good.

Source: docs/signing.md "What a document allows".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from appliance.documents.docmdp_policy import lockout
from appliance.domain.documents.inspected import SigningFacts
from appliance.domain.requests.preset import SignaturePreset


@dataclass(frozen=True, slots=True)
class TurnOfSigner:
    """When somebody signs, and what they bring."""

    turn: int
    """Those of one turn sign in any order."""
    preset: SignaturePreset | None


def lockouts(facts: SigningFacts, signers: Sequence[TurnOfSigner]) -> dict[int, str]:
    """Find the signers who cannot sign as they are asked to without locking others out.

    Args:
        facts: of the document before anybody signs.
        signers: all of it.

    Returns:
        By place among the signers, the field of their preset that is to blame.
    """
    found: dict[int, str] = {}
    for place, first in enumerate(signers):
        after = {at: s for at, s in enumerate(signers) if s.turn > first.turn}
        blamed = _blamed(facts, first, after)
        if blamed is not None:
            found[place] = blamed
    for turn in {each.turn for each in signers}:
        # Without a place of their own they may sign so that nobody is locked out.
        left = {
            at: each
            for at, each in enumerate(signers)
            if each.turn == turn and each.preset is not None and each.preset.fixed
        }
        found |= _deadlocked(facts, left)
    return found


def _deadlocked(
    facts: SigningFacts, left: Mapping[int, TurnOfSigner]
) -> dict[int, str]:
    """Those of one turn of whom none can be the next, and what is to blame."""
    while left:
        blamed = {
            at: field
            for at, each in left.items()
            if (field := _blamed(facts, each, _others(left, at))) is not None
        }
        if len(blamed) == len(left):
            return blamed
        left = {at: each for at, each in left.items() if at in blamed}
    return {}


def _others(signers: Mapping[int, TurnOfSigner], own: int) -> dict[int, TurnOfSigner]:
    return {at: each for at, each in signers.items() if at != own}


def _blamed(
    facts: SigningFacts, first: TurnOfSigner, others: Mapping[int, TurnOfSigner]
) -> str | None:
    """What of a signer's preset leaves no place to one of the others."""
    if first.preset is None:
        return None
    params = first.preset.given.params
    return next(
        (
            field
            for each in others.values()
            if each.preset is not None
            and (field := lockout(facts, params, each.preset)) is not None
        ),
        None,
    )
