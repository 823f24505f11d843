"""Letters that are seen as they are read."""

import time
from collections.abc import Sequence
from typing import Final

import pytest

from worker.sandbox.inspect.hidden_annotations import Rect
from worker.sandbox.verify.seen_letters import TextPlace, obscured

_FIELD: Final = (0.0, 0.0, 100.0, 20.0)


class AllInk:
    """A page on which every letter is seen."""

    def __contains__(self, rect: Rect, /) -> bool:
        return True


def letter(left: float, bottom: float = 4.0) -> Rect:
    """Make a box of six by eight points."""
    return left, bottom, left + 6, bottom + 8


@pytest.mark.parametrize(
    ("letters", "hidden"),
    [
        ([letter(2), letter(9), letter(16)], False),
        ([letter(2, 11), letter(9, 11), letter(2, 2)], False),
        ([letter(9), letter(2)], True),
        ([letter(2, 2), letter(2, 11)], True),
        ([letter(2), letter(5)], True),
        ([letter(2), letter(7)], False),
        ([letter(-3), letter(9)], True),
        ([letter(2, -5), letter(9, -5)], True),
        ([letter(300)], False),
    ],
)
def test_letters_follow_each_other(letters: Sequence[Rect], hidden: bool) -> None:
    """From left to right, line by line, and within the field."""
    assert obscured(letters, [TextPlace(_FIELD, _FIELD)], AllInk()) == [hidden]


@pytest.mark.parametrize("turn", [1, -1])
def test_lines_may_go_up_or_down_the_page(turn: int) -> None:
    """The way of a turned drawing is that of its text."""
    tall = (0.0, 0.0, 20.0, 100.0)
    upwards = [(4.0, y, 12.0, y + 6) for y in (2.0, 9.0, 16.0)]
    place = TextPlace(tall, tall, turn)
    assert obscured(upwards, [place], AllInk()) == [turn < 0]
    assert obscured(upwards[::-1], [place], AllInk()) == [turn > 0]


def test_letter_without_ink_is_hidden() -> None:
    """A letter may have the colour of what is below it."""
    place = TextPlace(_FIELD, _FIELD)
    assert obscured([letter(2)], [place], frozenset()) == [True]


def test_cost_is_linear_in_letters() -> None:
    """Letters one below the other are not compared pair by pair without end."""
    tall = (0.0, 0.0, 20.0, 1e6)
    place = TextPlace(tall, tall)

    def cost(count: int) -> float:
        column = [letter(2, 10.0 * each) for each in range(count, 0, -1)]
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            obscured(column, [place], AllInk())
            best = min(best, time.process_time() - began)
        return best

    assert cost(16_000) < 12 * cost(4_000)
