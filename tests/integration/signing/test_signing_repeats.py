"""Firmar called again, at once or later, with the same or other content.

Source: decisions "repeating firmar".
"""

import asyncio
import hashlib
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from appliance.database.tables import document, signature_request
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.requests.request import SignOutcome
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import RequestState
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.signing.expiry import ExpiryJob
from tests.support.factories.signing_front import RED, WRONG, SigningFront

C, R = ErrorCode, RequestState


async def test_repeat_after_signed_gives_the_stored_answer(
    front: SigningFront,
) -> None:
    """Same parameters: the same document, and no password is looked at."""
    request = await front.new_request()
    first = await front.signed(front.command(request, RED))

    again = await front.sign(front.command(request, RED, WRONG))

    assert again == first
    assert await front.counted() == 0
    assert len(await front.activations()) == 1


async def test_repeat_after_signed_with_other_parameters_is_refused(
    front: SigningFront,
) -> None:
    """409 `ALREADY_SIGNED`."""
    request = await front.new_request()
    await front.signed(front.command(request))

    assert await front.code(front.command(request, RED)) is C.ALREADY_SIGNED


@pytest.mark.parametrize("is_signed", [True, False])
async def test_repeat_that_means_another_document_is_refused(
    sqlite_front: SigningFront, *, is_signed: bool
) -> None:
    """Signed or in progress: 412 or 422, and no password is looked at."""
    front, pdf = sqlite_front, b"%PDF-1.7 this one"
    seen = hashlib.sha256(pdf).hexdigest()
    request = await front.new_request(sha256=seen)
    first = front.start(front.command(request))
    await front.notified()
    if is_signed:
        await front.work_off()

    other = front.command(request, password=WRONG, if_match="0" * 64)
    assert await front.code(other) is C.DOCUMENT_CHANGED
    plain = front.command(request, password=WRONG)
    assert await front.code(plain, pdf + b"\n") is C.DOCUMENT_MISMATCH
    right = front.command(request, password=WRONG, if_match=seen)
    again = asyncio.create_task(front.sign(right, pdf))
    if not is_signed:
        await front.awaited(2)
        await front.work_off()

    assert await again == await first
    assert await front.counted() == 0
    assert len(await front.activations()) == 1


async def test_repeat_in_progress_waits_for_the_same_result(
    front: SigningFront,
) -> None:
    """No second activation, no password, one document for both."""
    request = await front.new_request()
    first = front.start(front.command(request))
    await front.notified()
    second = front.start(front.command(request, password=WRONG))
    await front.awaited(2)
    await front.work_off()

    assert await first == await second
    assert len(await front.activations()) == 1
    assert await front.counted() == 0


async def test_repeat_in_progress_with_other_parameters_is_refused(
    front: SigningFront,
) -> None:
    """409 `IN_PROGRESS`, and the first goes on."""
    request = await front.new_request()
    first = front.start(front.command(request))
    await front.notified()

    refused = await front.code(front.command(request, RED))
    await front.work_off()

    assert refused is C.IN_PROGRESS
    assert (await first).document is not None


async def test_ten_equal_calls_at_once_make_one_signature(
    front: SigningFront,
) -> None:
    """All of them get the one document."""
    request = await front.new_request()
    calls = [front.start(front.command(request)) for _ in range(10)]
    await front.awaited(10)
    await front.work_off()
    outcomes = await asyncio.gather(*calls)

    assert len({outcome.document for outcome in outcomes}) == 1
    assert outcomes[0].document is not None
    assert len(await front.activations()) == 1


async def test_two_different_calls_at_once_have_one_winner(
    front: SigningFront,
) -> None:
    """One is signed; the other learns that it is in progress, or signed."""
    request = await front.new_request()
    calls = [
        front.start(front.command(request, SignParameters(font_size=size)))
        for size in (12, 13)
    ]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    await front.notified()
    await front.work_off()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    (winner,) = [each for each in outcomes if isinstance(each, SignOutcome)]
    (loser,) = [each for each in outcomes if isinstance(each, ApplianceError)]
    assert winner.document is not None
    assert loser.code in {C.IN_PROGRESS, C.ALREADY_SIGNED}
    assert len(await front.activations()) == 1


async def test_failure_is_told_and_may_be_tried_again(front: SigningFront) -> None:
    """The HSM went away: 503 to the caller, the request is `pendiente`."""
    request = await front.new_request()
    call = front.start(front.command(request))
    await front.notified()

    await front.hand_back(C.HSM_UNAVAILABLE)
    with pytest.raises(ApplianceError) as caught:
        await call
    again = await front.signed(front.command(request, RED))

    assert caught.value.code is C.HSM_UNAVAILABLE
    assert again.document is not None


async def test_expired_activation_is_told(front: SigningFront) -> None:
    """Nobody claimed it in time."""
    request = await front.new_request()
    call = front.start(front.command(request))
    await front.notified()

    front.core.clock.forward(60)
    core = front.core
    await ExpiryJob(
        core.store, core.completion_notifier, core.clock
    ).expire_activations()

    with pytest.raises(ApplianceError) as caught:
        await call
    assert caught.value.code is C.ACTIVATION_EXPIRED
    assert (await core.view(request)).state is R.PENDING


@pytest.mark.parametrize(
    ("params", "code"), [(SignParameters(), None), (RED, C.ALREADY_SIGNED)]
)
async def test_caller_who_looks_late_meets_what_was_begun_anew(
    sqlite_front: SigningFront,
    params: SignParameters,
    code: ErrorCode | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own attempt was given back, and another call has signed meanwhile."""
    # It looks when this test says so, however long the rest takes.
    monkeypatch.setattr("appliance.signing.sign._LOOK_AGAIN_S", (60.0,))
    completion_notifier = sqlite_front.core.completion_notifier
    completion_notifier.deaf = True
    request = await sqlite_front.new_request()
    late = sqlite_front.start(sqlite_front.command(request))
    await sqlite_front.awaited()
    await sqlite_front.hand_back(C.HSM_UNAVAILABLE)
    completion_notifier.deaf = False
    anew = sqlite_front.start(sqlite_front.command(request, params))
    await sqlite_front.notified(2)
    await sqlite_front.work_off()
    (begun, _) = completion_notifier.subscribed
    await completion_notifier.publish(begun)
    (met,) = await asyncio.gather(late, return_exceptions=True)

    assert (await anew).document is not None
    assert (met.code if isinstance(met, ApplianceError) else None) is code


async def moved(front: SigningFront, request: RequestId, **changes: object) -> None:
    """Have a request be on what another one of its turn made."""
    other = (await front.core.view(await front.new_request())).sha256
    its = select(document.c.id).where(document.c.sha256 == other).scalar_subquery()
    async with front.core.store.write() as transaction:
        await transaction.connection.execute(
            update(signature_request)
            .where(signature_request.c.id == request)
            .values(document=its, **changes)
        )


async def test_caller_who_looks_late_means_what_was_seen(
    sqlite_front: SigningFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another call has signed meanwhile in the same way is another document."""
    monkeypatch.setattr("appliance.signing.sign._LOOK_AGAIN_S", (60.0,))
    front = sqlite_front
    completion_notifier = front.core.completion_notifier
    completion_notifier.deaf = True
    request = await front.new_request()
    seen = (await front.core.view(request)).sha256
    late = front.start(front.command(request, if_match=seen))
    await front.awaited()
    await front.hand_back(C.HSM_UNAVAILABLE)
    completion_notifier.deaf = False
    await moved(front, request)
    anew = front.start(front.command(request))
    await front.notified(2)
    await front.work_off()
    (begun, _) = completion_notifier.subscribed
    await completion_notifier.publish(begun)
    (met,) = await asyncio.gather(late, return_exceptions=True)

    assert (await anew).document is not None
    assert isinstance(met, ApplianceError)
    assert met.code is C.DOCUMENT_CHANGED


async def test_password_is_checked_while_another_document_is_begun(
    sqlite_front: SigningFront,
) -> None:
    """Another call of the same parameters signs what this one has not seen."""
    front = sqlite_front
    request = await front.new_request()
    seen = (await front.core.view(request)).sha256
    async with front.busy_hashing():
        call = front.start(front.command(request, if_match=seen))
        await front.checking()
        state = R.IN_PROGRESS.value
        same = SignParameters().sha256(request)
        await moved(front, request, state=state, params_sha256=same)
    (met,) = await asyncio.gather(call, return_exceptions=True)

    assert isinstance(met, ApplianceError)
    assert met.code is C.DOCUMENT_CHANGED
    assert await front.activations() == []


# -- idempotency keys ------------------------------------------------------------------


async def test_idempotency_key_with_other_content_is_refused(
    front: SigningFront,
) -> None:
    """The same key for other parameters, or for another request: 409."""
    request, other = await front.new_request(), await front.new_request()
    await front.signed(front.command(request, key="k"))

    codes = [
        await front.code(front.command(request, RED, key="k")),
        await front.code(front.command(other, key="k")),
    ]

    assert codes == [C.IDEMKEY_CONFLICT] * 2


async def test_idempotency_key_repeated_gives_the_same_answer(
    front: SigningFront,
) -> None:
    """Same key, same content: the stored answer."""
    request = await front.new_request()
    first = await front.signed(front.command(request, key="k"))

    assert await front.sign(front.command(request, key="k")) == first


@pytest.mark.parametrize("going_on", [False, True], ids=["signed", "in progress"])
async def test_idempotency_key_of_a_repeat_is_remembered(
    front: SigningFront, going_on: bool
) -> None:
    """A key that comes only with the repeat stands for that command from then on."""
    request, other = await front.new_request(), await front.new_request()
    first = front.start(front.command(request))
    await front.notified()
    if not going_on:
        await front.work_off()
        await first
    again = front.start(front.command(request, key="k"))
    if going_on:
        # The key is there before the document is.
        await front.remembered("k")
        await front.work_off()

    assert await again == await first
    assert await front.code(front.command(other, key="k")) is C.IDEMKEY_CONFLICT
    assert (await front.core.view(other)).state is R.PENDING


async def test_idempotency_keys_of_equal_calls_at_once_are_all_remembered(
    front: SigningFront,
) -> None:
    """One of them signs; the keys of those that wait for it were used as well."""
    request, other = await front.new_request(), await front.new_request()
    keys = [f"k{number}" for number in range(4)]
    calls = [front.start(front.command(request, key=key)) for key in keys]
    await front.notified()
    for key in keys:
        await front.remembered(key)
    await front.work_off()

    outcomes = await asyncio.gather(*calls)

    assert len({outcome.document for outcome in outcomes}) == 1
    codes = [await front.code(front.command(other, key=key)) for key in keys]
    assert codes == [C.IDEMKEY_CONFLICT] * 4


async def test_idempotency_key_of_a_refused_call_is_free(front: SigningFront) -> None:
    """Neither a wrong password nor other parameters use a key up."""
    request, other = await front.new_request(), await front.new_request()
    await front.signed(front.command(request))

    refused = [
        await front.code(front.command(request, RED, key="k")),
        await front.code(front.command(other, password=WRONG, key="k")),
    ]

    assert refused == [C.ALREADY_SIGNED, C.SIGN_PASSWORD_WRONG]
    assert (await front.signed(front.command(other, key="k"))).document is not None


async def test_idempotency_key_for_two_requests_at_once_has_one_winner(
    front: SigningFront,
) -> None:
    """The one that comes second is refused, and its request stays `pendiente`."""
    requests = [await front.new_request() for _ in range(2)]
    calls = [front.start(front.command(request, key="k")) for request in requests]
    done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    (refused,) = done

    assert isinstance(refused.exception(), ApplianceError)
    await front.notified()
    await front.work_off()

    states = [state for state, _ in await front.core.request_states(requests)]
    await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(states) == [R.SIGNED, R.PENDING]
    # The right password that came with it is no running check any more.
    async with front.core.store.read() as transaction:
        since = front.core.now - timedelta(seconds=60)
        assert (
            await PasswordAttemptStore(transaction).running(front.signer.person, since)
            == 0
        )
