"""Download links over real storage."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select

from appliance.database import tables as tables_of
from appliance.domain.ids import RequestId
from appliance.domain.vocab import EventKind
from tests.support.installation.api import ApiServices
from tests.support.installation.installation import Installation

ONE, TWO = RequestId(1), RequestId(2)


@pytest.fixture
async def api_services(tmp_path: Path, each_url: str) -> AsyncIterator[ApiServices]:
    """Storage with two requests."""
    async with Installation(tmp_path, database={"url": each_url}).api() as made:
        person, _ = await made.add_person()
        await made.add_requests(person, ONE, TWO)
        yield made


async def test_link_opens_its_request_alone(api_services: ApiServices) -> None:
    """A link leads to one document."""
    clave = await api_services.links.mint(ONE)

    assert await api_services.links.open(clave, ONE)
    assert not await api_services.links.open(clave, TWO)


@pytest.mark.parametrize(("after_s", "opens"), [(899, True), (900, False)])
async def test_link_ends_with_its_time(
    api_services: ApiServices, after_s: int, *, opens: bool
) -> None:
    """A link opens for 15 minutes."""
    clave = await api_services.links.mint(ONE)

    api_services.clock.forward(after_s)

    assert await api_services.links.open(clave, ONE) is opens


@pytest.mark.parametrize(
    "clave", ["", "x", "é" * 43, "A" * 43, "A" * 10_000, "\0" * 43]
)
async def test_link_refused_when_unknown(api_services: ApiServices, clave: str) -> None:
    """What is no link opens nothing."""
    await api_services.links.mint(ONE)

    assert not await api_services.links.open(clave, ONE)


async def test_link_stored_as_hash(api_services: ApiServices) -> None:
    """The database never holds the secret of a link, and each is new."""
    one, two = await api_services.links.mint(ONE), await api_services.links.mint(ONE)

    async with api_services.store._engines.reader.connect() as connection:
        rows = (await connection.execute(select(tables_of.download_link))).all()

    assert one != two
    assert len(one) == 43
    assert len(rows) == 2
    assert one not in repr(rows)


async def test_link_audited(api_services: ApiServices) -> None:
    """Making a link is told by the audit, without its secret."""
    clave = await api_services.links.mint(ONE, "person:x")

    async with api_services.store.read() as transaction:
        (row,) = await transaction.audit.of_request(ONE)

    assert (row.event.event, row.event.actor) == (EventKind.LINK_CREATED, "person:x")
    assert clave not in repr(row)
