"""Ids of rows."""

import uuid
from unittest.mock import patch

from appliance.domain.ids import new_id

NOON_NS = 1_779_710_400_000_000_000


def id_at(ns: int) -> str:
    """An id of a time."""
    with patch("time.time_ns", return_value=ns):
        return new_id()


def test_ids_lie_in_the_order_of_their_time() -> None:
    """As text, to the millisecond; they begin with it."""
    made = [id_at(NOON_NS + n * 1_000_000) for n in range(50)]

    assert made == sorted(made)
    assert int(made[0].replace("-", "")[:12], 16) == NOON_NS // 1_000_000


def test_ids_of_one_time_are_others() -> None:
    """Each is a UUID v7 of the usual variant, and none comes twice."""
    made = {id_at(NOON_NS) for _ in range(1_000)}

    assert len(made) == 1_000
    parsed = [uuid.UUID(each) for each in made]
    assert {each.version for each in parsed} == {7}
    assert {each.variant for each in parsed} == {uuid.RFC_4122}
    assert sorted(made) == sorted(map(str, parsed))
