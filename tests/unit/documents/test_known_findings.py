"""What is remembered of examinations: bounded, and each integrator's own."""

from appliance.documents.known_findings import KnownFindings
from appliance.domain.documents.inspected import Inspection, PageBox
from appliance.domain.ids import IntegratorId

MINE, OTHER = IntegratorId("a"), IntegratorId("b")
A4 = PageBox(0.0, 0.0, 595.0, 842.0, 0)


def inspection(size: int) -> Inspection:
    """Of a document of one page."""
    return Inspection(size, (A4,), (), 0, None)


def test_findings_are_of_their_integrator_alone() -> None:
    """As they were; the last ones."""
    known = KnownFindings()
    known.note(MINE, "x", inspection(1))
    known.note(MINE, "x", inspection(2))

    assert known.get(MINE, "x") == inspection(2)
    assert known.get(OTHER, "x") is None
    assert known.get(MINE, "y") is None


def test_memory_is_bounded_and_shared_out() -> None:
    """One has half of it at most, and takes nothing of the others' by a flood."""
    known = KnownFindings(most_bytes=20_000)
    known.note(OTHER, "kept", inspection(1))
    for number in range(1_000):
        known.note(MINE, str(number), inspection(number))

    assert known.get(OTHER, "kept") == inspection(1)
    there = [n for n in range(1_000) if known.get(MINE, str(n)) is not None]
    assert there == list(range(there[0], 1_000))
    assert 10 < len(there) < 100
