"""The words by which a call that hangs is seen from outside."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from appliance.runtime.hang_watchdog import CallWatch
from appliance.settings import SettingsError

SECOND = 1_000_000_000


class Machine:
    """A monotonic clock that the test sets."""

    def __init__(self) -> None:
        self.now_ns = 100 * SECOND

    def __call__(self) -> int:
        return self.now_ns

    def pass_s(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)


@pytest.fixture
def machine() -> Machine:
    """The machine's time, at 100 s after its start."""
    return Machine()


@pytest.fixture
def inside(tmp_path: Path, machine: Machine) -> CallWatch:
    """As the worker has it."""
    return CallWatch(tmp_path / "call", machine)


@pytest.fixture
def outside(tmp_path: Path, inside: CallWatch, machine: Machine) -> CallWatch:
    """As the parent has it: another map of the same file."""
    assert inside.running_s() == 0
    return CallWatch(tmp_path / "call", machine)


def test_running_call_is_seen_from_outside(
    inside: CallWatch, outside: CallWatch, machine: Machine
) -> None:
    """While it runs, and no longer."""
    with inside.calling(0):
        machine.pass_s(21)
        assert outside.running_s() == 21

    assert outside.running_s() == 0


def test_call_of_a_dead_process_does_not_count(
    inside: CallWatch, outside: CallWatch, machine: Machine
) -> None:
    """What was running at the kill is not held against the next start."""
    with inside.calling(0):
        machine.pass_s(21)
        started_s = machine.now_ns / SECOND
        machine.pass_s(1)

        assert outside.running_s(started_s) == 1
        outside.begin()
        assert inside.running_s() == 0


def test_hang_is_kept_past_the_kill(
    inside: CallWatch, outside: CallWatch, machine: Machine
) -> None:
    """By token, once a call, and forgotten when the token works again."""
    for _ in range(2):
        with inside.calling(3):
            machine.pass_s(21)
            outside.note_hang()
            outside.note_hang()
        machine.pass_s(5)

    assert inside.hangs(3) == (2, machine.now_ns / SECOND - 5)
    assert inside.hangs(0)[0] == 0
    inside.answered(3)
    assert inside.hangs(3)[0] == 0


def test_of_several_calls_the_oldest_is_seen(
    inside: CallWatch, outside: CallWatch, machine: Machine
) -> None:
    """Whatever the others do meanwhile, and by the token that it went to."""
    with ExitStack() as hanging:
        hanging.enter_context(inside.calling(3))
        for token in (0, 1, 0):
            machine.pass_s(10)
            with inside.calling(token):
                outside.note_hang()
        assert outside.running_s() == 30
        younger = hanging.enter_context(ExitStack())
        younger.enter_context(inside.calling(1))
        machine.pass_s(1)

    assert inside.hangs(3)[0] == 1
    assert inside.hangs(0)[0] == inside.hangs(1)[0] == 0
    assert outside.running_s() == 0


def test_younger_call_is_seen_when_the_older_ends(
    inside: CallWatch, outside: CallWatch, machine: Machine
) -> None:
    """With its own start."""
    older, younger = inside.calling(0), inside.calling(1)
    older.__enter__()
    machine.pass_s(5)
    younger.__enter__()
    machine.pass_s(2)

    older.__exit__(None, None, None)

    assert outside.running_s() == 2
    outside.note_hang()
    assert (inside.hangs(0)[0], inside.hangs(1)[0]) == (0, 1)
    younger.__exit__(None, None, None)
    assert outside.running_s() == 0


def test_words_of_before_a_reboot_count_as_none(
    inside: CallWatch, machine: Machine
) -> None:
    """The monotonic clock began anew, the file may be an old one."""
    with inside.calling(0):
        inside.note_hang()
    machine.now_ns = 1 * SECOND

    assert inside.hangs(0) == (0, 0.0)
    with inside.calling(0):
        machine.pass_s(-0.5)
        assert inside.running_s() == 0


def test_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """As any fault of the settings."""
    with pytest.raises(SettingsError, match="nowhere/call: cannot be made"):
        CallWatch(tmp_path / "nowhere" / "call")
