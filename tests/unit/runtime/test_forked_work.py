"""Work that a child does: its result comes back, its modules do not."""

import os
import signal
import sys

import pytest

from appliance.system.forked_work import ForkedWork

LONG = 3 << 20
"""More bytes than a pipe holds."""


def test_result_of_any_length_comes_back() -> None:
    """While the child still writes, too."""
    assert ForkedWork.begun(lambda: b"x" * LONG).result() == b"x" * LONG


def test_what_it_loads_stays_with_it() -> None:
    """In another process."""

    def work() -> bytes:
        sys.modules["only.there"] = sys
        return str(os.getpid()).encode()

    assert int(ForkedWork.begun(work).result()) != os.getpid()
    assert "only.there" not in sys.modules


def test_child_that_fails_has_no_result(capfd: pytest.CaptureFixture[str]) -> None:
    """It tells why, and nothing of its parent's end is done twice."""

    def work() -> bytes:
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ChildProcessError, match="status 70"):
        ForkedWork.begun(work).result()
    assert "ZeroDivisionError: on purpose" in capfd.readouterr().err


def test_child_that_is_killed_has_no_result() -> None:
    """What it wrote before is not taken for the whole."""

    def work() -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    with pytest.raises(ChildProcessError, match="status -9"):
        ForkedWork.begun(work).result()


def test_child_whose_result_nobody_wants_says_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Who began it was refused meanwhile."""
    begun = ForkedWork.begun(lambda: b"x" * LONG)
    os.close(begun.reader)
    os.waitpid(begun.pid, 0)
    assert not capfd.readouterr().err
