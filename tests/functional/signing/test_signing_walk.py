"""How far a signature walks through the code; `python -m tests.tools.signing_walk`."""

import pytest

from tests.support.appliance.signing_walk import (
    Entered,
    Walk,
    common,
    walk_of_a_signature,
)

MOST_FUNCTIONS = 702
MOST_MODULE_CHANGES = 376
MOST_RETURNS = 216
"""What there is and a little more: whoever shortens the way lowers them. One document
walks as a group of one."""


# What else a role does is of every walk where others keep the machine busy.
@pytest.mark.alone
def test_signature_walks_no_farther_than_it_did() -> None:
    """In front and worker, whatever their threads do of it too."""
    walk = walk_of_a_signature()

    entered = [each.function for each in walk.entered]
    assert entered.index("Signing.sign") < entered.index("SigningWorker._next_work")
    assert 100 < walk.functions <= MOST_FUNCTIONS
    assert walk.module_changes <= MOST_MODULE_CHANGES
    assert walk.returns <= MOST_RETURNS


def test_changes_and_returns_are_counted() -> None:
    """A return is a change to a module that had been left."""
    walk = Walk(tuple(Entered(module, str(n)) for n, module in enumerate("aabacbcd")))

    assert (walk.functions, walk.module_changes, walk.returns) == (8, 6, 3)


def test_what_walks_have_in_common() -> None:
    """In the order least interrupted; what one alone did is not of the walk."""
    walks = [
        Walk(tuple(Entered(name.lower(), name) for name in names))
        for names in ("aBbxA", "yaAbB", "bAaBz")
    ]

    assert [each.function for each in common(walks).entered] == list("aAbB")
