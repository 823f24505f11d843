"""Changes of a request and links of a person that come at once, on both databases."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from appliance.database.tables import enrolment
from appliance.domain.errors import ApplianceError, ErrorCode
from appliance.domain.ids import ProcessId, RequestId
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.domain.vocab import EventKind, VouchedBy
from appliance.integration.requests.order import ProcessChange
from appliance.integrators.integrator_store import IntegratorStore
from appliance.requests.request_store import RequestStore
from tests.support.installation.api import ApiServices
from tests.support.installation.installation import Installation

pytestmark = pytest.mark.storage
ONE = RequestId(1)


@pytest.fixture
async def api_services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """Storage with a request of the integrator `demo`."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        person, _ = await made.add_person()
        await made.add_requests(person, ONE)
        yield made


async def asked(api_services: ApiServices) -> tuple[IntegratorCaller, ProcessId]:
    """Whose backend asks, and its process."""
    async with api_services.store.read() as transaction:
        view = await RequestStore(transaction).get(ONE)
        assert view is not None
        found = await IntegratorStore(transaction).get("demo")
    assert found is not None
    return IntegratorCaller(found, "0" * 12), view.process


async def test_changes_at_once_keep_each_other(api_services: ApiServices) -> None:
    """Of several fields that are written at once all are there."""
    asking, process = await asked(api_services)
    changes = ({"message": "a"}, {"reference": "b"}, {"metadata": {"c": "d"}})

    await asyncio.gather(
        *(
            api_services.backend_requests.change(asking, process, ProcessChange(each))
            for each in changes
        )
    )

    details = await api_services.backend_requests.get(asking.integrator.id, process)
    note = details.process.note
    assert (note.message, note.reference, note.metadata) == ("a", "b", {"c": "d"})


async def test_nothing_is_said_after_it_was_taken_back(
    api_services: ApiServices,
) -> None:
    """Of changes and a cancellation at once, those that come later are refused."""
    asking, process = await asked(api_services)
    requests = api_services.backend_requests

    async def say(number: int) -> ErrorCode | None:
        change = ProcessChange({"message": str(number)})
        try:
            await requests.change(asking, process, change)
        except ApplianceError as refusal:
            return refusal.code
        return None

    told = await asyncio.gather(
        *(say(n) for n in range(3)),
        requests.cancel(asking, process, ""),
        *(say(n) for n in range(3, 6)),
    )

    assert {each for each in told if isinstance(each, ErrorCode)} <= {ErrorCode.STATE}
    history = await requests.history(asking.integrator.id, process)
    kinds = [event.event for event in history]
    assert kinds[-1] is EventKind.REQUEST_CANCELLED


async def test_of_links_at_once_one_is_open(api_services: ApiServices) -> None:
    """Each ends those before it, whoever came first."""
    invitations = api_services.invitations
    await invitations.invite(
        "operator", "20055361682", "Ana", "ana@demo.example", VouchedBy.OFFICER
    )

    await asyncio.gather(
        *(invitations.renew("operator", "20055361682") for _ in range(6))
    )

    async with api_services.store.read() as transaction:
        open_ones = select(func.count()).where(
            enrolment.c.until > api_services.clock.now()
        )
        assert (await transaction.connection.execute(open_ones)).scalar_one() == 1
