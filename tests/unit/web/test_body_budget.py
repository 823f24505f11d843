"""Bytes of bodies that a process holds: the whole, and everybody's share of it."""

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.web.body import Budget, Held, Limits

SESSION = {"session a": 4, "integrator x": 2}


def refused(budget: Budget, holders: dict[str, int], size: int) -> bool:
    """Whether there is no room; what is taken is given back."""
    held = Held(budget, holders)
    try:
        held.grow(size)
    except ApplianceError as exc:
        return exc.code is ErrorCode.OVERLOADED
    held.release()
    return False


def test_one_party_has_its_share() -> None:
    """A quarter of the whole; the others' rest is theirs."""
    budget = Budget(1000, 100)
    Held(budget, SESSION).grow(200)

    assert refused(budget, SESSION, 51)
    assert not refused(budget, SESSION, 50)
    assert not refused(budget, {"session b": 4, "integrator x": 2}, 250)


def test_one_integrator_has_its_share() -> None:
    """A half, by however many sessions."""
    budget = Budget(1000, 100)
    for name in "ab":
        Held(budget, {f"session {name}": 4, "integrator x": 2}).grow(250)

    assert refused(budget, {"session c": 4, "integrator x": 2}, 1)
    assert not refused(budget, {"session c": 4, "integrator y": 2}, 250)


def test_the_whole_is_the_end() -> None:
    """Of any number of parties."""
    budget = Budget(1000, 100)
    for number in range(4):
        Held(budget, {f"person {number}": 4}).grow(250)

    assert refused(budget, {"person 5": 4}, 1)
    assert budget.held == 1000


def test_one_body_always_fits_where_nothing_is_held() -> None:
    """However small the setting is."""
    budget = Budget(10, 800)

    assert not refused(budget, SESSION, 800)
    assert refused(budget, SESSION, 801)


def test_body_of_many_documents_is_an_integrators_share() -> None:
    """It fits where its integrator holds nothing, and nothing larger would."""
    limits = Limits(json=10, document=100, timeout_s=1, bodies=1000)
    budget = Budget(1000, limits.multipart)
    whose = {"integrator x": 2}

    assert limits.documents == 500
    assert not refused(budget, whose, limits.documents)
    assert refused(budget, whose, limits.documents + 1)
    small = Limits(json=10, document=100, timeout_s=1, bodies=50)
    assert small.documents == small.multipart


def test_a_body_grows_and_ends() -> None:
    """It counts what it is, once, and nothing after its request."""
    budget = Budget(1000, 100)
    held = Held(budget, SESSION)
    for size in (10, 30, 20, 30):
        held.grow(size)
    with pytest.raises(ApplianceError):
        held.grow(260)
    assert budget.held == 30

    held.release()
    held.release()

    assert budget.held == 0
    assert budget._held == {}
