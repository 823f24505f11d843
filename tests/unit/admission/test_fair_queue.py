"""Places of a shared pool: bounded, and nobody gets all."""

import asyncio
from dataclasses import replace

import pytest

from appliance.admission.fair_queue import FairLimits, FairQueue, Place
from appliance.admission.work_owner import (
    INSTALLATION,
    STRANGERS,
    WORK_OWNER,
    WorkOwner,
    working_for,
)
from appliance.domain.errors import ApplianceError, ErrorCode
from tests.support.processes.played_time import in_played_time

FLOOD = WorkOwner("acme", "session:1")
OTHER_PARTY = WorkOwner("acme", "session:2")
OTHER_SHARE = WorkOwner("beta", "session:3")
LIMITS = FairLimits(
    places=4,
    per_share=3,
    per_party=2,
    waiting=6,
    waiting_per_share=5,
    waiting_per_party=3,
    patience_s=30,
)


async def waiting(queue: FairQueue, owner: WorkOwner) -> asyncio.Task[Place]:
    """Somebody who had to wait."""
    task = asyncio.create_task(queue.acquire(owner))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def demand_refused(queue: FairQueue, owner: WorkOwner) -> None:
    """Nobody waits for this answer."""
    task = asyncio.create_task(queue.acquire(owner))
    await asyncio.sleep(0)
    assert task.done()
    with pytest.raises(ApplianceError) as caught:
        await task
    assert caught.value.code is ErrorCode.OVERLOADED
    assert caught.value.extras["retryAfter"]


@in_played_time
async def test_a_partys_flood_is_refused_at_once_and_others_get_places() -> None:
    """Two run, three wait, the sixth is told; others find their places free."""
    queue = FairQueue(LIMITS, "test")
    held = [await queue.acquire(FLOOD) for _ in range(2)]
    waiters = [await waiting(queue, FLOOD) for _ in range(3)]

    await demand_refused(queue, FLOOD)

    await queue.acquire(OTHER_PARTY)
    await queue.acquire(OTHER_SHARE)
    for place in held:
        place.release()
    await asyncio.wait_for(asyncio.gather(*waiters[:2]), 5)
    assert not waiters[2].done()
    waiters[2].cancel()


@in_played_time
async def test_a_share_never_has_all_places() -> None:
    """Any number of an integrator's sessions leave one place to the others."""
    queue = FairQueue(LIMITS, "test")
    for number in range(3):
        await queue.acquire(WorkOwner("acme", f"session:{number}"))

    waiter = await waiting(queue, WorkOwner("acme", "session:9"))

    await queue.acquire(OTHER_SHARE)
    waiter.cancel()


@in_played_time
async def test_what_may_wait_in_all_is_bounded() -> None:
    """By share, and over all shares."""
    queue = FairQueue(LIMITS, "test")
    for number in range(3):
        await queue.acquire(WorkOwner("acme", f"session:{number}"))
    await queue.acquire(OTHER_SHARE)
    waiters = [
        await waiting(queue, WorkOwner("acme", f"session:{number}"))
        for number in range(5)
    ]

    await demand_refused(queue, WorkOwner("acme", "session:9"))
    waiters.append(await waiting(queue, OTHER_SHARE))
    await demand_refused(queue, OTHER_SHARE)
    for waiter in waiters:
        waiter.cancel()


@in_played_time
async def test_who_has_nothing_waits_in_the_place_of_who_has_most() -> None:
    """The last of the largest share is told; what waits is no more, nor one fewer."""
    queue = FairQueue(LIMITS, "test")
    held = [await queue.acquire(WorkOwner("acme", f"s:{n}")) for n in range(3)]
    await queue.acquire(OTHER_SHARE)
    flood = [await waiting(queue, WorkOwner("acme", f"s:{n}")) for n in range(5)]
    other = await waiting(queue, OTHER_SHARE)

    third = await waiting(queue, WorkOwner("gamma", "session:9"))

    with pytest.raises(ApplianceError) as refused:
        await flood[-1]
    assert refused.value.code is ErrorCode.OVERLOADED
    assert queue.state().waiting == LIMITS.waiting
    held[0].release()
    await asyncio.wait_for(third, 5)
    assert queue.state().held == LIMITS.places
    assert not any(each.done() for each in (*flood[:-1], other))
    for waiter in (*flood, other):
        waiter.cancel()
    await asyncio.gather(*flood, other, return_exceptions=True)
    assert queue.state().held == LIMITS.places


@in_played_time
async def test_who_has_waited_is_displaced_by_nobody() -> None:
    """Where that is said: who is refused knows it soon."""
    now = 0.0
    limits = FairLimits(2, 2, 2, 2, 2, 2, displaced_within_s=0.5)
    queue = FairQueue(limits, "test", lambda: now)
    held = [await queue.acquire(FLOOD) for _ in range(limits.places)]
    flood = [await waiting(queue, FLOOD) for _ in range(limits.waiting)]
    now = 0.6
    await demand_refused(queue, OTHER_SHARE)
    held[0].release()
    await flood[0]
    flood.append(await waiting(queue, FLOOD))
    now = 1.0

    other = await waiting(queue, OTHER_SHARE)

    with pytest.raises(ApplianceError):
        await flood[-1]
    for waiter in (flood[1], other):
        waiter.cancel()


@in_played_time
async def test_a_share_may_have_its_part_of_those_who_may_wait_now() -> None:
    """However few these are: others find room too."""
    now = 0.0
    limits = FairLimits(8, 6, 6, 16, 12, 12, waiting_s=0.6)
    queue = FairQueue(limits, "test", lambda: now)
    held = [await queue.acquire(FLOOD) for _ in range(limits.per_share)]
    others = [await queue.acquire(OTHER_SHARE) for _ in range(2)]
    for _ in range(40):
        now += 0.5
        others.pop(0).release()
        others.append(await queue.acquire(OTHER_SHARE))

    waiters = [await waiting(queue, FLOOD) for _ in range(3)]
    await demand_refused(queue, FLOOD)
    waiters.append(await waiting(queue, OTHER_SHARE))
    await demand_refused(queue, OTHER_SHARE)
    for waiter in waiters:
        waiter.cancel()
    for place in (*held, *others):
        place.release()


@in_played_time
async def test_who_was_told_that_there_is_room_finds_some() -> None:
    """Whoever came before them meanwhile."""
    queue = FairQueue(replace(LIMITS, places=1, waiting=1), "test")
    held = await queue.acquire(FLOOD)
    assert queue.demand_room(OTHER_PARTY)
    first = await waiting(queue, FLOOD)
    await demand_refused(queue, OTHER_PARTY)

    second = asyncio.create_task(queue.acquire(OTHER_PARTY, has_room=True))
    await asyncio.sleep(0)

    assert not second.done()
    held.release()
    (await first).release()
    (await second).release()


@in_played_time
async def test_who_asks_for_room_displaces_nobody() -> None:
    """Only who comes to wait does."""
    queue = FairQueue(replace(LIMITS, places=1, waiting=2), "test")
    held = await queue.acquire(FLOOD)
    waiters = [await waiting(queue, FLOOD) for _ in range(2)]

    # They would displace one: no room is kept for them, to have one more wait.
    assert not queue.demand_room(OTHER_SHARE)
    with pytest.raises(ApplianceError) as refused:
        queue.demand_room(OTHER_PARTY)
    assert refused.value.code is ErrorCode.OVERLOADED
    assert queue.state().waiting == len(waiters)
    held.release()
    (await waiters[0]).release()
    (await waiters[1]).release()
    queue.demand_room(OTHER_PARTY)


@in_played_time
async def test_nobody_who_has_little_is_displaced() -> None:
    """Of shares that have one each, who comes last is told."""
    limits = replace(LIMITS, places=2, waiting=2)
    queue = FairQueue(limits, "test")
    for number in range(2):
        await queue.acquire(WorkOwner(f"share:{number}", "s"))
    waiters = [await waiting(queue, WorkOwner(f"share:{n}", "s")) for n in (2, 3)]

    await demand_refused(queue, WorkOwner("share:4", "s"))
    for waiter in waiters:
        waiter.cancel()


@in_played_time
async def test_a_free_place_goes_to_who_has_least() -> None:
    """Not to who came first."""
    queue = FairQueue(FairLimits(places=2, per_share=2, per_party=2), "test")
    held = [await queue.acquire(FLOOD) for _ in range(2)]
    first = await waiting(queue, FLOOD)
    second = await waiting(queue, OTHER_SHARE)

    held[0].release()

    (await second).release()
    (await first).release()


@in_played_time
async def test_shares_take_turns() -> None:
    """With one place a long queue of one share is passed at every second turn."""
    queue = FairQueue(FairLimits(places=1, per_share=1, per_party=1), "test")
    order: list[str] = []
    place = await queue.acquire(INSTALLATION)

    async def work(owner: WorkOwner) -> None:
        async with queue.place(owner):
            order.append(owner.share)

    tasks = [asyncio.create_task(work(FLOOD)) for _ in range(4)]
    tasks += [asyncio.create_task(work(OTHER_SHARE)) for _ in range(2)]
    await asyncio.sleep(0)
    place.release()
    await asyncio.gather(*tasks)

    assert order == ["acme", "beta", "acme", "beta", "acme", "acme"]


@pytest.mark.parametrize(
    ("in_order", "order"), [(True, "acme acme beta"), (False, "acme beta acme")]
)
@in_played_time
async def test_places_are_given_in_order_where_they_are_to_be(
    order: str, *, in_order: bool
) -> None:
    """Else shares take turns, whoever came first."""
    queue = FairQueue(replace(LIMITS, places=1, in_order=in_order), "test")
    held = await queue.acquire(WorkOwner("gamma", "session:4"))
    served: list[str] = []

    async def work(owner: WorkOwner) -> None:
        async with queue.place(owner):
            served.append(owner.share)

    tasks = [
        asyncio.create_task(work(owner)) for owner in (FLOOD, OTHER_PARTY, OTHER_SHARE)
    ]
    await asyncio.sleep(0)
    held.release()
    await asyncio.gather(*tasks)

    assert " ".join(served) == order


def stranger(number: int) -> WorkOwner:
    """An address from which nobody has proven who they are."""
    address = f"address:{number}"
    return WorkOwner(address, address, STRANGERS)


@pytest.mark.parametrize("group", ["", STRANGERS])
@in_played_time
async def test_who_was_served_before_waits_for_no_endless_stream_of_new_ones(
    group: str,
) -> None:
    """However many new shares keep coming, one round of those who wait goes first."""
    queue = FairQueue(FairLimits(places=1, per_share=1, per_party=1), "test")
    regular = WorkOwner("address:regular", "address:regular", group)
    crowd = [
        asyncio.create_task(queue.acquire(replace(stranger(number), group=group)))
        for number in range(20)
    ]
    await asyncio.sleep(0)
    served: list[int] = []
    for call in range(5):
        waiter = asyncio.create_task(queue.acquire(regular))
        new = 0
        while True:
            await asyncio.sleep(0)
            if waiter.done():
                break
            running = next(each for each in crowd if each.done())
            crowd.remove(running)
            crowd.append(
                asyncio.create_task(
                    queue.acquire(
                        replace(stranger(1000 * (call + 1) + new), group=group)
                    )
                )
            )
            await asyncio.sleep(0)
            (await running).release()
            new += 1
        served.append(new)
        (await waiter).release()
    for each in crowd:
        each.cancel()

    assert max(served) <= 2 * len(crowd)


@in_played_time
async def test_strangers_leave_places_and_room_to_who_is_known() -> None:
    """A quarter of both, however many come; the known one waits for none of them."""
    limits = FairLimits(places=4, per_share=3, per_party=2, waiting=8)
    queue = FairQueue(limits, "test")
    held = [await queue.acquire(stranger(number)) for number in range(3)]
    crowd = [await waiting(queue, stranger(number)) for number in range(3, 9)]
    await demand_refused(queue, stranger(9))

    last = await queue.acquire(FLOOD)
    known = await waiting(queue, OTHER_SHARE)

    held[0].release()
    (await asyncio.wait_for(known, 5)).release()
    await asyncio.sleep(0)
    assert sum(each.done() for each in crowd) == 1
    last.release()
    for waiter in crowd:
        waiter.cancel()


@in_played_time
async def test_known_one_takes_the_room_of_a_stranger() -> None:
    """Where the room is full: of all who wait, strangers together have most."""
    limits = FairLimits(places=1, per_share=1, per_party=1, waiting=4)
    queue = FairQueue(limits, "test")
    held = await queue.acquire(stranger(0))
    crowd = [await waiting(queue, stranger(number)) for number in range(1, 4)]
    first = await waiting(queue, FLOOD)

    second = await waiting(queue, OTHER_SHARE)

    with pytest.raises(ApplianceError):
        await crowd[-1]
    held.release()
    (await asyncio.wait_for(first, 5)).release()
    (await asyncio.wait_for(second, 5)).release()
    for waiter in crowd[:-1]:
        (await waiter).release()


@in_played_time
async def test_strangers_have_their_turns_among_many_who_are_known() -> None:
    """As one share has: nobody who comes for the first time waits for ever."""
    queue = FairQueue(FairLimits(places=1, per_share=1, per_party=1), "test")
    held = await queue.acquire(WorkOwner("known:0"))
    served: list[str] = []

    async def work(owner: WorkOwner) -> None:
        async with queue.place(owner):
            served.append(owner.share)

    tasks = [asyncio.create_task(work(WorkOwner(f"known:{n}"))) for n in range(1, 21)]
    tasks += [asyncio.create_task(work(stranger(n))) for n in range(8)]
    await asyncio.sleep(0)
    held.release()
    await asyncio.gather(*tasks)

    assert served.index("address:0") <= 20
    assert served[-7:] == [f"address:{number}" for number in range(1, 8)]


@in_played_time
async def test_nothing_is_kept_where_most_are_strangers() -> None:
    """All places, and all the room."""
    limits = FairLimits(places=2, per_share=2, per_party=2, waiting=0, for_anybody=True)
    queue = FairQueue(limits, "test")

    for number in range(2):
        await queue.acquire(stranger(number))
    await demand_refused(queue, stranger(2))


@in_played_time
async def test_strangers_use_their_part_of_the_time_and_rest_between() -> None:
    """A place that is held for a second is theirs again after four, not for others."""
    now = asyncio.get_running_loop().time
    limits = FairLimits(places=1, per_share=1, per_party=1, group_part=0.25)
    queue = FairQueue(limits, "test", now)
    began: dict[str, float] = {}
    came = now()

    async def work(owner: WorkOwner) -> None:
        async with queue.place(owner):
            began[owner.share] = now() - came
            await asyncio.sleep(1)

    tasks = [asyncio.create_task(work(stranger(number))) for number in range(3)]
    await asyncio.sleep(1.5)
    await work(OTHER_SHARE)
    await asyncio.gather(*tasks)

    assert began == pytest.approx(
        {"address:0": 0, OTHER_SHARE.share: 1.5, "address:1": 4, "address:2": 8}
    )


@in_played_time
async def test_strangers_do_not_rest_for_a_slow_database() -> None:
    """A place that was held for half a minute costs them what a second does."""
    now = asyncio.get_running_loop().time
    limits = FairLimits(places=2, per_share=2, per_party=2, group_part=0.1)
    queue = FairQueue(limits, "test", now)

    async with queue.place(stranger(1)):
        await asyncio.sleep(30)
    ended = now()

    async with queue.place(stranger(2)):
        assert now() == ended


@in_played_time
@pytest.mark.parametrize(
    ("code", "rest_s"),
    [
        (ErrorCode.STORE_UNAVAILABLE, 0),
        (ErrorCode.OVERLOADED, 0),
        (ErrorCode.LOGIN_FAILED, 0.9),
    ],
)
async def test_strangers_rest_for_nothing_that_was_not_done(
    code: ErrorCode, rest_s: float
) -> None:
    """Without a database nothing was used; a refusal is work."""
    now = asyncio.get_running_loop().time
    limits = FairLimits(places=2, per_share=2, per_party=2, group_part=0.25)
    queue = FairQueue(limits, "test", now)

    async def fail() -> None:
        async with queue.place(stranger(1)):
            await asyncio.sleep(0.9)
            raise ApplianceError(code)

    with pytest.raises(ApplianceError):
        await fail()
    ended = now()

    async with queue.place(stranger(2)):
        assert now() - ended == pytest.approx(rest_s)


@in_played_time
async def test_strangers_do_not_rest_for_what_they_waited_for_a_core() -> None:
    """A place is held meanwhile; its group rests for the work that begins then."""
    now = asyncio.get_running_loop().time
    limits = FairLimits(places=1, per_share=1, per_party=1, group_part=0.25)
    queue = FairQueue(limits, "test", now)

    place = await queue.acquire(stranger(1))
    await asyncio.sleep(0.8)
    place.begin()
    await asyncio.sleep(0.1)
    place.release()
    ended = now()

    async with queue.place(stranger(2)):
        assert now() - ended == pytest.approx(0.3)


@in_played_time
async def test_strangers_that_come_seldom_rest_for_nobody() -> None:
    """Whoever comes after the rest of the one before finds the place free."""
    now = asyncio.get_running_loop().time
    limits = FairLimits(places=2, per_share=2, per_party=2, group_part=0.25)
    queue = FairQueue(limits, "test", now)

    for number in range(4):
        came = now()
        async with queue.place(stranger(number)):
            assert now() == came
            await asyncio.sleep(1)
        await asyncio.sleep(1)


@in_played_time
async def test_nobody_waits_for_ever() -> None:
    """Whoever waited too long is told, and its place in the queue is free."""
    queue = FairQueue(
        FairLimits(places=1, per_share=1, per_party=1, patience_s=0.01), "test"
    )
    held = await queue.acquire(FLOOD)

    with pytest.raises(ApplianceError) as caught:
        await queue.acquire(OTHER_SHARE)

    assert caught.value.code is ErrorCode.OVERLOADED
    held.release()
    async with queue.place(OTHER_SHARE):
        pass


@pytest.mark.parametrize(("free_every_s", "may_wait"), [(0.1, 6), (0.01, 16), (5, 2)])
@in_played_time
async def test_no_more_wait_than_have_a_place_soon(
    free_every_s: float, may_wait: int
) -> None:
    """By how fast places come free of late; some wait on the slowest machine too."""
    now = 0.0
    limits = FairLimits(4, 4, 4, 16, 16, 16, waiting_s=0.601)
    queue = FairQueue(limits, "test", lambda: now)
    held = [await queue.acquire(FLOOD) for _ in range(limits.places)]
    for _ in range(40):
        now += free_every_s
        held.pop(0).release()
        held.append(await queue.acquire(FLOOD))

    waiters = [await waiting(queue, FLOOD) for _ in range(may_wait)]
    await demand_refused(queue, FLOOD)
    assert not any(each.done() for each in waiters)
    for waiter in waiters:
        waiter.cancel()


@in_played_time
async def test_idle_time_is_not_part_of_the_pace() -> None:
    """Only while all places are held others would wait."""
    now = 0.0
    limits = FairLimits(2, 2, 2, 8, 8, 8, waiting_s=0.401)
    queue = FairQueue(limits, "test", lambda: now)
    for _ in range(20):
        held = [await queue.acquire(FLOOD) for _ in range(limits.places)]
        now += 0.1
        held[0].release()
        now += 1000
        held[1].release()
        now += 1000

    held = [await queue.acquire(FLOOD) for _ in range(limits.places)]
    waiters = [await waiting(queue, FLOOD) for _ in range(4)]
    await demand_refused(queue, FLOOD)
    for waiter in waiters:
        waiter.cancel()


@in_played_time
async def test_who_come_together_end_together() -> None:
    """What passes before the first of them ends is not the time of one."""
    now = 0.0
    limits = FairLimits(8, 8, 8, 16, 16, 16, waiting_s=0.701)
    queue = FairQueue(limits, "test", lambda: now)
    for _ in range(4):
        held = [await queue.acquire(FLOOD) for _ in range(limits.places)]
        now += 0.7
        for place in held:
            place.release()
        now += 1000

    assert await may_wait(queue, limits) == limits.places


@in_played_time
async def test_what_is_held_up_says_nothing_of_the_pace() -> None:
    """A place that is given back while its work goes on."""
    now = 0.0
    limits = FairLimits(4, 4, 4, 16, 16, 16, waiting_s=0.601)
    queue = FairQueue(limits, "test", lambda: now)
    held = [await queue.acquire(FLOOD) for _ in range(limits.places)]
    for round_ in range(20):
        now += 0.1
        held.pop(0).release()
        held.append(await queue.acquire(FLOOD))
        now += 5 if round_ % 2 else 0.0
        held.pop(0).release(is_held_up=True)
        held.append(await queue.acquire(FLOOD))
    for place in held:
        place.release(is_held_up=True)

    assert await may_wait(queue, limits) == 6


async def may_wait(queue: FairQueue, limits: FairLimits) -> int:
    """How many may, where all places are held."""
    held = [await queue.acquire(FLOOD) for _ in range(limits.places)]
    waiters: list[asyncio.Task[Place]] = []
    while True:
        try:
            queue.demand_room(FLOOD)
        except ApplianceError:
            break
        waiters.append(await waiting(queue, FLOOD))
    for waiter in waiters:
        waiter.cancel()
    for place in held:
        place.release(is_held_up=True)
    return len(waiters)


@in_played_time
async def test_nobody_waits_where_nobody_may() -> None:
    """A pool may turn away at once whoever finds no place."""
    queue = FairQueue(FairLimits(places=2, per_share=1, per_party=1, waiting=0), "test")
    await queue.acquire(FLOOD)

    await demand_refused(queue, FLOOD)

    await queue.acquire(OTHER_SHARE)
    await demand_refused(queue, WorkOwner("gamma", "session:9"))


@in_played_time
async def test_who_leaves_keeps_no_place() -> None:
    """Neither while waiting, nor when the place comes in the same moment."""
    queue = FairQueue(FairLimits(places=1, per_share=1, per_party=1), "test")
    held = await queue.acquire(FLOOD)
    leaving = await waiting(queue, OTHER_SHARE)
    held.release()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving

    held = await queue.acquire(FLOOD)
    leaving = await waiting(queue, OTHER_SHARE)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    held.release()
    held.release()

    async with queue.place(OTHER_SHARE):
        assert not queue._may_run(FLOOD)
    assert queue._may_run(FLOOD)


@in_played_time
async def test_tasks_work_for_whom_their_maker_did() -> None:
    """And for nobody any more after the block."""

    async def whose() -> WorkOwner:
        return WORK_OWNER.get()

    with working_for("acme", "session:1"):
        with working_for("beta"):
            assert await asyncio.create_task(whose()) == WorkOwner("beta", "session:1")
        assert WORK_OWNER.get() == FLOOD
    assert WORK_OWNER.get() is INSTALLATION
