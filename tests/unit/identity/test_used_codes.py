"""How long the holder of a used code waits for one that works."""

from datetime import UTC, datetime, timedelta

import pytest

from appliance.identity import totp

_STEP = 60_000_000
_BEGIN = datetime.fromtimestamp(_STEP * totp.STEP_S, UTC)


class At:
    """A clock that stands."""

    def __init__(self, seconds: float) -> None:
        self._at = _BEGIN + timedelta(seconds=seconds)

    def now(self) -> datetime:
        """The time."""
        return self._at


@pytest.mark.parametrize(
    ("into_step", "typed", "last", "seconds"),
    [
        (0, 0, 0, 30),
        (29.5, 0, 0, 1),
        (10, 0, 1, 50),
        # The phone is a step ahead: its next code comes with ours.
        (10, 1, 1, 20),
        # An older code: the app may show another one by now.
        (10, -1, -1, 0),
        (10, -1, 0, 0),
    ],
)
def test_wait_is_counted_from_the_code_that_was_typed(
    into_step: float, typed: int, last: int, seconds: int
) -> None:
    """To the second, and never longer than until the code after the last one."""
    wait_s = totp.next_code_in(_STEP + typed, _STEP + last, At(into_step))

    assert wait_s == seconds
