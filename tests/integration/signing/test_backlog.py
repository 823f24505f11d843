"""What waits for a worker, and since when, on both databases."""

from datetime import timedelta

from appliance.domain.errors import ErrorCode
from appliance.record.backlog_store import Backlog, BacklogStore
from appliance.signing.activations.activation_store import ActivationStore
from tests.integration.signing.claims import a_timestamp, claimed
from tests.support.installation.record import DIGEST, MADE, CoreFixture


async def waiting(core: CoreFixture, *, outside: bool) -> Backlog:
    """What the record says now."""
    async with core.store.read() as transaction:
        return await BacklogStore(transaction).activations(core.now, outside=outside)


async def test_what_a_worker_has_in_hand_does_not_wait(core: CoreFixture) -> None:
    """It waits again once its lease has ended, and only since then."""
    came = core.now
    await core.add_activation(await core.add_signer(), claim_s=3600)
    before = await waiting(core, outside=False)
    claim = await claimed(core)
    meanwhile = await waiting(core, outside=False)
    async with core.store.write() as transaction:
        ends = core.now + timedelta(seconds=600)
        await ActivationStore(transaction).put_off(claim, ends, "")
    core.clock.forward(601)

    assert before == Backlog(1, came)
    assert meanwhile == Backlog(0, None)
    assert await waiting(core, outside=False) == Backlog(1, ends)


async def test_what_waits_for_a_tsa_waits_while_it_is_put_off(
    core: CoreFixture,
) -> None:
    """Whoever looks at the queue between two tries sees it, with all of its age."""
    came = core.now
    await core.add_activation(await core.add_signer(), claim_s=3600)
    claim = await claimed(core)
    async with core.store.write() as transaction:
        assert await ActivationStore(transaction).intend(claim, {0: DIGEST}, core.now)
        assert await ActivationStore(transaction).record_signatures(
            claim, {0: MADE}, core.now
        )
        await ActivationStore(transaction).settle(claim, core.now)
    assert await core.claiming().want(claim, [a_timestamp()])
    core.clock.forward(120)
    job = await core.fetching().claim_next()
    assert job is not None
    waits_for, rest = ErrorCode.TSA_UNAVAILABLE, timedelta(seconds=50)
    await core.fetching().end(job, has_news=False, waits_for=waits_for, rest=rest)

    assert await waiting(core, outside=True) == Backlog(1, came)
    assert await waiting(core, outside=False) == Backlog(0, None)
