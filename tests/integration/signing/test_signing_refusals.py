"""What stands in the way of firmar, told before the password is looked at.

Source: decisions "seeing before signing", "restriccion".
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from appliance.domain.errors import ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.requests.request import SignCommand
from appliance.domain.signing_command import SignParameters
from appliance.domain.vocab import PersonState, RequestState, Restriction
from appliance.requests.request_store import RequestStore
from tests.support.factories.signing_front import WRONG, SigningFront, beat

C, R = ErrorCode, RequestState


async def test_request_of_somebody_else_is_absent(
    sqlite_front: SigningFront,
) -> None:
    """Whoever has it: the same answer as for none."""
    other = await sqlite_front.core.add_signer()
    request = await sqlite_front.core.add_request(other.person)

    codes = [
        await sqlite_front.code(sqlite_front.command(request)),
        await sqlite_front.code(sqlite_front.command(RequestId(2**53 - 1))),
    ]

    assert codes == [C.SOLICITUD_NOT_FOUND] * 2


Arrange = Callable[[SigningFront], Awaitable[SignCommand]]


async def _page(front: SigningFront) -> SignCommand:
    return front.command(await front.new_request(), SignParameters(page=3))


async def _position(front: SigningFront) -> SignCommand:
    return front.command(await front.new_request(), SignParameters(x=590, y=0))


async def _locked(front: SigningFront) -> SignCommand:
    return front.command(await front.new_request(docmdp=1))


async def _certify_signed(front: SigningFront) -> SignCommand:
    params = SignParameters(restriction=Restriction.FORM_FILLING)
    return front.command(await front.new_request(signatures=1), params)


async def _changed(front: SigningFront) -> SignCommand:
    return front.command(await front.new_request(), if_match="00" * 32)


async def _expired(front: SigningFront) -> SignCommand:
    return front.command(await front.new_request(expires=front.core.now))


async def _no_credential(front: SigningFront) -> SignCommand:
    signer = await front.core.add_signer(front.secret, credential=False)
    front.signer = signer
    return front.command(await front.new_request())


async def _disabled(front: SigningFront) -> SignCommand:
    front.signer = await front.core.add_signer(front.secret, state=PersonState.DISABLED)
    return front.command(await front.new_request())


async def _certificate_over(front: SigningFront) -> SignCommand:
    await front.core.add_credential(front.signer.person, not_after=front.core.now)
    return front.command(await front.new_request())


async def _certificate_to_come(front: SigningFront) -> SignCommand:
    await front.core.add_credential(
        front.signer.person, not_before=front.core.now + timedelta(seconds=1)
    )
    return front.command(await front.new_request())


async def _worker_gone(front: SigningFront) -> SignCommand:
    front.core.clock.forward(15)
    return front.command(await front.new_request())


async def _hsm_away(front: SigningFront) -> SignCommand:
    await beat(front.core, hsm="unavailable")
    return front.command(await front.new_request())


async def _chores_alone(front: SigningFront) -> SignCommand:
    front.core.clock.forward(15)
    await beat(front.core, slot="chores/h/1")
    return front.command(await front.new_request())


async def _rejected(front: SigningFront) -> SignCommand:
    request = await front.new_request()
    async with front.core.store.write() as transaction:
        await RequestStore(transaction).move(
            request, R.PENDING, R.REJECTED, "SIGN_LOCKED"
        )
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
    sqlite_front: SigningFront, arrange: Arrange, code: ErrorCode
) -> None:
    """What stands in the way is told whatever the password, and counts nothing."""
    command = await arrange(sqlite_front)

    refused = await sqlite_front.code(replace(command, password=WRONG))

    assert refused is code
    assert await sqlite_front.counted() == 0
    assert await sqlite_front.activations() == []
    assert sqlite_front.core.work_notifier.notified == []


async def test_one_ready_worker_is_enough(sqlite_front: SigningFront) -> None:
    """Of two workers one has its HSM."""
    await beat(sqlite_front.core, slot="signing/h/2", hsm="unavailable")

    outcome = await sqlite_front.signed(
        sqlite_front.command(await sqlite_front.new_request())
    )

    assert outcome.document is not None


async def test_certified_document_may_be_approved(
    sqlite_front: SigningFront,
) -> None:
    """P = 2 and earlier signatures allow one more, without a stamp of its own."""
    request = await sqlite_front.new_request(docmdp=2, signatures=1)
    hidden = SignParameters(visible=False)

    assert await sqlite_front.code(sqlite_front.command(request)) is C.PDF_CERTIFIED
    assert (
        await sqlite_front.signed(sqlite_front.command(request, hidden))
    ).document is not None


async def test_if_match_of_the_document_passes(sqlite_front: SigningFront) -> None:
    """The hash that was seen is the one that is signed."""
    request = await sqlite_front.new_request()
    sha256 = (await sqlite_front.core.view(request)).sha256

    outcome = await sqlite_front.signed(sqlite_front.command(request, if_match=sha256))

    assert outcome.document is not None


async def test_file_sent_along_must_be_the_document(
    sqlite_front: SigningFront,
) -> None:
    """Other bytes are refused before the password; the very bytes pass."""
    pdf = b"%PDF-1.7 this one"
    request = await sqlite_front.new_request(sha256=hashlib.sha256(pdf).hexdigest())

    other = await sqlite_front.code(
        sqlite_front.command(request, password=WRONG), pdf + b"\n"
    )
    call = asyncio.create_task(sqlite_front.sign(sqlite_front.command(request), pdf))
    await sqlite_front.notified()
    await sqlite_front.work_off()

    assert other is C.DOCUMENT_MISMATCH
    assert (await call).document is not None
