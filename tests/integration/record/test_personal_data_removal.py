"""What is deleted by itself when it is of no more use."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import RequestId
from appliance.keys.password_attempt_store import PasswordAttemptStore
from appliance.record.idempotency_store import IdempotencyStore
from appliance.requests.request_store import RequestStore
from appliance.signing.expiry import ExpiryJob
from tests.support.factories.fakes import FakeCompletionNotifier
from tests.support.installation.api import ApiServices
from tests.support.installation.installation import Installation

ONE = RequestId(1)


@pytest.fixture
async def api_services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """Storage with a request."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        person, _ = await made.add_person()
        await made.add_requests(person, ONE)
        yield made


def sweeping_of(api_services: ApiServices) -> ExpiryJob:
    """The reconciler over the parts' record and clock."""
    return ExpiryJob(api_services.store, FakeCompletionNotifier(), api_services.clock)


async def test_forget_deletes_ended_links_alone(api_services: ApiServices) -> None:
    """Ended links go, living ones stay."""
    await api_services.links.mint(ONE)
    api_services.clock.forward(901)
    clave = await api_services.links.mint(ONE)

    assert await sweeping_of(api_services).forget() == 1
    assert await api_services.links.open(clave, ONE)


async def test_forget_deletes_tries_of_two_days_ago(api_services: ApiServices) -> None:
    """Old tries to sign in go, once."""
    with pytest.raises(ApplianceError):
        await api_services.login.login(
            "nadie@example.com", b"not-the-password", "192.0.2.1"
        )
    api_services.clock.forward(3 * 86_400)

    assert (
        await sweeping_of(api_services).forget(),
        await sweeping_of(api_services).forget(),
    ) == (
        1,
        0,
    )


async def test_forget_keeps_a_check_of_a_signing_password_for_a_day(
    api_services: ApiServices,
) -> None:
    """Checks go after a day, not before."""
    async with api_services.store.write() as transaction:
        view = await RequestStore(transaction).get(ONE)
        assert view is not None
        await PasswordAttemptStore(transaction).take(
            view.person, ONE, api_services.clock.now()
        )
    api_services.clock.forward(86_399)

    assert await sweeping_of(api_services).forget() == 0
    api_services.clock.forward(2)
    assert await sweeping_of(api_services).forget() == 1


async def test_forget_deletes_old_idempotency_keys_a_batch_at_a_time(
    api_services: ApiServices,
) -> None:
    """A key in its time still stands for its first use; an older one for nothing."""
    now, month = api_services.clock.now(), timedelta(days=30)
    async with api_services.store.write() as transaction:
        for number in range(1200):
            await IdempotencyStore(transaction).remember("ana", f"{number}", "one", now)
        young = now + timedelta(seconds=2)
        await IdempotencyStore(transaction).remember("ana", "young", "one", young)
    api_services.clock.forward(month.total_seconds() + 1)

    swept = [await sweeping_of(api_services).forget() for _ in range(3)]

    assert swept == [1000, 200, 0]
    async with api_services.store.write() as transaction:
        await IdempotencyStore(transaction).remember(
            "ana", "7", "another", api_services.clock.now()
        )
        with pytest.raises(ApplianceError) as caught:
            await IdempotencyStore(transaction).remember("ana", "young", "another", now)
    assert caught.value.code is ErrorCode.IDEMKEY_CONFLICT
