"""Claims, leases, fencing and intents, on both databases.

Source: design §3, 4 and "Lifetimes".
"""

import asyncio
import dataclasses
from dataclasses import replace
from datetime import timedelta

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.records.activations import Claim, IntentRow, Terms
from appliance.domain.vocab import ActivationState, IntentState, ItemState, RequestState
from appliance.services.claiming import CertificateChangedError
from tests.core_parts import CERTIFICATE, DIGEST, HOST, MADE, CoreParts, signed_view

A, S = ActivationState, IntentState
TERMS = Terms(
    host=HOST,
    lease=timedelta(seconds=10),
    key=timedelta(seconds=60),
    finish=timedelta(seconds=600),
    attempts=10,
)


async def claim(core: CoreParts, owner: str = "signing/h/1/p") -> Claim | None:
    """Claim in a transaction of its own."""
    async with core.store.write() as records:
        return await records.activations.claim_next(owner, core.now, TERMS)


async def claimed(core: CoreParts, owner: str = "signing/h/1/p") -> Claim:
    """Claim something that is there."""
    found = await claim(core, owner)
    assert found is not None
    return found


def ended(intents: list[IntentRow]) -> list[tuple[int, int, IntentState]]:
    """Attempt, item and state of each intent."""
    return [(intent.attempt, intent.item, intent.state) for intent in intents]


# -- taking ------------------------------------------------------------------------


async def test_claim_gives_what_was_recorded(core: CoreParts) -> None:
    """A claim carries the items in order, with their exact parameters."""
    signer = await core.add_signer()
    activation = await core.add_activation(signer, items=3)

    found = await claimed(core)

    assert (found.id, found.person, found.fence) == (activation, signer.person, 1)
    assert (found.state, found.created) == (A.KEYING, core.now)
    assert found.key_until == core.now + timedelta(seconds=63)
    assert [item.seq for item in found.items] == [0, 1, 2]
    for item in found.items:
        view = await core.view(item.request)
        assert item.state is ItemState.WAITING
        assert item.document_sha256 == view.sha256
        assert item.params.sha256(item.request) == item.params_sha256


async def test_what_goes_out_is_of_the_role_with_a_network(core: CoreParts) -> None:
    """It takes nothing else; a signing worker only what it neglects."""
    abroad = replace(TERMS, host="chores", outside=True)

    async def take(terms: Terms) -> Claim | None:
        async with core.store.write() as records:
            found = await records.activations.next_claims(core.now, terms)
            taken = await records.activations.claim_next("w", core.now, terms)
        assert (found is None) is (taken is None)
        return taken

    await core.add_activation(await core.add_signer())
    assert await take(abroad) is None
    held = await claimed(core)
    async with core.store.write() as records:
        assert await records.activations.intend(held, 0, DIGEST, core.now)
        assert await records.activations.keyed(held, 0, MADE, core.now)
        await records.activations.settle(held, core.now)
        assert await records.activations.hand_out(held, core.now)

    assert await take(TERMS) is None
    taken = await take(abroad)
    assert taken is not None
    assert (taken.outside, taken.state) == (True, A.FINISHING)
    core.clock.forward(39)
    assert await take(TERMS) is None
    core.clock.forward(1)
    again = await take(TERMS)
    assert again is not None
    assert (again.outside, again.fence) == (True, taken.fence + 1)


async def test_claim_takes_the_oldest(core: CoreParts) -> None:
    """First come, first served; then nothing is left."""
    signer = await core.add_signer()
    made = []
    for _ in range(3):
        made.append(await core.add_activation(signer))
        core.clock.forward(1)

    taken = [await claim(core) for _ in range(4)]

    assert [each and each.id for each in taken] == [*made, None]


async def test_claim_has_one_winner_of_thirty(core: CoreParts) -> None:
    """Thirty claimants, five activations, two processes: each is taken once."""
    signer = await core.add_signer()
    made = {await core.add_activation(signer) for _ in range(5)}
    stores = (core.store, core.other_store())

    async def take(number: int) -> Claim | None:
        async with stores[number % 2].write() as records:
            return await records.activations.claim_next(
                f"signing/h/{number}/p", core.now, TERMS
            )

    taken = await asyncio.gather(*(take(number) for number in range(30)))

    won = [each for each in taken if each is not None]
    assert {each.id for each in won} == made
    # On PostgreSQL a claimant may pass over a row whose claim is rolling on.
    assert len(won) == 5
    assert {each.fence for each in won} == {1}


async def test_claim_refused_after_claim_by(core: CoreParts) -> None:
    """What was not claimed in time is not claimed any more."""
    await core.add_activation(await core.add_signer(), claim_s=60)

    core.clock.forward(60)

    assert await claim(core) is None


async def test_claim_taken_in_the_last_moment(core: CoreParts) -> None:
    """Up to the end of `claim_by` it may be claimed."""
    await core.add_activation(await core.add_signer(), claim_s=60)

    core.clock.forward(59.999)

    assert await claim(core) is not None


async def test_claim_held_by_its_lease(core: CoreParts) -> None:
    """While the lease lasts nobody else gets it; renewing makes it last."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)

    core.clock.forward(9)
    early = await claim(core)
    async with core.store.write() as records:
        renewed = await records.activations.renew(
            first, core.now + timedelta(seconds=10)
        )
    core.clock.forward(9)
    later = await claim(core)
    core.clock.forward(1)
    after = await claim(core)

    assert (early, renewed, later) == (None, True, None)
    assert after is not None
    assert (after.fence, after.key_until) == (2, first.key_until)


async def test_claim_dropped_is_free_at_once(core: CoreParts) -> None:
    """What is given back need not wait for the end of its lease."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)

    async with core.store.write() as records:
        assert await records.activations.drop(first, core.now)

    assert (await claimed(core)).fence == 2


async def test_claim_refused_after_key_until(core: CoreParts) -> None:
    """The key phase of one item ends 61 s after the first claim."""
    await core.add_activation(await core.add_signer())
    await claimed(core)

    core.clock.forward(61)

    assert await claim(core) is None


async def test_renewing_ends_with_the_key_phase(core: CoreParts) -> None:
    """A worker that hangs and renews on does not hold it past its phase."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)
    core.clock.forward(60)

    async with core.store.write() as records:
        await records.activations.renew(first, core.now + timedelta(seconds=10))
    core.clock.forward(1)

    async with core.store.read() as records:
        assert [late.id for late in await records.activations.overdue(core.now, 5)] == [
            first.id
        ]


async def test_finishing_has_its_own_limit(core: CoreParts) -> None:
    """What is keyed may be claimed long after the key phase, up to `finish_until`."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)
    async with core.store.write() as records:
        await records.activations.intend(first, 0, DIGEST, core.now)
        await records.activations.keyed(first, 0, MADE, core.now)
        await records.activations.settle(first, core.now)

    core.clock.forward(660)
    again = await claimed(core)
    core.clock.forward(11)
    late = await claim(core)

    assert (again.state, again.fence, late) == (A.FINISHING, 2, None)


async def test_claim_capped_by_attempts(core: CoreParts) -> None:
    """What kills its workers is not taken again."""
    await core.add_activation(await core.add_signer())
    few = replace(TERMS, attempts=3)

    fences = []
    for _ in range(4):
        async with core.store.write() as records:
            found = await records.activations.claim_next("o", core.now, few)
        fences.append(found and found.fence)
        core.clock.forward(10)

    assert fences == [1, 2, 3, None]


async def test_finishing_rests_after_many_attempts(core: CoreParts) -> None:
    """Tried on until its time is over, but after two vain tries never at once."""
    few = dataclasses.replace(TERMS, attempts=2)
    await core.add_activation(await core.add_signer())

    async def take() -> Claim | None:
        async with core.store.write() as records:
            return await records.activations.claim_next("o", core.now, few)

    first = await take()
    assert first is not None
    async with core.store.write() as records:
        await records.activations.keyed(first, 0, MADE, core.now)
        await records.activations.settle(first, core.now)
    fences = []
    for _ in range(5):
        core.clock.forward(10)
        found = await take()
        fences.append(found and found.fence)

    assert fences == [2, 3, None, 4, None]


async def test_attempts_are_counted_since_the_last_result(core: CoreParts) -> None:
    """A batch that gets on may lose any number of workers; one that does not, few."""
    await core.add_activation(await core.add_signer(), items=4)
    few = replace(TERMS, attempts=2)

    tries = []
    for seq in (0, 1, 2, None, None, None):
        async with core.store.write() as records:
            found = await records.activations.claim_next("o", core.now, few)
            tries.append(found and found.tries)
            if found is not None and seq is not None:
                await records.activations.keyed(found, seq, MADE, core.now)
                await records.activations.item_done(found, seq)
        core.clock.forward(10)

    assert tries == [1, 1, 1, 1, 2, None]


async def test_intent_of_another_certificate_is_refused(core: CoreParts) -> None:
    """A credential that was certified anew meanwhile: nothing is written."""
    activation = await core.add_activation(await core.add_signer())
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    (item,) = work.claim.items

    with pytest.raises(CertificateChangedError):
        await worker.intend(work.claim, item, DIGEST, b"the one before")

    assert await core.intents(activation) == []
    assert "key.intended" not in await core.audited()


async def test_single_claim_passes_over_batches(core: CoreParts) -> None:
    """Whose hands are full of batches takes the next document that is alone."""
    signer = await core.add_signer()
    batch = await core.add_activation(signer, items=2)
    core.clock.forward(1)
    alone = await core.add_activation(signer)

    async with core.store.write() as records:
        activations = records.activations
        told = [
            await activations.next_claims(core.now, TERMS, single=True),
            await activations.claim_next("o", core.now, TERMS, single=True),
            await activations.next_claims(core.now, TERMS, single=True),
            await activations.claim_next("o", core.now, TERMS, single=True),
            await activations.claim_next("o", core.now, TERMS),
        ]

    ids = [claim.id if isinstance(claim, Claim) else claim for claim in told]
    assert ids == [0, alone, None, None, batch]


# -- fencing -----------------------------------------------------------------------


async def test_stale_fence_changes_nothing(core: CoreParts) -> None:
    """Every write of a worker that was overtaken touches no row."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    stale = await claimed(core, "signing/h/1/old")
    async with core.store.write() as records:
        await records.activations.intend(stale, 0, DIGEST, core.now)
    core.clock.forward(10)
    fresh = await claimed(core, "signing/h/2/new")

    async with core.store.write() as records:
        written = [
            await records.activations.renew(stale, core.now + timedelta(hours=1)),
            await records.activations.drop(stale, core.now),
            await records.activations.intend(stale, 1, DIGEST, core.now),
            await records.activations.keyed(stale, 0, MADE, core.now),
            await records.activations.item_done(stale, 0),
            await records.activations.item_failed(stale, 0, "X"),
        ]
        await records.activations.settle(stale, core.now, "X")

    assert written == [False] * 6
    assert await core.activation_state(activation) == (A.KEYING, "")
    assert await claim(core) is None  # the fresh lease stands
    assert ended(await core.intents(activation)) == [(1, 0, S.OPEN)]
    async with core.store.write() as records:
        assert await records.activations.renew(fresh, core.now)
    again = await claimed(core)
    assert [item.state for item in again.items] == [ItemState.WAITING] * 2
    assert again.items[0].signature is None


async def test_stale_settle_does_not_end_an_activation(core: CoreParts) -> None:
    """Also where the items' states would have it end."""
    activation = await core.add_activation(await core.add_signer())
    stale = await claimed(core)
    core.clock.forward(10)
    fresh = await claimed(core)
    async with core.store.write() as records:
        await records.activations.item_failed(fresh, 0, "X")
        await records.activations.settle(stale, core.now, "X")

    assert await core.activation_state(activation) == (A.KEYING, "")


async def test_intents_closed_are_those_of_earlier_attempts(core: CoreParts) -> None:
    """Who claims again closes what the dead one left, and nothing of its own."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    first = await claimed(core)
    async with core.store.write() as records:
        await records.activations.intend(first, 0, DIGEST, core.now)
        await records.activations.keyed(first, 0, MADE, core.now)
        await records.activations.intend(first, 1, DIGEST, core.now)
    core.clock.forward(10)
    second = await claimed(core)
    async with core.store.write() as records:
        await records.activations.intend(second, 1, DIGEST, core.now)
        closed = await records.activations.interrupt_intents(second, core.now)

    assert ended(closed) == [(1, 1, S.INTERRUPTED)]
    assert ended(await core.intents(activation)) == [
        (1, 0, S.COMPLETED),
        (1, 1, S.INTERRUPTED),
        (2, 1, S.OPEN),
    ]


async def test_item_given_up_closes_its_intents_alone(core: CoreParts) -> None:
    """Of two open intents the one of the item that is given up is closed."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    found = await claimed(core)
    async with core.store.write() as records:
        await records.activations.intend(found, 0, DIGEST, core.now)
        await records.activations.intend(found, 1, DIGEST, core.now)
        closed = await records.activations.interrupt_item(found, 0, core.now)

    assert ended(closed) == [(1, 0, S.INTERRUPTED)]
    assert ended(await core.intents(activation)) == [
        (1, 0, S.INTERRUPTED),
        (1, 1, S.OPEN),
    ]


async def test_release_ends_leases_of_its_own_slot(core: CoreParts) -> None:
    """`signing/h/1` lets go of what its dead start had, and not of number 10's."""
    signer = await core.add_signer()
    for owner in ("signing/h/10/p", "signing/h/1/p", "signing/hh/1/p", "signing/h_1/p"):
        await core.add_activation(signer)
        await claimed(core, owner)

    async with core.store.write() as records:
        released = await records.activations.release_of("signing/h/1/", core.now)
        wild = await records.activations.release_of("signing/h_1/", core.now)

    assert (released, wild) == (1, 1)
    assert await claim(core) is not None
    assert await claim(core) is not None
    assert await claim(core) is None


# -- items, and what follows for the activation ------------------------------------


async def test_settle_follows_the_items(core: CoreParts) -> None:
    """Keyed one by one, finished one by one: the state follows the last."""
    activation = await core.add_activation(await core.add_signer(), items=3)
    found = await claimed(core)
    states = []

    async with core.store.write() as records:
        for seq in range(3):
            await records.activations.intend(found, seq, DIGEST, core.now)
            await records.activations.keyed(found, seq, MADE, core.now)
            await records.activations.settle(found, core.now)
            states.append((await records.activations.state(activation))[0])
        for seq in range(3):
            await records.activations.item_done(found, seq)
            await records.activations.settle(found, core.now)
            states.append((await records.activations.state(activation))[0])

    assert states == [A.KEYING, A.KEYING, *[A.FINISHING] * 3, A.DONE]


@pytest.mark.parametrize(
    ("ends", "state", "reason"),
    [
        ("ddd", A.DONE, ""),
        ("dfd", A.DONE, ""),
        ("ffd", A.DONE, ""),
        ("fff", A.FAILED, "X"),
        ("fdw", A.KEYING, ""),
        ("ffw", A.KEYING, ""),
        ("fkd", A.FINISHING, ""),
    ],
)
async def test_settle_ends_when_every_item_did(
    sqlite_core: CoreParts, ends: str, state: ActivationState, reason: str
) -> None:
    """`done` with one signed, `failed` with none, and not before all have ended."""
    core = sqlite_core
    activation = await core.add_activation(await core.add_signer(), items=3)
    found = await claimed(core)

    async with core.store.write() as records:
        for seq, end in enumerate(ends):
            if end in "kd":
                await records.activations.intend(found, seq, DIGEST, core.now)
                await records.activations.keyed(found, seq, MADE, core.now)
            if end == "d":
                await records.activations.item_done(found, seq)
            if end == "f":
                await records.activations.item_failed(found, seq, "X")
            await records.activations.settle(found, core.now, "X" * (end == "f"))

    assert (await core.activation_state(activation))[0] is state
    if state is not A.DONE:
        assert (await core.activation_state(activation))[1] == reason


async def test_resume_starts_at_the_first_unsigned_item(core: CoreParts) -> None:
    """Who claims again gets what was keyed, ready to be finished."""
    await core.add_activation(await core.add_signer(), items=3)
    first = await claimed(core)
    async with core.store.write() as records:
        await records.activations.intend(first, 0, DIGEST, core.now)
        await records.activations.keyed(first, 0, MADE, core.now)
        await records.activations.item_done(first, 0)
        await records.activations.intend(first, 1, DIGEST, core.now)
        await records.activations.keyed(first, 1, MADE, core.now)
    core.clock.forward(10)

    again = await claimed(core)

    done, keyed, waiting = again.items
    assert [item.state for item in again.items] == [
        ItemState.DONE,
        ItemState.KEYED,
        ItemState.WAITING,
    ]
    assert (keyed.increment, keyed.contents_at, keyed.contents_length) == (
        MADE.increment,
        MADE.contents_at,
        MADE.contents_length,
    )
    assert (keyed.signed_attributes, keyed.signature) == (
        MADE.signed_attributes,
        MADE.signature,
    )
    # What was kept to publish a document is of no more use.
    assert (done.increment, done.signed_attributes) == (None, None)
    assert waiting.signature is None


# -- a worker's transactions -------------------------------------------------------


async def test_work_comes_with_its_rows(core: CoreParts) -> None:
    """A claim brings person, credential and requests as they are now."""
    signer = await core.add_signer()
    await core.add_activation(signer, items=2)

    work = await core.claiming().claim_next()

    assert work is not None
    assert work.person is not None
    assert work.credential is not None
    assert (work.person.id, work.credential.person) == (signer.person, signer.person)
    assert [work.requests[item.seq].id for item in work.claim.items] == [
        item.request for item in work.claim.items
    ]


async def test_worker_signs_a_batch_item_by_item(core: CoreParts) -> None:
    """Three items, each published as it is ready; the audit says every step."""
    activation = await core.add_activation(await core.add_signer(), items=3)
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None

    for item in work.claim.items:
        assert await worker.intend(work.claim, item, DIGEST, CERTIFICATE)
        assert await worker.keyed(work.claim, item, MADE, DIGEST)
        view = await core.view(item.request)
        assert await worker.finished(work.claim, item, signed_view(view))
        await worker.announce(work.claim)

    requests = [item.request for item in work.claim.items]
    assert await core.request_states(requests) == [(RequestState.SIGNED, "")] * 3
    assert await core.activation_state(activation) == (A.DONE, "")
    assert ended(await core.intents(activation)) == [
        (1, seq, S.COMPLETED) for seq in range(3)
    ]
    assert core.outcomes.announced == [activation] * 3
    assert (await core.audited())[-10:] == [
        "activation.claimed",
        *["key.intended", "key.used", "request.signed"] * 3,
    ]


async def test_worker_gives_one_item_of_a_batch_back(core: CoreParts) -> None:
    """A failed item harms no other, and its intent is closed."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    first, second = work.claim.items

    await worker.intend(work.claim, first, DIGEST, CERTIFICATE)
    assert await worker.returned(work.claim, [first], ErrorCode.HSM_UNAVAILABLE)
    await worker.intend(work.claim, second, DIGEST, CERTIFICATE)
    await worker.keyed(work.claim, second, MADE, DIGEST)
    await worker.finished(
        work.claim, second, signed_view(await core.view(second.request))
    )

    assert await core.request_states([first.request, second.request]) == [
        (RequestState.PENDING, "HSM_UNAVAILABLE"),
        (RequestState.SIGNED, ""),
    ]
    assert ended(await core.intents(activation)) == [
        (1, 0, S.INTERRUPTED),
        (1, 1, S.COMPLETED),
    ]
    assert (await core.activation_state(activation))[0] is A.DONE


async def test_worker_gives_up_for_good(core: CoreParts) -> None:
    """What can never be signed is `fallida`, its intent closed and audited."""
    activation = await core.add_activation(await core.add_signer())
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    (item,) = work.claim.items
    await worker.intend(work.claim, item, DIGEST, CERTIFICATE)

    assert await worker.failed(work.claim, [item], ErrorCode.SIGNING_FAILED)

    assert await core.request_states([item.request]) == [
        (RequestState.FAILED, "SIGNING_FAILED")
    ]
    assert await core.activation_state(activation) == (A.FAILED, "SIGNING_FAILED")
    assert ended(await core.intents(activation)) == [(1, 0, S.INTERRUPTED)]
    assert (await core.audited())[-3:] == [
        "key.intended",
        "key.interrupted",
        "request.failed",
    ]
    assert core.outcomes.announced == [activation]


async def test_successor_closes_the_intent_of_a_dead_worker(core: CoreParts) -> None:
    """A claim after a crash closes what the dead one intended, and audits it."""
    activation = await core.add_activation(await core.add_signer())
    dead, heir = core.claiming("signing/h/1"), core.claiming("signing/h/2")
    work = await dead.claim_next()
    assert work is not None
    await dead.intend(work.claim, work.claim.items[0], DIGEST, CERTIFICATE)
    core.clock.forward(10)

    again = await heir.claim_next()

    assert again is not None
    assert ended(await core.intents(activation)) == [(1, 0, S.INTERRUPTED)]
    rows = await core.audit()
    assert [row.event.event.value for row in rows][-2:] == [
        "key.interrupted",
        "activation.claimed",
    ]
    assert rows[-2].event.detail == {"item": 0, "digest": DIGEST}
    assert (rows[-2].event.attempt, rows[-1].event.attempt) == (1, 2)


async def test_overtaken_worker_publishes_nothing(core: CoreParts) -> None:
    """A worker that was frozen and thawed is refused at every step."""
    activation = await core.add_activation(await core.add_signer())
    frozen, heir = core.claiming("signing/h/1"), core.claiming("signing/h/2")
    work = await frozen.claim_next()
    assert work is not None
    (item,) = work.claim.items
    core.clock.forward(10)
    assert await heir.claim_next() is not None
    before = await core.audited()

    done = [
        await frozen.intend(work.claim, item, DIGEST, CERTIFICATE),
        await frozen.keyed(work.claim, item, MADE, DIGEST),
        await frozen.finished(
            work.claim, item, signed_view(await core.view(item.request))
        ),
        await frozen.returned(work.claim, [item], ErrorCode.HSM_UNAVAILABLE),
        await frozen.failed(work.claim, [item], ErrorCode.SIGNING_FAILED),
        await frozen.renew(work.claim),
    ]

    assert done == [False] * 6
    assert await core.request_states([item.request]) == [(RequestState.IN_PROGRESS, "")]
    assert await core.activation_state(activation) == (A.KEYING, "")
    assert await core.audited() == before
    assert core.outcomes.announced == []


async def test_nothing_published_when_the_request_moved_on(core: CoreParts) -> None:
    """A request that is not `en_proceso` gets no document, not even half of one."""
    await core.add_activation(await core.add_signer())
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    (item,) = work.claim.items
    await worker.keyed(work.claim, item, MADE, DIGEST)
    async with core.store.write() as records:
        await records.requests.move(
            item.request, RequestState.IN_PROGRESS, RequestState.FAILED, "X"
        )
    view = await core.view(item.request)

    with pytest.raises(ApplianceError):
        await worker.finished(work.claim, item, signed_view(view))

    async with core.store.read() as records:
        assert await records.documents.signed(item.request) is None
    core.clock.forward(10)
    again = await worker.claim_next()
    assert again is not None
    assert again.claim.items[0].state is ItemState.KEYED


async def test_restarted_worker_gets_its_work_back_at_once(core: CoreParts) -> None:
    """A new start of the same slot ends the leases of the one before."""
    await core.add_activation(await core.add_signer())
    assert await core.claiming("signing/h/1").claim_next() is not None

    neighbour = await core.claiming("signing/h/10").release_own()
    released = await core.claiming("signing/h/1").release_own()

    assert (neighbour, released) == (0, 1)
    assert await core.claiming("signing/h/2").claim_next() is not None
