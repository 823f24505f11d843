"""What a signature says and permits, as its signer is shown it."""

import pytest

from appliance.domain.documents.inspected import (
    EmptyField,
    Inspection,
    PageBox,
    SigningFacts,
)
from appliance.domain.requests import terms
from appliance.domain.requests.terms import SignatureTerms
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import Restriction
from appliance.web import i18n
from embed.assets import sentences

R = Restriction
NONE, CLOSED, FORMS, NOTES = R
PAGE = PageBox(0.0, 0.0, 595.0, 842.0, 0)
FIELDS = (
    EmptyField("seen", 1, (1.0, 1.0, 90.0, 40.0)),
    EmptyField("nowhere"),
    *(EmptyField(f"P{p}", 1, (1.0, 1.0, 9.0, 9.0), permits=p) for p in (1, 2, 3)),
    EmptyField("locks", 1, (1.0, 1.0, 9.0, 9.0), locks=True),
)
DOCUMENT = Inspection(100, (PAGE,), (), 0, None, signing=SigningFacts(empty=FIELDS))


def of(
    restriction: Restriction = NONE, field: str | None = None, *, visible: bool = True
) -> SignatureTerms:
    """The terms of a command."""
    params = SignParameters(restriction=restriction, field=field, visible=visible)
    return SignatureTerms.of(params, DOCUMENT)


@pytest.mark.parametrize(
    ("restriction", "field", "afterwards"),
    [
        (NONE, None, NONE),
        (FORMS, None, FORMS),
        (NONE, "seen", NONE),
        (NONE, "P1", CLOSED),
        (NONE, "P3", NOTES),
        (NOTES, "P2", FORMS),
        (CLOSED, "P3", CLOSED),
    ],
)
def test_stricter_of_command_and_lock_is_told(
    restriction: Restriction, field: str | None, afterwards: Restriction
) -> None:
    """A field's lock certifies nothing, and forbids all the same."""
    told = of(restriction, field)

    assert (told.restriction, told.afterwards) == (restriction, afterwards)
    said = {label: text for label, text, _ in told.told()}
    assert said.get(terms.AFTER) == terms.AFTERWARDS.get(afterwards)


@pytest.mark.parametrize(
    ("field", "visible", "seen"),
    [
        (None, True, True),
        (None, False, False),
        ("seen", True, True),
        ("seen", False, False),
        ("nowhere", True, False),
        ("missing", True, False),
    ],
)
def test_mark_that_no_page_shows_is_told(
    field: str | None, visible: bool, seen: bool
) -> None:
    """Also where the field has no place to show it in."""
    told = of(field=field, visible=visible)

    assert told.visible is seen
    assert (terms.NO_MARK in [text for _, text, _ in told.told()]) is not seen


def test_lock_of_the_field_is_told() -> None:
    """Whatever it permits of the rest."""
    assert of(field="locks").told()[-1] == (terms.LOCK, terms.LOCKED, True)
    assert of(field="seen").told() == [(terms.FIELD, "seen", False)]
    assert of().told() == []


def test_frame_has_the_words_of_the_interface() -> None:
    """The same sentences, each of them in Spanish."""
    labels = {terms.REASON, terms.PLACE, terms.AFTER, terms.MARK, terms.FIELD}
    words = labels | {terms.LOCK, terms.LOCKED, terms.NO_MARK}
    words |= set(terms.AFTERWARDS.values())

    assert words <= set(sentences())
    assert all(i18n.translate("es", each) != each for each in words)
    assert set(terms.AFTERWARDS) == {*R} - {NONE}
