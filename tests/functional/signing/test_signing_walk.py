"""How far a signature walks through the code; `python -m tests.tools.signing_walk`."""

import pytest

from tests.support.appliance.signing_walk import (
    Entered,
    Walk,
    common,
    walk_of_a_signature,
)


# What else a role does is of every walk where others keep the machine busy.
@pytest.mark.alone
def test_walk_goes_from_the_front_to_the_worker() -> None:
    """Whatever their threads do of it too; how far it is, the tool tells."""
    walk = walk_of_a_signature()

    entered = [each.function for each in walk.entered]
    assert entered.index("Signing.sign") < entered.index("SigningWorker._next_work")
    assert walk.functions > 100


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
