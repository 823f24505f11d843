"""Signed documents that nobody takes to their level are told of."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from appliance.domain.clock import Clock
from appliance.domain.errors import ErrorCode
from appliance.domain.ids import IntegratorId, RequestId
from appliance.domain.requests.levels import Upkeep, UpkeepCount
from appliance.domain.vocab import SignatureLevel
from appliance.record.unit_of_work import Database
from appliance.requests.request_store import RequestStore
from appliance.signing.level_maintenance import (
    UpkeepWork,
    upkeep_counts,
    upkeep_overdue,
)
from appliance.signing.level_maintenance_store import LevelMaintenanceStore
from tests.integration.console.forms import ANA, open_acme_console
from tests.support.installation.console import Console
from tests.support.installation.record import CoreFixture
from worker.signing.level_maintenance import OverdueUpkeep

L = SignatureLevel
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    """A console with the integrator `acme`, signed in."""
    async with open_acme_console(tmp_path) as made:
        yield made


async def owe(
    store: Database,
    clock: Clock,
    request: RequestId,
    integrator: IntegratorId,
    wanted: SignatureLevel = L.B_LT,
) -> None:
    """Have a document need something from now on."""
    now = clock.now()
    async with store.write() as transaction:
        await LevelMaintenanceStore(transaction).add(
            request, integrator, Upkeep(wanted, now), now
        )


async def fail(store: Database, clock: Clock, rest: timedelta) -> None:
    """A try that does not get on, and is put off."""
    work = UpkeepWork(store, clock, "signing/h/1")
    claim = await work.claim_next()
    assert claim is not None
    assert await work.failed(claim, ErrorCode.TSA_UNAVAILABLE, rest)


async def test_what_was_put_off_is_due_since_it_fell_due(core: CoreFixture) -> None:
    """The next try is later; the document has waited all the same, until it is had."""
    signer = await core.add_signer()
    request = await core.add_request(signer.person)
    await owe(core.store, core.clock, request, (await core.view(request)).integrator)
    since = core.clock.now()
    for _ in range(2):
        assert await upkeep_overdue(core.store, core.clock) == []
        await fail(core.store, core.clock, 30 * MINUTE)
        core.clock.forward(30 * 60)

    expected = UpkeepCount(L.B_LT, True, "TSA_UNAVAILABLE", 1, 1, since)  # noqa: FBT003 (is_below)
    assert await upkeep_counts(core.store, core.clock) == [expected]
    assert await upkeep_overdue(core.store, core.clock) == [expected]

    work = UpkeepWork(core.store, core.clock, "signing/h/1")
    claim = await work.claim_next()
    assert claim is not None
    following = Upkeep(L.B_LTA, core.clock.now() + 9 * HOUR)
    async with core.store.write() as transaction:
        assert await LevelMaintenanceStore(transaction).done(claim, following)
    assert await upkeep_overdue(core.store, core.clock) == []
    (later,) = await upkeep_counts(core.store, core.clock)
    assert (later.overdue, later.oldest, later.reason) == (0, following.due, "")


async def test_log_tells_of_it_every_hour(sqlite_core: CoreFixture) -> None:
    """With a code, also where no worker has tried; and not before an hour."""
    core = sqlite_core
    signer = await core.add_signer()
    tried, untried = [await core.add_request(signer.person) for _ in range(2)]
    integrator = (await core.view(tried)).integrator
    await owe(core.store, core.clock, tried, integrator)
    await fail(core.store, core.clock, 6 * HOUR)
    await owe(core.store, core.clock, untried, integrator, L.B_LTA)
    overdue = OverdueUpkeep(core.store, core.clock)
    since = core.clock.now().isoformat(timespec="seconds")

    with capture_logs() as logs:
        await overdue.run()
        core.clock.forward(3600)
        for _ in range(3):
            await overdue.run()
        core.clock.forward(3600)
        await overdue.run()

    told = [entry for entry in logs if entry["event"] == "upkeep.overdue"]
    by_code = sorted((e["code"], e["what"], e["wanted"], e["documents"]) for e in told)
    assert by_code == sorted(
        [
            ("NOT_TRIED", "raise", "B-LTA", 1),
            ("TSA_UNAVAILABLE", "raise", "B-LT", 1),
        ]
        * 2
    )
    assert {entry["since"] for entry in told} == {since}


async def test_console_tells_of_it(console: Console) -> None:
    """A number on the home page, and why on the page of health."""
    waiting = "Firmas que esperan su nivel"
    assert waiting not in (await console.get("/admin/health")).text
    await console.person()
    store, clock = console.services.store, console.clock
    for wanted in (L.B_LT, L.B_LT, L.B_LTA):
        request = RequestId(await console.request(ANA.replace("-", "")))
        async with store.read() as transaction:
            view = await RequestStore(transaction).get(request)
        assert view is not None
        await owe(store, clock, request, view.integrator, wanted)
    for _ in range(2):
        await fail(store, clock, 6 * HOUR)
    clock.forward(3700)
    await console.sign_in()

    home = (await console.get("/admin/")).text
    health = (await console.get("/admin/health")).text

    assert "<b>3</b> <span>documentos firmados que esperan su nivel" in home
    assert waiting in health
    assert "2 documentos que deben llegar a B-LT" in health
    assert "RubricaLevelsBehind en docs/alerts.md" in health
    assert "No se consigue un sello de tiempo." in health
    assert "Ningún worker lo intentó" in health
