"""Claims, leases, fencing and intents, on both databases.

Source: design §3, 4 and "Lifetimes".
"""

import asyncio
import dataclasses
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from appliance.database.tables import activation
from appliance.domain.signing.activation import Claim
from appliance.domain.vocab import ActivationState, IntentState, ItemState
from appliance.signing.activations.activation_queue import ActivationQueue, Wanted
from appliance.signing.activations.activation_store import ActivationStore
from appliance.signing.claims import CertificateChangedError
from tests.integration.signing.claims import TERMS, claim, claimed, ended
from tests.support.installation.record import DIGEST, MADE, CoreFixture, prepared

pytestmark = pytest.mark.storage

A, S = ActivationState, IntentState


# -- taking ------------------------------------------------------------------------


async def test_claim_gives_what_was_recorded(core: CoreFixture) -> None:
    """A claim carries the items in order, with their exact parameters."""
    signer = await core.add_signer()
    activation = await core.add_activation(signer, items=3)

    found = await claimed(core)

    assert (found.id, found.person, found.fence) == (activation, signer.person, 1)
    assert (found.state, found.created) == (A.KEYING, core.now)
    assert found.key_until == core.now + timedelta(seconds=63)
    assert [item.seq for item in found.documents] == [0, 1, 2]
    for item in found.documents:
        view = await core.view(item.request)
        assert item.state is ItemState.WAITING
        assert item.document_sha256 == view.sha256
        assert item.params.sha256(item.request) == item.params_sha256


async def test_what_the_version_before_handed_out_is_finished(
    core: CoreFixture,
) -> None:
    """To the role with a network: a signing worker takes only what that neglects."""

    async def take() -> Claim | None:
        async with core.store.write() as transaction:
            found = await ActivationQueue(transaction).next_claims(core.now, TERMS)
            taken = await ActivationQueue(transaction).claim_next("w", core.now, TERMS)
        assert (found is None) is (taken is None)
        return taken

    await core.add_activation(await core.add_signer())
    held = await claimed(core)
    async with core.store.write() as transaction:
        assert await ActivationStore(transaction).intend(held, {0: DIGEST}, core.now)
        assert await ActivationStore(transaction).record_signatures(
            held, {0: MADE}, core.now
        )
        await ActivationStore(transaction).settle(held, core.now)
        until = core.now + timedelta(seconds=10)
        assert await ActivationStore(transaction).put_off(held, until, "")
        await transaction.connection.execute(update(activation).values(outside=True))

    core.clock.forward(39)
    assert await take() is None
    core.clock.forward(1)
    taken = await take()
    assert taken is not None
    assert (taken.fence, taken.state) == (held.fence + 1, A.FINISHING)


async def test_claim_takes_the_oldest(core: CoreFixture) -> None:
    """First come, first served; then nothing is left."""
    signer = await core.add_signer()
    made = []
    for _ in range(3):
        made.append(await core.add_activation(signer))
        core.clock.forward(1)

    taken = [await claim(core) for _ in range(4)]

    assert [each and each.id for each in taken] == [*made, None]


async def test_what_is_put_off_goes_behind_what_came_meanwhile(
    core: CoreFixture,
) -> None:
    """However much of it there is, what is new has its turn."""
    signer = await core.add_signer()
    older = await core.add_activation(signer)
    found = await claimed(core)
    async with core.store.write() as transaction:
        until = core.now + timedelta(seconds=10)
        await ActivationStore(transaction).put_off(found, until, "TSA_UNAVAILABLE")
    core.clock.forward(5)
    younger = await core.add_activation(signer)
    core.clock.forward(6)

    assert [(await claimed(core)).id for _ in range(2)] == [younger, older]


async def test_claim_has_one_winner_of_thirty(core: CoreFixture) -> None:
    """Thirty claimants, five activations, two processes: each is taken once."""
    signer = await core.add_signer()
    made = {await core.add_activation(signer) for _ in range(5)}
    stores = (core.store, core.other_store())

    async def take(number: int) -> Claim | None:
        async with stores[number % 2].write() as transaction:
            return await ActivationQueue(transaction).claim_next(
                f"signing/h/{number}/p", core.now, TERMS
            )

    taken = await asyncio.gather(*(take(number) for number in range(30)))

    won = [each for each in taken if each is not None]
    assert {each.id for each in won} == made
    # On PostgreSQL a claimant may pass over a row whose claim is rolling on.
    assert len(won) == 5
    assert {each.fence for each in won} == {1}


async def test_claim_refused_after_claim_by(core: CoreFixture) -> None:
    """What was not claimed in time is not claimed any more."""
    await core.add_activation(await core.add_signer(), claim_s=60)

    core.clock.forward(60)

    assert await claim(core) is None


async def test_claim_taken_in_the_last_moment(core: CoreFixture) -> None:
    """Up to the end of `claim_by` it may be claimed."""
    await core.add_activation(await core.add_signer(), claim_s=60)

    core.clock.forward(59.999)

    assert await claim(core) is not None


async def test_claim_held_by_its_lease(core: CoreFixture) -> None:
    """While the lease lasts nobody else gets it; renewing makes it last."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)

    core.clock.forward(9)
    early = await claim(core)
    async with core.store.write() as transaction:
        renewed = await ActivationStore(transaction).renew(
            first, core.now + timedelta(seconds=10)
        )
    core.clock.forward(9)
    later = await claim(core)
    core.clock.forward(1)
    after = await claim(core)

    assert (early, renewed, later) == (None, True, None)
    assert after is not None
    assert (after.fence, after.key_until) == (2, first.key_until)


async def test_claim_dropped_is_free_at_once(core: CoreFixture) -> None:
    """What is given back need not wait for the end of its lease."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)

    async with core.store.write() as transaction:
        assert await ActivationStore(transaction).drop(first, core.now)

    assert (await claimed(core)).fence == 2


async def test_let_go_in_good_order_is_no_try(core: CoreFixture) -> None:
    """Nobody died of it, however often it is put off."""
    await core.add_activation(await core.add_signer())
    tries = []
    for _ in range(3):
        found = await claimed(core)
        tries.append(found.tries)
        async with core.store.write() as transaction:
            put_off = ActivationStore(transaction).put_off
            assert await put_off(found, core.now, "TSA_UNAVAILABLE")
    found = await claimed(core)
    async with core.store.write() as transaction:
        assert await ActivationStore(transaction).drop(found, core.now)
    tries.append((await claimed(core)).tries)

    assert tries == [1, 1, 1, 1]


async def test_suspect_is_taken_first(core: CoreFixture) -> None:
    """Or what made way for it, being older, would be taken up again before it."""
    signer = await core.add_signer()
    older = await core.add_activation(signer)
    core.clock.forward(1)
    younger = await core.add_activation(signer)
    yielding, feared = await claimed(core), await claimed(core)
    async with core.store.write() as transaction:
        assert await ActivationStore(transaction).drop(yielding, core.now)
    core.clock.forward(10)

    taken = []
    for _ in range(2):
        async with core.store.write() as transaction:
            policy = replace(TERMS, suspect=1)
            found = await ActivationQueue(transaction).claim_next("o", core.now, policy)
        taken.append(found and found.id)

    assert (yielding.id, feared.id) == (older, younger)
    assert taken == [younger, older]


async def test_claim_refused_after_key_until(core: CoreFixture) -> None:
    """The key phase of one item ends 61 s after the first claim."""
    await core.add_activation(await core.add_signer())
    await claimed(core)

    core.clock.forward(61)

    assert await claim(core) is None


async def test_renewing_ends_with_the_key_phase(core: CoreFixture) -> None:
    """A worker that hangs and renews on does not hold it past its phase."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)
    core.clock.forward(60)

    async with core.store.write() as transaction:
        await ActivationStore(transaction).renew(
            first, core.now + timedelta(seconds=10)
        )
    core.clock.forward(1)

    async with core.store.read() as transaction:
        assert [
            late.id for late in await ActivationStore(transaction).overdue(core.now, 5)
        ] == [first.id]


async def test_renewing_leaves_what_has_ended_free(core: CoreFixture) -> None:
    """A renewal that waited for the database while the end was written."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)
    async with core.store.write() as transaction:
        await ActivationStore(transaction).document_failed(first, 0, "X")
        await ActivationStore(transaction).settle(first, core.now, "X")
        renewed = await ActivationStore(transaction).renew(
            first, core.now + timedelta(seconds=10)
        )

        leased = await ActivationStore(transaction).release_of(
            "signing/h/1/p", core.now
        )

    assert (renewed, leased) == (True, 0)


async def test_finishing_has_its_own_limit(core: CoreFixture) -> None:
    """What is keyed may be claimed long after the key phase, up to `finish_until`."""
    await core.add_activation(await core.add_signer())
    first = await claimed(core)
    async with core.store.write() as transaction:
        await ActivationStore(transaction).intend(first, {0: DIGEST}, core.now)
        await ActivationStore(transaction).record_signatures(first, {0: MADE}, core.now)
        await ActivationStore(transaction).settle(first, core.now)

    core.clock.forward(660)
    again = await claimed(core)
    core.clock.forward(11)
    late = await claim(core)

    assert (again.state, again.fence, late) == (A.FINISHING, 2, None)


async def test_claim_capped_by_attempts(core: CoreFixture) -> None:
    """What kills its workers is not taken again."""
    await core.add_activation(await core.add_signer())
    few = replace(TERMS, attempts=3)

    fences = []
    for _ in range(4):
        async with core.store.write() as transaction:
            found = await ActivationQueue(transaction).claim_next("o", core.now, few)
        fences.append(found and found.fence)
        core.clock.forward(10)

    assert fences == [1, 2, 3, None]


async def test_finishing_rests_after_many_attempts(core: CoreFixture) -> None:
    """Tried on until its time is over, but after two vain tries never at once."""
    few = dataclasses.replace(TERMS, attempts=2)
    await core.add_activation(await core.add_signer())

    async def take() -> Claim | None:
        async with core.store.write() as transaction:
            return await ActivationQueue(transaction).claim_next("o", core.now, few)

    first = await take()
    assert first is not None
    async with core.store.write() as transaction:
        await ActivationStore(transaction).record_signatures(first, {0: MADE}, core.now)
        await ActivationStore(transaction).settle(first, core.now)
    fences = []
    for _ in range(5):
        core.clock.forward(10)
        found = await take()
        fences.append(found and found.fence)

    assert fences == [2, 3, None, 4, None]


async def test_attempts_are_counted_since_the_last_result(core: CoreFixture) -> None:
    """A batch that gets on may lose any number of workers; one that does not, few."""
    await core.add_activation(await core.add_signer(), items=4)
    few = replace(TERMS, attempts=2)

    tries = []
    for seq in (0, 1, 2, None, None, None):
        async with core.store.write() as transaction:
            found = await ActivationQueue(transaction).claim_next("o", core.now, few)
            tries.append(found and found.tries)
            if found is not None and seq is not None:
                await ActivationStore(transaction).record_signatures(
                    found, {seq: MADE}, core.now
                )
                await ActivationStore(transaction).publish(found, [seq])
        core.clock.forward(10)

    assert tries == [1, 1, 1, 1, 2, None]


async def test_intent_of_another_certificate_is_refused(core: CoreFixture) -> None:
    """A credential that was certified anew meanwhile: nothing is written."""
    activation = await core.add_activation(await core.add_signer())
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    (item,) = work.claim.documents

    with pytest.raises(CertificateChangedError):
        await worker.intend(work.claim, [prepared(item)], b"the one before")

    assert await core.intents(activation) == []
    assert "key.intended" not in await core.audited()


@pytest.mark.parametrize("of_all", [True, False], ids=["all", "theirs"])
async def test_single_claim_passes_over_batches(
    core: CoreFixture, *, of_all: bool
) -> None:
    """Whose hands are full of batches takes the next document that is alone."""
    signer = await core.add_signer()
    batch = await core.add_activation(signer, items=2)
    core.clock.forward(1)
    alone = await core.add_activation(signer)
    which = Wanted(single=True) if of_all else Wanted(no_batches_of={signer.person})

    async with core.store.write() as transaction:
        activations = ActivationQueue(transaction)
        told = [
            await activations.next_claims(core.now, TERMS, which),
            await activations.claim_next("o", core.now, TERMS, which),
            await activations.next_claims(core.now, TERMS, which),
            await activations.claim_next("o", core.now, TERMS, which),
            await activations.claim_next("o", core.now, TERMS),
        ]

    ids = [claim.id if isinstance(claim, Claim) else claim for claim in told]
    assert ids == [0, alone, None, None, batch]


async def test_claim_passes_over_who_has_enough(core: CoreFixture) -> None:
    """Whose hands are full of somebody's documents takes the next one's."""
    busy, other = await core.add_signer(), await core.add_signer()
    first = await core.add_activation(busy)
    core.clock.forward(1)
    second = await core.add_activation(other)
    which = Wanted(without={busy.person})

    async with core.store.write() as transaction:
        activations = ActivationQueue(transaction)
        told = [
            await activations.next_claims(core.now, TERMS, which),
            await activations.claim_next("o", core.now, TERMS, which),
            await activations.next_claims(core.now, TERMS, which),
            await activations.claim_next("o", core.now, TERMS, which),
            await activations.claim_next("o", core.now, TERMS),
        ]

    ids = [claim.id if isinstance(claim, Claim) else claim for claim in told]
    assert ids == [0, second, None, None, first]


# -- fencing -----------------------------------------------------------------------


async def test_stale_fence_changes_nothing(core: CoreFixture) -> None:
    """Every write of a worker that was overtaken touches no row."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    stale = await claimed(core, "signing/h/1/old")
    async with core.store.write() as transaction:
        await ActivationStore(transaction).intend(stale, {0: DIGEST}, core.now)
    core.clock.forward(10)
    fresh = await claimed(core, "signing/h/2/new")

    async with core.store.write() as transaction:
        written = [
            await ActivationStore(transaction).renew(
                stale, core.now + timedelta(hours=1)
            ),
            await ActivationStore(transaction).drop(stale, core.now),
            await ActivationStore(transaction).intend(stale, {1: DIGEST}, core.now),
            await ActivationStore(transaction).record_signatures(
                stale, {0: MADE}, core.now
            ),
            await ActivationStore(transaction).publish(stale, [0]),
            await ActivationStore(transaction).document_failed(stale, 0, "X"),
        ]
        await ActivationStore(transaction).settle(stale, core.now, "X")

    assert written == [False] * 6
    assert await core.activation_state(activation) == (A.KEYING, "")
    assert await claim(core) is None  # the fresh lease stands
    assert ended(await core.intents(activation)) == [(1, 0, S.OPEN)]
    async with core.store.write() as transaction:
        assert await ActivationStore(transaction).renew(fresh, core.now)
    again = await claimed(core)
    assert [item.state for item in again.documents] == [ItemState.WAITING] * 2
    assert again.documents[0].signature is None


async def test_stale_settle_does_not_end_an_activation(core: CoreFixture) -> None:
    """Also where the items' states would have it end."""
    activation = await core.add_activation(await core.add_signer())
    stale = await claimed(core)
    core.clock.forward(10)
    fresh = await claimed(core)
    async with core.store.write() as transaction:
        await ActivationStore(transaction).document_failed(fresh, 0, "X")
        await ActivationStore(transaction).settle(stale, core.now, "X")

    assert await core.activation_state(activation) == (A.KEYING, "")


async def test_intents_closed_are_those_of_earlier_attempts(core: CoreFixture) -> None:
    """Who claims again closes what the dead one left, and nothing of its own."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    first = await claimed(core)
    async with core.store.write() as transaction:
        await ActivationStore(transaction).intend(first, {0: DIGEST}, core.now)
        await ActivationStore(transaction).record_signatures(first, {0: MADE}, core.now)
        await ActivationStore(transaction).intend(first, {1: DIGEST}, core.now)
    core.clock.forward(10)
    second = await claimed(core)
    async with core.store.write() as transaction:
        await ActivationStore(transaction).intend(second, {1: DIGEST}, core.now)
        closed = await ActivationStore(transaction).interrupt_intents(second, core.now)

    assert ended(closed) == [(1, 1, S.INTERRUPTED)]
    assert ended(await core.intents(activation)) == [
        (1, 0, S.COMPLETED),
        (1, 1, S.INTERRUPTED),
        (2, 1, S.OPEN),
    ]


async def test_item_given_up_closes_its_intents_alone(core: CoreFixture) -> None:
    """Of two open intents the one of the item that is given up is closed."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    found = await claimed(core)
    async with core.store.write() as transaction:
        await ActivationStore(transaction).intend(found, {0: DIGEST}, core.now)
        await ActivationStore(transaction).intend(found, {1: DIGEST}, core.now)
        closed = await ActivationStore(transaction).interrupt_document(
            found, 0, core.now
        )

    assert ended(closed) == [(1, 0, S.INTERRUPTED)]
    assert ended(await core.intents(activation)) == [
        (1, 0, S.INTERRUPTED),
        (1, 1, S.OPEN),
    ]


async def test_release_ends_leases_of_its_own_slot(core: CoreFixture) -> None:
    """`signing/h/1` lets go of what its dead start had, and not of number 10's."""
    signer = await core.add_signer()
    for owner in ("signing/h/10/p", "signing/h/1/p", "signing/hh/1/p", "signing/h_1/p"):
        await core.add_activation(signer)
        await claimed(core, owner)

    async with core.store.write() as transaction:
        released = await ActivationStore(transaction).release_of(
            "signing/h/1/", core.now
        )
        wild = await ActivationStore(transaction).release_of("signing/h_1/", core.now)

    assert (released, wild) == (1, 1)
    assert await claim(core) is not None
    assert await claim(core) is not None
    assert await claim(core) is None


async def test_suspect_batch_is_passed_over_by_nobody(core: CoreFixture) -> None:
    """It holds up all others, whosever it is: who has enough of theirs takes it."""
    signer = await core.add_signer()
    batch = await core.add_activation(signer, items=2)
    which = Wanted(no_batches_of={signer.person})
    told = []

    for _ in range(TERMS.suspect):
        async with core.store.write() as transaction:
            activations = ActivationQueue(transaction)
            told.append(await activations.next_claims(core.now, TERMS, which))
            assert await activations.claim_next("o", core.now, TERMS) is not None
        core.clock.forward(11)
    async with core.store.write() as transaction:
        activations = ActivationQueue(transaction)
        told.append(await activations.next_claims(core.now, TERMS, which))
        taken = await activations.claim_next("o", core.now, TERMS, which)

    assert told == [None] * TERMS.suspect + [TERMS.suspect]
    assert taken is not None
    assert taken.id == batch


async def test_each_look_goes_by_its_own_time_and_people(core: CoreFixture) -> None:
    """Looks of one kind share a statement, and nothing that was given to it."""
    first, second = await core.add_signer(), await core.add_signer()
    await core.add_activation(first, items=2)
    core.clock.forward(1)
    await core.add_activation(second, items=2)
    async with core.store.read() as transaction:
        look = ActivationQueue(transaction).next_claims
        told = [
            await look(at, TERMS, Wanted(no_batches_of=people))
            for at, people in (
                (core.now, {first.person}),
                (core.now, {first.person, second.person}),
                (core.now, {second.person}),
                (core.now + timedelta(days=1), {second.person}),
            )
        ]
    assert told == [0, None, 0, None]
