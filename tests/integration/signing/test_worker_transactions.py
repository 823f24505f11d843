"""What a signing worker writes, each in one transaction, on both databases.

Source: design §3, 4 and 5.
"""

from dataclasses import replace

import pytest

from appliance.documents.document_store import DocumentStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.vocab import ActivationState, IntentState, ItemState, RequestState
from appliance.requests.request_store import RequestStore
from appliance.signing.claims import Publication
from tests.integration.signing.claims import ended
from tests.support.installation.record import (
    CERTIFICATE,
    DIGEST,
    CoreFixture,
    keyed,
    prepared,
    signed_view,
)

pytestmark = pytest.mark.storage

A, S = ActivationState, IntentState


async def test_work_comes_with_its_rows(core: CoreFixture) -> None:
    """A claim brings person, credential and requests as they are now."""
    signer = await core.add_signer()
    await core.add_activation(signer, items=2)

    work = await core.claiming().claim_next()

    assert work is not None
    assert work.person is not None
    assert work.credential is not None
    assert (work.person.id, work.credential.person) == (signer.person, signer.person)
    assert [work.requests[item.seq].id for item in work.claim.documents] == [
        item.request for item in work.claim.documents
    ]


async def test_worker_signs_a_batch_item_by_item(core: CoreFixture) -> None:
    """Three items, each published as it is ready; the audit says every step."""
    activation = await core.add_activation(await core.add_signer(), items=3)
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None

    for item in work.claim.documents:
        assert await worker.intend(work.claim, [prepared(item)], CERTIFICATE)
        assert await worker.record_signatures(work.claim, [keyed(item)])
        view = await core.view(item.request)
        assert await worker.publish(work.claim, [Publication(item, signed_view(view))])
        await worker.announce(work.claim)

    requests = [item.request for item in work.claim.documents]
    assert await core.request_states(requests) == [(RequestState.SIGNED, "")] * 3
    assert await core.activation_state(activation) == (A.DONE, "")
    assert ended(await core.intents(activation)) == [
        (1, seq, S.COMPLETED) for seq in range(3)
    ]
    assert core.completion_notifier.published == [activation] * 3
    assert (await core.audited())[-10:] == [
        "activation.claimed",
        *["key.intended", "key.used", "request.signed"] * 3,
    ]


async def test_worker_gives_one_item_of_a_batch_back(core: CoreFixture) -> None:
    """A failed item harms no other, and its intent is closed."""
    activation = await core.add_activation(await core.add_signer(), items=2)
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    first, second = work.claim.documents

    await worker.intend(work.claim, [prepared(first)], CERTIFICATE)
    assert await worker.returned(work.claim, [first], ErrorCode.HSM_UNAVAILABLE)
    await worker.intend(work.claim, [prepared(second)], CERTIFICATE)
    await worker.record_signatures(work.claim, [keyed(second)])
    await worker.publish(
        work.claim, [Publication(second, signed_view(await core.view(second.request)))]
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


async def test_worker_gives_up_for_good(core: CoreFixture) -> None:
    """What can never be signed is `fallida`, its intent closed and audited."""
    activation = await core.add_activation(await core.add_signer())
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    (item,) = work.claim.documents
    await worker.intend(work.claim, [prepared(item)], CERTIFICATE)

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
    assert core.completion_notifier.published == [activation]


async def test_successor_closes_the_intent_of_a_dead_worker(core: CoreFixture) -> None:
    """A claim after a crash closes what the dead one intended, and audits it."""
    activation = await core.add_activation(await core.add_signer())
    dead, heir = core.claiming("signing/h/1"), core.claiming("signing/h/2")
    work = await dead.claim_next()
    assert work is not None
    await dead.intend(work.claim, [prepared(work.claim.documents[0])], CERTIFICATE)
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


async def test_intent_for_no_document_keeps_nobody_from_claiming(
    core: CoreFixture,
) -> None:
    """A row that somebody wrote: it is closed like others, and audited."""
    activation = await core.add_activation(await core.add_signer())
    dead, heir = core.claiming("signing/h/1"), core.claiming("signing/h/2")
    work = await dead.claim_next()
    assert work is not None
    (document,) = work.claim.documents
    nowhere = prepared(replace(document, seq=99))
    await dead.intend(work.claim, [nowhere], CERTIFICATE)
    core.clock.forward(10)

    assert await heir.claim_next() is not None

    assert ended(await core.intents(activation)) == [(1, 99, S.INTERRUPTED)]
    events = [row.event for row in await core.audit()]
    (closed,) = [each for each in events if each.event.value == "key.interrupted"]
    assert closed.request is None


async def test_overtaken_worker_publishes_nothing(core: CoreFixture) -> None:
    """A worker that was frozen and thawed is refused at every step."""
    activation = await core.add_activation(await core.add_signer())
    frozen, heir = core.claiming("signing/h/1"), core.claiming("signing/h/2")
    work = await frozen.claim_next()
    assert work is not None
    (item,) = work.claim.documents
    core.clock.forward(10)
    assert await heir.claim_next() is not None
    before = await core.audited()

    done = [
        await frozen.intend(work.claim, [prepared(item)], CERTIFICATE),
        await frozen.record_signatures(work.claim, [keyed(item)]),
        await frozen.publish(
            work.claim, [Publication(item, signed_view(await core.view(item.request)))]
        ),
        await frozen.returned(work.claim, [item], ErrorCode.HSM_UNAVAILABLE),
        await frozen.failed(work.claim, [item], ErrorCode.SIGNING_FAILED),
        await frozen.renew(work.claim),
    ]

    assert done == [False] * 6
    assert await core.request_states([item.request]) == [(RequestState.IN_PROGRESS, "")]
    assert await core.activation_state(activation) == (A.KEYING, "")
    assert await core.audited() == before
    assert core.completion_notifier.published == []


async def test_nothing_published_when_the_request_moved_on(core: CoreFixture) -> None:
    """A request that is not `en_proceso` gets no document, not even half of one."""
    await core.add_activation(await core.add_signer())
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    (item,) = work.claim.documents
    await worker.record_signatures(work.claim, [keyed(item)])
    async with core.store.write() as transaction:
        await RequestStore(transaction).move(
            item.request, RequestState.IN_PROGRESS, RequestState.FAILED, "X"
        )
    view = await core.view(item.request)

    with pytest.raises(ApplianceError):
        await worker.publish(work.claim, [Publication(item, signed_view(view))])

    async with core.store.read() as transaction:
        assert await DocumentStore(transaction).signed(item.request) is None
    core.clock.forward(10)
    again = await worker.claim_next()
    assert again is not None
    assert again.claim.documents[0].state is ItemState.KEYED


async def test_restarted_worker_gets_its_work_back_at_once(core: CoreFixture) -> None:
    """A new start of the same slot ends the leases of the one before."""
    await core.add_activation(await core.add_signer())
    assert await core.claiming("signing/h/1").claim_next() is not None

    neighbour = await core.claiming("signing/h/10").release_own()
    released = await core.claiming("signing/h/1").release_own()

    assert (neighbour, released) == (0, 1)
    assert await core.claiming("signing/h/2").claim_next() is not None


async def test_several_documents_in_one_transaction(core: CoreFixture) -> None:
    """Each step takes all of them: every one audited, none without the others."""
    activation = await core.add_activation(await core.add_signer(), items=3)
    worker = core.claiming()
    work = await worker.claim_next()
    assert work is not None
    documents = work.claim.documents
    requests = [document.request for document in documents]
    views = [signed_view(await core.view(request)) for request in requests]

    assert await worker.intend(work.claim, [*map(prepared, documents)], CERTIFICATE)
    assert await worker.record_signatures(work.claim, [*map(keyed, documents)])
    assert await worker.publish(work.claim, [*map(Publication, documents, views)])

    assert await core.request_states(requests) == [(RequestState.SIGNED, "")] * 3
    assert await core.activation_state(activation) == (ActivationState.DONE, "")
    assert {intent.state for intent in await core.intents(activation)} == {
        IntentState.COMPLETED
    }
    events = await core.audited()
    for kind in ("key.intended", "key.used", "request.signed"):
        assert events.count(kind) == 3
