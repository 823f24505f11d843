"""What is deleted by itself when it is of no more use."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.core.idempotency_store import IdempotencyStore
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.requests.request_store import RequestStore
from appliance.signing.expiry import ExpiryJob
from tests.support.faces.api_services import Parts, open_parts
from tests.support.factories.fakes import FakeCompletionNotifier

ONE = RequestId(1)


@pytest.fixture
async def parts(tmp_path: Path, each_url: str) -> AsyncIterator[Parts]:
    """Storage with a request."""
    async with open_parts(tmp_path, database={"url": each_url}) as made:
        person, _ = await made.add_person()
        await made.add_requests(person, ONE)
        yield made


def sweeping_of(parts: Parts) -> ExpiryJob:
    """The reconciler over the parts' record and clock."""
    return ExpiryJob(parts.store, FakeCompletionNotifier(), parts.clock)


async def test_forget_deletes_ended_links_alone(parts: Parts) -> None:
    """Ended links go, living ones stay."""
    await parts.links.mint(ONE)
    parts.clock.forward(901)
    clave = await parts.links.mint(ONE)

    assert await sweeping_of(parts).forget() == 1
    assert await parts.links.open(clave, ONE)


async def test_forget_deletes_tries_of_two_days_ago(parts: Parts) -> None:
    """Old tries to sign in go, once."""
    with pytest.raises(ApplianceError):
        await parts.login.login("nadie@example.com", b"not-the-password", "192.0.2.1")
    parts.clock.forward(3 * 86_400)

    assert (await sweeping_of(parts).forget(), await sweeping_of(parts).forget()) == (
        1,
        0,
    )


async def test_forget_keeps_a_check_of_a_signing_password_for_a_day(
    parts: Parts,
) -> None:
    """Checks go after a day, not before."""
    async with parts.store.write() as transaction:
        view = await RequestStore(transaction).get(ONE)
        assert view is not None
        await PasswordAttemptStore(transaction).take(
            view.person, ONE, parts.clock.now()
        )
    parts.clock.forward(86_399)

    assert await sweeping_of(parts).forget() == 0
    parts.clock.forward(2)
    assert await sweeping_of(parts).forget() == 1


async def test_forget_deletes_old_idempotency_keys_a_batch_at_a_time(
    parts: Parts,
) -> None:
    """A key in its time still stands for its first use; an older one for nothing."""
    now, month = parts.clock.now(), timedelta(days=30)
    async with parts.store.write() as transaction:
        for number in range(1200):
            await IdempotencyStore(transaction).remember("ana", f"{number}", "one", now)
        young = now + timedelta(seconds=2)
        await IdempotencyStore(transaction).remember("ana", "young", "one", young)
    parts.clock.forward(month.total_seconds() + 1)

    swept = [await sweeping_of(parts).forget() for _ in range(3)]

    assert swept == [1000, 200, 0]
    async with parts.store.write() as transaction:
        await IdempotencyStore(transaction).remember(
            "ana", "7", "another", parts.clock.now()
        )
        with pytest.raises(ApplianceError) as caught:
            await IdempotencyStore(transaction).remember("ana", "young", "another", now)
    assert caught.value.code is ErrorCode.IDEMKEY_CONFLICT
