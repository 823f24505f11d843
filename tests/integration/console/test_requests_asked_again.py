"""A failed request is asked for again once, and nothing of it is lost."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from appliance.database.tables import integrator, signature_request, signing_process
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.requests.process import NamedBy, ProcessFilter
from appliance.domain.requests.request import RequestView
from appliance.domain.vocab import RequestState, SignatureLevel
from appliance.requests.process_store import ProcessStore
from appliance.requests.request_store import RequestStore
from tests.integration.console.forms import ANA, LUIS, failed_request, open_acme_console
from tests.support.factories.fake_sandbox import DAMAGED_PDF
from tests.support.installation.console import PDF, Console

_DIGITS = ANA.replace("-", "")


@pytest.fixture
async def console(tmp_path: Path, each_url: str) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in, on each database."""
    async with open_acme_console(tmp_path, each_url) as made:
        yield made


async def processes(console: Console) -> int:
    """How many processes there are."""
    async with console.services.store.read() as transaction:
        query = select(func.count()).select_from(signing_process)
        return int((await transaction.connection.execute(query)).scalar_one())


async def view_of(console: Console, number: int) -> RequestView:
    """A request that there is."""
    async with console.services.store.read() as transaction:
        view = await RequestStore(transaction).get(RequestId(number))
    assert view is not None
    return view


async def set_all(console: Console, **columns: object) -> None:
    """Change every request that there is."""
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(signature_request).values(**columns)
        )


async def test_two_who_ask_at_once_get_one_request(console: Console) -> None:
    """Whoever comes later, or sends the form twice, is led to it."""
    await console.person()
    failed = await failed_request(console)
    again = console.front.request_again

    first, second = await asyncio.gather(
        *(again.ask(failed, actor, "consola") for actor in ("console:a", "console:b"))
    )
    third = await console.post(f"/admin/requests/{failed}/again")

    assert first == second
    assert third.location == f"/admin/requests/{first}"
    assert await processes(console) == 2


async def test_pages_lead_from_one_to_the_other(console: Console) -> None:
    """No button is left on the old one, and the first page counts it no more."""
    await console.person()
    failed = await failed_request(console)
    numbers, _ = await console.front.views.home()
    assert numbers.failed == 1

    made = (await console.post(f"/admin/requests/{failed}/again")).location

    old = (await console.get(f"/admin/requests/{failed}")).text
    assert "Pedir de nuevo" not in old
    assert f'href="{made}"' in old
    new = (await console.get(made or "")).text
    assert f'href="/admin/requests/{failed}"' in new
    assert "En lugar de" in new
    numbers, _ = await console.front.views.home()
    assert numbers.failed == 0


async def test_each_signer_is_led_to_their_own_request(console: Console) -> None:
    """Of several, whichever of the old requests is looked at."""
    await console.person()
    await console.person(LUIS)
    await console.upload(
        "/admin/requests", PDF, "a.pdf", integrator="acme", cuil=ANA, then=LUIS, days=""
    )
    await set_all(console, state=RequestState.FAILED.value, reason="TSA_UNAVAILABLE")
    await console.post("/admin/requests/2/again")

    for old, new in ((1, 3), (2, 4)):
        assert (
            f'href="/admin/requests/{new}"'
            in (await console.get(f"/admin/requests/{old}")).text
        )
        assert (
            f'href="/admin/requests/{old}"'
            in (await console.get(f"/admin/requests/{new}")).text
        )


async def test_signer_stays_named_as_the_backend_named_them(console: Console) -> None:
    """Else a backend that asked by CUIL loses the process in its list."""
    await console.person()
    failed = await failed_request(console)
    await set_all(console, named_by=NamedBy.CUIL.value)

    made = await console.front.request_again.ask(failed, "console:a", "consola")

    whose = IntegratorId((await view_of(console, made)).integrator)
    async with console.services.store.read() as transaction:
        found = await ProcessStore(transaction).matching(
            whose, ProcessFilter(cuil=_DIGITS)
        )
        shown = (await ProcessStore(transaction).signers([made]))[made]
    assert [place for place, _ in found] == [made, failed]
    assert shown.cuil == _DIGITS


async def test_wishes_of_the_integrator_are_not_made_the_requests_own(
    console: Console,
) -> None:
    """What is changed of its profile later holds for the new request as well."""
    await console.person()
    failed = await failed_request(console)
    async with console.services.store.write() as transaction:
        await transaction.connection.execute(
            update(integrator).values(level=SignatureLevel.B_LTA.value)
        )

    made = await console.front.request_again.ask(failed, "console:a", "consola")

    async with console.services.store.read() as transaction:
        requests = RequestStore(transaction)
        old = await requests.as_asked((await view_of(console, failed)).process)
        new = await requests.as_asked((await view_of(console, made)).process)
    assert new[made] == old[failed]
    assert new[made].wishes.level is None


async def test_repaired_copy_stays_one(console: Console) -> None:
    """Its signer is told so, and the file that came can be downloaded."""
    await console.person()
    await console.upload(
        "/admin/requests", DAMAGED_PDF, "a.pdf", integrator="acme", cuil=ANA, days=""
    )
    await set_all(console, state=RequestState.FAILED.value, reason="TSA_UNAVAILABLE")

    made = await console.front.request_again.ask(RequestId(1), "console:a", "consola")

    old, new = await view_of(console, 1), await view_of(console, made)
    assert new.repair is not None
    assert new.repair == old.repair
    assert new.repair.original_sha256 == hashlib.sha256(DAMAGED_PDF).hexdigest()
    assert new.inspection == old.inspection
    received = await console.get(f"/admin/requests/{made}/received")
    assert received.status == 200
