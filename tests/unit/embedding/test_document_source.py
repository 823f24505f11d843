"""A large document comes in parts: what is looked at first, the rest behind it.

The page's own module runs in Node over a service that is played
(`document_source.mjs`); offsets are told in blocks.
"""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.embedding.page_modules import copy_modules, play_scene

SCENES: Final = Path(__file__).with_name("document_source.mjs")
BLOCK: Final = 65_536
SIZE: Final = 5 * BLOCK + 77


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's modules, where Node takes them for modules."""
    return copy_modules(tmp_path_factory.mktemp("page"))


def play(modules: Path, scene: str) -> dict[str, Any]:
    """What came of a scene, with every part that was asked for, in order."""
    return play_scene(SCENES, modules, scene)


def test_part_costs_its_own_block(modules: Path) -> None:
    """Four bytes of 300 kB are one block, and they are the right ones."""
    assert play(modules, "part") == {
        "length": 4,
        "isRight": True,
        "came": BLOCK,
        "asked": [[1, 2]],
    }


def test_nothing_is_asked_for_twice(modules: Path) -> None:
    """What is on its way already is waited for."""
    assert play(modules, "once")["asked"] == [[0, 2], [2, 3]]


def test_rest_comes_by_one_call_and_is_told_of(modules: Path) -> None:
    """From nothing to all of it, never less than before."""
    told = play(modules, "all")

    assert told["asked"] == [[0, "end"]]
    assert told["isRight"] is told["grows"] is True
    assert told["first"][1] == SIZE
    assert told["last"] == [SIZE, SIZE]


def test_what_is_looked_at_comes_before_the_rest(modules: Path) -> None:
    """The rest stops for it, and goes on where it was."""
    told = play(modules, "urgent")

    assert told["isRight"] is True
    begun, urgent, rest = told["asked"]
    assert (begun, urgent) == ([0, "end"], [5, "end"])
    assert rest[0] >= 2
    assert rest[1] == 5


def test_rest_that_is_not_wanted_does_not_come(modules: Path) -> None:
    """What is looked at still does."""
    told = play(modules, "resting")

    assert told["came"] == BLOCK
    assert told["asked"][-1] == [0, 1]


def test_part_of_another_document_is_refused(modules: Path) -> None:
    """By the tag of the answer, before a byte of it is taken."""
    told = play(modules, "other")

    assert told["read"] == told["whole"] == "DOCUMENT_CHANGED"


def test_altered_bytes_are_found_when_all_are_here(modules: Path) -> None:
    """Whatever the tag says."""
    assert play(modules, "forged")["whole"] == "DOCUMENT_CHANGED"


def test_lost_network_is_told_and_waited_for(modules: Path) -> None:
    """Once that it is away, once that it is back."""
    told = play(modules, "lost")

    assert told["isRight"] is True
    assert told["late"] == ["lost", "came"]
    assert told["asked"] == [[0, 1]] * 3


def test_service_without_ranges_gives_all_of_it(modules: Path) -> None:
    """The part that was asked for, and the rest with it."""
    told = play(modules, "whole")

    assert told["isRight"] is True
    assert told["whole"] == "right"
    assert told["asked"] == [[4, 5]]


def test_document_that_is_left_ends_what_is_waited_for(modules: Path) -> None:
    """Nobody waits for ever."""
    told = play(modules, "closed")

    assert told["read"] == told["whole"] == told["error"] == "Stopped"


def test_service_that_cannot_is_asked_again_when_it_says(modules: Path) -> None:
    """No network is blamed, and the wait is the service's own, or some seconds."""
    told = play(modules, "busy")

    assert told["isRight"] is True
    assert told["late"] == [7, 5, "came"]
    assert told["waits"] == [7_000, 5_000]
    assert told["failures"] == []


def test_service_that_goes_on_failing_is_asked_a_few_times(modules: Path) -> None:
    """Then its own error ends the document, and is told once."""
    told = play(modules, "refusing")

    assert told["whole"] == "STORE_UNAVAILABLE"
    assert told["failures"] == ["STORE_UNAVAILABLE"]
    assert told["late"] == [7, "came"]
    assert told["asked"] == [[0, "end"]] * 4


@pytest.mark.parametrize(
    ("scene", "code"), [("damaged", "DOCUMENT_DAMAGED"), ("patient", "RATE_LIMITED")]
)
def test_what_will_not_pass_soon_is_told_at_once(
    modules: Path, scene: str, code: str
) -> None:
    """A damaged document, and a pause that no signer sits through."""
    told = play(modules, scene)

    assert told["read"] == code
    assert told["failures"] == [code]
    assert told["late"] == []
    assert len(told["asked"]) == 1


def test_damage_behind_the_head_of_an_answer_is_told(modules: Path) -> None:
    """The answer breaks off there; who asks from that byte on is told why."""
    told = play(modules, "damagedLater")

    assert told["whole"] == "DOCUMENT_DAMAGED"
    assert told["failures"] == ["DOCUMENT_DAMAGED"]
    assert told["bytes"] == [[0, SIZE], [2 * BLOCK + 5, SIZE]]


def test_answer_that_breaks_off_at_one_place_ends(modules: Path) -> None:
    """It is asked for a few times, and is no lost network for ever."""
    told = play(modules, "cut")

    assert told["whole"] == "INTERNAL"
    assert told["failures"] == ["INTERNAL"]
    assert told["late"] == ["lost", "came"]
    assert len(told["asked"]) == 4


def test_document_that_failed_can_be_asked_for_again(modules: Path) -> None:
    """A later look at a page, or at all of it, starts anew."""
    told = play(modules, "mended")

    assert told["whole"] == "INTERNAL"
    assert told["isRight"] is True
    assert told["again"] == "right"
    assert told["failures"] == ["INTERNAL"]


def test_parts_that_fail_together_are_told_once(modules: Path) -> None:
    """The host gets one error of it."""
    told = play(modules, "together")

    assert told["reads"] == ["DOCUMENT_DAMAGED"] * 2
    assert told["failures"] == ["DOCUMENT_DAMAGED"]


def test_part_that_is_not_wanted_any_more_is_not_late(modules: Path) -> None:
    """Its notice goes with it: another part came before it."""
    assert play(modules, "urgentWhileLate")["late"] == ["lost", "came"]
