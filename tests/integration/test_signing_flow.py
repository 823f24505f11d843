"""The use case of firmar, over real storage, the worker's part played by hand.

Source: decisions "repeating firmar", "seeing before signing", "restriccion".
"""

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.domain.clock import SystemClock
from appliance.domain.command import SignParameters
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ActivationId, RequestId
from appliance.domain.key_ring import KeyRing
from appliance.domain.records.people import SigningSecret
from appliance.domain.records.tasks import WorkerStatus
from appliance.domain.request import SignCommand, Signer, SignOutcome
from appliance.domain.vocab import (
    ActivationState,
    PersonState,
    RequestState,
    Restriction,
)
from appliance.services.attempts import Attempts
from appliance.services.authorizing import Authorizing
from appliance.services.passwords import HashSlots
from appliance.services.shielding import Shielded
from appliance.services.signing import Signing
from appliance.services.signing_password import SigningPasswords
from appliance.services.stamping import Stamping
from appliance.services.sweeping import Sweeping
from appliance.settings import SigningSettings
from appliance.storage.engines import open_engines
from appliance.storage.store import SqlStore
from tests.core_parts import (
    CERTIFICATE,
    DIGEST,
    MADE,
    PASSWORD,
    CoreParts,
    cheap_password_secret,
    core_settings,
    signed_view,
)
from tests.parts.signing_host import INSTALLATION, SigningHost, authorizing

C, R = ErrorCode, RequestState
WRONG = b"otra palabra"
RED = SignParameters(font_color="RED")


@dataclass
class Front:
    """A face's part of signing, and a worker to be told what to do."""

    core: CoreParts
    signing: Signing
    hashing: HashSlots
    signer: Signer
    secret: SigningSecret
    host: SigningHost
    shielded: Shielded
    _tasks: list[asyncio.Task[SignOutcome]] = field(default_factory=list)

    def command(
        self,
        request: RequestId,
        params: SignParameters | None = None,
        password: bytes = PASSWORD,
        *,
        if_match: str | None = None,
        key: str | None = None,
    ) -> SignCommand:
        """A call of firmar."""
        return SignCommand(request, params or SignParameters(), password, if_match, key)

    async def sign(
        self, command: SignCommand, document: bytes | None = None
    ) -> SignOutcome:
        """Sign, to the end."""
        return await self.signing.sign(command, self.signer, document)

    async def code(
        self, command: SignCommand, document: bytes | None = None
    ) -> ErrorCode | None:
        """How a call is refused."""
        try:
            await self.sign(command, document)
        except ApplianceError as exc:
            return exc.code
        return None

    def start(self, command: SignCommand) -> asyncio.Task[SignOutcome]:
        """Begin a call and go on."""
        return asyncio.create_task(self.sign(command))

    async def rung(self, times: int = 1) -> ActivationId:
        """Wait until the bell has rung that often; the last activation."""
        async with asyncio.timeout(10):
            await self.core.doorbell.heard(times)
        return self.core.doorbell.rung[-1]

    async def work_off(self) -> None:
        """A worker claims what there is and signs it."""
        worker = self.core.claiming()
        while (work := await worker.claim_next()) is not None:
            for item in work.claim.items:
                await worker.intend(work.claim, item, DIGEST, CERTIFICATE)
                await worker.keyed(work.claim, item, MADE, DIGEST)
                view = await self.core.view(item.request)
                await worker.finished(work.claim, item, signed_view(view))
            await worker.announce(work.claim)

    async def hand_back(self, code: ErrorCode) -> None:
        """A worker claims what there is and gives it back."""
        worker = self.core.claiming()
        work = await worker.claim_next()
        assert work is not None
        await worker.returned(work.claim, list(work.claim.items), code)

    async def signed(self, command: SignCommand) -> SignOutcome:
        """Sign, a worker doing its part."""
        before = len(self.core.doorbell.rung)
        call = self.start(command)
        await self.rung(before + 1)
        await self.work_off()
        return await call

    async def checking(self) -> None:
        """Wait until a check of the password is going on."""
        running = 0
        while not running:
            await asyncio.sleep(0.01)
            async with self.core.store.read() as records:
                running = await records.slots.running(
                    self.signer.person, self.core.now - timedelta(seconds=60)
                )

    async def counted(self) -> int:
        """Wrong passwords that were counted."""
        async with self.core.store.read() as records:
            secret = await records.people.signing_secret(self.signer.person)
        assert secret is not None
        return secret.counted

    async def activations(self) -> list[str]:
        """Every activation that was ever made, by the audit."""
        return [
            str(row.event.activation)
            for row in await self.core.audit()
            if row.event.event.value == "activation.created"
        ]


async def beat(core: CoreParts, slot: str = "signing/h/1", hsm: str = "ready") -> None:
    """A worker says that it is alive."""
    async with core.store.write() as records:
        await records.workers.beat(WorkerStatus(slot, "p", core.now, hsm, ""))


async def front_of(core: CoreParts, **settings: float) -> Front:
    """With a person who can sign and no worker yet."""
    hashing = HashSlots(1)
    passwords = SigningPasswords(KeyRing.of(b"p" * 32), hashing)
    secret = await cheap_password_secret(passwords)
    signer = await core.add_signer(secret)
    limits = SigningSettings.model_validate({"wait_s": 10, **settings})
    shielded = Shielded()
    host = SigningHost(core.settings.data_dir)
    async with core.store.write() as records:
        await records.activation_keys.publish(host.key(core.now))
    asking = authorizing(core, host, passwords, limits)
    signing = Signing(core.store, asking, core.outcomes, limits, shielded)
    return Front(core, signing, hashing, signer, secret, host, shielded)


@pytest.fixture
async def front(core: CoreParts) -> AsyncIterator[Front]:
    """On each database, a worker alive."""
    made = await front_of(core)
    await beat(core)
    yield made
    await made.shielded.close()


@pytest.fixture
async def plain(sqlite_core: CoreParts) -> AsyncIterator[Front]:
    """On SQLite, a worker alive."""
    made = await front_of(sqlite_core)
    await beat(sqlite_core)
    yield made
    await made.shielded.close()


async def new_request(front: Front, **changes: object) -> RequestId:
    """A request of this front's person."""
    return await front.core.add_request(front.signer.person, **changes)


# -- the straight way ----------------------------------------------------------------


async def test_sign_gives_the_signed_document(front: Front) -> None:
    """Listened for before it was committed, rung once, answered when it is done."""
    request = await new_request(front)

    outcome = await front.signed(front.command(request))

    view = await front.core.view(request)
    (activation,) = front.core.doorbell.rung
    assert outcome == SignOutcome(request, signed_view(view))
    assert (view.state, view.activation) == (R.SIGNED, activation)
    assert front.core.outcomes.expected == [activation]


async def test_consent_is_audited_with_document_and_parameters(front: Front) -> None:
    """Who consented to exactly what, by which factors."""
    request = await new_request(front)

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


async def test_sign_answers_open_after_the_wait(sqlite_core: CoreParts) -> None:
    """The work outlasts `wait_s`: no document yet, and the work goes on."""
    front = await front_of(sqlite_core, wait_s=0.05)
    await beat(sqlite_core)
    request = await new_request(front)

    outcome = await front.sign(front.command(request))
    await front.work_off()
    again = await front.sign(front.command(request))

    assert outcome == SignOutcome(request, None)
    assert again.document is not None
    assert len(await front.activations()) == 1


async def test_sign_sees_the_end_though_its_news_is_lost(plain: Front) -> None:
    """A lost message costs a look at the record half a second later."""
    plain.core.outcomes.deaf = True
    request = await new_request(plain)

    outcome = await plain.signed(plain.command(request))

    assert outcome.document is not None
    assert plain.core.outcomes.pauses[0] == 0.5


# -- refusals before the password ------------------------------------------------------


async def test_request_of_somebody_else_is_absent(plain: Front) -> None:
    """Whoever has it: the same answer as for none."""
    other = await plain.core.add_signer()
    request = await plain.core.add_request(other.person)

    codes = [
        await plain.code(plain.command(request)),
        await plain.code(plain.command(RequestId(2**53 - 1))),
    ]

    assert codes == [C.SOLICITUD_NOT_FOUND] * 2


Arrange = Callable[[Front], Awaitable[SignCommand]]


async def _page(front: Front) -> SignCommand:
    return front.command(await new_request(front), SignParameters(page=3))


async def _position(front: Front) -> SignCommand:
    return front.command(await new_request(front), SignParameters(x=590, y=0))


async def _locked(front: Front) -> SignCommand:
    return front.command(await new_request(front, docmdp=1))


async def _certify_signed(front: Front) -> SignCommand:
    params = SignParameters(restriction=Restriction.FORM_FILLING)
    return front.command(await new_request(front, signatures=1), params)


async def _changed(front: Front) -> SignCommand:
    return front.command(await new_request(front), if_match="00" * 32)


async def _expired(front: Front) -> SignCommand:
    return front.command(await new_request(front, expires=front.core.now))


async def _no_credential(front: Front) -> SignCommand:
    signer = await front.core.add_signer(front.secret, credential=False)
    front.signer = signer
    return front.command(await new_request(front))


async def _disabled(front: Front) -> SignCommand:
    front.signer = await front.core.add_signer(front.secret, state=PersonState.DISABLED)
    return front.command(await new_request(front))


async def _certificate_over(front: Front) -> SignCommand:
    await front.core.add_credential(front.signer.person, not_after=front.core.now)
    return front.command(await new_request(front))


async def _certificate_to_come(front: Front) -> SignCommand:
    await front.core.add_credential(
        front.signer.person, not_before=front.core.now + timedelta(seconds=1)
    )
    return front.command(await new_request(front))


async def _worker_gone(front: Front) -> SignCommand:
    front.core.clock.forward(15)
    return front.command(await new_request(front))


async def _hsm_away(front: Front) -> SignCommand:
    await beat(front.core, hsm="unavailable")
    return front.command(await new_request(front))


async def _chores_alone(front: Front) -> SignCommand:
    front.core.clock.forward(15)
    await beat(front.core, slot="chores/h/1")
    return front.command(await new_request(front))


async def _rejected(front: Front) -> SignCommand:
    request = await new_request(front)
    async with front.core.store.write() as records:
        await records.requests.move(request, R.PENDING, R.REJECTED, "SIGN_LOCKED")
    return front.command(request)


@pytest.mark.parametrize(
    ("arrange", "code"),
    [
        (_page, C.PAGE_OUT_OF_RANGE),
        (_position, C.POSITION_OUT_OF_PAGE),
        (_locked, C.PDF_LOCKED),
        (_certify_signed, C.PDF_ALREADY_SIGNED),
        (_changed, C.DOCUMENT_CHANGED),
        (_expired, C.STATE),
        (_no_credential, C.CERTIFICATE_NOT_USABLE),
        (_disabled, C.CERTIFICATE_NOT_USABLE),
        (_certificate_over, C.CERTIFICATE_NOT_USABLE),
        (_certificate_to_come, C.CERTIFICATE_NOT_USABLE),
        (_worker_gone, C.HSM_UNAVAILABLE),
        (_hsm_away, C.HSM_UNAVAILABLE),
        (_chores_alone, C.HSM_UNAVAILABLE),
        (_rejected, C.STATE),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_refused_before_the_password_is_looked_at(
    plain: Front, arrange: Arrange, code: ErrorCode
) -> None:
    """What stands in the way is told whatever the password, and counts nothing."""
    command = await arrange(plain)

    refused = await plain.code(replace(command, password=WRONG))

    assert refused is code
    assert await plain.counted() == 0
    assert await plain.activations() == []
    assert plain.core.doorbell.rung == []


async def test_one_ready_worker_is_enough(plain: Front) -> None:
    """Of two workers one has its HSM."""
    await beat(plain.core, slot="signing/h/2", hsm="unavailable")

    outcome = await plain.signed(plain.command(await new_request(plain)))

    assert outcome.document is not None


async def test_certified_document_may_be_approved(plain: Front) -> None:
    """P = 2 and earlier signatures allow one more, without a stamp of its own."""
    request = await new_request(plain, docmdp=2, signatures=1)
    hidden = SignParameters(visible=False)

    assert await plain.code(plain.command(request)) is C.PDF_CERTIFIED
    assert (await plain.signed(plain.command(request, hidden))).document is not None


async def test_if_match_of_the_document_passes(plain: Front) -> None:
    """The hash that was seen is the one that is signed."""
    request = await new_request(plain)
    sha256 = (await plain.core.view(request)).sha256

    outcome = await plain.signed(plain.command(request, if_match=sha256))

    assert outcome.document is not None


async def test_file_sent_along_must_be_the_document(plain: Front) -> None:
    """Other bytes are refused before the password; the very bytes pass."""
    pdf = b"%PDF-1.7 this one"
    request = await new_request(plain, sha256=hashlib.sha256(pdf).hexdigest())

    other = await plain.code(plain.command(request, password=WRONG), pdf + b"\n")
    call = asyncio.create_task(plain.sign(plain.command(request), pdf))
    await plain.rung()
    await plain.work_off()

    assert other is C.DOCUMENT_MISMATCH
    assert (await call).document is not None


# -- the password --------------------------------------------------------------------


async def test_wrong_password_leaves_the_request_pending(front: Front) -> None:
    """403 with what is left; nothing is made, nobody is rung for."""
    request = await new_request(front)

    with pytest.raises(ApplianceError) as caught:
        await front.sign(front.command(request, password=WRONG))

    assert caught.value.code is C.SIGN_PASSWORD_WRONG
    assert caught.value.extras == {"attemptsLeft": 9}
    assert (await front.core.view(request)).state is R.PENDING
    assert await front.activations() == []
    assert front.core.doorbell.rung == []


async def test_right_password_after_wrong_ones_signs(front: Front) -> None:
    """And the count starts anew."""
    request = await new_request(front)
    for number in range(3):
        await front.code(front.command(request, password=WRONG + b"%d" % number))

    outcome = await front.signed(front.command(request))

    assert outcome.document is not None
    assert await front.counted() == 0


async def test_locked_person_cannot_sign(plain: Front) -> None:
    """423, also with the right password and on another request."""
    async with plain.core.store.write() as records:
        await records.people.set_counted(plain.signer.person, 10, plain.core.now)

    assert await plain.code(plain.command(await new_request(plain))) is C.SIGN_LOCKED


# -- repeating -----------------------------------------------------------------------


async def test_repeat_after_signed_gives_the_stored_answer(front: Front) -> None:
    """Same parameters: the same document, and no password is looked at."""
    request = await new_request(front)
    first = await front.signed(front.command(request, RED))

    again = await front.sign(front.command(request, RED, WRONG))

    assert again == first
    assert await front.counted() == 0
    assert len(await front.activations()) == 1


async def test_repeat_after_signed_with_other_parameters_is_refused(
    front: Front,
) -> None:
    """409 `ALREADY_SIGNED`."""
    request = await new_request(front)
    await front.signed(front.command(request))

    assert await front.code(front.command(request, RED)) is C.ALREADY_SIGNED


async def test_repeat_in_progress_waits_for_the_same_result(front: Front) -> None:
    """No second activation, no password, one document for both."""
    request = await new_request(front)
    first = front.start(front.command(request))
    await front.rung()
    second = front.start(front.command(request, password=WRONG))
    await asyncio.sleep(0.05)

    await front.work_off()

    assert await first == await second
    assert len(await front.activations()) == 1
    assert await front.counted() == 0


async def test_repeat_in_progress_with_other_parameters_is_refused(
    front: Front,
) -> None:
    """409 `IN_PROGRESS`, and the first goes on."""
    request = await new_request(front)
    first = front.start(front.command(request))
    await front.rung()

    refused = await front.code(front.command(request, RED))
    await front.work_off()

    assert refused is C.IN_PROGRESS
    assert (await first).document is not None


async def test_ten_equal_calls_at_once_make_one_signature(front: Front) -> None:
    """All of them get the one document."""
    request = await new_request(front)
    calls = [front.start(front.command(request)) for _ in range(10)]
    await front.rung()
    await asyncio.sleep(0.2)

    await front.work_off()
    outcomes = await asyncio.gather(*calls)

    assert len({outcome.document for outcome in outcomes}) == 1
    assert outcomes[0].document is not None
    assert len(await front.activations()) == 1


async def test_two_different_calls_at_once_have_one_winner(front: Front) -> None:
    """One is signed; the other learns that it is in progress, or signed."""
    request = await new_request(front)
    calls = [
        front.start(front.command(request, SignParameters(font_size=size)))
        for size in (12, 13)
    ]
    await front.rung()
    await asyncio.sleep(0.1)

    await front.work_off()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    (winner,) = [each for each in outcomes if isinstance(each, SignOutcome)]
    (loser,) = [each for each in outcomes if isinstance(each, ApplianceError)]
    assert winner.document is not None
    assert loser.code in {C.IN_PROGRESS, C.ALREADY_SIGNED}
    assert len(await front.activations()) == 1


async def test_failure_is_told_and_may_be_tried_again(front: Front) -> None:
    """The HSM went away: 503 to the caller, the request is `pendiente`."""
    request = await new_request(front)
    call = front.start(front.command(request))
    await front.rung()

    await front.hand_back(C.HSM_UNAVAILABLE)
    with pytest.raises(ApplianceError) as caught:
        await call
    again = await front.signed(front.command(request, RED))

    assert caught.value.code is C.HSM_UNAVAILABLE
    assert again.document is not None


async def test_expired_activation_is_told(front: Front) -> None:
    """Nobody claimed it in time."""
    request = await new_request(front)
    call = front.start(front.command(request))
    await front.rung()

    front.core.clock.forward(60)
    core = front.core
    await Sweeping(core.store, core.outcomes, core.clock).expire_activations()

    with pytest.raises(ApplianceError) as caught:
        await call
    assert caught.value.code is C.ACTIVATION_EXPIRED
    assert (await core.view(request)).state is R.PENDING


@pytest.mark.parametrize(
    ("params", "code"), [(SignParameters(), None), (RED, C.ALREADY_SIGNED)]
)
async def test_caller_who_looks_late_meets_what_was_begun_anew(
    plain: Front,
    params: SignParameters,
    code: ErrorCode | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own attempt was given back, and another call has signed meanwhile."""
    # It looks when this test says so, however long the rest takes.
    monkeypatch.setattr("appliance.services.signing._LOOK_AGAIN_S", (60.0,))
    outcomes = plain.core.outcomes
    outcomes.deaf = True
    request = await new_request(plain)
    late = plain.start(plain.command(request))
    await plain.rung()
    await asyncio.sleep(0.05)

    await plain.hand_back(C.HSM_UNAVAILABLE)
    outcomes.deaf = False
    anew = plain.start(plain.command(request, params))
    await plain.rung(2)
    await plain.work_off()
    (begun, _) = outcomes.expected
    await outcomes.announce(begun)
    (met,) = await asyncio.gather(late, return_exceptions=True)

    assert (await anew).document is not None
    assert (met.code if isinstance(met, ApplianceError) else None) is code


# -- idempotency keys ------------------------------------------------------------------


async def test_idempotency_key_with_other_content_is_refused(front: Front) -> None:
    """The same key for other parameters, or for another request: 409."""
    request, other = await new_request(front), await new_request(front)
    await front.signed(front.command(request, key="k"))

    codes = [
        await front.code(front.command(request, RED, key="k")),
        await front.code(front.command(other, key="k")),
    ]

    assert codes == [C.IDEMKEY_CONFLICT] * 2


async def test_idempotency_key_repeated_gives_the_same_answer(front: Front) -> None:
    """Same key, same content: the stored answer."""
    request = await new_request(front)
    first = await front.signed(front.command(request, key="k"))

    assert await front.sign(front.command(request, key="k")) == first


async def test_idempotency_key_for_two_requests_at_once_has_one_winner(
    front: Front,
) -> None:
    """The one that comes second is refused, and its request stays `pendiente`."""
    requests = [await new_request(front) for _ in range(2)]
    calls = [front.start(front.command(request, key="k")) for request in requests]
    done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    (refused,) = done

    assert isinstance(refused.exception(), ApplianceError)
    await front.rung()
    await front.work_off()

    states = [state for state, _ in await front.core.request_states(requests)]
    await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(states) == [R.SIGNED, R.PENDING]
    # The right password that came with it is no running check any more.
    async with front.core.store.read() as records:
        since = front.core.now - timedelta(seconds=60)
        assert await records.slots.running(front.signer.person, since) == 0


# -- callers that leave, and a record that is away -----------------------------------


async def test_caller_who_leaves_during_the_check_has_signed(front: Front) -> None:
    """Cancelled while Argon2 runs: committed exactly once, rung for exactly once."""
    request = await new_request(front)
    busy = threading.Event()
    hashing = asyncio.create_task(front.hashing.run(busy.wait))
    await asyncio.sleep(0.02)
    call = front.start(front.command(request))
    await front.checking()

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    before = (await front.core.view(request)).state
    busy.set()
    await hashing
    await front.shielded.close()

    assert before is R.PENDING
    assert (await front.core.view(request)).state is R.IN_PROGRESS
    (activation,) = await front.activations()
    assert front.core.doorbell.rung == [activation]
    await front.work_off()
    assert (await front.sign(front.command(request))).document is not None


async def test_caller_who_leaves_during_a_wrong_check_is_counted(
    plain: Front,
) -> None:
    """Hanging up does not save an attempt."""
    request = await new_request(plain)
    busy = threading.Event()
    hashing = asyncio.create_task(plain.hashing.run(busy.wait))
    await asyncio.sleep(0.02)
    call = plain.start(plain.command(request, password=WRONG))
    await plain.checking()

    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    busy.set()
    await hashing
    await plain.shielded.close()

    assert await plain.counted() == 1
    assert await plain.activations() == []


async def test_caller_who_leaves_while_it_waits_changes_nothing(
    plain: Front,
) -> None:
    """The work goes on without anybody to tell."""
    request = await new_request(plain)
    call = plain.start(plain.command(request))
    activation = await plain.rung()

    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await plain.work_off()

    assert (await plain.core.view(request)).state is R.SIGNED
    assert (await plain.core.activation_state(activation))[0] is ActivationState.DONE


async def test_sign_without_the_record_is_unavailable(tmp_path: Path) -> None:
    """The database is away: 503, and nobody is rung for."""
    url = f"postgresql://rubrica@/none?host={tmp_path}&port=5432"
    store = SqlStore(open_engines(core_settings(tmp_path, url)), SystemClock(), "test")
    core = CoreParts(core_settings(tmp_path), clock=None, store=store)  # type: ignore[arg-type]  # never asked
    limits = SigningSettings()
    attempts = Attempts(
        store,
        SigningPasswords(KeyRing.of(b"p" * 32), HashSlots(1)),
        SystemClock(),
        limits,
        INSTALLATION,
    )
    authorizing = Authorizing(
        store,
        attempts,
        SigningHost(tmp_path).hosts(store, SystemClock()),
        core.doorbell,
        SystemClock(),
        limits,
        Stamping(core.settings.stamp, core.settings.verify_url),
    )
    signing = Signing(store, authorizing, core.outcomes, limits, Shielded())
    signer = Signer("x", "person:x", (), SystemClock().now())  # type: ignore[arg-type]  # an id

    with pytest.raises(ApplianceError) as caught:
        await signing.sign(
            SignCommand(RequestId(1), SignParameters(), PASSWORD), signer
        )

    assert caught.value.code is C.STORE_UNAVAILABLE
    assert core.doorbell.rung == []
    await store.close()
