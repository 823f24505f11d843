"""What validators are called by ends, and what they say comes back."""

import os
import time
from collections.abc import Iterator

import pytest

from tests.support.processes.bounded_calls import BoundedCalls, TooLateError


@pytest.fixture
def calls() -> Iterator[BoundedCalls]:
    """Calls of at most two seconds, once the process is there."""
    bounded = BoundedCalls(20)
    assert bounded.call(len, "abc") == 3
    bounded._seconds = 2
    yield bounded
    bounded.close()


def test_late_call_is_killed_and_the_next_one_works(calls: BoundedCalls) -> None:
    """The process goes, and another takes its place."""
    first = calls.call(os.getpid)

    with pytest.raises(TooLateError):
        calls.call(time.sleep, 600)

    calls._seconds = 20
    assert calls.call(os.getpid) != first


def test_error_of_a_call_is_told(calls: BoundedCalls) -> None:
    """By its kind; the process stays."""
    first = calls.call(os.getpid)

    with pytest.raises(RuntimeError, match="ValueError"):
        calls.call(int, "x")

    assert calls.call(os.getpid) == first


def test_process_that_dies_is_too_late(calls: BoundedCalls) -> None:
    """A crash of a library is no verdict."""
    with pytest.raises(TooLateError):
        calls.call(os.abort)
