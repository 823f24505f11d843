"""Pictures of pages: drawn once, bounded, refusals too."""

import asyncio
from typing import Any

import pytest

from appliance.admission.work_owner import WORK_OWNER, WorkOwner, working_for
from appliance.documents import page_pictures
from appliance.documents.page_pictures import PagePictures, PageWanted
from appliance.domain.appearance.details import LogoPicture
from appliance.domain.appearance.stamp import StampLayout
from appliance.domain.errors import ApplianceError, DocumentRefusedError, ErrorCode
from appliance.domain.ids import IntegratorId
from tests.support.factories.fake_sandbox import PlayedSandbox

ACME, BETA = IntegratorId("acme"), IntegratorId("beta")


class Desk(PlayedSandbox):
    """Draws when it is let, and counts."""

    def __init__(self) -> None:
        self.drawn: list[tuple[bytes, int, int]] = []
        self.owners: list[WorkOwner] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.failure: Exception | None = None
        self.picture_bytes = 100

    async def get(self, integrator: IntegratorId, sha256: str) -> bytes:
        """A document, as the store gives it."""
        return f"{integrator} {sha256}".encode()

    async def render(
        self,
        pdf: bytes,
        page: int,
        stamp: StampLayout | None,
        dpi: int,
        picture: LogoPicture | None = None,
    ) -> bytes:
        """See `PdfInspector`."""
        del stamp, picture
        self.drawn.append((pdf, page, dpi))
        self.owners.append(WORK_OWNER.get())
        await self.go_on.wait()
        if self.failure is not None:
            raise self.failure
        return b"\x89PNG".ljust(self.picture_bytes, b".")


def pictures(services: Any, most_bytes: int = 1_000) -> PagePictures:
    """Pictures over a desk that is documents and sandbox in one."""
    return PagePictures(services, services, most_bytes)


def page(
    number: int, integrator: IntegratorId = ACME, sha256: str = "aa", dpi: int = 96
) -> PageWanted:
    """Which one."""
    return PageWanted(integrator, sha256, number, dpi)


async def test_each_is_drawn_once() -> None:
    """By integrator, document, page and scale."""
    services = Desk()
    kept = pictures(services)
    wanted = [page(1), page(2), page(1, BETA), page(1, sha256="bb"), page(1, dpi=48)]

    for each in [*wanted, *wanted]:
        assert (await kept.get(each)).startswith(b"\x89PNG")

    assert len(services.drawn) == len(set(services.drawn)) == 5


async def test_who_asks_meanwhile_waits_for_the_same_job() -> None:
    """And whoever leaves takes the picture from nobody."""
    services = Desk()
    services.go_on.clear()
    kept = pictures(services)
    asked = [asyncio.create_task(kept.get(page(1))) for _ in range(40)]
    await asyncio.sleep(0)
    asked[0].cancel()
    await asyncio.sleep(0)
    services.go_on.set()

    drawn = await asyncio.gather(*asked[1:])

    assert len(set(drawn)) == 1
    assert len(services.drawn) == 1


async def test_a_page_that_cannot_be_drawn_costs_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its refusal is told again, and tried again only after a while."""
    services = Desk()
    services.failure = DocumentRefusedError(ErrorCode.PDF_TOO_COMPLEX, "too slow")
    kept = pictures(services, 2_000)
    for _ in range(3):
        with pytest.raises(DocumentRefusedError) as caught:
            await kept.get(page(1))
        assert caught.value.code is ErrorCode.PDF_TOO_COMPLEX
    assert len(services.drawn) == 1

    monkeypatch.setattr(page_pictures, "_REFUSAL_S", -1)
    services.drawn.clear()
    for _ in range(2):
        with pytest.raises(DocumentRefusedError):
            await kept.get(page(2))
    assert len(services.drawn) == 2


async def test_a_failure_of_ours_is_not_kept() -> None:
    """The sandbox may be back the next time."""
    services = Desk()
    services.failure = ApplianceError(ErrorCode.SANDBOX_UNAVAILABLE)
    kept = pictures(services)
    with pytest.raises(ApplianceError):
        await kept.get(page(1))

    services.failure = None

    assert await kept.get(page(1))


async def test_memory_is_bounded() -> None:
    """What was not asked for the longest goes first; what is too large never stays."""
    services = Desk()
    kept = pictures(services, 1_000)
    for number in range(1, 11):
        await kept.get(page(number))
    await kept.get(page(1))
    services.drawn.clear()

    await kept.get(page(11))
    await kept.get(page(1))
    await kept.get(page(2))

    assert [number for _, number, _ in services.drawn] == [11, 2]
    services.picture_bytes = 1_001
    services.drawn.clear()
    await kept.get(page(20))
    await kept.get(page(20))
    await kept.get(page(1))
    assert [number for _, number, _ in services.drawn] == [20, 20]


async def test_a_sessions_surplus_is_refused_and_another_integrator_is_served() -> None:
    """Of forty pages two are drawn, some wait, the rest is told at once."""
    services = Desk()
    services.go_on.clear()
    kept = pictures(services)
    with working_for(ACME, "session:1"):
        asked = [asyncio.create_task(kept.get(page(number))) for number in range(1, 41)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(services.drawn) == 2
    over = [task for task in asked if task.done()]
    assert len(over) == 30
    for task in over:
        error = task.exception()
        assert isinstance(error, ApplianceError)
        assert error.code is ErrorCode.OVERLOADED

    with working_for(BETA, "session:2"):
        other = asyncio.create_task(kept.get(page(1, BETA)))
    for _ in range(5):
        await asyncio.sleep(0)

    assert services.owners[-1] == WorkOwner("beta", "session:2")
    services.go_on.set()
    await other
    await asyncio.gather(*asked, return_exceptions=True)
