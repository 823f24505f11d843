"""What ends by itself: activations, requests, tasks and slots, on both databases.

Source: design §3 "Lifetimes"; decisions "estados".
"""

import asyncio
from datetime import timedelta

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import ActivationId, RequestId
from appliance.domain.vocab import (
    ActivationState,
    EventKind,
    IntentState,
    ItemState,
    RequestState,
    SlotOutcome,
)
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.signing.claims import ClaimedActivation, Publication
from appliance.signing.expiry import ExpiryJob
from appliance.signing.outside_material import MaterialWork
from tests.integration.signing.claims import a_timestamp
from tests.support.installation.record import (
    CERTIFICATE,
    CoreFixture,
    keyed,
    prepared,
    signed_view,
)

A, R = ActivationState, RequestState
EXPIRED = "ACTIVATION_EXPIRED"


def sweeping(core: CoreFixture, *, other: bool = False) -> ExpiryJob:
    """The reconciler, of this process or of another one."""
    store = core.other_store() if other else core.store
    return ExpiryJob(store, core.completion_notifier, core.clock)


async def claimed(core: CoreFixture, items: int = 1) -> ClaimedActivation:
    """A worker has an activation of that many items in hand."""
    await core.add_activation(await core.add_signer(), items)
    work = await core.claiming().claim_next()
    assert work is not None
    return work


def requests_of(work: ClaimedActivation) -> list[RequestId]:
    """Its requests, in order."""
    return [item.request for item in work.claim.documents]


async def test_unclaimed_activation_expires(core: CoreFixture) -> None:
    """Nobody claims within 60 s: `pendiente` again, and the caller is told."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    activation = await core.begin(signer, [request])

    core.clock.forward(59)
    early = await sweeping(core).expire_activations()
    core.clock.forward(1)
    late = await sweeping(core).expire_activations()

    assert (early, late) == (0, 1)
    assert await core.request_states([request]) == [(R.PENDING, EXPIRED)]
    assert await core.activation_state(activation) == (A.EXPIRED, EXPIRED)
    assert core.completion_notifier.published == [activation]
    assert (await core.audited())[-2:] == ["request.returned", "activation.expired"]


async def test_expired_request_may_be_signed_again(core: CoreFixture) -> None:
    """A new activation takes the request as if nothing had been."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    await core.begin(signer, [request])
    core.clock.forward(60)
    await sweeping(core).expire_activations()

    again = await core.begin(signer, [request])

    view = await core.view(request)
    assert (view.state, view.reason, view.activation) == (R.IN_PROGRESS, "", again)


async def test_living_lease_is_waited_for(core: CoreFixture) -> None:
    """Past its time, but in the hands of a worker: not ended under it."""
    await claimed(core)
    core.clock.forward(55)
    work = await core.claiming("signing/h/2").claim_next()
    assert work is not None

    core.clock.forward(7)  # 62 s after the claim; the lease ends at 65 s
    during = await sweeping(core).expire_activations()
    core.clock.forward(4)
    after = await sweeping(core).expire_activations()

    assert (during, after) == (0, 1)


async def test_key_phase_ends_and_its_intent_with_it(core: CoreFixture) -> None:
    """A dead worker's intent is closed when the activation expires."""
    work = await claimed(core)
    await core.claiming().intend(
        work.claim, [prepared(work.claim.documents[0])], CERTIFICATE
    )

    core.clock.forward(61)
    await sweeping(core).expire_activations()

    assert await core.request_states(requests_of(work)) == [(R.PENDING, EXPIRED)]
    (intent,) = await core.intents(work.claim.id)
    assert intent.state is IntentState.INTERRUPTED
    assert "key.interrupted" in await core.audited()


async def test_late_worker_is_refused_after_expiry(core: CoreFixture) -> None:
    """A worker that wakes after the end can store nothing."""
    work = await claimed(core)
    worker = core.claiming()
    item = work.claim.documents[0]
    await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
    core.clock.forward(61)
    await sweeping(core).expire_activations()

    done = await worker.record_signatures(work.claim, [keyed(item)])

    assert not done
    (intent,) = await core.intents(work.claim.id)
    assert intent.state is IntentState.INTERRUPTED
    assert await core.request_states(requests_of(work)) == [(R.PENDING, EXPIRED)]


async def test_signatures_made_are_kept_for_finishing(core: CoreFixture) -> None:
    """Of three items one is published, one keyed, one not: only that goes back."""
    work = await claimed(core, items=3)
    worker = core.claiming()
    first, second, third = work.claim.documents
    for item in (first, second):
        await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        await worker.record_signatures(work.claim, [keyed(item)])
    await worker.publish(
        work.claim, [Publication(first, signed_view(await core.view(first.request)))]
    )
    await worker.intend(work.claim, [prepared(third)], CERTIFICATE)

    core.clock.forward(63)
    await sweeping(core).expire_activations()

    assert await core.request_states(requests_of(work)) == [
        (R.SIGNED, ""),
        (R.IN_PROGRESS, ""),
        (R.PENDING, EXPIRED),
    ]
    assert (await core.activation_state(work.claim.id))[0] is A.FINISHING
    heir = await core.claiming("signing/h/2").claim_next()
    assert heir is not None
    assert heir.claim.state is A.FINISHING
    assert [item.state for item in heir.claim.documents] == [
        ItemState.DONE,
        ItemState.KEYED,
        ItemState.FAILED,
    ]
    assert await core.claiming().publish(
        heir.claim, [Publication(second, signed_view(await core.view(second.request)))]
    )
    assert (await core.activation_state(work.claim.id))[0] is A.DONE
    assert {intent.state for intent in await core.intents(work.claim.id)} == {
        IntentState.COMPLETED,
        IntentState.INTERRUPTED,
    }


async def test_finish_phase_counts_from_the_use_of_the_key(core: CoreFixture) -> None:
    """Not from the end of the time that the key phase might have taken."""
    work = await claimed(core)
    worker, (item,) = core.claiming(), work.claim.documents
    core.clock.forward(20)
    await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
    await worker.record_signatures(work.claim, [keyed(item)])

    core.clock.forward(core.settings.signing.finish_s - 1)
    assert await sweeping(core).expire_activations() == 0
    core.clock.forward(1)
    assert await sweeping(core).expire_activations() == 1

    assert await core.request_states([item.request]) == [(R.FAILED, "SIGNING_FAILED")]


async def test_failure_names_the_tsa_and_what_it_said(core: CoreFixture) -> None:
    """In the audit: the record forgets what was wanted of servers outside."""
    work = await claimed(core)
    worker, (item,) = core.claiming(), work.claim.documents
    await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
    await worker.record_signatures(work.claim, [keyed(item)])
    await worker.want(work.claim, [a_timestamp(is_required=True)])
    chores = MaterialWork(
        core.store, core.clock, core.settings.signing, "chores/h/1", "p"
    )
    job = await chores.claim_next()
    assert job is not None
    said = "tsa.example: HTTP status 503"
    assert await chores.missed(job, job.wanted[0], said)

    core.clock.forward(core.settings.signing.finish_s)
    await sweeping(core).expire_activations()

    (failed,) = [
        row.event
        for row in await core.audit()
        if row.event.event is EventKind.REQUEST_FAILED
    ]
    assert failed.detail == {
        "item": 0,
        "reason": "TSA_UNAVAILABLE",
        "tsa": "tsa.example",
        "cause": said,
    }


@pytest.mark.parametrize("place", [0, 1], ids=["first", "second"])
async def test_document_that_kills_its_workers_is_given_up(
    core: CoreFixture, place: int
) -> None:
    """Five died on it: it is `fallida`, what came after it goes back."""
    work = await claimed(core, items=3)
    requests = requests_of(work)
    for item in work.claim.documents[:place]:
        worker = core.claiming()
        await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        await worker.record_signatures(work.claim, [keyed(item)])
        view = signed_view(await core.view(item.request))
        assert await worker.publish(work.claim, [Publication(item, view)])
    tired = []
    for number in range(2, 8):
        await core.claiming(f"signing/h/{number}").intend(
            work.claim, [prepared(work.claim.documents[place])], CERTIFICATE
        )
        core.clock.forward(10)
        tired.append(await sweeping(core).expire_activations())
        again = await core.claiming(f"signing/h/{number}").claim_next()
        if again is None:
            break
        work = again

    # What was signed before it is not held against it.
    assert work.claim.fence == 5 + place
    assert tired == [*[0] * (4 + place), 1]
    done = [(R.SIGNED, "")] * place
    assert await core.request_states(requests) == [
        *done,
        (R.FAILED, "SIGNING_FAILED"),
        *[(R.PENDING, EXPIRED)] * (2 - place),
    ]
    assert (await core.activation_state(work.claim.id))[0] is A.FAILED
    assert {intent.state for intent in await core.intents(work.claim.id)} <= {
        IntentState.COMPLETED,
        IntentState.INTERRUPTED,
    }


async def test_finish_phase_that_takes_too_long_fails(core: CoreFixture) -> None:
    """Ten minutes after the key was used what could not be published is `fallida`."""
    work = await claimed(core)
    worker = core.claiming()
    item = work.claim.documents[0]
    await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
    await worker.record_signatures(work.claim, [keyed(item)])

    core.clock.forward(599)
    early = await sweeping(core).expire_activations()
    core.clock.forward(1)
    late = await sweeping(core).expire_activations()

    assert (early, late) == (0, 1)
    assert await core.request_states([item.request]) == [(R.FAILED, "SIGNING_FAILED")]
    assert await core.activation_state(work.claim.id) == (A.FAILED, "SIGNING_FAILED")
    assert not await worker.publish(
        work.claim, [Publication(item, signed_view(await core.view(item.request)))]
    )
    async with core.store.read() as transaction:
        assert await DocumentStore(transaction).signed(item.request) is None


async def test_finish_phase_that_waits_in_vain_says_for_what(core: CoreFixture) -> None:
    """What was put off is taken again, and told why when its time is over (F22)."""
    work = await claimed(core)
    worker = core.claiming()
    item = work.claim.documents[0]
    await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
    await worker.record_signatures(work.claim, [keyed(item)])
    await worker.put_off(work.claim, ErrorCode.TSA_UNAVAILABLE)
    assert await worker.claim_next() is None
    core.clock.forward(10)
    again = await worker.claim_next()
    assert again is not None
    await worker.put_off(again.claim, ErrorCode.TSA_UNAVAILABLE)

    core.clock.forward(660)
    await sweeping(core).expire_activations()

    assert await core.request_states([item.request]) == [(R.FAILED, "TSA_UNAVAILABLE")]
    assert await core.activation_state(work.claim.id) == (A.FAILED, "TSA_UNAVAILABLE")


@pytest.mark.parametrize("found", [None, ErrorCode.REVOCATION_UNAVAILABLE])
async def test_what_the_role_with_a_network_never_finishes_says_for_what(
    core: CoreFixture, found: ErrorCode | None
) -> None:
    """With it away, as with it trying in vain: nobody is told of a faulty document."""
    work = await claimed(core)
    worker, outside = core.claiming(), core.fetching()
    item = work.claim.documents[0]
    await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
    await worker.record_signatures(work.claim, [keyed(item)])
    assert await worker.want(work.claim, [a_timestamp()])
    if found is not None:
        job = await outside.claim_next()
        assert job is not None
        rest = timedelta(seconds=60)
        await outside.end(job, has_news=False, waits_for=found, rest=rest)
    core.clock.forward(300)
    neglected = await worker.claim_next()
    assert neglected is not None
    assert await worker.want(neglected.claim, [a_timestamp()])

    core.clock.forward(400)
    await sweeping(core).expire_activations()

    told = (found or ErrorCode.TSA_UNAVAILABLE).value
    assert await core.request_states([item.request]) == [(R.FAILED, told)]
    events = [row.event for row in await core.audit()]
    (failed,) = [one for one in events if one.event.value == "request.failed"]
    assert failed.detail["reason"] == told


async def test_every_intent_ends_one_way_or_the_other(core: CoreFixture) -> None:
    """Whatever became of them, no intent is left open."""
    for fate in ("keyed", "given back", "dies"):
        work = await claimed(core)
        worker, item = core.claiming(), work.claim.documents[0]
        await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        if fate == "keyed":
            await worker.record_signatures(work.claim, [keyed(item)])
        if fate == "given back":
            await worker.returned(work.claim, [item], ErrorCode.HSM_UNAVAILABLE)
        core.clock.forward(1)
    seen = [row.event.activation for row in await core.audit()]

    core.clock.forward(700)
    await sweeping(core).expire_activations()
    await sweeping(core).expire_activations()

    states = [
        intent.state
        for activation in dict.fromkeys(seen)
        if activation is not None
        for intent in await core.intents(ActivationId(activation))
    ]
    assert sorted(states) == ["completada", "interrumpida", "interrumpida"]


async def test_two_reconcilers_at_once_end_each_activation_once(
    core: CoreFixture,
) -> None:
    """Ten overdue activations, four sweeps of two processes side by side."""
    signer = await core.add_signer()
    requests = [await core.add_request(signer.person) for _ in range(10)]
    for request in requests:
        await core.begin(signer, [request])
    core.clock.forward(60)
    both = [sweeping(core), sweeping(core, other=True)]

    ended = await asyncio.gather(*(each.expire_activations() for each in both * 2))
    ended += [await both[0].expire_activations()]

    assert sum(ended) == 10
    assert await core.request_states(requests) == [(R.PENDING, EXPIRED)] * 10
    assert (await core.audited()).count("request.returned") == 10


async def test_request_expires_when_its_time_is_over(core: CoreFixture) -> None:
    """`pendiente` past its date is `vencida`; what is being signed is not."""
    signer = await core.add_signer()
    soon = core.now + timedelta(hours=1)
    due = await core.add_request(signer.person, expires=soon)
    busy = await core.add_request(signer.person, expires=soon)
    later = await core.add_request(signer.person, expires=core.now + timedelta(hours=3))
    never = await core.add_request(signer.person)
    await core.begin(signer, [busy])

    early = await sweeping(core).expire_requests()
    core.clock.forward(3600)
    moved = await sweeping(core).expire_requests()
    again = await sweeping(core).expire_requests()

    assert (early, moved, again) == (0, 1, 0)
    assert [
        state for state, _ in await core.request_states([due, busy, later, never])
    ] == [
        R.EXPIRED,
        R.IN_PROGRESS,
        R.PENDING,
        R.PENDING,
    ]
    row = (await core.audit())[-1]
    assert (row.event.event.value, row.event.request) == ("request.expired", due)


async def test_two_reconcilers_at_once_expire_each_request_once(
    core: CoreFixture,
) -> None:
    """Thirty due requests, four sweeps side by side, none failing."""
    signer = await core.add_signer()
    soon = core.now + timedelta(hours=1)
    requests = [await core.add_request(signer.person, expires=soon) for _ in range(30)]
    core.clock.forward(3600)
    both = [sweeping(core), sweeping(core, other=True)]

    moved = await asyncio.gather(*(each.expire_requests() for each in both * 2))

    assert sum(moved) == 30
    assert {state for state, _ in await core.request_states(requests)} == {R.EXPIRED}
    assert (await core.audited()).count("request.expired") == 30


async def test_slots_forgotten_after_a_day(core: CoreFixture) -> None:
    """Checks of passwords are kept a day, and no longer."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    async with core.store.write() as transaction:
        old = await PasswordAttemptStore(transaction).take(
            signer.person, request, core.now
        )
        await PasswordAttemptStore(transaction).close(old, SlotOutcome.WRONG, "ab" * 32)
    core.clock.forward(86_000)
    async with core.store.write() as transaction:
        await PasswordAttemptStore(transaction).take(signer.person, request, core.now)
    core.clock.forward(401)
    both = [sweeping(core), sweeping(core, other=True)]

    forgotten = await asyncio.gather(*(each.forget() for each in both))

    assert sum(forgotten) == 1
    async with core.store.read() as transaction:
        since = core.now - timedelta(days=2)
        assert (
            await PasswordAttemptStore(transaction).running(signer.person, since) == 1
        )


@pytest.mark.parametrize(
    "sweep", ["expire_activations", "expire_requests", "fail_tasks", "forget"]
)
async def test_sweep_of_nothing_does_nothing(
    sqlite_core: CoreFixture, sweep: str
) -> None:
    """An empty record stays empty, and nothing is audited."""
    assert await getattr(sweeping(sqlite_core), sweep)() == 0
    assert await sqlite_core.audited() == []
