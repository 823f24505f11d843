"""Who gets a place in the sandbox, and how a client says who it is."""

from dataclasses import dataclass

import pytest

from appliance.domain.sandbox import (
    UNNAMED,
    JobCaller,
    JobKind,
    Operation,
    caller_of,
    job_caller,
    socket_name,
)
from worker.sandbox.job_queue import Places

_PEERS_NAME_BYTES = 108
DRAW, EXAMINE, PING = JobKind.DRAW, JobKind.EXAMINE, JobKind.PING


@dataclass(frozen=True)
class Client:
    """Somebody who waits."""

    caller: JobCaller


def clients(*wanted: tuple[JobKind, str]) -> list[Client]:
    """Those who wait, in the order they came."""
    return [Client(JobCaller(kind, share)) for kind, share in wanted]


def filled(count: int, *wanted: tuple[JobKind, str]) -> list[tuple[str, str]]:
    """Who runs, when as many as may have a place."""
    places, left = Places(count), clients(*wanted)
    running: list[JobCaller] = []
    while (chosen := places.next(left, running)) is not None:
        left.remove(chosen)
        running.append(chosen.caller)
    return [(each.kind.value, each.share) for each in running]


def test_one_share_never_has_all_places() -> None:
    """Neither by drawing nor by sending documents."""
    assert len(filled(4, *[(EXAMINE, "acme")] * 9)) == 3
    assert len(filled(4, *[(DRAW, "acme")] * 9)) == 2
    assert len(filled(4, *[(DRAW, "acme")] * 9, *[(EXAMINE, "acme")] * 9)) == 3


def test_drawing_never_has_all_places() -> None:
    """However many integrators ask for pictures."""
    drawn = filled(4, *[(DRAW, f"i{number}") for number in range(9)])

    assert len(drawn) == 3
    assert len(filled(4, *[(DRAW, f"i{n}") for n in range(9)], (EXAMINE, "z"))) == 4


def test_a_flood_leaves_the_others_their_turn() -> None:
    """Who comes last of many, of another share, is next."""
    running = filled(4, *[(EXAMINE, "acme")] * 40, (EXAMINE, "beta"))

    assert running[1] == ("examine", "beta")
    assert len(running) == 4


def test_shares_take_turns_at_one_place() -> None:
    """However many of one share came first."""
    places, order = Places(1), []
    left = clients(*[(EXAMINE, "acme")] * 4, (EXAMINE, "beta"), (EXAMINE, "beta"))
    while (chosen := places.next(left, [])) is not None:
        left.remove(chosen)
        order.append(chosen.caller.share)

    assert order == ["acme", "beta", "acme", "beta", "acme", "acme"]


def test_share_waits_for_no_endless_stream_of_new_ones() -> None:
    """Of those that wait already, each has one turn before it."""
    places, new = Places(1), 0
    left = clients(*[(EXAMINE, f"new:{number}") for number in range(6)])
    for _ in range(10):
        left += clients((EXAMINE, "regular"))
        passed = 0
        while True:
            chosen = places.next(left, [])
            assert chosen is not None
            left.remove(chosen)
            if chosen.caller.share == "regular":
                break
            passed += 1
            left += clients((EXAMINE, f"newer:{new}"))
            new += 1
        assert passed <= 12


def test_one_place_serves_every_kind() -> None:
    """An installation with one job at a time draws, too."""
    assert filled(1, (DRAW, "acme")) == [("draw", "acme")]


def test_a_ping_waits_for_no_job() -> None:
    """It comes on top of all places, one at a time."""
    running = filled(2, (EXAMINE, "a"), (EXAMINE, "b"), (PING, ""), (PING, ""))

    assert sorted(running) == [("examine", "a"), ("examine", "b"), ("ping", "")]


def test_what_a_client_says_is_read_back() -> None:
    """Kind and share; no two names are alike."""
    caller = job_caller(Operation.RENDER, "ñ" * 300)

    names = {socket_name(caller) for _ in range(20)}

    assert len(names) == 20
    assert {caller_of(name) for name in names} == {caller}
    assert all(len(name) < _PEERS_NAME_BYTES for name in names)
    assert caller.kind is DRAW
    assert job_caller(Operation.VERIFY, "").kind is EXAMINE
    assert job_caller(Operation.VERIFY, "") != job_caller(Operation.VERIFY, "a")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/run/x.sock",
        None,
        b"",
        b"\0x",
        b"\0rubrica-sandbox/draw",
        b"\0rubrica-sandbox/paint/a/b",
        b"\0rubrica-sandbox/draw/\xff/b",
        b"\0rubrica-sandbox/draw/" + b"a" * 17 + b"/b",
    ],
)
def test_whoever_says_nothing_is_unnamed(name: object) -> None:
    """Such clients share what one integrator gets."""
    assert caller_of(name) is UNNAMED
