"""Several signers of one turn, in any order, on both databases.

Source: docs/integration.md "Ask for signatures".
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import combinations_with_replacement
from math import comb

import pytest
from sqlalchemy import update

from appliance.database.tables import signature_request
from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import ActivationId, RequestId
from appliance.domain.requests.process import ProcessFilter
from appliance.domain.requests.request import Signer, SignOutcome
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import RequestState, Restriction
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_store import RequestStore
from appliance.signing.expiry import ExpiryJob
from tests.integration.signing.shared_document import OwnSandbox, Scene
from tests.support.factories.signing_front import WRONG, SigningFront
from tests.support.installation.record import CoreFixture
from tests.support.patience import CALL_S

pytestmark = pytest.mark.storage

C, R = ErrorCode, RequestState
FIRST_TWO = (1, 1, 2)


async def scene_of(
    core: CoreFixture, turns: Sequence[int], signers: Sequence[Signer] = ()
) -> Scene:
    """Nobody has signed yet."""
    people = [*signers]
    while len(people) < len(turns):
        people.append(await core.add_signer())
    requests = await core.add_process(
        [each.person for each in people],
        expires=core.now + timedelta(days=1),
        turns=turns,
    )
    return Scene(core, people, requests, OwnSandbox(grows=True))


async def scene_with(front: SigningFront, turns: Sequence[int]) -> Scene:
    """The same, with people who have one password."""
    signers = [front.signer]
    while len(signers) < len(turns):
        signers.append(await front.core.add_signer(front.secret))
    return await scene_of(front.core, turns, signers)


async def turns_told(scene: Scene) -> list[int]:
    """Places of those whose turn the audit told of, in order."""
    return [
        scene.requests.index(RequestId(row.event.request))
        for row in await scene.core.audit()
        if row.event.event.value == "request.turn" and row.event.request is not None
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_any_order_makes_one_chain(
    core: CoreFixture, order: tuple[int, int]
) -> None:
    """Each signs what the one before made; the next turn comes after both."""
    scene = await scene_of(core, FIRST_TWO)
    assert await scene.states() == [R.PENDING, R.PENDING, R.WAITING]
    one, other = order

    await scene.sign(one)

    between = await scene.states()
    assert (between[one], between[other], between[2]) == (
        R.SIGNED, R.PENDING, R.WAITING,
    )  # fmt: skip
    view = await core.view(scene.requests[other])
    assert (view.sha256, view.held) == (f"{one + 10:064x}", False)
    assert await turns_told(scene) == []

    await scene.sign(other)

    assert await scene.states() == [R.SIGNED, R.SIGNED, R.PENDING]
    assert (await core.view(scene.requests[2])).sha256 == f"{other + 10:064x}"
    assert await turns_told(scene) == [2]
    async with core.store.read() as transaction:
        store = DocumentStore(transaction)
        of_one = await store.holding(scene.requests[one])
        of_other = await store.holding(scene.requests[other])
    assert [each.request for each in of_one] == [
        scene.requests[other], scene.requests[one],
    ]  # fmt: skip
    assert [each.request for each in of_other] == [scene.requests[other]]


async def test_one_then_two_then_one(core: CoreFixture) -> None:
    """Both of the second turn are told of it, and have one predecessor."""
    scene = await scene_of(core, (1, 4, 4, 9))

    await scene.sign(0)
    assert await scene.states() == [R.SIGNED, R.PENDING, R.PENDING, R.WAITING]
    assert await turns_told(scene) == [1, 2]
    for at in (2, 1, 3):
        await scene.sign(at)

    assert await scene.states() == [R.SIGNED] * 4
    assert await turns_told(scene) == [1, 2, 3]
    assert await scene.turns.give_on() == 0


async def test_only_one_is_signed_at_a_time(front: SigningFront) -> None:
    """409 `IN_PROGRESS` before any password is looked at; then it can be signed."""
    scene = await scene_with(front, FIRST_TWO)
    await scene.begin(1)

    refused = await front.code(front.command(scene.requests[0], password=WRONG))
    assert refused is C.IN_PROGRESS
    assert await front.counted() == 0
    await scene.publish(1)

    outcome = await front.signed(front.command(scene.requests[0]))
    assert outcome.document is not None


async def test_both_at_the_same_moment(front: SigningFront) -> None:
    """One is signed, the other is told to come again, and then is signed too."""
    scene = await scene_with(front, (1, 1))
    calls = [
        asyncio.create_task(front.signing.sign(front.command(request), signer))
        for request, signer in zip(scene.requests, scene.people, strict=True)
    ]
    await front.notified()
    await asyncio.wait(calls, timeout=CALL_S, return_when=asyncio.FIRST_COMPLETED)
    (winner,) = [at for at, call in enumerate(calls) if not call.done()]
    await scene.publish(winner)
    await announced(front)
    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    (loser,) = [each for each in outcomes if isinstance(each, ApplianceError)]
    assert loser.code is C.IN_PROGRESS
    assert len([each for each in outcomes if isinstance(each, SignOutcome)]) == 1
    await scene.sign(1 - winner)
    assert await scene.states() == [R.SIGNED, R.SIGNED]


async def announced(front: SigningFront) -> None:
    """Whoever waits looks at the record."""
    for activation in await front.activations():
        await front.core.completion_notifier.publish(ActivationId(activation))


async def test_document_that_was_seen_is_an_earlier_one(front: SigningFront) -> None:
    """Whoever says what they saw learns that another one has signed since."""
    scene = await scene_with(front, FIRST_TWO)
    seen = (await front.core.view(scene.requests[0])).sha256
    await scene.sign(1)

    command = front.command(scene.requests[0], if_match=seen)
    assert await front.code(command) is C.DOCUMENT_CHANGED
    now = (await front.core.view(scene.requests[0])).sha256
    await front.signed(front.command(scene.requests[0], if_match=now))


async def test_nobody_of_a_shared_turn_certifies(front: SigningFront) -> None:
    """The other could come first, and only a first signature certifies."""
    scene = await scene_with(front, (1, 1))
    certifying = SignParameters(restriction=Restriction.FORM_FILLING)

    code = await front.code(front.command(scene.requests[0], certifying))

    assert code is C.SIGNERS_LOCKED_OUT


async def test_what_one_made_comes_later(front: SigningFront) -> None:
    """The sandbox was away: nobody signs the earlier document meanwhile."""
    scene = await scene_with(front, (1, 1, 1, 2))
    await scene.sign(1, inspects=False)
    assert await scene.states() == [R.PENDING, R.SIGNED, R.PENDING, R.WAITING]
    assert await front.code(front.command(scene.requests[0])) is C.IN_PROGRESS

    assert await scene.turns.give_on() == 2

    assert await scene.turns.give_on() == 0
    for at in (0, 2):
        assert (await scene.core.view(scene.requests[at])).sha256 == f"{11:064x}"
    await scene.sign(0, inspects=False)
    assert await scene.turns.give_on() == 1
    await scene.sign(2, inspects=False)
    assert await scene.states() == [R.SIGNED, R.SIGNED, R.SIGNED, R.WAITING]
    assert await scene.turns.give_on() == 1
    assert (await scene.core.view(scene.requests[3])).sha256 == f"{12:064x}"


async def test_output_that_cannot_be_taken_in_ends_the_turn(core: CoreFixture) -> None:
    """Those of the turn are told why, as those of later ones are."""
    scene = await scene_of(core, FIRST_TWO)
    await scene.sign(0, inspects=False)
    scene.sandbox.refusal = DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX)

    assert await scene.turns.give_on() == 2

    ended = await core.request_states(scene.requests[1:])
    assert ended == [(R.CANCELLED, "PDF_TOO_COMPLEX")] * 2
    assert await scene.turns.give_on() == 0


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(
    ("how", "then", "rest"),
    [
        ("reject", R.REJECTED, R.CANCELLED),
        ("cancel", R.CANCELLED, R.CANCELLED),
        ("fail", R.FAILED, R.CANCELLED),
        ("expire", R.EXPIRED, R.EXPIRED),
    ],
)
async def test_end_of_one_ends_its_turn(
    core: CoreFixture, at: int, how: str, then: RequestState, rest: RequestState
) -> None:
    """And those of later ones; the process has the state of who ended it."""
    scene = await scene_of(core, FIRST_TWO)
    if how == "reject":
        await scene.services.reject(scene.people[at], scene.requests[at], "no")
    elif how == "cancel":
        await scene.services.cancel(scene.requests[at], "operator")
    elif how == "fail":
        await scene.fail(at)
    else:
        core.clock.forward(86_400)
        job = ExpiryJob(core.store, core.completion_notifier, core.clock)
        assert await job.expire_requests() == 3

    states = await scene.states()
    assert (states[at], states[1 - at], states[2]) == (then, rest, rest)
    assert await process_state(scene) is then
    assert await scene.turns.give_on() == 0


async def test_who_is_being_signed_goes_on_where_another_rejects(
    core: CoreFixture,
) -> None:
    """What is published stays; what is given back is over."""
    published = await scene_of(core, FIRST_TWO)
    returned = await scene_of(core, FIRST_TWO)
    for scene in (published, returned):
        await scene.begin(0)
        await scene.services.reject(scene.people[1], scene.requests[1], "no")
        assert await scene.states() == [R.IN_PROGRESS, R.REJECTED, R.CANCELLED]
        assert await process_state(scene) is R.REJECTED
        if scene is published:
            await scene.publish(0)
        else:
            await scene.give_back()

    assert await published.states() == [R.SIGNED, R.REJECTED, R.CANCELLED]
    assert await published.turns.give_on() == 1
    assert await returned.states() == [R.CANCELLED, R.REJECTED, R.CANCELLED]
    assert await returned.turns.give_on() == 0


async def process_state(scene: Scene) -> RequestState:
    """That of the process, by its list and by itself alike."""
    view = await scene.core.view(scene.requests[0])
    async with scene.core.store.read() as transaction:
        store = ProcessStore(transaction)
        found = await store.get(view.integrator, view.process)
        assert found is not None
        listed = []
        for state in RequestState:
            each = ProcessFilter(state=state)
            those = await store.matching(view.integrator, each)
            listed += [state for _, process in those if process.id == view.process]
    assert listed == [found.state]
    return found.state


async def test_state_by_list_and_by_itself(sqlite_core: CoreFixture) -> None:
    """Whatever states the requests of a process have; each turn has each of them."""
    scene = await scene_of(sqlite_core, (1, 1, 2))
    count = 0
    for states in combinations_with_replacement(RequestState, 3):
        turned = count % 3
        ordered = (*states[turned:], *states[:turned])
        async with sqlite_core.store.write() as transaction:
            for request, state in zip(scene.requests, ordered, strict=True):
                await transaction.connection.execute(
                    update(signature_request)
                    .where(signature_request.c.id == request)
                    .values(state=state.value)
                )
        state = await process_state(scene)
        count += 1
        assert (state is R.SIGNED) == (set(states) == {R.SIGNED})
    assert count == comb(len(RequestState) + 2, 3)


async def test_turn_that_somebody_holds_is_waited_for(core: CoreFixture) -> None:
    """Two who end a turn at once never wait for each other in a ring."""
    scene = await scene_of(core, (1, 1, 1))
    ended = await asyncio.gather(
        *(
            scene.services.reject(person, request, "no")
            for person, request in zip(scene.people, scene.requests, strict=True)
        ),
        return_exceptions=True,
    )

    refused = [each for each in ended if isinstance(each, BaseException)]
    assert [each.code for each in refused if isinstance(each, ApplianceError)] == [
        C.STATE, C.STATE,
    ]  # fmt: skip
    states = await scene.states()
    assert sorted(states) == [R.CANCELLED, R.CANCELLED, R.REJECTED]


async def test_signing_and_rejecting_at_once(core: CoreFixture) -> None:
    """Publication of one and rejection by another, in whatever order they come."""
    for _ in range(5):
        scene = await scene_of(core, (1, 1, 2))
        await scene.begin(1)
        await asyncio.gather(
            scene.publish(1),
            scene.services.reject(scene.people[0], scene.requests[0], "no"),
        )

        assert await scene.states() == [R.REJECTED, R.SIGNED, R.CANCELLED]


async def test_shared_and_held_are_told_of_each(core: CoreFixture) -> None:
    """Who is alone in a turn is held by nobody."""
    scene = await scene_of(core, (1, 2, 2))
    views = [await core.view(request) for request in scene.requests]
    assert [view.shared for view in views] == [False, True, True]
    assert [view.turn_number for view in views] == [1, 2, 2]
    plain = await core.add_process([each.person for each in scene.people])
    async with core.store.read() as transaction:
        found = await RequestStore(transaction).named(plain)
    assert [found[each].turn_number for each in plain] == [1, 2, 3]
    assert not any(each.shared or each.held for each in found.values())
    assert replace(views[0], turn=None).turn_number == 1
