"""Items, and what follows from them for their activation, on both databases.

Source: design §3, 4.
"""

import pytest
from sqlalchemy import select

from appliance.database.tables import activation_item
from appliance.domain.vocab import ActivationState, ItemState
from appliance.signing.activations.activation_store import ActivationStore
from tests.integration.signing.claims import claimed
from tests.support.installation.record import DIGEST, MADE, CoreFixture

A = ActivationState


async def test_settle_follows_the_items(core: CoreFixture) -> None:
    """Keyed one by one, finished one by one: the state follows the last."""
    activation = await core.add_activation(await core.add_signer(), items=3)
    found = await claimed(core)
    states = []

    async with core.store.write() as transaction:
        for seq in range(3):
            await ActivationStore(transaction).intend(found, {seq: DIGEST}, core.now)
            await ActivationStore(transaction).record_signatures(
                found, {seq: MADE}, core.now
            )
            await ActivationStore(transaction).settle(found, core.now)
            states.append((await ActivationStore(transaction).state(activation))[0])
        for seq in range(3):
            await ActivationStore(transaction).publish(found, [seq])
            await ActivationStore(transaction).settle(found, core.now)
            states.append((await ActivationStore(transaction).state(activation))[0])

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
    sqlite_core: CoreFixture, ends: str, state: ActivationState, reason: str
) -> None:
    """`done` with one signed, `failed` with none, and not before all have ended."""
    core = sqlite_core
    activation = await core.add_activation(await core.add_signer(), items=3)
    found = await claimed(core)

    async with core.store.write() as transaction:
        for seq, end in enumerate(ends):
            if end in "kd":
                await ActivationStore(transaction).intend(
                    found, {seq: DIGEST}, core.now
                )
                await ActivationStore(transaction).record_signatures(
                    found, {seq: MADE}, core.now
                )
            if end == "d":
                await ActivationStore(transaction).publish(found, [seq])
            if end == "f":
                await ActivationStore(transaction).document_failed(found, seq, "X")
            await ActivationStore(transaction).settle(
                found, core.now, "X" * (end == "f")
            )

    assert (await core.activation_state(activation))[0] is state
    if state is not A.DONE:
        assert (await core.activation_state(activation))[1] == reason


async def test_resume_starts_at_the_first_unsigned_item(core: CoreFixture) -> None:
    """Who claims again gets what was keyed, ready to be finished."""
    await core.add_activation(await core.add_signer(), items=3)
    first = await claimed(core)
    async with core.store.write() as transaction:
        await ActivationStore(transaction).intend(first, {0: DIGEST}, core.now)
        await ActivationStore(transaction).record_signatures(first, {0: MADE}, core.now)
        await ActivationStore(transaction).publish(first, [0])
        await ActivationStore(transaction).intend(first, {1: DIGEST}, core.now)
        await ActivationStore(transaction).record_signatures(first, {1: MADE}, core.now)
    core.clock.forward(10)

    again = await claimed(core)

    done, keyed, waiting = again.documents
    assert [item.state for item in again.documents] == [
        ItemState.DONE,
        ItemState.KEYED,
        ItemState.WAITING,
    ]
    assert keyed.signature == MADE
    # What was kept to publish a document is of no more use.
    assert done.signature is None
    kept = select(activation_item.c.increment, activation_item.c.signed_attributes)
    async with core.store._engines.reader.connect() as connection:
        found = await connection.execute(kept.where(activation_item.c.seq == 0))
    assert found.all() == [(None, None)]
    assert waiting.signature is None
