"""Virtual times of those who wait for their turn."""

import pytest

from appliance.domain.turns import _KEPT, Turns


def next_of(turns: Turns, waiting: list[str]) -> str:
    """Take the turn of the one whose it is; who came first among equals."""
    key = min(waiting, key=turns.of)
    waiting.remove(key)
    turns.take(key)
    if key in waiting:
        turns.come(key)
    return key


def test_keys_that_wait_have_one_turn_each_round() -> None:
    """However many times one of them came."""
    turns, waiting = Turns(), ["a", "a", "a", "b", "c", "b"]
    for key in waiting:
        turns.come(key)

    order = [next_of(turns, waiting) for _ in range(6)]

    assert order == ["a", "b", "c", "a", "b", "a"]


@pytest.mark.parametrize("crowd", [1, 8, 60])
def test_who_comes_back_waits_one_round_at_most(crowd: int) -> None:
    """While there is a new key for each one that had its turn."""
    turns = Turns()
    waiting = [f"new:{number}" for number in range(crowd)]
    for key in waiting:
        turns.come(key)
    came = crowd
    for _ in range(20):
        waiting.append("regular")
        turns.come("regular")
        passed = 0
        while (had := next_of(turns, waiting)) != "regular":
            assert had.startswith("new:")
            passed += 1
            waiting.append(f"new:{came}")
            turns.come(f"new:{came}")
            came += 1
        assert passed <= 2 * crowd


def test_who_left_keeps_no_turn() -> None:
    """Who waits no more begins at the present time once they come back."""
    turns = Turns()
    turns.come("a")
    turns.leave("a")
    for _ in range(5):
        turns.come("b")
        turns.take("b")
    turns.come("a")
    turns.come("c")

    assert turns.of("a") == turns.of("c")


def test_memory_is_bounded() -> None:
    """The last turns alone are remembered, whatever keys there were."""
    turns = Turns()
    for number in range(3 * _KEPT):
        turns.take(f"key:{number}")

    assert len(turns._finish) == _KEPT
    assert not turns._start
