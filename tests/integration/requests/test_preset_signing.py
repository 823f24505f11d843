"""Signing a request that brings look and place, on each database.

Source: docs/api.md, "The look and place of a signature".
"""

from typing import Any

import pytest
from sqlalchemy import select

from appliance.database.tables import activation_item, signature_request, signing_batch
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.domain.requests.preset import SignaturePreset
from appliance.domain.requests.request import SignCommand
from appliance.domain.requests.signing_batch import BatchOutcome, SignBatch
from appliance.domain.signing_command import GivenParameters, SignParameters
from appliance.domain.vocab import RequestState
from appliance.settings import SigningSettings
from appliance.signing.batch_store import BatchStore
from appliance.signing.sign_batch import BatchSigning
from tests.support.factories.signing_front import WRONG, SigningFront
from tests.support.installation.record import PASSWORD

pytestmark = pytest.mark.storage

C, R = ErrorCode, RequestState
OF = GivenParameters.of
PRESET = SignaturePreset(OF(page=2, x=40, y=60, font_color="BLUE"))
FIXED = SignaturePreset(PRESET.given, fixed=True)


def command(
    request: RequestId, password: bytes = PASSWORD, key: str | None = None, **given: Any
) -> SignCommand:
    """A call of firmar that gives some fields."""
    return SignCommand(request, OF(**given), password, idempotency_key=key)


async def signed_with(front: SigningFront, request: RequestId) -> SignParameters:
    """The parameters that a request was signed with, and their fingerprint is right."""
    async with front.core.store.read() as transaction:
        row = (
            await transaction.connection.execute(
                select(activation_item).where(activation_item.c.request == request)
            )
        ).one()
    params = SignParameters.from_wire(row.params)
    view = await front.core.view(request)
    assert row.params_sha256 == view.params_sha256 == params.sha256(request)
    return params


async def test_request_has_its_preset_and_old_ones_have_none(
    front: SigningFront,
) -> None:
    """Stored under the names of the spec; none is null."""
    with_one = await front.new_request(preset=FIXED)
    without = await front.new_request()
    async with front.core.store.read() as transaction:
        rows = await transaction.connection.execute(
            select(signature_request.c.preset).order_by(signature_request.c.id)
        )
        stored = list(rows.scalars())

    assert (await front.core.view(with_one)).preset == FIXED
    assert (await front.core.view(without)).preset is None
    told = {"fontColor": "BLUE", "page": 2, "x": 40, "y": 60, "fijo": True}
    assert stored == [told, None]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, PRESET.given.params),
        ({"x": 10, "y": 20}, OF(page=2, x=10, y=20, font_color="BLUE").params),
        ({"page": 1}, OF(page=1, x=40, y=60, font_color="BLUE").params),
        ({"font_color": "RED"}, OF(page=2, x=40, y=60, font_color="RED").params),
        ({"visible": False}, PRESET.given.also(visible=False).params),
    ],
)
async def test_call_is_signed_by_what_it_gives_and_else_by_the_preset(
    front: SigningFront, given: dict[str, Any], made: SignParameters
) -> None:
    """And repeating it gives the stored answer, without a password."""
    request = await front.new_request(preset=PRESET)

    first = await front.signed(command(request, **given))

    assert await signed_with(front, request) == made
    assert await front.sign(command(request, WRONG, **given)) == first
    assert len(await front.activations()) == 1
    assert await front.code(command(request, zoom_percent=50)) is C.ALREADY_SIGNED


async def test_same_look_in_other_words_is_the_same_command(
    front: SigningFront,
) -> None:
    """What counts is what is signed, for the key of a call too."""
    request = await front.new_request(preset=PRESET)
    first = await front.signed(command(request, key="k"))

    assert await front.sign(command(request, key="k", page=2)) == first
    assert await front.code(command(request, key="k", page=1)) is C.IDEMKEY_CONFLICT


async def test_fixed_look_and_place_are_refused_otherwise(
    front: SigningFront,
) -> None:
    """Before the password, and named; what leaves them alone is signed."""
    request = await front.new_request(preset=FIXED)

    with pytest.raises(ApplianceError) as caught:
        await front.sign(command(request, WRONG, x=1, y=60, font_color="RED"))
    assert caught.value.code is C.PRESET_FIXED
    assert caught.value.extras["fields"] == ["fontColor", "x"]
    assert await front.counted() == 0
    assert (await front.core.view(request)).state is R.PENDING

    first = await front.signed(command(request, reason="Conforme"))
    assert first.document is not None
    assert await front.sign(command(request, reason="Conforme")) == first
    # Of what is signed, that is what is told.
    assert await front.code(command(request, page=1)) is C.ALREADY_SIGNED


async def test_preset_that_the_document_has_no_room_for_is_told_as_ever(
    front: SigningFront,
) -> None:
    """Such as one of a page that there is no more."""
    request = await front.new_request(preset=SignaturePreset(OF(page=3)))

    assert await front.code(command(request)) is C.PAGE_OUT_OF_RANGE
    assert (await front.signed(command(request, page=1))).document is not None


# -- several at once -----------------------------------------------------------------


def batch_signing(front: SigningFront, **settings: float) -> BatchSigning:
    """firmar/lote of the same face."""
    limits = SigningSettings.model_validate({"wait_s": 60, **settings})
    return BatchSigning(front.core.store, front.signing, front.core.clock, limits)


def told(outcome: BatchOutcome) -> list[str]:
    """Each request's result in a word."""
    return [
        item.problem.code.value
        if item.problem
        else ("signed" if item.document else "going on")
        for item in outcome.items
    ]


async def test_each_request_of_a_batch_has_its_own_look(front: SigningFront) -> None:
    """One command and one password; what is fixed is refused for itself."""
    plain = await front.new_request()
    own = await front.new_request(preset=PRESET)
    fixed = await front.new_request(preset=FIXED)
    requests = (plain, own, fixed)
    batch = SignBatch(requests, OF(font_color="RED"), PASSWORD)
    signing = batch_signing(front, wait_s=0.01)

    going_on = await signing.sign(batch, front.signer)
    assert told(going_on) == ["going on", "going on", "PRESET_FIXED"]
    await front.work_off()

    # Whoever looks how it goes on, and whoever repeats the call.
    later = await signing.progress(front.signer.person, going_on.id)
    again = await signing.sign(batch, front.signer)
    for outcome in (later, again):
        assert outcome.id == going_on.id
        assert told(outcome) == ["signed", "signed", "PRESET_FIXED"]
    assert await signed_with(front, plain) == SignParameters(font_color="RED")
    assert await signed_with(front, own) == PRESET.given.also(font_color="RED").params
    assert len(await front.activations()) == 2


async def test_batches_that_differ_by_what_they_leave_open_are_two(
    front: SigningFront,
) -> None:
    """`page` 1 said is not `page` left to the preset."""
    request = await front.new_request(preset=PRESET)
    left, said = (SignBatch((request,), each, PASSWORD) for each in (OF(), OF(page=1)))
    signing = batch_signing(front, wait_s=0.01)

    first = await signing.sign(left, front.signer)
    other = await signing.sign(said, front.signer)
    await front.work_off()

    assert first.id != other.id
    assert told(other) == ["IN_PROGRESS"]
    assert told(await signing.progress(front.signer.person, first.id)) == ["signed"]


async def test_batch_without_presets_is_stored_as_before_and_old_rows_are_read(
    front: SigningFront,
) -> None:
    """The parameters alone; with a preset there is more beside them."""
    plain, own = await front.new_request(), await front.new_request(preset=PRESET)
    signing = batch_signing(front, wait_s=0.01)
    batches = [SignBatch((each,), OF(page=1), PASSWORD) for each in (plain, own)]
    ids = [(await signing.sign(each, front.signer)).id for each in batches]

    async with front.core.store.read() as transaction:
        rows = await transaction.connection.execute(
            select(signing_batch.c.id, signing_batch.c.params)
        )
        stored = {row.id: row.params for row in rows}
        kept = await BatchStore(transaction).get(ids[0])

    wire = SignParameters().to_wire()
    assert stored[ids[0]] == wire
    made = OF(page=1, x=40, y=60, font_color="BLUE").params
    assert stored[ids[1]] == {**wire, "fingerprints": {str(own): made.sha256(own)}}
    assert kept is not None
    assert kept.fingerprint(plain) == SignParameters().sha256(plain)
    # As an earlier version reads the new ones.
    assert SignParameters.from_wire(stored[ids[1]]) == SignParameters()
    await front.work_off()


async def test_request_of_somebody_else_tells_nothing_of_its_preset(
    front: SigningFront,
) -> None:
    """It is as absent as ever."""
    other = await front.core.add_signer()
    request = await front.core.add_request(other.person, preset=FIXED)

    assert await front.code(command(request, page=1)) is C.SOLICITUD_NOT_FOUND
