"""The use case of firmar, over real storage, the worker's part played by hand.

Source: design §3; decisions "seeing before signing".
"""

import asyncio
from pathlib import Path

import pytest

from appliance.appearance.content import Stamping
from appliance.database.engines import open_engines
from appliance.domain.clock import SystemClock
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.keys.versioned_secrets import KeyRing
from appliance.domain.requests.request import SignCommand, Signer, SignOutcome
from appliance.domain.signing_command import GivenParameters
from appliance.domain.vocab import ActivationState, RequestState
from appliance.keys.password_hashing import HashSlots
from appliance.keys.signing_password import SigningPasswords
from appliance.people.person_store import PersonStore
from appliance.record.unit_of_work import Database
from appliance.settings import SigningSettings
from appliance.signing.sign import Signing
from appliance.system.background import Shielded
from tests.support.factories.fake_sandbox import PlayedSandbox
from tests.support.factories.signing_front import (
    RED,
    WRONG,
    SigningFront,
    open_front,
)
from tests.support.factories.signing_host import (
    SigningHost,
    password_attempts,
    reexamination,
)
from tests.support.installation.record import PASSWORD, CoreFixture, signed_view
from tests.support.installation.settings import settings_in

C, R = ErrorCode, RequestState


# -- the straight way ----------------------------------------------------------------


async def test_sign_gives_the_signed_document(front: SigningFront) -> None:
    """Listened for before it was committed, notified once, answered when it is done."""
    request = await front.new_request()

    outcome = await front.signed(front.command(request))

    view = await front.core.view(request)
    (activation,) = front.core.work_notifier.notified
    assert outcome == SignOutcome(request, signed_view(view))
    assert (view.state, view.activation) == (R.SIGNED, activation)
    assert front.core.completion_notifier.subscribed == [activation]


async def test_consent_is_audited_with_document_and_parameters(
    front: SigningFront,
) -> None:
    """Who consented to exactly what, by which factors."""
    request = await front.new_request()

    await front.signed(front.command(request, RED))

    (consent,) = [
        row.event
        for row in await front.core.audit()
        if row.event.event.value == "activation.created"
    ]
    assert (consent.actor, consent.request) == (front.signer.actor, request)
    assert consent.detail["factors"] == ["pwd", "otp", "sign-pwd"]
    assert consent.detail["paramsSha256"] == RED.sha256(request)
    assert consent.detail["documentSha256"] == (await front.core.view(request)).sha256


async def test_sign_answers_open_after_the_wait(sqlite_core: CoreFixture) -> None:
    """The work outlasts `wait_s`: no document yet, and the work goes on."""
    async with open_front(sqlite_core, wait_s=0.05) as front:
        request = await front.new_request()

        outcome = await front.sign(front.command(request))
        await front.work_off()
        again = await front.sign(front.command(request))

        assert outcome == SignOutcome(request, None)
        assert again.document is not None
        assert len(await front.activations()) == 1


async def test_sign_sees_the_end_though_its_news_is_lost(
    sqlite_front: SigningFront,
) -> None:
    """A lost message costs a look at the record half a second later."""
    sqlite_front.core.completion_notifier.deaf = True
    request = await sqlite_front.new_request()

    outcome = await sqlite_front.signed(sqlite_front.command(request))

    assert outcome.document is not None
    assert sqlite_front.core.completion_notifier.pauses[0] == 0.5


# -- the password --------------------------------------------------------------------


async def test_wrong_password_leaves_the_request_pending(
    front: SigningFront,
) -> None:
    """403 with what is left; nothing is made, nobody is notified."""
    request = await front.new_request()

    with pytest.raises(ApplianceError) as caught:
        await front.sign(front.command(request, password=WRONG))

    assert caught.value.code is C.SIGN_PASSWORD_WRONG
    assert caught.value.extras == {"attemptsLeft": 9}
    assert (await front.core.view(request)).state is R.PENDING
    assert await front.activations() == []
    assert front.core.work_notifier.notified == []


async def test_right_password_after_wrong_ones_signs(front: SigningFront) -> None:
    """And the count starts anew."""
    request = await front.new_request()
    for number in range(3):
        await front.code(front.command(request, password=WRONG + b"%d" % number))

    outcome = await front.signed(front.command(request))

    assert outcome.document is not None
    assert await front.counted() == 0


async def test_locked_person_cannot_sign(sqlite_front: SigningFront) -> None:
    """423, also with the right password and on another request."""
    async with sqlite_front.core.store.write() as transaction:
        await PersonStore(transaction).set_counted(
            sqlite_front.signer.person, 10, sqlite_front.core.now
        )

    assert (
        await sqlite_front.code(sqlite_front.command(await sqlite_front.new_request()))
        is C.SIGN_LOCKED
    )


# -- callers that leave, and a record that is away -----------------------------------


async def test_caller_who_leaves_during_the_check_has_signed(
    front: SigningFront,
) -> None:
    """Cancelled while Argon2 runs: committed exactly once, notified once."""
    request = await front.new_request()
    async with front.busy_hashing():
        call = front.start(front.command(request))
        await front.checking()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        before = (await front.core.view(request)).state
    await front.shielded.close()

    assert before is R.PENDING
    assert (await front.core.view(request)).state is R.IN_PROGRESS
    (activation,) = await front.activations()
    assert front.core.work_notifier.notified == [activation]
    await front.work_off()
    assert (await front.sign(front.command(request))).document is not None


async def test_caller_who_leaves_during_a_wrong_check_is_counted(
    sqlite_front: SigningFront,
) -> None:
    """Hanging up does not save an attempt."""
    request = await sqlite_front.new_request()
    async with sqlite_front.busy_hashing():
        call = sqlite_front.start(sqlite_front.command(request, password=WRONG))
        await sqlite_front.checking()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    await sqlite_front.shielded.close()

    assert await sqlite_front.counted() == 1
    assert await sqlite_front.activations() == []


async def test_caller_who_leaves_while_it_waits_changes_nothing(
    sqlite_front: SigningFront,
) -> None:
    """The work goes on without anybody to tell."""
    request = await sqlite_front.new_request()
    call = sqlite_front.start(sqlite_front.command(request))
    activation = await sqlite_front.notified()

    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await sqlite_front.work_off()

    assert (await sqlite_front.core.view(request)).state is R.SIGNED
    assert (await sqlite_front.core.activation_state(activation))[
        0
    ] is ActivationState.DONE


async def test_sign_without_the_record_is_unavailable(tmp_path: Path) -> None:
    """The database is away: 503, and nobody is notified."""
    url = f"postgresql://rubrica@/none?host={tmp_path}&port=5432"
    store = Database(open_engines(settings_in(tmp_path, url)), SystemClock(), "test")
    core = CoreFixture(settings_in(tmp_path), clock=None, store=store)  # type: ignore[arg-type]  # never asked
    limits = SigningSettings()
    passwords = SigningPasswords(KeyRing.of(b"p" * 32), HashSlots(1))
    attempts = password_attempts(store, passwords, SystemClock(), limits)
    signing = Signing(
        store,
        attempts,
        SigningHost(tmp_path).hosts(store, SystemClock()),
        Stamping(core.settings.stamp, core.settings.verify_url),
        core.work_notifier,
        core.completion_notifier,
        SystemClock(),
        limits,
        Shielded(),
        reexamination(core, PlayedSandbox()),
        core.settings.signature_profile,
    )
    signer = Signer("x", "person:x", (), SystemClock().now())  # type: ignore[arg-type]  # an id

    with pytest.raises(ApplianceError) as caught:
        await signing.sign(
            SignCommand(RequestId(1), GivenParameters(), PASSWORD), signer
        )

    assert caught.value.code is C.STORE_UNAVAILABLE
    assert core.work_notifier.notified == []
    await store.close()
