"""Several signers of one document: what is accepted can be signed to the end.

Every order of restrictions, own fields, locks, stamps and invisible signatures that a
few signers can bring is tried, by a model of what each signature leaves possible; that
the model is as documents are, `test_signature_fields.py` holds with real ones.

Source: docs/signing.md "What a document allows".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import pytest

from appliance.documents.docmdp_policy import CERTIFIES, check_permitted, lockout
from appliance.domain.documents.inspected import (
    EmptyField,
    Inspection,
    PageBox,
    SigningFacts,
)
from appliance.domain.errors import ApplianceError
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import Restriction
from appliance.requests.docmdp_conflicts import TurnOfSigner, lockouts

OF = GivenParameters.of
FORMS = Restriction.FORM_FILLING
CLOSED = Restriction.NO_CHANGES_ALLOWED
A, B = EmptyField("f.a"), EmptyField("f.b")
DOCUMENTS: Final = {
    "no field": (),
    "plain fields": (A, B),
    "a lock of the other field": (replace(A, locks=True, shuts=("f.b",)), B),
    "locks of each other": (
        replace(A, locks=True, shuts=("f",)),
        replace(B, locks=True, shuts=("f.a",)),
    ),
    "a lock that permits forms": (replace(A, permits=2, locks=True), B),
    "a lock of everything": (replace(A, closes=True, permits=1, locks=True), B),
    "a demand for certification": (replace(A, certifies=2), B),
}
PRESETS: Final = (
    None,
    SignaturePreset(OF()),
    SignaturePreset(OF(x=1, y=1), fixed=True),
    SignaturePreset(OF(visible=False), fixed=True),
    SignaturePreset(OF(field="f.a"), fixed=True),
    SignaturePreset(OF(field="f.b"), fixed=True),
    SignaturePreset(OF(field="f.a")),
    SignaturePreset(OF(restriction=FORMS)),
    SignaturePreset(OF(restriction=FORMS, field="f.a"), fixed=True),
    SignaturePreset(OF(restriction=CLOSED, visible=False), fixed=True),
)
TURNS: Final = ((1, 2), (1, 1), (1, 2, 3), (1, 1, 1), (1, 1, 2), (1, 2, 2))
PLACES: Final = (OF(), OF(visible=False), OF(field="f.a"), OF(field="f.b"))
FREE: Final = (
    *(replace(place.params, restriction=FORMS) for place in PLACES),
    *(place.params for place in PLACES),
    SignParameters(restriction=CLOSED),
)
"""What somebody whose place is free may choose."""


@dataclass(frozen=True)
class Scene:
    """A document some have signed, and those who have not."""

    document: Inspection
    left: tuple[TurnOfSigner, ...]

    def next(self) -> Iterator[int]:
        """Places of those whose turn it is."""
        turn = min(each.turn for each in self.left)
        return (at for at, each in enumerate(self.left) if each.turn == turn)

    def permits(self, at: int, params: SignParameters) -> bool:
        """Return whether the document and its rules for turns let somebody sign so."""
        own, others = self.left[at], [*self.left[:at], *self.left[at + 1 :]]
        is_shared = any(each.turn == own.turn for each in others)
        if is_shared and params.restriction is not Restriction.NO_VALUE:
            return False
        try:
            check_permitted(self.document, params, followed=bool(others))
        except ApplianceError:
            return False
        return True

    def leaves_places(self, at: int, params: SignParameters) -> bool:
        """Return whether nobody's fixed place is lost."""
        facts = self.document.signing
        return all(
            each.preset is None or lockout(facts, params, each.preset) is None
            for each in (*self.left[:at], *self.left[at + 1 :])
        )

    def signed(self, at: int, params: SignParameters) -> "Scene":
        """The scene after a signature."""
        left = (*self.left[:at], *self.left[at + 1 :])
        return Scene(signed(self.document, params), left)


def signed(document: Inspection, params: SignParameters) -> Inspection:
    """What a document permits after a signature."""
    facts, certifies = document.signing, CERTIFIES[params.restriction] or None
    own = None if params.field is None else facts.find(params.field)
    levels = [facts.permitted, certifies, own and own.permits]
    empty = tuple(
        replace(
            field,
            locked=field.locked or (own is not None and own.would_lock(field.name)),
        )
        for field in facts.empty
        if field is not own
    )
    return replace(
        document,
        signatures=document.signatures + 1,
        docmdp=document.docmdp or certifies,
        signing=SigningFacts(
            permitted=min((level for level in levels if level), default=None),
            new_locked=facts.new_locked or bool(own and own.closes),
            empty=empty,
            signed=(*facts.signed, "" if own is None else own.name),
        ),
    )


def scene_of(
    fields: tuple[EmptyField, ...], turns: Sequence[int], presets: Sequence[object]
) -> Scene:
    """A document that nobody has signed."""
    page = PageBox(0, 0, 595, 842, 0)
    facts = SigningFacts(empty=fields)
    document = Inspection(1, (page,), (), 0, None, signing=facts)
    return Scene(document, tuple(map(TurnOfSigner, turns, presets)))  # type: ignore[arg-type]


def is_taken(scene: Scene) -> bool:
    """Return whether each preset by itself is one that a request may be made with."""
    first, last = scene.left[0].turn, scene.left[-1].turn
    named = [
        each.preset.given.params.field
        for each in scene.left
        if each.preset is not None and each.preset.given.params.field is not None
    ]
    if len(named) != len(set(named)):
        return False
    for each in scene.left:
        if each.preset is None:
            continue
        params = each.preset.given.params
        is_shared = [other.turn for other in scene.left].count(each.turn) > 1
        certifies = params.restriction is not Restriction.NO_VALUE
        if certifies and (is_shared or each.turn > first):
            return False
        try:
            followed = is_shared or each.turn < last
            check_permitted(scene.document, params, followed=followed)
        except ApplianceError:
            return False
    return True


def choices(each: TurnOfSigner) -> Sequence[SignParameters]:
    """How somebody may want to sign."""
    if each.preset is None or not each.preset.fixed:
        return FREE
    params = each.preset.given.params
    if "restriction" in each.preset.given.names:
        return (params,)
    return [replace(params, restriction=one) for one in (FORMS, Restriction.NO_VALUE)]


def never_stuck(scene: Scene, known: dict[Scene, bool]) -> bool:
    """Return whether, whatever is accepted, the next one can always sign."""
    if not scene.left:
        return True
    if scene not in known:
        after = [
            scene.signed(at, params)
            for at in scene.next()
            for params in choices(scene.left[at])
            if scene.permits(at, params) and scene.leaves_places(at, params)
        ]
        known[scene] = bool(after) and all(never_stuck(each, known) for each in after)
    return known[scene]


def works_out(scene: Scene) -> bool:
    """Return whether all can sign as their presets have it, in some order."""
    if not scene.left:
        return True
    return any(
        works_out(scene.signed(at, params))
        for at in scene.next()
        for params in wanted(scene.left[at])
        if scene.permits(at, params)
    )


def wanted(each: TurnOfSigner) -> Sequence[SignParameters]:
    """How somebody signs who leaves it at what they were asked."""
    return FREE if each.preset is None else (each.preset.given.params,)


@pytest.mark.parametrize("turns", TURNS, ids=str)
@pytest.mark.parametrize("fields", DOCUMENTS.values(), ids=DOCUMENTS)
def test_what_is_accepted_is_signed_to_the_end(
    fields: tuple[EmptyField, ...], turns: tuple[int, ...]
) -> None:
    """And what is refused for whom it locks out could not be, as it was asked."""
    known: dict[Scene, bool] = {}
    seen = set()
    for presets in product(PRESETS, repeat=len(turns)):
        scene = scene_of(fields, turns, presets)
        if not is_taken(scene):
            continue
        blamed = lockouts(scene.document.signing, scene.left)

        seen.add(bool(blamed))
        if blamed:
            assert not works_out(scene), (presets, blamed)
        else:
            assert never_stuck(scene, known), presets
    assert False in seen


def test_first_one_is_blamed_with_the_field_that_is_wrong() -> None:
    """Of the preset: the restriction, or the own field by its lock."""
    place = SignaturePreset(OF(x=1, y=1), fixed=True)
    certifying = SignaturePreset(OF(restriction=FORMS))
    in_field = SignaturePreset(OF(field="f.a"))
    others = SignaturePreset(OF(field="f.b"), fixed=True)

    def blamed(document: str, *presets: SignaturePreset) -> dict[int, str]:
        scene = scene_of(DOCUMENTS[document], range(len(presets)), presets)
        return lockouts(scene.document.signing, scene.left)

    assert blamed("plain fields", certifying, place) == {0: "restriccion"}
    assert blamed("plain fields", certifying, others) == {}
    assert blamed("a lock that permits forms", in_field, place) == {0: "campo"}
    assert blamed("a lock of the other field", in_field, others) == {0: "campo"}
    assert blamed("plain fields", in_field, place, others) == {}


def test_those_of_one_turn_who_lock_each_other_out_are_both_blamed() -> None:
    """One alone may come last."""
    both = [SignaturePreset(OF(field=name), fixed=True) for name in ("f.a", "f.b")]

    for document, expected in (
        ("locks of each other", {0: "campo", 1: "campo"}),
        ("a lock of the other field", {}),
    ):
        scene = scene_of(DOCUMENTS[document], (1, 1), both)
        assert lockouts(scene.document.signing, scene.left) == expected
