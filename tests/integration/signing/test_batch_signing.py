"""Several requests by one command, over real storage, the worker's part by hand.

Source: decisions "several at once", "repeating firmar"; design §3.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from appliance.domain.errors import ApplianceError, DocumentsAwayError, ErrorCode
from appliance.domain.ids import BatchId, RequestBatchId, RequestId, new_id
from appliance.domain.requests.signing_batch import (
    BatchItem,
    BatchOutcome,
    BatchRow,
    SignBatch,
)
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import RequestState
from appliance.keys.key_encryption import open_seal
from appliance.people.person_store import PersonStore
from appliance.requests.request_store import RequestStore
from appliance.signing.batch_store import BatchStore
from appliance.signing.claims import Publication
from appliance.signing.expiry import ExpiryJob
from tests.integration.signing.batch_front import BatchFront, batch_front_of
from tests.support.factories.consents import consent_data
from tests.support.factories.fakes import error_code
from tests.support.installation.record import (
    A4,
    CERTIFICATE,
    CoreFixture,
    keyed,
    prepared,
    signed_view,
)

C, R = ErrorCode, RequestState
SECOND_PAGE = SignParameters(page=2)


@pytest.fixture
async def batch_front(core: CoreFixture) -> AsyncIterator[BatchFront]:
    """On each database."""
    made = await batch_front_of(core)
    yield made
    await made.shielded.close()


@pytest.fixture
async def plain(sqlite_core: CoreFixture) -> AsyncIterator[BatchFront]:
    """On SQLite."""
    made = await batch_front_of(sqlite_core)
    yield made
    await made.shielded.close()


def told(outcome: BatchOutcome) -> list[tuple[int, str]]:
    """Each request with its result in a word."""

    def word(item: BatchItem) -> str:
        if item.problem is not None:
            return item.problem.code.value
        return "signed" if item.document else "going on"

    return [(item.request, word(item)) for item in outcome.items]


async def audited(batch_front: BatchFront, kind: str) -> list[int | None]:
    """The requests of all events of a kind."""
    rows = await batch_front.core.audit()
    return [row.event.request for row in rows if row.event.event.value == kind]


@contextmanager
def statements(batch_front: BatchFront) -> Iterator[list[str]]:
    """The SQL that is executed meanwhile."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, sql: str, *_rest: object) -> None:
        seen.append(sql)

    engines = batch_front.core.store._engines
    listened = {engines.writer.sync_engine}
    if not engines.is_one_pool:
        listened.add(engines.reader.sync_engine)
    for engine in listened:
        event.listen(engine, "before_cursor_execute", note)
    yield seen
    for engine in listened:
        event.remove(engine, "before_cursor_execute", note)


# -- the straight way ----------------------------------------------------------------


async def test_batch_is_one_password_and_one_activation(
    batch_front: BatchFront,
) -> None:
    """In the caller's order, and each document has its whole story."""
    requests = await batch_front.requests(5)
    order = [requests[at] for at in (3, 0, 4, 1, 2)]

    outcome = await batch_front.signed(batch_front.batch(order))

    assert told(outcome) == [(request, "signed") for request in order]
    assert outcome.is_over
    assert batch_front.slots.computed == 1
    assert len(batch_front.core.work_notifier.notified) == 1
    for kind in ("activation.created", "activation.claimed", "request.signed"):
        assert await audited(batch_front, kind) == order


async def test_seal_is_bound_to_every_document(plain: BatchFront) -> None:
    """The unlock key opens by the rows as they were, and by no other."""
    requests = await plain.requests(3)
    call = asyncio.create_task(plain.sign(plain.batch(requests)))
    await plain.core.work_notifier.heard(1)

    claim = await plain.work_off()
    await call

    assert claim.seal is not None
    private, sealed = plain.host.private_bytes, claim.seal.sealed
    data = await consent_data(plain.core, claim)
    assert len(open_seal(private, sealed, data)) == 32
    first, second, third = claim.documents
    altered = (
        (first, third, second),
        (first, second),
        (first, second, replace(third, document_sha256="00" * 32)),
        (replace(first, params=SECOND_PAGE), second, third),
    )
    for documents in altered:
        other = await consent_data(plain.core, replace(claim, documents=documents))
        with pytest.raises(ApplianceError, match="ACTIVATION_INVALID"):
            open_seal(private, sealed, other)


async def test_front_asks_no_more_of_the_record_for_more_requests(
    plain: BatchFront,
) -> None:
    """Sets all along: a statement a request would show."""
    counts: list[int] = []
    # The larger one is two activations, each of which wakes a worker.
    for count, activations in ((2, 1), (40, 2)):
        told = len(plain.core.work_notifier.notified) + activations
        batch = plain.batch(await plain.requests(count))
        with statements(plain) as seen:
            call = asyncio.create_task(plain.sign(batch))
            await plain.core.work_notifier.heard(told)
            counts.append(len(seen))
        for _ in range(activations):
            await plain.work_off()
        await call

    few, many = counts
    # The looks while it waits come as they come.
    assert many <= few + 2


# -- what does not go ----------------------------------------------------------------


async def test_each_bad_one_has_its_name_and_harms_no_other(
    batch_front: BatchFront,
) -> None:
    """Absent, of somebody else, refused before, past its time, past its end."""
    other = await batch_front.core.add_signer()
    strange = await batch_front.core.add_request(other.person)
    good, fine = await batch_front.requests(2)
    (rejected,) = await batch_front.requests(1)
    (short,) = await batch_front.requests(1, pages=(A4,))
    (late,) = await batch_front.requests(1, expires=batch_front.core.now)
    (locked,) = await batch_front.requests(1, docmdp=1)
    async with batch_front.core.store.write() as transaction:
        await RequestStore(transaction).move(rejected, R.PENDING, R.REJECTED, "no")
    absent = RequestId(2**53 - 1)

    outcome = await batch_front.signed(
        batch_front.batch(
            [absent, good, strange, rejected, short, late, fine, locked], SECOND_PAGE
        )
    )

    assert told(outcome) == [
        (absent, "SOLICITUD_NOT_FOUND"),
        (good, "signed"),
        (strange, "SOLICITUD_NOT_FOUND"),
        (rejected, "STATE"),
        (short, "PAGE_OUT_OF_RANGE"),
        (late, "STATE"),
        (fine, "signed"),
        (locked, "PDF_LOCKED"),
    ]


async def test_one_that_stands_there_twice_is_signed_once(
    batch_front: BatchFront,
) -> None:
    """Both places tell of it."""
    one, other = await batch_front.requests(2)

    outcome = await batch_front.signed(batch_front.batch([one, other, one]))

    assert told(outcome) == [(one, "signed"), (other, "signed"), (one, "signed")]
    assert await audited(batch_front, "activation.created") == [one, other]


async def test_none_that_can_be_signed_asks_for_no_password(plain: BatchFront) -> None:
    """Nothing is begun, and a wrong password is not even looked at."""
    (short,) = await plain.requests(1, pages=(A4,))

    outcome = await plain.sign(plain.batch([short], SECOND_PAGE, b"otra palabra"))

    assert told(outcome) == [(short, "PAGE_OUT_OF_RANGE")]
    assert plain.slots.computed == 0


async def test_wrong_password_refuses_the_call_and_counts_once(
    batch_front: BatchFront,
) -> None:
    """Nothing is begun; the same mistake again is the same mistake."""
    batch = batch_front.batch(await batch_front.requests(3), password=b"otra palabra")

    codes = [await error_code(batch_front.sign(batch)) for _ in range(2)]

    assert codes == [C.SIGN_PASSWORD_WRONG] * 2
    assert {(await batch_front.core.view(each)).state for each in batch.requests} == {
        R.PENDING
    }
    async with batch_front.core.store.read() as transaction:
        secret = await PersonStore(transaction).signing_secret(
            batch_front.signer.person
        )
    assert secret is not None
    assert secret.counted == 1


async def test_no_worker_refuses_before_the_password(plain: BatchFront) -> None:
    """As for one document."""
    plain.core.clock.forward(60)

    code = await error_code(plain.sign(plain.batch(await plain.requests(2))))

    assert (code, plain.slots.computed) == (C.HSM_UNAVAILABLE, 0)


# -- repeating -------------------------------------------------------------------------


async def test_repeat_gives_the_stored_answer(batch_front: BatchFront) -> None:
    """No password, no activation, the same results."""
    batch = batch_front.batch(await batch_front.requests(3))
    first = await batch_front.signed(batch)

    again = await batch_front.sign(replace(batch, password=b"otra palabra"))

    assert again == first
    assert batch_front.slots.computed == 1
    assert len(batch_front.core.work_notifier.notified) == 1


async def test_repeat_signs_only_what_failed(batch_front: BatchFront) -> None:
    """What was given back is tried again; what is signed stays as it is."""
    requests = await batch_front.requests(3)
    first = await batch_front.signed(batch_front.batch(requests), refuse=1)

    again = await batch_front.signed(batch_front.batch(requests))

    assert told(first) == [
        (requests[0], "signed"),
        (requests[1], "HSM_UNAVAILABLE"),
        (requests[2], "signed"),
    ]
    assert told(again) == [(request, "signed") for request in requests]
    assert await audited(batch_front, "activation.created") == [*requests, requests[1]]


async def test_other_parameters_are_told_by_request(batch_front: BatchFront) -> None:
    """Signed or going on in another way: that one's result."""
    one, two, three = await batch_front.requests(3)
    await batch_front.signed(batch_front.batch([one]))
    going_on = await batch_front.core.begin(batch_front.signer, [two])

    outcome = asyncio.create_task(
        batch_front.sign(batch_front.batch([one, two, three], SECOND_PAGE))
    )
    await batch_front.core.work_notifier.heard(2)
    claims = {(await batch_front.work_off()).id for _ in range(2)}

    assert going_on in claims
    assert told(await outcome) == [
        (one, "ALREADY_SIGNED"),
        # Begun otherwise as the call came.
        (two, "IN_PROGRESS"),
        (three, "signed"),
    ]


async def test_two_equal_calls_at_once_make_one_activation(
    batch_front: BatchFront,
) -> None:
    """One begins; the other waits for it, whichever comes first."""
    batch = batch_front.batch(await batch_front.requests(4))
    calls = [asyncio.create_task(batch_front.sign(batch)) for _ in range(2)]
    async with asyncio.timeout(60):
        await batch_front.core.work_notifier.heard(1)
    await batch_front.work_off()

    first, second = await asyncio.gather(*calls)

    assert first == second
    assert first.is_over
    assert await audited(batch_front, "activation.created") == list(batch.requests)


async def test_idempotency_key_stands_for_one_command(batch_front: BatchFront) -> None:
    """Another set of requests under it is refused, the same one is not."""
    one, other = await batch_front.requests(2)
    batch = batch_front.batch([one], key="clave-1")
    await batch_front.signed(batch)

    again = await batch_front.sign(batch)
    code = await error_code(
        batch_front.sign(batch_front.batch([one, other], key="clave-1"))
    )

    assert told(again) == [(one, "signed")]
    assert code is C.IDEMKEY_CONFLICT


async def test_idempotency_key_of_a_repeated_batch_is_remembered(
    batch_front: BatchFront,
) -> None:
    """It came with a batch that was signed already: it stands for that one."""
    one, other = await batch_front.requests(2)
    await batch_front.signed(batch_front.batch([one]))

    again = await batch_front.sign(batch_front.batch([one], key="clave-1"))
    code = await error_code(batch_front.sign(batch_front.batch([other], key="clave-1")))

    assert told(again) == [(one, "signed")]
    assert code is C.IDEMKEY_CONFLICT


# -- a whole batch of an integrator ---------------------------------------------------


def whole(batch_front: BatchFront, lote: RequestBatchId, **changes: Any) -> SignBatch:
    """A call of firmar/lote by the batch's id."""
    return replace(batch_front.batch([], **changes), whole=lote)


async def ended(
    batch_front: BatchFront, request: RequestId, then: RequestState
) -> None:
    """Have a request be over without a signature."""
    async with batch_front.core.store.write() as transaction:
        await RequestStore(transaction).move(request, R.PENDING, then)


async def test_whole_batch_is_signed_in_its_order(batch_front: BatchFront) -> None:
    """By one password; repeated it is the same command, and others have none of it."""
    lote = RequestBatchId(new_id())
    requests = await batch_front.requests(3, batch=lote)
    await batch_front.requests(1)
    other = await batch_front.core.add_signer()

    first = await batch_front.signed(whole(batch_front, lote))
    again = await batch_front.sign(whole(batch_front, lote, password=b"otra palabra"))

    assert told(first) == [(request, "signed") for request in requests]
    assert again == first
    assert batch_front.slots.computed == 1
    assert await audited(batch_front, "activation.created") == requests
    strange = batch_front.signing.sign(whole(batch_front, lote), other)
    assert await error_code(strange) is C.LOTE_NOT_FOUND
    none = whole(batch_front, RequestBatchId(new_id()))
    assert await error_code(batch_front.sign(none)) is C.LOTE_NOT_FOUND


async def test_what_was_over_is_no_part_of_a_whole_batch(
    batch_front: BatchFront,
) -> None:
    """One taken back and one rejected; a key stands for the batch all the same."""
    lote = RequestBatchId(new_id())
    requests = await batch_front.requests(5, batch=lote)
    await ended(batch_front, requests[1], R.REJECTED)
    command = whole(batch_front, lote, key="clave-1")

    first = await batch_front.signed(command, refuse=2)
    async with batch_front.core.store.write() as transaction:
        await RequestStore(transaction).cancel([requests[3]], "")
    again = await batch_front.sign(command)

    assert told(first) == [
        (requests[0], "signed"),
        (requests[2], "signed"),
        (requests[3], "HSM_UNAVAILABLE"),
        (requests[4], "signed"),
    ]
    assert told(again) == [(requests[at], "signed") for at in (0, 2, 4)]
    assert again.id == first.id


async def test_batch_that_is_over_says_why(batch_front: BatchFront) -> None:
    """Where nothing of it is left each tells its state, and no password is asked."""
    lote = RequestBatchId(new_id())
    requests = await batch_front.requests(2, batch=lote)
    for request in requests:
        await ended(batch_front, request, R.CANCELLED)

    outcome = await batch_front.sign(whole(batch_front, lote))

    assert told(outcome) == [(request, "STATE") for request in requests]
    assert batch_front.slots.computed == 0


async def test_progress_of_a_whole_batch(sqlite_core: CoreFixture) -> None:
    """Under the same address, though some of it is over meanwhile."""
    services = await batch_front_of(sqlite_core, wait_s=0.05)
    lote = RequestBatchId(new_id())
    requests = await services.requests(2, batch=lote)

    left = await services.sign(whole(services, lote))
    await services.work_off(refuse=1)
    async with sqlite_core.store.write() as transaction:
        await RequestStore(transaction).cancel([requests[1]], "")
    over = await services.sign(whole(services, lote))
    going = await services.signing.progress(services.signer.person, left.id)

    assert told(left) == [(request, "going on") for request in requests]
    assert told(over) == [(requests[0], "signed")]
    assert told(going) == [(requests[0], "signed"), (requests[1], "STATE")]


# -- longer than a call waits --------------------------------------------------------


async def test_progress_is_told_to_its_signer_alone(core: CoreFixture) -> None:
    """What is over and what is not, what was refused, and at last all of it."""
    services = await batch_front_of(core, wait_s=0.05)
    good = await services.requests(2)
    (short,) = await services.requests(1, pages=(A4,))
    other = await core.add_signer()
    requests = [good[0], short, good[1]]

    left = await services.sign(services.batch(requests, SECOND_PAGE))
    going = await services.signing.progress(services.signer.person, left.id)
    await services.work_off()
    over = await services.signing.progress(services.signer.person, left.id)

    assert told(left) == [
        (good[0], "going on"),
        (short, "PAGE_OUT_OF_RANGE"),
        (good[1], "going on"),
    ]
    assert told(going) == told(left)
    assert [word for _, word in told(over)] == ["signed", "PAGE_OUT_OF_RANGE", "signed"]
    strange = services.signing.progress(other.person, left.id)
    assert await error_code(strange) is C.LOTE_NOT_FOUND


async def test_progress_is_forgotten_after_a_week(sqlite_core: CoreFixture) -> None:
    """The requests are not."""
    services = await batch_front_of(sqlite_core, wait_s=0.05)
    requests = await services.requests(2)
    left = await services.sign(services.batch(requests))
    await services.work_off()
    sweeping = ExpiryJob(
        sqlite_core.store, sqlite_core.completion_notifier, sqlite_core.clock
    )

    codes = []
    for _ in range(2):
        sqlite_core.clock.forward(timedelta(days=4).total_seconds())
        await sweeping.forget()
        codes.append(
            await error_code(services.signing.progress(services.signer.person, left.id))
        )

    assert codes == [None, C.LOTE_NOT_FOUND]
    again = await services.sign(services.batch(requests))
    assert [word for _, word in told(again)] == ["signed", "signed"]


async def test_expired_batch_goes_back_but_what_is_signed(
    batch_front: BatchFront,
) -> None:
    """A second for each document beside the minute; then the rest is given back."""
    requests = await batch_front.requests(3)
    call = asyncio.create_task(batch_front.sign(batch_front.batch(requests)))
    await batch_front.core.work_notifier.heard(1)
    worker = batch_front.core.claiming()
    work = await worker.claim_next()
    assert work is not None
    first = work.claim.documents[0]
    await worker.intend(work.claim, [prepared(first)], CERTIFICATE)
    await worker.record_signatures(work.claim, [keyed(first)])
    view = await batch_front.core.view(first.request)
    await worker.publish(work.claim, [Publication(first, signed_view(view))])
    sweeping = ExpiryJob(
        batch_front.core.store,
        batch_front.core.completion_notifier,
        batch_front.core.clock,
    )

    batch_front.core.clock.forward(62)
    early = await sweeping.expire_activations()
    batch_front.core.clock.forward(1)
    late = await sweeping.expire_activations()

    assert (early, late) == (0, 1)
    assert [word for _, word in told(await call)] == [
        "signed",
        "ACTIVATION_EXPIRED",
        "ACTIVATION_EXPIRED",
    ]


async def test_refusal_that_is_kept_says_the_same_later(
    sqlite_core: CoreFixture,
) -> None:
    """Also where its sentence is not that of its code."""
    signer = await sqlite_core.add_signer()
    whole, away = BatchId(new_id()), DocumentsAwayError()
    refused: dict[RequestId, ApplianceError] = {RequestId(1): away}
    row = BatchRow(
        whole,
        signer.person,
        (RequestId(1),),
        SignParameters(),
        refused,
        sqlite_core.now,
    )
    async with sqlite_core.store.write() as transaction:
        await BatchStore(transaction).put(row)
        kept = await BatchStore(transaction).get(whole)

    assert kept is not None
    assert str(kept.refused[RequestId(1)]) == str(away)
