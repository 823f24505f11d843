"""The page's conversation with its host, where a signer leaves in the middle of it.

The page's own module runs in Node between a host and a service that are played
(`conversation.mjs`).
"""

from pathlib import Path
from typing import Final

import pytest

from tests.unit.embedding.page_modules import copy_modules, play_scene

SCENES: Final = Path(__file__).with_name("conversation.mjs")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's modules, where Node takes them for modules."""
    return copy_modules(tmp_path_factory.mktemp("page"))


def test_signer_who_leaves_before_the_session_is_open_has_left(modules: Path) -> None:
    """The session ends by its own bearer, without an ack; a later init begins anew."""
    told = play_scene(SCENES, modules, "left")

    assert told["calls"] == [
        ["init", "one", None],
        ["cancel", "signer", "Bearer b-one"],
    ]
    assert told["posted"] == []
    assert told["state"] == "cancelled"
    again = told["again"]
    assert [path for path, *_ in again["calls"]] == ["init"]
    assert again["posted"] == ["handshake.ack"]
    assert again["state"] == "connected"


def test_session_that_comes_while_another_is_left_ends_too(modules: Path) -> None:
    """The signer left the page, whichever token it had by then."""
    told = play_scene(SCENES, modules, "replaced")

    assert [call[:2] for call in told["calls"]] == [
        ["init", "one"],
        ["init", "two"],
        ["cancel", "signer"],
    ]
    assert told["calls"][-1][2] == "Bearer b-two"
    assert told["posted"] == ["handshake.ack"]
    assert told["state"] == "cancelled"
